"""A TCP port that leads to the serial console of a machine, one connection at a time.

    terminal = Terminal(name="web-1", listener=listen(address, ports), own=info, suite=3, conf=conf)
    terminal.stop()

A thread accepts connections.  Each one has a ``socat`` with a terminal and an ``ipmitool`` of its
own, which end with the connection, with ``stop``, or with this process.  The audit file, if there
is one, gets the begin and the end of each connection; without room for the begin there is none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Sequence
from typing import Final

from bloomery import errors
from bloomery.audit import Trail
from bloomery.conf.drivers import Console
from bloomery.drivers.ipmi import tool
from bloomery.drivers.ipmi.info import Info

LOG = logging.getLogger(__name__)

PROGRAM: Final = "socat"
_PATIENCE: Final = tool.Patience(retries=4, interval_s=1)
_PAUSE_S: Final = 1.0  # after a connection that could not be accepted or served
_WAITING: Final = 1  # connections that wait for the current one


def listen(address: str, ports: Iterable[int]) -> socket.socket:
    """Return a socket on the first free port.  Raises NoFreeIPMITerminalPorts."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for port in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
            listener.listen(_WAITING)
        except OSError as exc:
            LOG.debug("console port %s of %s: %s", port, address, exc)
            listener.close()
        else:
            return listener
    raise errors.NoFreeIPMITerminalPorts(address=address)


class Terminal:
    """Serves a listening socket until ``stop``.  ``suite``: the cipher suite, None for any."""

    def __init__(
        self,
        *,
        name: str,
        listener: socket.socket,
        own: Info,
        suite: int | None,
        conf: Console,
        trail: Trail | None = None,
    ) -> None:
        self._trail = trail
        self._listener, self._own, self._suite, self._conf = listener, own, suite, conf
        self.name, self.port = name, int(listener.getsockname()[1])
        self._stopping = threading.Event()
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._serve, name=f"console-{name}", daemon=True)
        self._thread.start()

    def begin_stop(self) -> None:
        """As ``stop``, but returns at once."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes its accept
        with self._mutex:
            if self._process is not None:
                _signal(self._process, signal.SIGTERM)

    def stop(self) -> None:
        """Close the port, end the connection and its session at the BMC, and join the thread."""
        self.begin_stop()
        with self._mutex:
            process = self._process
        if process is not None:
            try:
                process.wait(self._conf.kill_timeout)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, peer = self._listener.accept()
                with connection:
                    self._record("console_opened", peer[0])
                    try:
                        self._connect(connection)
                    finally:
                        self._record("console_closed", peer[0])
            except (OSError, errors.AuditUnwritable) as exc:
                if not self._stopping.is_set():
                    LOG.warning("console of node %s: %s", self.name, exc)
                    self._stopping.wait(_PAUSE_S)

    def _record(self, kind: str, address: str) -> None:
        """Add a record to the audit.  Raises AuditUnwritable."""
        if self._trail is not None:
            self._trail.add(kind, {"node": self.name, "address": address}, is_durable=True)

    def _connect(self, connection: socket.socket) -> None:
        """Run socat until the connection or the session with the BMC ends."""
        with (
            tool.in_memory(self._own.password.encode() or b"\0") as password,
            tool.in_memory(self._script(password).encode()) as script,
        ):
            limit = [f"-T{self._conf.terminal_timeout}"] if self._conf.terminal_timeout else []
            shell = f"EXEC:/bin/sh /proc/self/fd/{script},pty,stderr"
            with self._mutex:
                if self._stopping.is_set():
                    return
                self._process = process = subprocess.Popen(
                    (*tool.tie(), PROGRAM, *limit, f"FD:{connection.fileno()}", shell),
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    pass_fds=(connection.fileno(), password, script),
                    env=tool.environment(self._own), start_new_session=True,
                )  # fmt: skip
            process.wait()
            with self._mutex:
                self._process = None
            # The session at the BMC may else hold up what the machine writes.
            subprocess.run(
                (*tool.tie(), *self._line(("sol", "deactivate"), password)),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(password,), env=tool.environment(self._own), check=False,
            )  # fmt: skip

    def _script(self, password: int) -> str:
        """Return a shell script that takes the session over, as only one is possible."""
        deactivate, activate = (
            shlex.join(self._line(("sol", verb), password)) for verb in ("deactivate", "activate")
        )
        return f"{deactivate} </dev/null >/dev/null 2>&1\nexec {activate}\n"

    def _line(self, arguments: Sequence[str], password: int) -> list[str]:
        return tool.command(
            self._own, arguments, suite=self._suite, patience=_PATIENCE,
            password_file=f"/proc/self/fd/{password}", verbose=False,
        )  # fmt: skip


def _signal(process: subprocess.Popen[bytes], order: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, order)
