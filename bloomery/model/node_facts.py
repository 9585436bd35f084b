"""Facts of a node beside its attributes: its history, BIOS settings and firmware."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bloomery.model.fields import Field, FieldTable, table

POWER_CORRECTION: Final = "power sync"  # the event_type of power sync
ALARM: Final = "monitoring"  # the event_type of a machine's health, and of BMCs without answer
BMC_LOG: Final = "bmc log"  # the event_type of what the BMC logged while a flow failed
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


HISTORY: Final[FieldTable] = table(
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

BIOS: Final[FieldTable] = table(
    Field("name", "text"),
    Field("value", "text"),
    Field("attribute_type", "text", since=74),
    Field("allowable_values", "list", since=74),
    Field("lower_bound", "int", since=74),
    Field("upper_bound", "int", since=74),
    Field("min_length", "int", since=74),
    Field("max_length", "int", since=74),
    Field("read_only", "bool", since=74),
    Field("reset_required", "bool", since=74),
    Field("unique", "bool", since=74),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)

FIRMWARE: Final[FieldTable] = table(
    Field("component", "text"),
    Field("initial_version", "text"),
    Field("current_version", "text"),
    Field("last_version_flashed", "text"),
    Field("vendor", "text", since=114),
    Field("model", "text", since=114),
    Field("serial_number", "text", since=114),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)
