"""The agent's ramdisk on a machine: booted, waited for, and taken away again.

What inspects in band and what deploys have it in common; the boot interface knows how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import client
from bloomery.outcome import Outcome, WaitForCall

_BOOT: Final = "agent_boot"


def kernel_parameters(conf: Conf, *, inspects: bool = False) -> dict[str, str]:
    """Return where the agent finds us; one that has its own parameters needs none.

    ``inspects``: it is to hand in what its machine is made of.
    """
    root = conf.api.public_root
    if root is None:
        return {}
    params = {"ipa-api-url": root}
    return params | ({"ipa-inspection-callback-url": f"{root}/v1/continue_inspection"} if inspects
                     else {})  # fmt: skip


def boot(task: base.DriverTask, params: Mapping[str, str]) -> Outcome:
    """Boot the agent, and wait until it calls; the agent of before is forgotten.

    So is what looked the node up until the power was off: the next one gets the token.
    """
    return substeps.run_in_order(
        task,
        _BOOT,
        lambda: switch_off(task),
        task.forget_agent,
        lambda: task.driver.boot.prepare_ramdisk(task, params),
        lambda: switch_on(task),
        lambda: _await_call(task),
    )


def switch_off(task: base.DriverTask) -> Outcome | None:
    """Switch off; what may not be off boots with a restart."""
    if task.node.disable_power_off:
        return None
    return task.driver.power.set_power_state(task, PowerState.OFF)


def switch_on(task: base.DriverTask) -> Outcome | None:
    if task.node.disable_power_off:
        return task.driver.power.reboot(task)
    return task.driver.power.set_power_state(task, PowerState.ON)


def take_away(task: base.DriverTask) -> Outcome | None:
    """Switch off, and take away what booted the agent, who is forgotten.

    What may not be off is restarted without it.
    """
    task.forget_agent()
    return substeps.run_in_order(
        task,
        "agent_away",
        lambda: switch_off(task),
        lambda: task.driver.boot.clean_up_ramdisk(task),
        lambda: task.driver.power.reboot(task) if task.node.disable_power_off else None,
    )


def _await_call(task: base.DriverTask) -> Outcome | None:
    if task.node.driver_internal_info.get(client.URL):
        return None
    lacks = "" if task.ports else (
        "; the node has no port, and an agent finds its node by the MAC address of one: create it"
    )  # fmt: skip
    return WaitForCall(reason=f"the machine boots the agent's ramdisk{lacks}", then="same")
