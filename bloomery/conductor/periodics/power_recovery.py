"""End the maintenance of nodes whose BMC answers again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from bloomery import clock as steady
from bloomery import errors, secrets
from bloomery.conductor import power, pulse, tasks, writes
from bloomery.conductor.pulse import Lane, gap_s
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import nodes
from bloomery.drivers.looks import NeedsTask
from bloomery.model.node import POWER_FAILURE
from bloomery.model.node_facts import ALARM
from bloomery.model.rules import nodes as rules

LOG = logging.getLogger(__name__)

SLOWEST_PACE: Final = 10.0  # polls begun in a second
LOOK_BUDGET_S: Final = 10.0
LONGEST_PAUSE: Final = 4  # intervals between two polls of a silent node
_ON_TIME: Final = 0.5  # intervals that a poll may be early


class PollState(NamedTuple):
    """When a faulty node is due, how often it was polled, and when last."""

    due_at: float
    polls: int
    polled_at: datetime | None = None


class PowerRecovery:
    """Polls faulty nodes, each after one interval, then two, then every ``LONGEST_PAUSE``.

    Dead nodes so leave time to those that come back.  A node whose BMC has answered meanwhile, or
    whose row has changed, is due at the next run.
    """

    def __init__(
        self,
        runtime: ConductorRuntime,
        *,
        clock: Callable[[], float] = time.monotonic,
        slow_after_s: float = pulse.SLOW_AFTER_S,
    ) -> None:
        ours = runtime.conf.conductor
        self._runtime, self._clock = runtime, clock
        self._interval_s = float(ours.power_failure_recovery_interval)
        self._states: dict[str, PollState] = {}
        self._changed_at: dict[str, datetime | None] = {}  # each node, as of the last run
        self._lane = Lane(
            runtime.pulse, self._ask,
            most=min(ours.periodic_max_workers, ours.workers_pool_size // 2),
            most_slow=ours.workers_pool_size // 8, slow_after_s=slow_after_s,
        )  # fmt: skip

    def run(self) -> None:
        """Begin to poll every faulty node of ours that is due, the longest waiting first."""
        shares = self._runtime.list_shares()
        with self._runtime.db.read() as conn:
            rows = nodes.list_with_fault(conn, shares, POWER_FAILURE)
        faulty = self._runtime.list_served(row.key for row in rows)
        self._changed_at = {row.key.uuid: row.changed_at for row in rows}
        now = self._clock()
        for uuid in self._states.copy().keys() - set(faulty):
            self._states.pop(uuid, None)
        for uuid in faulty:
            self._states.setdefault(uuid, PollState(due_at=now, polls=0))
        latest = now + self._interval_s * _ON_TIME
        due = sorted(
            (state.due_at, uuid)
            for uuid, state in self._states.copy().items()
            if state.due_at < latest or self._has_changed(uuid, state.polled_at)
        )
        self._lane.walk([uuid for _, uuid in due], gap_s(len(due), self._interval_s, SLOWEST_PACE))

    __call__ = run

    def stop(self) -> None:
        """Begin no further poll."""
        self._lane.stop()

    @property
    def is_idle(self) -> bool:
        return self._lane.is_idle

    def lag_s(self) -> float:
        """Return for how many seconds the oldest poll is overdue."""
        due_at = min((state.due_at for state in self._states.copy().values()), default=None)
        return 0.0 if due_at is None else max(self._clock() - due_at, 0.0)

    def suspects(self) -> int:
        return len(self._states)

    def _has_changed(self, uuid: str, since: datetime | None) -> bool:
        """Return whether the BMC answered, or the row changed, since the last poll."""
        has_changed = False
        if since is None:
            return has_changed
        with (
            tasks.skipping(uuid),
            tasks.shared(tasks.background_context(self._runtime), uuid) as task,
        ):
            changed_at = task.node.updated_at
            is_changed = changed_at is not None and changed_at > since
            has_changed = is_changed or task.driver.power.has_answered(task, since)
        return has_changed  # noqa: RET504  ``skipping`` may end the block before it is set

    async def _ask(self, uuid: str) -> None:
        """Ask a node's BMC; one that could not be asked keeps its turn."""
        look = self._runtime.pulse.look(uuid, self._changed_at.get(uuid))
        needs_task = look is None
        try:
            if look is not None:
                needs_task = (await look.read(LOOK_BUDGET_S)).power_state is not None
        except errors.BmcQueueTimeout as queued:
            LOG.debug("node %s: left to the next run: %s", uuid, queued)
            return
        except errors.BmcUnreachable as silent:
            LOG.info("node %s: still no power state: %s", uuid, secrets.brief(silent))
        except NeedsTask:
            needs_task = True
        if needs_task:
            await self._lane.in_worker(self._recover_in_task, uuid)
        polls = self._states[uuid].polls + 1 if uuid in self._states else 1
        due_at = self._clock() + self._interval_s * min(2 ** (polls - 1), LONGEST_PAUSE)
        self._states[uuid] = PollState(due_at=due_at, polls=polls, polled_at=steady.now())

    def _recover_in_task(self, uuid: str) -> None:
        context = tasks.background_context(self._runtime)
        with tasks.skipping(uuid), tasks.shared(context, uuid) as task:
            _recover(task)
            self._runtime.pulse.renew(task)


def _recover(task: TaskManager) -> None:
    try:
        task.driver.power.validate(task)
        actual = task.driver.power.get_power_state(task)
    except Exception as exc:  # noqa: BLE001  whatever it raises: still gone
        LOG.info("node %s: still no power state: %s", task.node.uuid, secrets.brief(exc))
        return
    if actual is None or actual == Power.ERROR:
        return
    task.upgrade_lock(purpose="power failure recovery", retry=False)
    node, was = task.node, task.node.power_state
    if not rules.end_fault(node, POWER_FAILURE):
        return
    node.power_state = actual
    text = "its BMC answers again: maintenance ends"
    entry = writes.history_entry(task.context, task.node, text, event_type=ALARM)
    task.save(entry, *(power.corrected(task, was) if was != actual else []))
    task.runtime.on_events_written()
