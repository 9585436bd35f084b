"""The table of periodics, and their scheduler.

A job takes only the runtime, may run at any time, twice, or after a crash, and does not retry: the
next period does.  A period counts from start to start.  Jobs run in workers; /metrics shows them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

from bloomery import errors, secrets
from bloomery.conductor import allocator, console, hardware, recovery
from bloomery.conductor.periodics import (
    agents,
    boot_retries,
    flow_retries,
    housekeeping,
    leases,
    power_recovery,
    power_sync,
    sensors,
    timeouts,
)
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conf import Conf
from bloomery.model.request import Request, in_name_of

LOG = logging.getLogger(__name__)

_NO_WORKER_RETRY_S: Final = 1.0
_TOKENS_EVERY_S: Final = 600.0
_BOOT_FILES_EVERY_S: Final = 600.0
_FOLD_EVERY_S: Final = 2.0
_CHECK_COUNTS_EVERY_S: Final = 3600.0
_LONGEST_RETRY_CHECK_S: Final = 60.0
_LEAST_REST: Final = 0.25  # least pause, as a share of the period


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """One job: ``every_s`` reads its period from the options; 0 disables it.

    ``at_start``: the first run is at the conductor's start, not one period later.
    """

    name: str
    every_s: Callable[[Conf], float]
    make: Callable[[ConductorRuntime], Callable[[], object]]
    why: str
    at_start: bool = False


def _stateless(run: Callable[[ConductorRuntime], object]) -> Callable[..., Callable[[], object]]:
    """Return ``make`` of a job that keeps nothing between its runs."""
    return partial(partial, run)


TABLE: Final[tuple[Periodic, ...]] = (
    Periodic(
        name="sync_power", every_s=lambda conf: conf.conductor.sync_power_state_interval,
        make=power_sync.PowerSync, why="someone may press the power button",
    ),
    Periodic(
        name="recover_power", every_s=lambda conf: conf.conductor.power_failure_recovery_interval,
        make=power_recovery.PowerRecovery, why="a BMC that was gone may be back",
    ),
    Periodic(
        name="time_out", every_s=lambda conf: conf.conductor.check_provision_state_interval,
        make=lambda runtime: partial(timeouts.run, runtime, timeouts.Watch()),
        why="a machine that does not boot sends no heartbeat",
    ),
    Periodic(
        name="retry_boots",
        every_s=lambda conf: (
            conf.pxe.boot_retry_check_interval if conf.pxe.boot_retry_timeout else 0
        ),
        make=boot_retries.make, why="DHCP and TFTP may lose a boot",
    ),
    Periodic(
        name="retry_flows",
        every_s=lambda conf: (
            min(conf.conductor.failed_flow_retry_delay, _LONGEST_RETRY_CHECK_S)
            if conf.conductor.failed_flow_retries else 0
        ),
        make=_stateless(flow_retries.run),
        why="a BMC that was busy or gone for a while fails a cleaning",
    ),
    Periodic(
        name="adopt_orphans", every_s=lambda conf: conf.conductor.check_provision_state_interval,
        make=_stateless(recovery.adopt_all), why="a flow without a worker would never end",
    ),
    Periodic(
        name="watch_leases", every_s=lambda conf: conf.conductor.heartbeat_interval / 2,
        make=lambda runtime: leases.Leases(runtime).run,
        why="no reservation may outlive its holder",  # a death is seen one interval late at most
    ),
    Periodic(
        name="free_strays", every_s=lambda conf: conf.conductor.check_provision_state_interval,
        make=lambda runtime: leases.Strays(runtime).run, why="a lost release would block a node",
    ),
    Periodic(
        name="adopt_allocations", every_s=lambda conf: conf.conductor.check_allocations_interval,
        make=_stateless(allocator.adopt),
        why="an allocation must outlive the conductor that searched its node",
    ),
    Periodic(
        name="take_over_consoles",
        every_s=lambda conf: conf.conductor.check_provision_state_interval,
        make=_stateless(console.take_over_all),
        why="a console ends with the conductor that started it", at_start=True,
    ),
    Periodic(
        name="send_sensors",
        every_s=lambda conf: conf.sensor_data.interval if conf.sensor_data.send_sensor_data else 0,
        make=sensors.SendSensors, why="temperatures change", at_start=True,
    ),
    Periodic(
        name="trim_history", every_s=lambda conf: conf.conductor.node_history_cleanup_interval,
        make=_stateless(housekeeping.trim_history), why="histories grow",
    ),
    Periodic(
        name="trim_steps", every_s=lambda conf: conf.conductor.step_flows_cleanup_interval,
        make=_stateless(housekeeping.trim_steps), why="the rows of ended flows grow",
    ),
    Periodic(
        name="fold_counts", every_s=lambda _conf: _FOLD_EVERY_S,
        make=_stateless(housekeeping.fold_counts),
        why="each change of a node appends two rows of counts",
    ),
    Periodic(
        name="check_counts", every_s=lambda _conf: _CHECK_COUNTS_EVERY_S,
        make=_stateless(housekeeping.check_counts), why="a restore of single tables loses triggers",
    ),
    Periodic(
        name="trim_conductors", every_s=lambda conf: conf.conductor.conductor_cleanup_interval,
        make=_stateless(housekeeping.trim_conductors), why="renamed hosts leave their rows",
    ),
    Periodic(
        name="trim_commit_tokens", every_s=lambda _conf: _TOKENS_EVERY_S,
        make=_stateless(housekeeping.trim_tokens),
        why="each transaction on a database server inserts one",
    ),
    Periodic(
        name="checkpoint", every_s=lambda conf: conf.conductor.sqlite_checkpoint_interval,
        make=lambda runtime: runtime.checkpoint,
        why="whoever copies SQLite's file alone must not lose more than a minute", at_start=True,
    ),
    Periodic(
        name="remove_boot_files", every_s=lambda _conf: _BOOT_FILES_EVERY_S,
        make=_stateless(housekeeping.remove_boot_files),
        why="a crashed conductor leaves its boot files",
    ),
    Periodic(
        name="explain_bios", every_s=lambda _conf: 1.0, make=_stateless(hardware.explain_bios),
        why="reading a registry takes too long for manage",
    ),
    Periodic(
        name="ask_agents", every_s=lambda _conf: 1.0, make=agents.make, why="drivers may poll",
    ),
)  # fmt: skip


@dataclass(slots=True)
class JobState:
    """The last run of a job, on the monotonic clock."""

    runs: int = 0
    last_started: float | None = None
    last_took_s: float | None = None
    last_error: str | None = None


@runtime_checkable
class Poller(Protocol):
    """A job that polls many nodes."""

    def stop(self) -> None:
        """Begin no further poll."""

    def lag_s(self) -> float:
        """Return for how many seconds the oldest poll is overdue."""

    def suspects(self) -> int:
        """Return how many nodes did not answer the last poll."""


class Periodics:
    """Runs the table until ``stop``."""

    def __init__(self, runtime: ConductorRuntime, table: tuple[Periodic, ...] = TABLE) -> None:
        self._runtime = runtime
        self._table = table
        self._stopped = False
        self._pollers: dict[str, Poller] = {}
        self.states = {periodic.name: JobState() for periodic in table}

    def ages_s(self) -> dict[tuple[str, ...], float]:
        """Return the seconds since each job last started, without jobs that never ran."""
        now = time.monotonic()
        began = {name: state.last_started for name, state in self.states.items()}
        return {(name,): now - at for name, at in began.items() if at is not None}

    def failing(self) -> dict[tuple[str, ...], float]:
        """Return 1 for each job whose last run failed, 0 for the others."""
        return {(name,): float(state.last_error is not None) for name, state in self.states.items()}

    def lags_s(self) -> dict[tuple[str, ...], float]:
        """Return the lag of each polling job."""
        return {(name,): poller.lag_s() for name, poller in self._pollers.items()}

    def suspects(self) -> dict[tuple[str, ...], float]:
        """Return the number of silent nodes of each polling job."""
        return {(name,): float(poller.suspects()) for name, poller in self._pollers.items()}

    def start(self) -> None:
        for periodic in self._table:
            every_s = periodic.every_s(self._runtime.conf)
            if every_s > 0:
                job: Any = periodic.make(self._runtime)
                if isinstance(job, Poller):
                    self._pollers[periodic.name] = job
                self._arm(periodic, job, every_s)

    def stop(self) -> None:
        """Start no further run; the pool ends running jobs."""
        self._stopped = True
        for poller in self._pollers.values():
            poller.stop()

    def _arm(self, periodic: Periodic, job: Callable[[], object], every_s: float) -> None:
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

    def _run(self, periodic: Periodic, job: Callable[[], object]) -> None:
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
