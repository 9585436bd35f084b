"""An engine process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One row of ``engines``; each start of a process has an ``engine_id`` of its own.

    ``heartbeat`` is a counter: an engine whose counter stands still is dead; clocks of other
    machines are not used.  ``report_interval``: seconds between heartbeats.  ``deleted_at``: the
    engine has retired, and its locks are free.
    """

    id: int
    engine_id: str
    host: str
    hostname: str
    binary: str
    topic: str
    report_interval: int
    heartbeat: int
    created_at: datetime
    updated_at: datetime | None
    deleted_at: datetime | None
