"""The log that a BMC itself keeps of its machine (SEL), as both protocols report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import secrets

SEVERITIES: Final = ("OK", "Warning", "Critical")
MOST_ENTRIES: Final = 100
_LONGEST: Final = 300  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One entry; ``created_at`` by the BMC's clock, None where it had no time yet."""

    id: str
    created_at: datetime | None
    severity: str | None
    message: str

    def document(self) -> dict[str, Any]:
        at = self.created_at
        text = "".join(char if char.isprintable() else " " for char in self.message).strip()
        return {
            "id": self.id[:80],
            "created_at": None if at is None else at.astimezone(UTC).isoformat(),
            "severity": self.severity,
            "message": str(secrets.mask(text))[:_LONGEST],
        }


def document(
    name: str | None,
    total: int | None,
    clock_difference_s: float | None,
    entries: Sequence[LogEntry],
) -> dict[str, Any]:
    """Return a log with its newest entries first; see ``Management.read_bmc_log``."""
    numbered = sorted(
        enumerate(entries),
        key=lambda each: (each[1].created_at or datetime.min.replace(tzinfo=UTC), each[0]),
        reverse=True,
    )
    return {
        "name": name, "total": total, "clock_difference_s": clock_difference_s,
        "entries": [entry.document() for _, entry in numbered[:MOST_ENTRIES]],
    }  # fmt: skip
