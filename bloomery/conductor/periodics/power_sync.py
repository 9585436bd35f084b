"""Power sync: compare what each node's row says with what its BMC says.

Counts failures per node; a BMC that stays silent puts its node into maintenance with the fault
``power failure``.  A difference is driven back to the recorded state, or recorded, as
force_power_state_during_sync says.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from bloomery import errors, secrets
from bloomery.conductor import power, runner, states
from bloomery.conductor.house import Context, House
from bloomery.conductor.periodics import looking
from bloomery.conductor.states import Power, State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import nodes
from bloomery.model.node import Node

LOG = logging.getLogger(__name__)

_KEEPS_ITS_ERROR = states.FAILURE_STATES | {State.ERROR, State.ENROLL}


class PowerSync:
    """Remembers between passes how often each node failed."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._failures: dict[str, int] = {}
        self._most = house.conf.conductor.power_state_sync_max_retries

    def run(self) -> None:
        """Look at every node once, in so many threads, those that failed most first."""
        house = self._house
        with house.db.read() as conn:
            uuids = nodes.list_for_power_sync(conn)
        uuids.sort(key=lambda uuid: -self._failures.get(uuid, 0))
        looked_at = set(uuids)
        self._failures = {u: n for u, n in self._failures.items() if n and u in looked_at}
        work = _Shared(uuids)
        ours = house.conf.conductor
        threads = min(ours.sync_power_state_workers, ours.periodic_max_workers, len(uuids))
        others = self._spawn(work, threads - 1)
        self._drain(work)
        for other in others:
            other.result()

    def _spawn(self, work: _Shared, count: int) -> list[Future[Any]]:
        spawned = []
        for _ in range(count):
            try:
                spawned.append(self._house.workers.spawn(self._drain, work))
            except errors.NoFreeConductorWorker:
                break
        return spawned

    def _drain(self, work: _Shared) -> None:
        for uuid in work:
            with looking.skipping(uuid):
                self._sync(looking.context_of(self._house), uuid)

    def _sync(self, context: Context, uuid: str) -> None:
        with looking.look(context, uuid) as task:
            node = task.node
            if node.reservation or not _is_idle(node):
                return
            count = self._failures.get(uuid, 0) + 1
            try:
                task.driver.power.validate(task)
                actual = task.driver.power.get_power_state(task)
            except errors.Invalid as unusable:
                if node.power_state is None:
                    self._failures.pop(uuid, None)
                    return
                self._failed(task, count, secrets.brief(unusable))
                return
            except Exception as exc:  # noqa: BLE001  whatever a driver raises counts as silence
                self._failed(task, count, secrets.brief(exc))
                return
            self._compare(task, actual, count)

    def _compare(self, task: TaskManager, actual: str | None, count: int) -> None:
        node = task.node
        if actual == Power.ERROR:
            self._failed(task, count, "the BMC cannot tell the power state")
        elif actual == node.power_state:
            self._failures.pop(node.uuid, None)
            self._forget_error(task)
        elif actual is not None:
            self._differs(task, actual, count)

    def _forget_error(self, task: TaskManager) -> None:
        """An error that the history keeps need not stay, unless the node's state is about it."""
        node = task.node
        stays = node.provision_state in _KEEPS_ITS_ERROR
        if node.last_error is not None and self._house.conf.conductor.node_history and not stays:
            task.upgrade_lock(purpose="power sync", retry=False)
            task.node.last_error = None
            task.save()

    def _failed(self, task: TaskManager, count: int, why: str) -> None:
        self._failures[task.node.uuid] = count
        LOG.warning("node %s: power sync failed %d times: %s", task.node.uuid, count, why)
        if count > self._most:
            self._give_up(task, None, f"power sync failed {count} times, at last with: {why}")

    def _give_up(self, task: TaskManager, actual: str | None, why: str) -> None:
        """Nothing more is tried until the BMC answers again, or an operator steps in."""
        task.upgrade_lock(purpose="power sync", retry=False)
        node, was = task.node, task.node.power_state
        if not _is_idle(node):
            return
        node.power_state, node.maintenance, node.fault = actual, True, "power failure"
        node.last_error = node.maintenance_reason = f"Node {node.uuid}: {why}"
        entry = task.remember(node.last_error, event_type="monitoring", failed=True)
        task.save(entry, *power.corrected(task, was))
        self._failures.pop(node.uuid, None)
        self._house.told()

    def _differs(self, task: TaskManager, actual: str, count: int) -> None:
        task.upgrade_lock(purpose="power sync", retry=False)
        node, recorded = task.node, task.node.power_state
        if not _is_idle(node) or recorded == actual:
            return
        force = self._house.conf.conductor.force_power_state_during_sync
        drivable = task.driver.power.supports_power_sync(task) and not node.disable_power_off
        if recorded is not None and count > self._most:
            self._give_up(task, actual, f"it is {actual} and could not be made {recorded}")
        elif recorded is None or not (force and drivable):
            node.power_state = actual
            task.save(*power.corrected(task, recorded))
            self._house.told()
        else:
            self._failures[node.uuid] = count
            self._drive(task, recorded)

    def _drive(self, task: TaskManager, recorded: str) -> None:
        """Bring the machine back to the recorded state, as if somebody had asked for it."""
        with contextlib.ExitStack() as until_spawned:
            slot = until_spawned.enter_context(self._house.workers.slot())
            kept = task.node.last_error
            power.begin(task, recorded)
            if task.node.provision_state in _KEEPS_ITS_ERROR:
                task.node.last_error = kept
            flow = runner.plan(task, power.PHASE, power.steps(task, recorded, None))
            task.save(flow.opening, power.told(task, "start", recorded))
            task.set_spawn_error_hook(power.undo, task.node, flow, recorded)
            task.spawn_after(_launch, slot, flow)
            until_spawned.pop_all()  # the slot goes over to what is spawned when the task ends


def _launch(slot: Slot, flow: runner.Flow) -> Future[None]:
    with slot:
        return runner.launch(slot, flow)


def _is_idle(node: Node) -> bool:
    """Nobody works on the node, and nobody asked that it be left alone."""
    left_alone = (
        node.maintenance
        or node.provision_state in states.POWER_SYNC_EXCLUDED_STATES
        or "redfish_fw_updates" in node.driver_internal_info  # its BMC restarts as it likes
    )
    return not left_alone and node.target_power_state is None


class _Shared:
    """A list that several threads work off."""

    def __init__(self, uuids: list[str]) -> None:
        self._rest = iter(uuids)
        self._mutex = threading.Lock()

    def __iter__(self) -> Iterator[str]:
        while True:
            with self._mutex:
                uuid = next(self._rest, None)
            if uuid is None:
                return
            yield uuid


def make(house: House) -> Callable[[], None]:
    return PowerSync(house).run
