"""The inspect interface ``agent``: an agent boots and posts its machine's inventory.

The boot interface boots the agent where it can; otherwise the machine boots from the network, with
an agent served elsewhere.  The node waits until the agent posts to /v1/continue_inspection.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from typing import Any, Final
from urllib.parse import urlsplit

from bloomery import errors, parsing, secrets
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import ramdisk
from bloomery.outcome import DONE, Done, Outcome, WaitForCall

LOG = logging.getLogger(__name__)

ADDRESSES: Final = "lookup_bmc_addresses"  # in driver_internal_info: BMC addresses, for lookup
_MANAGED: Final = "inspector_manage_boot"  # in driver_internal_info: the boot interface boots it
_WAITS: Final = "waits for the inventory of an agent"


class AgentInspect(base.Inspect):
    in_band = True

    @property
    def hooks(self) -> tuple[str, ...]:
        return self.conf.inspector.hooks

    def get_properties(self) -> dict[str, str]:
        return {
            _MANAGED: "False: the agent is booted from the network, by somebody else. Optional.",
        }

    def validate(self, task: base.DriverTask) -> None:
        """Raise if the boot interface must boot the agent and cannot."""
        self._manages_boot(task)

    def inspect_hardware(self, task: base.DriverTask) -> Outcome:
        """Boot the agent and wait for its inventory; fast track asks an agent that runs."""
        info = task.node.driver_internal_info
        if not task.turn:
            info[_MANAGED] = self._manages_boot(task)
            if inventory := ramdisk.ask_inventory(task, self.conf):
                return Done(result={"inventory": {"inventory": inventory}})
            info[ADDRESSES] = sorted(_bmc_addresses(task))

        def prepare_boot() -> Outcome | None:
            if info.get(_MANAGED):
                params = ramdisk.kernel_parameters(self.conf, inspects=True)
                return task.driver.boot.prepare_ramdisk(task, params)
            task.driver.management.set_boot_device(task, "pxe", persistent=False)
            return None

        outcome = substeps.run_in_order(
            task,
            "agent_inspect",
            lambda: ramdisk.switch_off(task),
            task.forget_agent,
            lambda: task.driver.network.connect(task, "inspection"),
            prepare_boot,
            task.save,
            lambda: ramdisk.switch_on(task),
            lambda: WaitForCall(reason=_WAITS, then="same"),
        )
        if isinstance(outcome, WaitForCall):
            substeps.forget(task, "agent_inspect")
        return outcome

    def finish(self, task: base.DriverTask) -> Outcome:
        """Remove the agent and its boot; fast track keeps them."""
        if ramdisk.has_fast_track(task, self.conf):
            _forget(task)
            return DONE
        return self.abort(task)

    def abort(self, task: base.DriverTask) -> Outcome:
        """Remove the agent's boot and switch off; restart where power off is forbidden."""
        is_ours = task.node.driver_internal_info.get(_MANAGED)
        outcome = substeps.run_in_order(
            task,
            "agent_inspect",
            lambda: task.driver.boot.clean_up_ramdisk(task) if is_ours else None,
            lambda: self._switch_off(task),
            lambda: task.driver.network.connect(task, "idle"),
        )
        if isinstance(outcome, Done):
            _forget(task)
        return outcome

    def _manages_boot(self, task: base.DriverTask) -> bool:
        """Return whether the boot interface boots the agent.

        Where it must and cannot, raises UnsupportedDriverExtension or the validation's error.
        """
        own = parsing.boolean(task.driver_info.get(_MANAGED), default=True)
        required = own and self.conf.inspector.require_managed_boot
        try:
            task.driver.boot.validate_inspection(task)
        except errors.Invalid:
            if required:
                raise
            return False
        return own

    def _switch_off(self, task: base.DriverTask) -> Outcome | None:
        if not self.conf.inspector.power_off:
            return None
        if task.node.disable_power_off:
            return task.driver.power.reboot(task)
        return ramdisk.switch_off(task)


def _forget(task: base.DriverTask) -> None:
    for name in (ADDRESSES, _MANAGED):
        task.node.driver_internal_info.pop(name, None)


# -------------------------------------------------------------- by which BMC the node is found


def _bmc_addresses(task: base.DriverTask) -> set[str]:
    """Return the IP addresses and names of the node's BMC, without loopback."""
    addresses: set[str] = set()
    for name, value in task.driver_info.items():
        if not name.endswith("_address") or not isinstance(value, str):
            continue
        if name.startswith("ipmi_") and task.driver_info.get("ipmi_bridging", "no") != "no":
            continue  # the address of a bridge, which many nodes share
        try:
            host = (urlsplit(value).hostname or "") if "//" in value else value.strip("[]")
            sockets: list[Any] = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
        except (OSError, ValueError) as exc:
            LOG.warning("cannot resolve the BMC address %s: %s", secrets.mask_address(value), exc)
            continue
        addresses |= {host, *(str(address[0]) for *_family, address in sockets)}
    return {address for address in addresses if not _is_loopback(address)}


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
