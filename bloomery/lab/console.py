"""The serial line of a simulated machine, at a TCP port of loopback.

The line greets each client, as terminal servers do.  The machine prints a log at each boot, and
echoes what is typed at its login.  As on a real line, nothing is kept for clients that come later,
and a slow client misses output.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

from bloomery.lab.system import System

_LINE_S: Final = 0.05  # between two lines of a boot
_PIECE: Final = 4096
_MOST_CLIENTS: Final = 8
_OK: Final = "[\x1b[32m  OK  \x1b[0m]"
_RUBOUTS: Final = (0x08, 0x7F)


class SerialConsole:
    """Raises OSError where no port is free."""

    def __init__(self, system: System, host: str) -> None:
        self._system, self.host = system, host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._clients: set[socket.socket] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._boot: asyncio.TimerHandle | None = None
        self._typed = 0  # bytes since the prompt
        self._is_up = False
        system.serial_line = self.follow

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        """Close the port and the connections.  The loop has ended."""
        self._loop = None
        for each in (self._listener, *self._clients):
            each.close()
        self._clients.clear()

    def follow(self) -> None:
        """Print a boot, or fall silent, as the machine was just started or stopped."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the rack has stopped
                self._loop.call_soon_threadsafe(self._restart)

    def _restart(self) -> None:
        if self._boot is not None:
            self._boot.cancel()
        self._is_up, self._typed = False, 0
        if self._system.is_on:
            self._print_next(self._lines())

    def _print_next(self, lines: Iterator[str]) -> None:
        line = next(lines, None)
        if line is None or self._loop is None:
            self._is_up = True
            self._print(f"\r\n{self._system.name} login: ")
            return
        self._print(f"{line}\r\n")
        self._boot = self._loop.call_later(_LINE_S, self._print_next, lines)

    def _lines(self) -> Iterator[str]:
        spec, booted = self._system.spec, dict(self._system.booted)
        yield f"\x1b[2J\x1b[H\x1b[1mBloomery lab BIOS\x1b[0m  {self._system.name}"
        yield f"{spec.cpus} processors, {spec.memory_gib} GiB of memory, {len(spec.macs)} ports"
        yield f"Booting from {booted.get('image') or booted.get('target')}"
        yield f"[    0.000000] Command line: console=ttyS0,115200 root=/dev/{spec.uuid[:8]}"
        for number, mac in enumerate(spec.macs):
            yield f"[    1.{number:06}] eth{number}: {mac}, link is up"
        for number, size in enumerate(spec.disks_gib):
            yield f"[    2.{number:06}] sd{chr(ord('a') + number)}: {size} GiB"
        for unit in ("Network", "Disks", "Login on ttyS0"):
            yield f"{_OK} {unit}"

    def _accept(self) -> None:
        assert self._loop is not None
        with contextlib.suppress(OSError):  # the client has gone
            client, _address = self._listener.accept()
            if len(self._clients) >= _MOST_CLIENTS:
                client.close()
                return
            client.setblocking(False)
            power = "on" if self._system.is_on else "off"
            client.send(f"Serial line of {self._system.name}, which is {power}\r\n".encode())
            self._clients.add(client)
            self._loop.add_reader(client, self._read, client)

    def _read(self, client: socket.socket) -> None:
        try:
            data = client.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            assert self._loop is not None
            self._loop.remove_reader(client)
            self._clients.discard(client)
            client.close()
        elif self._is_up:
            for byte in data:  # echoed as a login does: no further back than its prompt
                if byte in b"\r\n":
                    self._typed = 0
                    self._print(f"\r\n{self._system.name} login: ")
                elif byte in _RUBOUTS:
                    self._print("\b \b" if self._typed else "")
                    self._typed -= 1 if self._typed else 0
                elif byte >= ord(" "):
                    self._typed += 1
                    self._print(chr(byte))

    def _print(self, text: str) -> None:
        for client in self._clients:
            with contextlib.suppress(OSError):  # it has gone, or is slow
                client.send(text.encode("latin-1"))
