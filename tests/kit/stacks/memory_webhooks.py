"""Webhooks of drains in memory, which answer as a test says.

webhooks = MemoryWebhooks([Answer(fault="busy"), None, Answer(is_drained=True)])
webhooks.calls   # [("id", {"type": "drain.requested", ...})], repetitions included
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.orchestration.resources.base import Answer


@dataclass
class MemoryWebhooks:
    """``answers``: of the next calls, None: it still lasts; afterwards each accepts the drain."""

    answers: list[Answer | None] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def post(
        self, call: str, webhook_id: str, webhook: Mapping[str, Any], body: Mapping[str, Any]
    ) -> Answer | None:
        self.calls.append((webhook_id, body))
        return self.answers.pop(0) if self.answers else Answer()

    def drains(self) -> list[tuple[str, str]]:
        """Return what came of which machine, once for each id.  Bodies of one id must be equal."""
        bodies: dict[str, Mapping[str, Any]] = {}
        for webhook_id, body in self.calls:
            assert bodies.setdefault(webhook_id, body) == body
        return [(each["data"]["comes"], each["data"]["node_name"]) for each in bodies.values()]
