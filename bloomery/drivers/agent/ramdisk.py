"""The agent's ramdisk on a machine: boot, wait, removal.

In-band inspection and deployment share it; the boot interface does the boot.  Fast track: a flow
uses the agent that the last flow has left running, and boots none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import client, commands
from bloomery.model.rules import agents
from bloomery.outcome import Outcome, WaitForCall

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

BOOT: Final = "agent_boot"  # its substeps; in a wait state: the machine boots
_LOOK_S: Final = 5.0  # time limit of the request that shows whether the agent answers
_MOST_NICS: Final = 1000  # as of inventories that agents post
_FAILURES: Final = (
    errors.AgentBusy, errors.AgentRefused, errors.AgentUnreachable, errors.StepFailure,
)  # fmt: skip


def kernel_parameters(conf: Conf, *, inspects: bool = False) -> dict[str, str]:
    """Return the kernel parameters with the API's URL, or {} where no public endpoint is set.

    ``inspects``: the agent posts an inventory.
    """
    root = conf.api.public_root
    if root is None:
        return {}
    params = {"ipa-api-url": root}
    return params | ({"ipa-inspection-callback-url": f"{root}/v1/continue_inspection"} if inspects
                     else {})  # fmt: skip


def boot(task: base.DriverTask, params: Mapping[str, str], network: str) -> Outcome:
    """Boot the agent on the network of this role, and wait for its first heartbeat.

    The session of an earlier agent ends once the power is off.
    """
    return substeps.run_in_order(
        task,
        BOOT,
        lambda: switch_off(task),
        task.forget_agent,
        lambda: task.driver.network.connect(task, network),
        lambda: task.driver.boot.prepare_ramdisk(task, params),
        task.save,  # an agent that boots in no time would lose the token of its lookup
        lambda: switch_on(task),
        lambda: _await_call(task),
    )


def switch_off(task: base.DriverTask) -> Outcome | None:
    """Switch off, unless that is forbidden, or left to an operator."""
    if task.node.disable_power_off or task.driver.power.only_restarts:
        return None
    return task.driver.power.set_power_state(task, PowerState.OFF)


def switch_on(task: base.DriverTask) -> Outcome | None:
    """Switch on, or restart where power off is forbidden; the node's agent restarts if it can."""
    if task.driver.power.only_restarts:
        has_agent = agents.has_session(task.node.driver_internal_info)
        return task.driver.power.reboot(task) if has_agent else None
    if task.node.disable_power_off:
        return task.driver.power.reboot(task)
    return task.driver.power.set_power_state(task, PowerState.ON)


def take_away(task: base.DriverTask, network: str = "idle") -> Outcome | None:
    """Switch off, remove the agent's boot files, and connect the network of this role.

    The machine restarts where power off is forbidden.

    An agent that restarts the machine itself stays until then.
    """
    if task.driver.power.only_restarts:
        task.driver.boot.clean_up_ramdisk(task)
        return None
    task.forget_agent()
    return substeps.run_in_order(
        task,
        "agent_away",
        lambda: switch_off(task),
        lambda: task.driver.boot.clean_up_ramdisk(task),
        lambda: task.driver.network.connect(task, network),
        lambda: task.driver.power.reboot(task) if task.node.disable_power_off else None,
    )


def boot_instance(task: base.DriverTask, name: str) -> Outcome:
    """Remove the agent and boot the instance again; ``name`` is that of the substeps."""
    return substeps.run_in_order(
        task,
        name,
        lambda: take_away(task, "tenant"),
        lambda: task.driver.boot.prepare_instance(task),
        lambda: switch_on(task),
    )


def _await_call(task: base.DriverTask) -> Outcome | None:
    if task.node.driver_internal_info.get(client.URL):
        return None
    lacks = "" if task.ports else (
        "; the node has no port, and an agent finds its node by the MAC address of one: create it"
    )  # fmt: skip
    boots = "the machine boots the agent's ramdisk"
    if task.driver.power.only_restarts:
        boots = "an operator restarts the machine into the agent's ramdisk"
    return WaitForCall(reason=boots + lacks, then="same")


# --------------------------------------------------------------------------------- fast track


def has_fast_track(task: base.DriverTask, conf: Conf) -> bool:
    return agents.is_fast_track(task.driver_info, conf.deploy.fast_track)


def has_ready_agent(task: base.DriverTask, conf: Conf) -> bool:
    """Return whether the agent that the last flow has left running can serve a flow without a boot.

    It must have sent a heartbeat within [deploy]fast_track_timeout, answer, and be idle on a
    machine that is on.
    """
    info, timeout_s = task.node.driver_internal_info, conf.deploy.fast_track_timeout
    if not has_fast_track(task, conf) or not agents.has_live_agent(info, timeout_s, clock.now()):
        return False
    if task.driver.power.get_power_state(task) != PowerState.ON:
        return False
    try:
        listed = client.of(task, conf, _LOOK_S).commands()
    except _FAILURES as exc:
        LOG.info("node %s: fast track boots a new agent: %s", task.node.uuid, exc)
        return False
    is_idle = all(command.status != client.RUNNING for command in listed)
    if is_idle:
        LOG.info("node %s: fast track uses the agent at %s", task.node.uuid, info[client.URL])
    return is_idle


def ask_inventory(task: base.DriverTask, conf: Conf) -> Json | None:
    """Return the inventory of the agent that runs, or None where an agent must boot to inspect."""
    if not has_ready_agent(task, conf):
        return None
    try:
        inventory = commands.call(client.of(task, conf), "poll.get_hardware_info", {})
    except _FAILURES as exc:
        LOG.info("node %s: fast track boots a new agent: %s", task.node.uuid, exc)
        return None
    nics = inventory.get("interfaces") if isinstance(inventory, dict) else None
    if not isinstance(nics, list) or len(nics) > _MOST_NICS:
        return None
    are_nics = (isinstance(nic, dict) and isinstance(nic.get("mac_address"), str) for nic in nics)
    return inventory if all(are_nics) else None
