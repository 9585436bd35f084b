"""An entry of a node's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bloomery.model.fields import Field, FieldTable, table

POWER_CORRECTION: Final = "power sync"  # the event_type of power sync
POWER_CORRECTIONS_KEPT: Final = timedelta(days=1)  # how long a correction is counted and explained


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One row of ``node_history``; ``duration_seconds`` counts from the last change of state."""

    uuid: str
    node_uuid: str
    created_at: datetime
    severity: str
    event: str
    event_type: str | None = None
    conductor: str | None = None
    user: str | None = None
    project: str | None = None
    state: str | None = None
    target_provision_state: str | None = None
    duration_seconds: float | None = None
    request_id: str | None = None


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid"),
    Field("created_at", "time"),
    Field("severity", "text"),
    Field("event", "text"),
    Field("event_type", "text"),
    Field("conductor", "text"),
    Field("user", "text"),
    Field("project", "text", since=113),
    Field("state", "text", since=115),
    Field("target_provision_state", "text", since=115),
    Field("duration_seconds", "int", since=115),
)
