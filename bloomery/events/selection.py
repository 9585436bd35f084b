"""Which events somebody is told of, and how each is shown: as JSON, secrets masked.

selection = Selection(event_type="baremetal.node", project="c0ffee")
selection.takes(stored)                    # asked for, and of that project
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from bloomery.db.events import Stored

LAST_ERROR: Final = "last_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """``event_type``: whole words from the left, such as ``baremetal.node.power_set``.

    ``project``: events of what belongs, or is lent, to that project; None: of everybody.
    ``hides_errors_from``: those of a project whom ``last_error`` is not shown: owner, lessee.
    """

    event_type: str | None = None
    object: str | None = None
    object_uuid: str | None = None
    project: str | None = None
    hides_errors_from: frozenset[str] = frozenset()

    def takes(self, stored: Stored) -> bool:
        """Is this event asked for, and may it be seen?"""
        if self.object_uuid is not None and stored.object_uuid != self.object_uuid:
            return False
        if self.object is not None and stored.object != self.object:
            return False
        if self.project is not None and self._role(stored) is None:
            return False
        kind = self.event_type
        return kind is None or f"{stored.event_type}.".startswith(f"{kind}.")

    def _role(self, stored: Stored) -> str | None:
        if stored.owner == self.project:
            return "owner"
        return "lessee" if stored.lessee == self.project else None

    def hides_error(self, stored: Stored) -> bool:
        return self.project is not None and self._role(stored) in self.hides_errors_from


def document(stored: Stored, *, hides_error: bool = False) -> dict[str, Any]:
    """Return what is told of an event: who, what and when, and its facts, never a whole object."""
    facts: Any = orjson.Fragment(stored.facts_text)
    if hides_error and LAST_ERROR in stored.facts_text:
        facts = {name: value for name, value in stored.facts.items() if name != LAST_ERROR}
    return {
        "id": stored.id,
        "at": stored.created_at,
        "event_type": stored.event_type,
        "object_uuid": stored.object_uuid,
        "level": stored.level,
        "publisher": stored.publisher,
        "request_id": stored.request_id,
        "facts": facts,
    }


class Frames:
    """An event as server-sent events have it, encoded once for all who get the same."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._frames: dict[bool, bytes] = {}

    def of(self, selection: Selection) -> bytes:
        hides_error = selection.hides_error(self.stored)
        if hides_error not in self._frames:
            self._frames[hides_error] = frame(self.stored, hides_error=hides_error)
        return self._frames[hides_error]


def frame(stored: Stored, *, hides_error: bool = False) -> bytes:
    data = orjson.dumps(document(stored, hides_error=hides_error))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (stored.id, stored.event_type.encode(), data)
