"""Secure boot for an instance: on before its boot, off after its end.

The capability ``secure_boot`` in instance_info asks for it; in properties it is only a label, as in
Ironic. The node stores whether it was switched on for its instance; only then it is switched off
again.  Agents boot without it.
"""

from __future__ import annotations

import logging
from typing import Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.drivers import base
from bloomery.model import capabilities
from bloomery.model.node import Node
from bloomery.outcome import DONE, Done, Outcome

LOG = logging.getLogger(__name__)

_MEMORY: Final = "secure_boot_of_instance"  # in driver_internal_info
_ANSWERS: Final = ("true", "false")
_UNREAD: Final = (State.ENROLL, State.VERIFYING)


def is_asked(node: Node) -> bool:
    """Return whether the node's instance asks for secure boot."""
    return capabilities.secure_boot(node.instance_info) == "true"


def check(task: base.DriverTask) -> None:
    """Raise InvalidParameterValue where secure boot is requested and impossible; asks no BMC."""
    node = task.node
    if capabilities.of(node.instance_info).get("trusted_boot", "").lower() == "true":
        raise errors.InvalidParameterValue(
            reason="cannot boot with trusted boot: no TPM is asked what a machine has booted; take "
            "trusted_boot out of instance_info/capabilities, or ask for secure_boot",
        )
    answer = capabilities.secure_boot(node.instance_info)
    if answer not in (None, *_ANSWERS):
        raise errors.InvalidParameterValue(
            reason=f"capability secure_boot must be true or false, not {answer!r}",
        )
    if answer != "true":
        return
    management = task.driver.management
    if not _can_switch(management):
        obstacle = (
            f"management interface {management.name} cannot switch it; use driver redfish, or "
            "switch it in the machine's setup and leave secure_boot out of instance_info"
        )
    elif capabilities.mode_of(node) == "bios":
        obstacle = "it boots in mode bios; add boot_mode:uefi to the capabilities"
    elif node.secure_boot is None and node.provision_state not in _UNREAD:
        obstacle = (
            "its BMC shows no secure boot; where that has changed, "
            "`baremetal node secure boot on NODE` reads it anew"
        )
    else:
        return
    raise errors.InvalidParameterValue(reason=f"cannot boot with secure boot: {obstacle}")


def _can_switch(management: base.Management) -> bool:
    return type(management).set_secure_boot_state is not base.Management.set_secure_boot_state


def prepare(task: base.DriverTask) -> Outcome | None:
    """Set secure boot as the instance asks.

    Where it is on already, it stays on after the instance.
    """
    if not is_asked(task.node):
        return undo(task)
    memory = task.node.driver_internal_info
    if _MEMORY not in memory:
        if task.driver.management.get_secure_boot_state(task):
            return None
        memory[_MEMORY] = True
        task.save()
    return _set(task, on=True)


def undo(task: base.DriverTask) -> Outcome | None:
    """Switch off what ``prepare`` has switched on, if anything.

    If the management interface has changed to one that cannot, log a warning.
    """
    memory = task.node.driver_internal_info
    if _MEMORY not in memory:
        return None
    if not _can_switch(task.driver.management):
        LOG.warning(
            "node %s: secure boot stays on: management interface %s cannot switch it off; "
            "choose another one and use `baremetal node secure boot off`, or the machine's setup",
            task.node.uuid,
            task.driver.management.name,
        )
        del memory[_MEMORY]
        return None
    outcome = _set(task, on=False)
    if isinstance(outcome, Done):
        del memory[_MEMORY]
    return outcome


def _set(task: base.DriverTask, *, on: bool) -> Outcome:
    try:
        outcome = task.driver.management.set_secure_boot_state(task, on) or DONE
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        reason = f"cannot switch secure boot {'on' if on else 'off'}: {exc.facts['reason']}"
        raise type(exc)(log=exc.log, **exc.facts | {"reason": reason}) from exc
    if isinstance(outcome, Done):
        task.node.secure_boot = on
    return outcome
