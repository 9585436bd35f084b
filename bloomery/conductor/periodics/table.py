"""The register of periodics, and what runs them.

A job takes the runtime and nothing else, may be run at any time, twice, or after a crash, and
does not retry itself: the period does, which goes from start to start.  Jobs run in workers; how
they stand shows in /metrics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from bloomery import errors, secrets
from bloomery.conductor.periodics import (
    agents,
    allocations,
    bios_registries,
    boot_files,
    consoles,
    leases,
    orphans,
    power_recovery,
    power_sync,
    strays,
    timeouts,
    trim_conductors,
    trim_history,
)
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conf.conductor import Conductor
from bloomery.model.request import Request, in_name_of

LOG = logging.getLogger(__name__)

_NO_WORKER_RETRY_S: Final = 1.0
_TOKENS_EVERY_S: Final = 600.0
_BOOT_FILES_EVERY_S: Final = 600.0
_LEAST_REST: Final = 0.25  # of its period, for a job that takes all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """One job: ``every_s`` reads its period from the options, 0 switches it off.

    ``at_start``: it runs first when the conductor starts, not a period later.
    """

    name: str
    every_s: Callable[[Conductor], float]
    make: Callable[[ConductorRuntime], Callable[[], None]]
    why: str
    at_start: bool = False


TABLE: Final[tuple[Periodic, ...]] = (
    Periodic(
        name="sync_power",
        every_s=lambda c: c.sync_power_state_interval,
        make=power_sync.make,
        why="rows drift when someone presses the button",
    ),
    Periodic(
        name="recover_power",
        every_s=lambda c: c.power_failure_recovery_interval,
        make=power_recovery.make,
        why="a BMC that was gone may be back",
    ),
    Periodic(
        name="time_out",
        every_s=lambda c: c.check_provision_state_interval,
        make=timeouts.make,
        why="a machine that does not boot never calls",
    ),
    Periodic(
        name="adopt_orphans",
        every_s=lambda c: c.check_provision_state_interval,
        make=orphans.make,
        why="a flow that nobody walks would be stuck for good",
    ),
    Periodic(
        name="watch_leases",
        every_s=lambda c: c.heartbeat_interval / 2,  # a death is seen one interval late at most
        make=leases.make,
        why="no reservation may outlive its holder",
    ),
    Periodic(
        name="free_strays",
        every_s=lambda c: c.check_provision_state_interval,
        make=strays.make,
        why="a release that was lost would keep a node from everybody",
    ),
    Periodic(
        name="adopt_allocations",
        every_s=lambda c: c.check_allocations_interval,
        make=allocations.make,
        why="who waits for a node must outlive the conductor that looked for one",
    ),
    Periodic(
        name="take_over_consoles",
        every_s=lambda c: c.check_provision_state_interval,
        make=consoles.make,
        why="a console ends with the conductor that started it",
        at_start=True,
    ),
    Periodic(
        name="trim_history",
        every_s=lambda c: c.node_history_cleanup_interval,
        make=trim_history.make,
        why="histories grow",
    ),
    Periodic(
        name="trim_steps",
        every_s=lambda c: c.step_flows_cleanup_interval,
        make=trim_history.make_steps,
        why="so do the journals of flows",
    ),
    Periodic(
        name="trim_conductors",
        every_s=lambda c: c.conductor_cleanup_interval,
        make=trim_conductors.make,
        why="hosts are given new names and never come back",
    ),
    Periodic(
        name="trim_commit_tokens",
        every_s=lambda c: _TOKENS_EVERY_S,
        make=trim_history.make_tokens,
        why="each transaction on a database server leaves one",
    ),
    Periodic(
        name="remove_boot_files",
        every_s=lambda c: _BOOT_FILES_EVERY_S,
        make=boot_files.make,
        why="a conductor that dies leaves those that it has built",
    ),
    Periodic(
        name="explain_bios",
        every_s=lambda c: 1.0,
        make=bios_registries.make,
        why="a registry is too long for a person who waits for manage",
    ),
    Periodic(name="ask_agents", every_s=lambda c: 1.0, make=agents.make, why="drivers may poll"),
)


@dataclass(slots=True)
class JobState:
    """How a job is doing, on the monotonic clock."""

    runs: int = 0
    last_started: float | None = None
    last_took_s: float | None = None
    last_error: str | None = None


@runtime_checkable
class Poller(Protocol):
    """A job that looks at many nodes, which may take a while."""

    def stop(self) -> None:
        """Begin no further look."""

    def lag_s(self) -> float:
        """Return for how long the node that waits longest should have been looked at."""

    def suspects(self) -> int:
        """Return how many nodes did not answer the last time."""


class Periodics:
    """Runs the table until it is stopped."""

    def __init__(self, runtime: ConductorRuntime, table: tuple[Periodic, ...] = TABLE) -> None:
        self._runtime = runtime
        self._table = table
        self._stopped = False
        self._pollers: dict[str, Poller] = {}
        self.states = {periodic.name: JobState() for periodic in table}

    def ages_s(self) -> dict[tuple[str, ...], float]:
        """Return the seconds since each job last began; jobs that never ran are left out."""
        now = time.monotonic()
        began = {name: one.last_started for name, one in self.states.items()}
        return {(name,): now - at for name, at in began.items() if at is not None}

    def failing(self) -> dict[tuple[str, ...], float]:
        """Return 1 for each job whose last run failed, 0 for the others."""
        return {(name,): float(one.last_error is not None) for name, one in self.states.items()}

    def lags_s(self) -> dict[tuple[str, ...], float]:
        """Return how far behind each job is that looks at nodes."""
        return {(name,): one.lag_s() for name, one in self._pollers.items()}

    def suspects(self) -> dict[tuple[str, ...], float]:
        """Return how many nodes did not answer each job that looks at nodes."""
        return {(name,): float(one.suspects()) for name, one in self._pollers.items()}

    def start(self) -> None:
        for periodic in self._table:
            every_s = periodic.every_s(self._runtime.conf.conductor)
            if every_s > 0:
                job = periodic.make(self._runtime)
                self._note_looker(periodic.name, job)
                self._arm(periodic, job, every_s)

    def _note_looker(self, name: str, job: object) -> None:
        if isinstance(job, Poller):
            self._pollers[name] = job

    def stop(self) -> None:
        """Start no further run; those that go on end with the workers, after this node."""
        self._stopped = True
        for poller in self._pollers.values():
            poller.stop()

    def _arm(self, periodic: Periodic, job: Callable[[], None], every_s: float) -> None:
        def due() -> None:
            if self._stopped:
                return
            try:
                self._runtime.workers.spawn(run)
            except errors.NoFreeConductorWorker:
                self._runtime.timers.after(_NO_WORKER_RETRY_S, due)

        def run() -> None:
            try:
                with in_name_of(Request.new()):
                    self._run(periodic, job)
            finally:
                took_s = self.states[periodic.name].last_took_s or 0.0
                rest_s = max(every_s - took_s, every_s * _LEAST_REST)
                self._runtime.timers.after(rest_s, due)

        self._runtime.timers.after(0 if periodic.at_start else every_s, due)

    def _run(self, periodic: Periodic, job: Callable[[], None]) -> None:
        state = self.states[periodic.name]
        state.last_started = time.monotonic()
        try:
            job()
            state.last_error = None
        except Exception as exc:  # noqa: BLE001  the supervisor of jobs: the period tries again
            state.last_error = secrets.brief(exc)
            LOG.error("periodic %s failed: %s", periodic.name, secrets.report(exc))  # noqa: TRY400
        state.runs += 1
        state.last_took_s = time.monotonic() - state.last_started
