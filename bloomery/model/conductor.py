"""Conductor processes and their drivers, and engine processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bloomery.model.fields import Field, FieldTable, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Conductor:
    """One row of ``conductors``.

    ``heartbeat`` is a counter: a peer whose counter stands still is dead; clocks of other machines
    are not used.  ``incarnation`` is new with each start; None: the conductor signed off, or a peer
    declared it dead (``fenced_out_at``).  Online without an incarnation the conductor restarts,
    offline with one it finishes its work.  ``process`` is an encoded ``ProcessIdentity``.
    ``alive`` and ``silent_s`` (how long its counter stood still) are in no row: ``rpc.liveness``
    sets them.
    """

    id: int
    hostname: str
    conductor_group: str
    drivers: tuple[str, ...]
    online: bool
    heartbeat: int
    created_at: datetime
    updated_at: datetime | None
    incarnation: str | None = None
    process: str | None = None
    started_at: datetime | None = None
    fenced_out_at: datetime | None = None
    drain_ordered_at: datetime | None = None
    alive: bool = False
    silent_s: float = 0.0

    @property
    def state(self) -> str:
        """Return the state of the conductor, from its row."""
        if self.incarnation is not None:
            return "online" if self.online else "draining"
        if self.fenced_out_at is not None:
            return "dead"
        return "restarting" if self.online else "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnabledInterface:
    """One row of ``conductor_hardware_interfaces``: ``name`` works with ``hardware_type``."""

    hardware_type: str
    kind: str
    name: str
    default: bool


FIELDS: Final[FieldTable] = table(
    Field("hostname", "text"),
    Field("conductor_group", "text"),
    Field("alive", "bool", column=False),
    Field("drivers", "list"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


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
