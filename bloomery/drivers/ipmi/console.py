"""Serial consoles over LAN: ``socat`` connects a TCP port of this host with ``ipmitool sol``.

A node of Redfish needs no driver_info of IPMI where its BMC has both under one login.
"""

from __future__ import annotations

import contextlib
import shutil
import urllib.parse
from collections.abc import Mapping
from typing import Any, ClassVar

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.consoles import SocketConsole
from bloomery.drivers.ipmi import info, sol
from bloomery.drivers.ipmi.bmc import IpmiBmc
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.drivers.ipmi.info import Info
from bloomery.drivers.ipmi.sol import SolLine


class IpmitoolSocat(SocketConsole, IpmitoolInterface):
    """Raises CannotStart without socat, and for a wrong [console]port_range."""

    port_key: ClassVar[str] = "allocated_ipmi_terminal_port"  # as in Ironic

    def __init__(self, conf: Conf) -> None:
        if shutil.which(sol.PROGRAM) is None:
            raise errors.CannotStart(
                reason="cannot enable console interface ipmitool-socat: the program "
                f"{sol.PROGRAM} is not on PATH; install the package {sol.PROGRAM}",
            )
        super().__init__(conf)

    def validate(self, task: base.DriverTask) -> None:
        own = _info(task.driver_info)
        if own.interface != "lanplus":
            raise errors.InvalidParameterValue(
                reason="driver_info/ipmi_protocol_version must be 2.0 for serial over LAN"
            )
        if own.terminal_port is None and not self._ports:
            raise errors.MissingParameterValue(
                reason="driver_info/ipmi_terminal_port is missing, and [console]port_range is unset"
            )

    def own_port(self, task: base.DriverTask) -> int | None:
        return _info(task.driver_info).terminal_port

    def line(self, task: base.DriverTask) -> SolLine:
        """Return the line after the BMC has ended an older session."""
        own = _info(task.driver_info)
        bmc = IpmiBmc(self.conf, task, own=own)
        with contextlib.suppress(errors.BmcRefused):  # it says so where there is no older session
            bmc.tell("sol", "deactivate", write=True)
        suite = own.cipher_suite if own.cipher_suite is not None else bmc.accepted_suite
        return SolLine(bmc.login, suite)


def _info(driver_info: Mapping[str, Any]) -> Info:
    """Return the connection; a node of Redfish uses its own host and login where none is named."""
    address = driver_info.get("redfish_address")
    if not address or driver_info.get("ipmi_address"):
        return info.parse(driver_info)
    host = urllib.parse.urlsplit(address if "://" in address else f"//{address}").hostname
    login = {f"ipmi_{key}": driver_info.get(f"redfish_{key}") for key in ("username", "password")}
    return info.parse(login | dict(driver_info) | {"ipmi_address": host})
