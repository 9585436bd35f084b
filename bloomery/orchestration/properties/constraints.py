"""What a value must keep to: the constraints of parameters and of properties."""

from __future__ import annotations

from typing import Any, Protocol


class Constraint(Protocol):
    description: str | None

    def refusal(self, value: Any) -> str | None:
        """Why ``value`` breaks the constraint, as one sentence for users; None if it does not."""

    def shown(self) -> dict[str, Any]:
        """The constraint as resource types show it, such as ``{"range": {"min": 1}}``."""
