"""Power sync: compare the recorded power state of each node with that of its BMC.

Counts failures per node; a BMC that stays silent puts its node into maintenance with the fault
``power failure``.  force_power_state_during_sync decides whether the machine or the record is
corrected; log, history and metrics record either.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Final

from bloomery import errors, secrets
from bloomery.conductor import power, pulse, states, steps, tasks, writes
from bloomery.conductor.pulse import Lane, gap_s
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.sensor_board import CRITICAL
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import history, nodes, rows
from bloomery.db.nodes import PowerRow
from bloomery.drivers.looks import Look, NeedsTask
from bloomery.metrics import METRICS
from bloomery.model.node import LEAKS, POWER_FAILURE, Node, RingKey
from bloomery.model.node_facts import ALARM, POWER_CORRECTION, POWER_CORRECTIONS_KEPT
from bloomery.model.rules import nodes as rules

LOG = logging.getLogger(__name__)

SLOWEST_PACE: Final = 100.0  # polls begun in a second: a quarter of a core, measured
_LEAST_UNUSED_S: Final = 3600.0
LOOK_BUDGET_S: Final = 10.0  # of each poll but the last before maintenance


class PowerSync:
    """Remembers between passes each node's failures and its last poll.

    A pass polls every node at a pace, by a look where there is one, else by a task.  A node that
    does not answer becomes a suspect: passes skip it, and it is polled after growing pauses.  It
    reaches maintenance within three quarters of three intervals.
    """

    def __init__(
        self,
        runtime: ConductorRuntime,
        *,
        clock: Callable[[], float] = time.monotonic,
        slow_after_s: float = pulse.SLOW_AFTER_S,
    ) -> None:
        ours = runtime.conf.conductor
        self._runtime, self._clock, self._pulse = runtime, clock, runtime.pulse
        self._most = ours.power_state_sync_max_retries
        self._interval_s = float(ours.sync_power_state_interval)
        self._longest_s = float(runtime.conf.bmc.call_timeout)
        self._rows: dict[str, PowerRow] = {}  # as the pass has read them
        self._failures: dict[str, int] = {}
        self._suspects: dict[str, float] = {}  # when each is asked again
        self._looked_at: dict[str, float] = {}
        self._lane = Lane(
            runtime.pulse, self._look,
            most=min(ours.sync_power_state_workers, ours.workers_pool_size // 2),
            most_slow=ours.workers_pool_size // 4, slow_after_s=slow_after_s,
        )  # fmt: skip

    def run(self) -> None:
        """Begin to poll every node of ours once, except suspects, which have times of their own."""
        shares = self._runtime.list_shares()
        with self._runtime.db.read() as conn:
            listed = nodes.list_for_power_sync(conn, shares)
        served = set(self._runtime.list_served(row.key for row in listed))
        self._rows = {row.key.uuid: row for row in listed if row.key.uuid in served}
        for memory in (self._failures, self._suspects, self._looked_at):
            for uuid in memory.copy().keys() - served:  # it starts again without failures
                memory.pop(uuid, None)
        self._pulse.drop_unused(self.unused_s)
        now = self._clock()
        for uuid in served:
            self._looked_at.setdefault(uuid, now)
        due = [uuid for uuid, due_at in self._suspects.copy().items() if due_at <= now]
        living = sorted(uuid for uuid in served if uuid not in self._suspects)  # mixes the racks
        self._lane.walk((*living, *due), gap_s(len(living), self._interval_s, SLOWEST_PACE))

    __call__ = run

    def stop(self) -> None:
        """Begin no further poll."""
        self._lane.stop()

    def lag_s(self) -> float:
        """Return for how many seconds the oldest poll is overdue."""
        oldest = min(self._looked_at.copy().values(), default=None)
        return 0.0 if oldest is None else max(self._clock() - oldest - self._interval_s, 0.0)

    def suspects(self) -> int:
        return len(self._suspects)

    @property
    def unused_s(self) -> float:
        """For how long nobody looks at a node whose look is kept: faulty ones are rarely asked."""
        return max(_LEAST_UNUSED_S, 2 * self._interval_s)

    @property
    def polls(self) -> int:
        """The number of nodes still to be polled, or being polled."""
        return len(self._lane)

    @property
    def is_idle(self) -> bool:
        return self._lane.is_idle

    async def _look(self, uuid: str) -> None:
        """Poll a node; what is not as the row has it is left to a task."""
        row, due_at = self._rows.get(uuid), self._suspects.get(uuid)
        try:
            look = None if row is None else self._pulse.look(uuid, row.changed_at)
            if look is None:
                row = await self._lane.in_worker(self._renew_or_sync, uuid)
                look = None if row is None else self._pulse.look(uuid, row.changed_at)
            if row is not None and (look is None or await self._needs_task(row, look)):
                await self._lane.in_worker(self._sync_in_task, uuid)
        except (errors.BmcQueueTimeout, errors.NoFreeConductorWorker) as queued:
            LOG.debug("node %s: left to the next pass: %s", uuid, queued)
            return
        finally:
            if self._suspects.get(uuid) == due_at:  # unless it failed again, passes have it back
                self._suspects.pop(uuid, None)
        self._looked_at[uuid] = self._clock()

    async def _needs_task(self, row: PowerRow, look: Look) -> bool:
        """Return whether a look reads anything but what the row has; count a silence here."""
        uuid = row.key.uuid
        count = self._failures.get(uuid, 0) + 1
        try:
            reading = await look.read(LOOK_BUDGET_S if count <= self._most else self._longest_s)
        except NeedsTask:
            self._pulse.drop(uuid)
            return True
        except errors.BmcQueueTimeout:
            raise
        except errors.BmcUnreachable as silent:
            why = secrets.brief(silent)
            if count > self._most:
                await self._lane.in_worker(self._give_up_in_task, row, count, why)
            else:
                self._suspect(uuid, count, why)
            return False
        ours = self._runtime.conf.conductor
        health = CRITICAL if uuid in self._runtime.sensors.leaking else reading.health
        if (
            reading.power_state != row.power_state
            or (health != row.health and ours.enable_health_monitoring)
            or (row.has_error and ours.node_history)
        ):
            return True
        self._failures.pop(uuid, None)
        return False

    def _ask_suspect(self, uuid: str, due_at: float) -> None:
        if self._suspects.get(uuid) == due_at:
            self._lane.put(uuid)

    def _renew_or_sync(self, uuid: str) -> PowerRow | None:
        """Return a node's row, with a look that asks its BMC as the row says now.

        A node without a look is polled here; it, and one at work, has no row.
        """
        with tasks.skipping(uuid), self._task(uuid) as task:
            node = task.node
            if node.reservation or not _is_idle(node):
                return None
            with contextlib.suppress(errors.Invalid):  # which the poll tells
                self._pulse.renew(task)
            if self._pulse.look(uuid, node.updated_at) is not None:
                key = RingKey(node.uuid, node.driver, node.conductor_group)
                has_error = node.last_error is not None and _may_forget(node)
                return PowerRow(key, node.updated_at, node.power_state, node.health, has_error)
            self._sync(task)
        return None

    def _sync_in_task(self, uuid: str) -> None:
        with tasks.skipping(uuid), self._task(uuid) as task:
            if not task.node.reservation and _is_idle(task.node):
                self._sync(task)

    def _task(self, uuid: str) -> AbstractContextManager[TaskManager]:
        count = self._failures.get(uuid, 0) + 1
        budget_s = LOOK_BUDGET_S if count <= self._most else None
        return tasks.shared(tasks.background_context(self._runtime), uuid, budget_s)

    def _give_up_in_task(self, row: PowerRow, count: int, why: str) -> None:
        """Give up a node after looks that failed, unless it was changed since: its BMC, perhaps."""
        uuid, context = row.key.uuid, tasks.background_context(self._runtime)
        with tasks.skipping(uuid), tasks.shared(context, uuid) as task:
            node, is_as_listed = task.node, task.node.updated_at == row.changed_at
            if is_as_listed and not node.reservation and _is_idle(node):
                self._failed(task, count, why)

    def _sync(self, task: TaskManager) -> None:
        node, count = task.node, self._failures.get(task.node.uuid, 0) + 1
        task.reads = {}  # one document has power and health
        try:
            task.driver.power.validate(task)
            actual = task.driver.power.get_power_state(task)
        except errors.BmcQueueTimeout as queued:
            LOG.debug("node %s: left to the next pass: %s", node.uuid, queued)
            return
        except errors.Invalid as unusable:
            if node.power_state is None:
                self._failures.pop(node.uuid, None)
                return
            self._failed(task, count, secrets.brief(unusable))
            return
        except Exception as exc:  # noqa: BLE001  whatever a driver raises counts as silence
            self._failed(task, count, secrets.brief(exc))
            return
        if actual == Power.ERROR:
            self._failed(task, count, "the BMC cannot tell the power state")
        elif actual == node.power_state:
            self._failures.pop(node.uuid, None)
            self._note_health(task)
            # the history has the error, and the node's state is not about it
            has_history = self._runtime.conf.conductor.node_history
            if node.last_error is not None and has_history and _may_forget(node):
                task.upgrade_lock(purpose="power sync", retry=False)
                task.node.last_error = None
                task.save()
        elif actual is not None:
            self._differs(task, actual, count)
        self._pulse.renew(task)

    def _note_health(self, task: TaskManager) -> None:
        """Record a change of the machine's health, in the row and in the history.

        A leak that the sensors told is critical, whatever the system says.
        """
        if not self._runtime.conf.conductor.enable_health_monitoring:
            return
        try:
            health = task.driver.management.get_node_health(task)
        except errors.Failure as unknown:
            LOG.debug("node %s: no health: %s", task.node.uuid, secrets.brief(unknown))
            return
        if self._runtime.conf.sensor_data.send_sensor_data and (
            task.node.driver_internal_info.get(LEAKS)
        ):
            health = CRITICAL
        if health == task.node.health:
            return
        task.upgrade_lock(purpose="health", retry=False)
        was, task.node.health = task.node.health, health
        task.save(writes.health_entry(task.context, task.node, was))

    def _failed(self, task: TaskManager, count: int, why: str) -> None:
        if count <= self._most:
            self._suspect(task.node.uuid, count, why)
            return
        self._failures[task.node.uuid] = count
        LOG.warning("node %s: power sync failed %d times: %s", task.node.uuid, count, why)
        self._give_up(task, None, f"power sync failed {count} times, at last with: {why}")

    def _suspect(self, uuid: str, count: int, why: str) -> None:
        """Count a failure, and ask again after a pause."""
        self._failures[uuid] = count
        LOG.warning("node %s: power sync failed %d times: %s", uuid, count, why)
        pause_s = retry_s(count, self._most, self._interval_s)
        self._suspects[uuid] = due_at = self._clock() + pause_s
        self._runtime.timers.after(pause_s, self._ask_suspect, uuid, due_at)

    def _give_up(self, task: TaskManager, actual: str | None, why: str) -> None:
        """Put the node into maintenance until its BMC answers or an operator acts."""
        task.upgrade_lock(purpose="power sync", retry=False)
        node, was = task.node, task.node.power_state
        if not _is_idle(node):
            return
        node.power_state, sentence = actual, writes.own_sentence(node, why)
        rules.begin_fault(node, POWER_FAILURE, sentence)
        if node.provision_state not in states.STATES_OF_ERRORS:
            node.last_error = sentence
        entry = writes.history_entry(task.context, node, sentence, event_type=ALARM, failed=True)
        task.save(entry, *power.corrected(task, was))
        self._failures.pop(node.uuid, None)
        self._runtime.on_events_written()

    def _differs(self, task: TaskManager, actual: str, count: int) -> None:
        """Correct a difference, unless others have had the node since: ``actual`` may be older."""
        polled_at = task.node.lock_generation
        task.upgrade_lock(purpose="power sync", retry=False)
        node, recorded = task.node, task.node.power_state
        was_taken = node.lock_generation != polled_at + 1
        if was_taken or not _is_idle(node) or recorded == actual:
            return
        force = self._runtime.conf.conductor.force_power_state_during_sync
        if recorded is None:
            self._follow(task, actual)
        elif count > self._most:
            self._give_up(task, actual, f"it is {actual} and could not be made {recorded}")
        elif (reason := _reason_to_follow(task, force=force)) is not None:
            change = f"was {actual}, recorded {recorded}: recorded {actual} now, because {reason}"
            self._follow(task, actual, _correction(task, actual, change, "recorded"))
        else:
            self._failures[node.uuid] = count
            with contextlib.ExitStack() as until_spawned:
                slot = until_spawned.enter_context(self._runtime.workers.slot())
                keep_error = node.provision_state in states.STATES_OF_ERRORS
                action = "switched on again" if recorded == Power.ON else "switched off again"
                change = f"was {actual}, recorded {recorded}: {action}"
                entry = _correction(task, actual, change, "driven")
                power.start_power(task, slot, recorded, entry, keep_error=keep_error)
                until_spawned.pop_all()  # the flow has the slot now

    def _follow(self, task: TaskManager, actual: str, *journal: EncodedWrite) -> None:
        recorded, task.node.power_state = task.node.power_state, actual
        task.save(*journal, *power.corrected(task, recorded))
        self._runtime.on_events_written()


def _reason_to_follow(task: TaskManager, *, force: bool) -> str | None:
    """Return why the record follows the machine, or None if the machine follows the record."""
    if not force:
        return "[conductor]force_power_state_during_sync is false"
    if task.node.disable_power_off:
        return "disable_power_off is set"
    if not task.driver.power.supports_power_sync(task):
        return f"power interface {task.node.power_interface} does not support power sync"
    parent = steps.power_parent(task) if task.node.power_state == Power.ON else None
    if parent is not None and parent.power_state == Power.OFF:
        return f"its parent {parent.uuid}, which gives it power, is off"
    return None


def _correction(task: TaskManager, actual: str, change: str, action: str) -> EncodedWrite:
    """Return the history entry of a machine in another state than recorded; count and log it.

    The entry names the number of the node's latest corrections and their time span.
    """
    METRICS.send_counter(f"power_corrections:{actual}:{action}", 1)
    now = rows.now()
    with task.runtime.db.read() as conn:
        earlier = history.list_of_type_since(
            conn, task.node.uuid, POWER_CORRECTION, now - POWER_CORRECTIONS_KEPT
        )
    sentence = f"power sync: {change}"
    if earlier:
        minutes = max(round((now - earlier[0][0]) / timedelta(minutes=1)), 1)
        span = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
        sentence += f", {len(earlier) + 1} times in {span}"
    task.log("%s", sentence, level=logging.WARNING)
    return writes.history_entry(
        task.context, task.node, sentence, event_type=POWER_CORRECTION, warns=True
    )


def _may_forget(node: Node) -> bool:
    """Return whether the node's state is not about its last error."""
    return node.provision_state not in states.STATES_OF_ERRORS


def _is_idle(node: Node) -> bool:
    """Return whether power sync may touch the node."""
    left_alone = (
        node.maintenance
        or node.provision_state in states.POWER_SYNC_EXCLUDED_STATES
        or "redfish_fw_updates" in node.driver_internal_info  # its BMC restarts as it likes
    )
    return not left_alone and node.target_power_state is None


def retry_s(failures: int, most: int, interval_s: float) -> float:
    """Return the pause after so many failures; all ``most`` pauses sum up to 1.5 intervals.

    A pass needs up to one interval to detect a silent BMC, so half of one is left to poll it.
    """
    return 3 * interval_s * failures / (most * (most + 1))
