"""Restart machines whose agent does not call after its boot.

DHCP and TFTP may lose a boot, and so may a BMC's virtual media.  The waiting step boots its agent
again from the beginning, as often as the time-out of the first wait allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from bloomery.conductor import flows, runner, states, task_manager, tasks
from bloomery.conductor.periodics import timeouts
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import rows
from bloomery.drivers import substeps
from bloomery.drivers.agent import ramdisk
from bloomery.model.rules import agents
from bloomery.model.step import find_parked

LOG = logging.getLogger(__name__)

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_BOOTS: Final = ("pxe_boot", "ramdisk_boot")  # capabilities of boot interfaces


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    """Return the job; warn of time-outs that fail a flow before its boot is retried."""
    retry_s = runtime.conf.pxe.boot_retry_timeout or 0
    for limit in states.WAIT_LIMITS.values():
        if 0 < getattr(runtime.conf.conductor, limit.option) <= retry_s:
            LOG.warning(
                "[pxe]boot_retry_timeout has no effect where [conductor]%s applies, which is not "
                "longer", limit.option,
            )  # fmt: skip
    return partial(run, runtime, timeouts.Watch())


def run(runtime: ConductorRuntime, watch: timeouts.Watch) -> None:
    lasts = timedelta(seconds=runtime.conf.pxe.boot_retry_timeout or 0)
    for state in states.WAIT_LIMITS:
        for uuid in timeouts.list_overdue(runtime, watch, state, "provision_updated_at", lasts):
            with tasks.skipping(uuid):
                _retry(runtime, uuid, lasts)


def _retry(runtime: ConductorRuntime, uuid: str, lasts: timedelta) -> None:
    context = tasks.background_context(runtime)
    with tasks.shared(context, uuid) as task:
        if not _is_due(task, lasts):
            return
    with (
        runtime.workers.slot(allow_reserved=False) as slot,
        task_manager.acquire(context, uuid, purpose="boot retry", retry=False) as task,
    ):
        node, runs = task.node, flows.open_runs(task)
        if not _is_due(task, lasts) or find_parked(runs) is None:
            return
        limit = states.WAIT_LIMITS[State(str(node.provision_state))]
        task.record(
            "The machine is restarted: its agent did not call within "
            f"{runtime.conf.pxe.boot_retry_timeout} s ([pxe]boot_retry_timeout)"
        )
        substeps.forget(task, ramdisk.BOOT)  # the waiting step begins its boot again
        agents.note_boot_retry(node.driver_internal_info, getattr(node, limit.since), rows.now())
        runner.resume(task, slot, "resume", flows.load(task, runs))


def _is_due(task: TaskManager, lasts: timedelta) -> bool:
    """Return whether the node waits too long for the agent of a boot.

    It waits since it was parked, or since a restart by us or by a user.
    """
    node, info, now = task.node, task.node.driver_internal_info, rows.now()
    booted_at = max(node.provision_updated_at or now, agents.boot_retried_at(info) or _LONG_AGO)
    if changed_at := info.get("last_power_state_change"):
        booted_at = max(booted_at, datetime.fromisoformat(changed_at).replace(tzinfo=UTC))
    if node.provision_state == State.INSPECTWAIT:
        boots = task.driver.inspect.in_band
    else:
        boots = ramdisk.BOOT in info.get(substeps.POSITIONS, {})
    return (
        boots
        and not node.maintenance
        and not agents.has_called(info)
        and any(name in task.driver.boot.capabilities for name in _BOOTS)
        and not task.driver.power.only_restarts  # an operator boots the machine
        and now - booted_at >= lasts
    )
