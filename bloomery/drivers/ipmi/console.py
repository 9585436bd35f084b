"""Serial consoles over LAN: ``socat`` connects a TCP port of this host with ``ipmitool sol``.

A node of Redfish needs no driver_info of IPMI where its BMC has both under one login.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.audit import Trail
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.ipmi import info, terminal
from bloomery.drivers.ipmi.bmc import IpmiBmc
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.drivers.ipmi.info import Info
from bloomery.drivers.ipmi.terminal import Terminal

_PORT: Final = "allocated_ipmi_terminal_port"  # in driver_internal_info, as in Ironic
_RANGE: Final = re.compile(r"(\d{1,5}):(\d{1,5})")
_MOST_PORT: Final = 65535


class IpmitoolSocat(IpmitoolInterface, base.Console):
    """Owns a ``Terminal`` for each console of this process.

    Raises CannotStart without socat, and for a wrong [console]port_range.
    """

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        if shutil.which(terminal.PROGRAM) is None:
            raise errors.CannotStart(
                reason="cannot enable console interface ipmitool-socat: the program "
                f"{terminal.PROGRAM} is not on PATH; install the package {terminal.PROGRAM}",
            )
        self._ports = _ports(conf.console.port_range)
        self._trail = Trail(Path(conf.audit.file)) if conf.audit.file else None
        self._mutex = threading.Lock()
        self._terminals: dict[str, Terminal] = {}

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

    def start_console(self, task: base.DriverTask) -> None:
        """Listen on the node's port, after the BMC has ended an older session."""
        own = _info(task.driver_info)
        bmc = IpmiBmc(self.conf, task, own=own)
        with contextlib.suppress(errors.BmcRefused):  # it says so where there is no older session
            bmc.tell("sol", "deactivate", write=True)
        self.stop_console(task)
        node = task.node
        with self._mutex:
            last = node.driver_internal_info.get(_PORT)
            listener = terminal.listen(self.conf.console.socat_address, self._free(own, last))
            self._terminals[node.uuid] = Terminal(
                name=node.uuid, listener=listener, own=own, conf=self.conf.console,
                suite=own.cipher_suite if own.cipher_suite is not None else bmc.accepted_suite,
                trail=self._trail,
            )  # fmt: skip
        if own.terminal_port is None:
            node.driver_internal_info[_PORT] = self._terminals[node.uuid].port

    def _free(self, own: Info, last: Any) -> list[int]:
        """Return the ports to try: the node's own, or those of the range, its last one first."""
        if own.terminal_port is not None:
            return [own.terminal_port]
        taken = {each.port for each in self._terminals.values()}
        free = [port for port in self._ports if port not in taken]
        return sorted(free, key=lambda port: port != last)

    def stop_console(self, task: base.DriverTask) -> None:
        self.release([task.node.uuid])

    def release(self, nodes: Sequence[str]) -> None:
        """Stop the terminals side by side: each waits for its BMC, which may be mute."""
        with self._mutex:
            running = [self._terminals.pop(uuid) for uuid in nodes if uuid in self._terminals]
        for each in running:
            each.begin_stop()
        for each in running:
            each.stop()

    def get_console(self, task: base.DriverTask) -> dict[str, str]:
        port = _info(task.driver_info).terminal_port
        port = port or task.node.driver_internal_info.get(_PORT)
        address = self.conf.console.socat_address
        host = f"[{address}]" if ":" in address else address
        return {"type": "socat", "url": f"tcp://{host}:{port}"}

    def close(self) -> None:
        self.release(list(self._terminals))


def _info(driver_info: Mapping[str, Any]) -> Info:
    """Return the connection; a node of Redfish uses its own host and login where none is named."""
    address = driver_info.get("redfish_address")
    if not address or driver_info.get("ipmi_address"):
        return info.parse(driver_info)
    host = urllib.parse.urlsplit(address if "://" in address else f"//{address}").hostname
    login = {f"ipmi_{key}": driver_info.get(f"redfish_{key}") for key in ("username", "password")}
    return info.parse(login | dict(driver_info) | {"ipmi_address": host})


def _ports(text: str | None) -> range:
    """Return the ports of FIRST:END.  Raises CannotStart."""
    if text is None:
        return range(0)
    match = _RANGE.fullmatch(text)
    ports = range(int(match[1]), int(match[2])) if match else range(0)
    if not ports or ports[0] < 1 or ports[-1] > _MOST_PORT:
        raise errors.CannotStart(
            reason="cannot use the configuration, group [console]: option port_range takes two "
            f"ports such as 10000:11000, not {text!r}",
        )
    return ports
