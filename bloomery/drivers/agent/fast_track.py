"""Fast track: a flow uses the agent that the last flow has left running, and boots none.

The agent must have sent a heartbeat within [deploy]fast_track_timeout, answer, and be idle on a
machine that is on.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.agent import client, commands
from bloomery.model.rules import agents

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

_LOOK_S: Final = 5.0  # time limit of the request that shows whether the agent answers
_MOST_NICS: Final = 1000  # as of inventories that agents post
_NO_ANSWER: Final = (
    errors.AgentBusy, errors.AgentRefused, errors.AgentUnreachable, errors.StepFailure,
)  # fmt: skip


def is_on(task: base.DriverTask, conf: Conf) -> bool:
    return agents.is_fast_track(task.driver_info, conf.deploy.fast_track)


def is_ready(task: base.DriverTask, conf: Conf) -> bool:
    """Return whether the node's agent can serve a flow without a boot."""
    info, timeout_s = task.node.driver_internal_info, conf.deploy.fast_track_timeout
    if not is_on(task, conf) or not agents.has_live_agent(info, timeout_s, clock.now()):
        return False
    if task.driver.power.get_power_state(task) != PowerState.ON:
        return False
    try:
        listed = client.of(task, conf, _LOOK_S).commands()
    except _NO_ANSWER as exc:
        LOG.info("node %s: fast track boots a new agent: %s", task.node.uuid, exc)
        return False
    is_idle = all(command.status != client.RUNNING for command in listed)
    if is_idle:
        LOG.info("node %s: fast track uses the agent at %s", task.node.uuid, info[client.URL])
    return is_idle


def ask_inventory(task: base.DriverTask, conf: Conf) -> Json | None:
    """Return the inventory of the agent that runs; None where an agent must boot to inspect."""
    if not is_ready(task, conf):
        return None
    try:
        inventory = commands.call(client.of(task, conf), "poll.get_hardware_info", {})
    except _NO_ANSWER as exc:
        LOG.info("node %s: fast track boots a new agent: %s", task.node.uuid, exc)
        return None
    return inventory if _has_interfaces(inventory) else None


def _has_interfaces(inventory: Any) -> bool:
    nics = inventory.get("interfaces") if isinstance(inventory, dict) else None
    return (
        isinstance(nics, list)
        and len(nics) <= _MOST_NICS
        and all(isinstance(nic, dict) and isinstance(nic.get("mac_address"), str) for nic in nics)
    )
