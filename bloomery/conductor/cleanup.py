"""Clean-up after a flow: best effort on the hardware, by key on the node."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from bloomery import clock, errors, secrets
from bloomery.conductor.phase import FlowFailure
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers import substeps
from bloomery.model.node import FLOW_RETRY, Node
from bloomery.model.rules import agents
from bloomery.model.rules import nodes as rules
from bloomery.outcome import Again, Outcome

LOG = logging.getLogger(__name__)

_MOST_TURNS: Final = 2  # power changes that a clean-up may wait for
_NEVER: Final = threading.Event()


# -------------------------------------------------------------------------- after a failure


def tidy(task: TaskManager, call: Callable[[TaskManager], object]) -> str | None:
    """Call a driver's clean-up; return and log its error, if any.  Raises LockLost.

    The flow reports the failure before it.
    """
    try:
        call(task)
    except errors.LockLost:
        raise
    except Exception as exc:  # noqa: BLE001  drivers may raise anything; the flow fails anyway
        LOG.warning("node %s: cannot clean up: %s", task.node.uuid, secrets.brief(exc))
        return secrets.brief(exc)
    return None


def tidy_in_turns(task: TaskManager, call: Callable[[TaskManager], Outcome | None]) -> str | None:
    """Call, as ``tidy`` does, a clean-up that may return Again, and wait for it in this worker."""
    ends = time.monotonic() + _MOST_TURNS * task.runtime.conf.conductor.power_state_change_timeout

    def run(task: TaskManager) -> None:
        task.turn = 0
        task.reads = None  # each attempt reads the hardware again
        task.node.driver_internal_info.pop(substeps.POSITIONS, None)  # of the step that failed
        outcome = call(task)
        while isinstance(outcome, Again) and time.monotonic() < ends:
            _NEVER.wait(outcome.after_s)
            task.turn += 1
            outcome = call(task)

    return tidy(task, run)


def plan_retry(task: TaskManager, failure: FlowFailure) -> None:
    """Note on the node when its failed flow is tried again, and for which time, if it is.

    The attempts count since the last order of an operator.
    """
    options, info = task.runtime.conf.conductor, task.node.driver_internal_info
    tried = (info.pop(FLOW_RETRY, None) or {}).get("attempt", 0)
    if failure.may_pass and not failure.aborted and tried < options.failed_flow_retries:
        due = clock.now() + timedelta(seconds=options.failed_flow_retry_delay)
        info[FLOW_RETRY] = {
            "attempt": tried + 1, "of": options.failed_flow_retries, "due_at": due.isoformat(),
        }  # fmt: skip


def collect_logs(task: TaskManager, flow: str) -> None:
    """Store the logs of the agent of a failed flow."""
    tidy(task, lambda task: task.driver.deploy.collect_logs(task, flow, failed=True))


def call_operator(node: Node, failure: FlowFailure, fault: str) -> None:
    """Put a node into maintenance whose step failed.

    An internal or aborted step changes nothing.
    """
    if failure.run.step.internal or failure.aborted:
        return
    rules.begin_fault(node, fault, failure.sentence)


def power_off(task: TaskManager) -> str | None:
    """Order power off once without waiting, unless the node forbids it."""
    if task.node.disable_power_off:
        return None
    return tidy(task, lambda task: task.driver.power.set_power_state(task, Power.OFF))


def drop_certificate(runtime: ConductorRuntime, node_uuid: str) -> None:
    """Remove the certificate of a deleted node; log a warning where that fails."""
    folder = runtime.conf.agent.certificates_path
    if folder is None:
        return
    try:
        (Path(folder) / f"{node_uuid}.crt").unlink(missing_ok=True)
    except OSError as exc:
        LOG.warning("node %s: cannot remove its agent's certificate: %s", node_uuid, exc)


# ------------------------------------------------- driver_internal_info (spec: what is cleared)

_AGENT: Final[tuple[str, ...]] = (
    "agent_secret_token", "agent_secret_token_pregenerated", "agent_url", "agent_verify_ca",
    "agent_status", "agent_status_message", agents.LOOKED_UP, agents.TOKEN_TAKER, agents.ATTESTED,
)  # fmt: skip
_ASYNC: Final = (
    "cleaning_reboot", "deployment_reboot", "servicing_reboot",
    "skip_current_clean_step", "skip_current_deploy_step", "skip_current_service_step",
    "cleaning_polling", "deployment_polling", "servicing_polling",
    # what a step stored for its next attempt
    "agent_command", "agent_partitions", agents.BOOT_RETRIES,
    "agent_tries", "agent_power_looks", "agent_steps_reread", substeps.POSITIONS,
    "redfish_raid", "redfish_write", "switch_orders",
)  # fmt: skip
_KEYS_OF: Final = {
    "deploy": (
        "user_deploy_steps", "deploy_step_index", "steps_validated",
        "image_source", "agent_start_attempted", "deploy_steps",
    ),
    "clean": (
        "clean_step_index", "cleaning_disable_ramdisk",
        "steps_validated", "declarative_cleaning", "agent_start_attempted", "clean_steps",
    ),
    "service": (
        "service_step_index", "service_disable_ramdisk",
        "steps_validated", "image_source", "agent_start_attempted", "service_steps",
    ),
    "instance": (
        "instance", "root_uuid_or_disk_id", "is_whole_disk_image", "is_source_a_path",
        "deploy_boot_mode", "autodetected_image",
    ),
}  # fmt: skip


def wipe_internal_info(task: TaskManager, *flows: str, may_keep_agent: bool = False) -> None:
    """Remove the keys of these flows, all flags, and the agent's token and URL.

    ``may_keep_agent``: fast track keeps token and URL for the next flow.
    """
    info, session = task.node.driver_internal_info, _AGENT
    if may_keep_agent and is_fast_track(task):
        session = ()
    else:
        task.ends_agent_session = True
    for key in (*session, *_ASYNC, *(key for flow in flows for key in _KEYS_OF[flow])):
        info.pop(key, None)


def is_fast_track(task: TaskManager) -> bool:
    """Return whether agents stay for the next flow."""
    return agents.is_fast_track(task.node.driver_info, task.runtime.conf.deploy.fast_track)


def keeps_agent(task: TaskManager) -> bool:
    """Return whether fast track keeps the node's agent: it is alive."""
    timeout_s, info = task.runtime.conf.deploy.fast_track_timeout, task.node.driver_internal_info
    return is_fast_track(task) and agents.has_live_agent(info, timeout_s, clock.now())
