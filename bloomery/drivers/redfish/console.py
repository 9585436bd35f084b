"""The serial console that a BMC offers by SSH, such as OpenBMC at port 2200.

The BMC's system names port and command (DSP0268, ComputerSystem, SerialConsole.SSH).  The program
``ssh`` gets the password from a script in memory, by SSH_ASKPASS: it is on no command line, and in
no environment.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base, processes
from bloomery.drivers.consoles import SocketConsole
from bloomery.drivers.processes import ProcessLine
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.hardware import RedfishInterface

PROGRAM: Final = "ssh"
_CONNECT_S: Final = 10
_LAST_S: Final = 5.0  # for ssh to end once its socket is closed
_MOST_COMMAND: Final = 200  # characters
_MOST_PORT: Final = 65535
_INSTEAD: Final = "choose console interface ipmitool-socat or console-server"


class RedfishSsh(SocketConsole, RedfishInterface):
    """Raises CannotStart without ssh, and for wrong options of [console]."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        known, cannot = conf.console.ssh_known_hosts, "cannot enable console interface redfish-ssh"
        if shutil.which(PROGRAM) is None:
            raise errors.CannotStart(
                reason=f"{cannot}: the program {PROGRAM} is not on PATH; install the package "
                "openssh-client",
            )
        is_strict = conf.console.ssh_host_keys == "strict"
        if not known or '"' in known or "%" in known or (is_strict and not Path(known).is_file()):
            raise errors.CannotStart(
                reason=f"{cannot}: [console]ssh_known_hosts must name a file with the host keys of "
                'BMCs, without " and %; ssh-keyscan -p 2200 BMC writes its lines',
            )

    def close(self) -> None:
        SocketConsole.close(self)
        RedfishInterface.close(self)

    def validate(self, task: base.DriverTask) -> None:
        account = self.access.account(task)
        if not account.username or not account.password:
            raise errors.MissingParameterValue(
                reason="a console by SSH needs driver_info/redfish_username and redfish_password"
            )
        if not self._ports:
            raise errors.MissingParameterValue(
                reason="cannot start consoles: [console]port_range is unset"
            )

    def line(self, task: base.DriverTask) -> SshLine:
        """Return the line that the BMC's system names."""
        self.validate(task)
        port, command = _offer(self.access.document(task))
        return SshLine(self.access.working_account(task), port, command, self.conf)


def _offer(system: dict[str, Any]) -> tuple[int, str]:
    """Return port and command of the system's console, or raise InvalidParameterValue."""
    console = system.get("SerialConsole")
    offer = console.get("SSH") if isinstance(console, dict) else None
    if not isinstance(offer, dict):
        reason = f"the BMC shows no serial console by SSH for its system; {_INSTEAD}"
        raise errors.InvalidParameterValue(reason=reason)
    port, command = offer.get("Port", 22), offer.get("ConsoleEntryCommand") or ""
    if offer.get("ServiceEnabled") is False:
        reason = "the BMC's serial console by SSH is switched off; switch it on at the BMC"
    elif type(port) is not int or not 1 <= port <= _MOST_PORT:
        reason = f"the BMC shows {errors.shortened(str(port))!r} as the port of its serial console"
    elif not isinstance(command, str) or not command.isprintable() or len(command) > _MOST_COMMAND:
        reason = "the BMC shows an unusable ConsoleEntryCommand for its serial console"
    elif offer.get("SharedWithManagerCLI") is True and not command:
        reason = "the BMC's SSH leads to its command line, and the BMC names no command that leads "
        reason += f"from there to the serial console; {_INSTEAD}"
    else:
        return port, command
    raise errors.InvalidParameterValue(reason=reason)


class SshLine(ProcessLine):
    """The process ends with the thread that opens the line.  ``command``: empty for the shell."""

    def __init__(self, account: Account, port: int, command: str, conf: Conf) -> None:
        super().__init__()
        self._password, self._conf = str(account.password), conf.console
        host = str(urllib.parse.urlsplit(account.address).hostname)
        self._target = ("-p", str(port), "-l", str(account.username), "--", host)
        self._remote = (command,) if command else ()
        self._script = contextlib.ExitStack()  # the descriptor, while the line is open

    def open(self) -> socket.socket:
        """Start ssh, whose words about a failure are part of the stream."""
        with contextlib.ExitStack() as stack:
            script = f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(self._password)}\n"
            descriptor = stack.enter_context(processes.in_memory(script.encode()))
            secrets = {
                # ssh closes all descriptors before it runs the script
                "SSH_ASKPASS": f"/proc/{os.getpid()}/fd/{descriptor}",
                "SSH_ASKPASS_REQUIRE": "force",
            }
            ours, theirs = socket.socketpair()
            with theirs, self._mutex:
                end = theirs.fileno()
                self._process = subprocess.Popen(
                    (*processes.tie(), PROGRAM, *self._options(), *self._target, *self._remote),
                    stdin=end, stdout=end, stderr=end, env=dict(os.environ) | secrets,
                    start_new_session=True,
                )  # fmt: skip
            self._script = stack.pop_all()
        return ours

    def close(self) -> None:
        self.kill(_LAST_S)
        with self._mutex:
            self._process = None
        self._script.close()

    def _options(self) -> Sequence[str]:
        """Return options that leave out what the user's own configuration may say."""
        options = {
            "LogLevel": "ERROR", "ConnectTimeout": str(_CONNECT_S), "ServerAliveInterval": "30",
            "NumberOfPasswordPrompts": "1", "UpdateHostKeys": "no", "IdentityAgent": "none",
            "PreferredAuthentications": "password,keyboard-interactive",
            "PubkeyAuthentication": "no", "HashKnownHosts": "no",
            "GlobalKnownHostsFile": "/dev/null",
            "UserKnownHostsFile": f'"{Path(self._conf.ssh_known_hosts).absolute()}"',
            "StrictHostKeyChecking":
                "yes" if self._conf.ssh_host_keys == "strict" else "accept-new",
        }  # fmt: skip
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ("-F", "none", "-tt", "-e", "none", *words)
