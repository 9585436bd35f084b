"""Serial over LAN: a line of ``terminal`` that ``ipmitool`` carries, in a pty of ``socat``."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Sequence
from typing import Final

from bloomery.drivers import processes
from bloomery.drivers.ipmi import tool
from bloomery.drivers.ipmi.info import Info
from bloomery.drivers.processes import ProcessLine

PROGRAM: Final = "socat"
_PATIENCE: Final = tool.Patience(retries=4, interval_s=1)
_ESCAPE: Final = "\udcff"  # for ipmitool's own commands: a byte that no UTF-8 has, and no ~
_LAST_S: Final = 5.0  # for socat to end once its socket is closed


class SolLine(ProcessLine):
    """``suite``: the cipher suite, None for any.  The processes end with the thread that opens."""

    def __init__(self, own: Info, suite: int | None) -> None:
        super().__init__()
        self._own, self._suite = own, suite

    def open(self) -> socket.socket:
        """Start socat and ipmitool, which takes the session over, as only one is possible."""
        ours, theirs = socket.socketpair()
        with (
            theirs,
            processes.in_memory(self._own.password.encode() or b"\0") as password,
            processes.in_memory(os.fsencode(self._script(password))) as script,
            self._mutex,
        ):
            shell = f"EXEC:/bin/sh /proc/self/fd/{script},pty,stderr"
            self._process = subprocess.Popen(
                (*processes.tie(), PROGRAM, f"FD:{theirs.fileno()}", shell),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), password, script),
                env=tool.environment(self._own), start_new_session=True,
            )  # fmt: skip
        return ours

    def close(self) -> None:
        """Await the end of the processes, and end the session at the BMC.

        That session may else hold up what the machine writes.
        """
        self.kill(_LAST_S)
        with self._mutex:
            self._process = None
        with processes.in_memory(self._own.password.encode() or b"\0") as password:
            subprocess.run(
                (*processes.tie(), *self._command("deactivate", password)),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(password,), env=tool.environment(self._own), check=False,
            )  # fmt: skip

    def _script(self, password: int) -> str:
        """Return a shell script that ends an older session before it opens its own."""
        deactivate = shlex.join(self._command("deactivate", password))
        program, *arguments = self._command("activate", password)
        activate = shlex.join([program, "-e", _ESCAPE, *arguments])
        return f"{deactivate} </dev/null >/dev/null 2>&1\nexec {activate}\n"

    def _command(self, verb: str, password: int) -> Sequence[str]:
        return tool.command(
            self._own, ("sol", verb), suite=self._suite, patience=_PATIENCE,
            password_file=f"/proc/self/fd/{password}", verbose=False,
        )  # fmt: skip
