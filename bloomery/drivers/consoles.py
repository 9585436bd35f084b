"""Serial consoles on TCP ports of the conductor: what their interfaces share, and console servers.

The interface ``console-server`` is for machines whose serial line is at a TCP port already: that of
a console server, of ser2net, or of a virtual machine.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from bloomery import errors, fetching
from bloomery.audit import Trail
from bloomery.conf import Conf
from bloomery.drivers import base, terminal
from bloomery.drivers.terminal import Line, Record, Terminal

_RANGE: Final = re.compile(r"(\d{1,5}):(\d{1,5})")
_MOST_PORT: Final = 65535
_MIB: Final = 1 << 20
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):(\d{1,5})")
_KEY: Final = "console_server_address"
_CONNECT_S: Final = 5.0
ALLOW_LOCAL: Final = "[console]allow_local"


class SocketConsole(base.Console):
    """Owns a ``Terminal`` for each console of this process.

    Raises CannotStart for a wrong [console]port_range, or a [console]record_dir that is none.
    """

    port_key: ClassVar[str] = "allocated_console_port"  # in driver_internal_info

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._ports = _ports(conf.console.port_range)
        self._trail = Trail(Path(conf.audit.file)) if conf.audit.file else None
        self._folder = Path(conf.console.record_dir) if conf.console.record_dir else None
        if self._folder is not None and not self._folder.is_dir():
            raise errors.CannotStart(
                reason=f"cannot record consoles: [console]record_dir {self._folder} is no folder; "
                "create it, with access for the conductor's user only",
            )
        self._mutex = threading.Lock()
        self._terminals: dict[str, Terminal] = {}

    def line(self, task: base.DriverTask) -> Line:
        """Return the way to the node's serial line.  Raises BmcUnreachable and others."""
        raise NotImplementedError

    def own_port(self, task: base.DriverTask) -> int | None:
        """Return the port that the node's driver_info fixes."""
        return None

    def start_console(self, task: base.DriverTask) -> None:
        """Listen on the node's port."""
        node, line, own_port = task.node, self.line(task), self.own_port(task)
        self.stop_console(task)
        with self._mutex:
            ports = self._free(own_port, node.driver_internal_info.get(self.port_key))
            self._terminals[node.uuid] = Terminal(
                name=node.uuid, line=line, conf=self.conf.console, trail=self._trail,
                listener=terminal.listen(self.conf.console.socat_address, ports),
                record=self._record(node.uuid),
            )  # fmt: skip
        if own_port is None:
            node.driver_internal_info[self.port_key] = self._terminals[node.uuid].port

    def _record(self, uuid: str) -> Record | None:
        if self._folder is None:
            return None
        return Record(self._folder / f"{uuid}.log", self.conf.console.record_size * _MIB)

    def _free(self, own_port: int | None, last: Any) -> list[int]:
        """Return the ports to try: the node's own, or those of the range, its last one first."""
        if own_port is not None:
            return [own_port]
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
        port = self.own_port(task) or task.node.driver_internal_info.get(self.port_key)
        address = self.conf.console.socat_address
        host = f"[{address}]" if ":" in address else address
        return {"type": "socat", "url": f"tcp://{host}:{port}"}

    def close(self) -> None:
        self.release(list(self._terminals))


class ConsoleServer(SocketConsole):
    """The serial line is at the TCP port that ``driver_info/console_server_address`` names."""

    def get_properties(self) -> dict[str, str]:
        return {_KEY: "HOST:PORT where the machine's serial line is. Required."}

    def validate(self, task: base.DriverTask) -> None:
        self.line(task)
        if not self._ports:
            raise errors.MissingParameterValue(
                reason="cannot start consoles: [console]port_range is unset"
            )

    def line(self, task: base.DriverTask) -> Line:
        text = task.driver_info.get(_KEY)
        if text is None:
            raise errors.MissingParameterValue(reason=f"driver_info/{_KEY} is missing")
        match = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
        if match is None or not 1 <= int(match[2]) <= _MOST_PORT:
            raise errors.InvalidParameterValue(
                reason=f"driver_info/{_KEY} takes HOST:PORT such as ts-1.example:7001"
            )
        return _TcpLine(match[1].strip("[]"), int(match[2]), self.conf.console.allow_local)


class _TcpLine:
    def __init__(self, host: str, port: int, allow_local: bool) -> None:
        self._address, self._allow_local = (host, port), allow_local
        self._socket: socket.socket | None = None

    def open(self) -> socket.socket:
        entries = fetching.resolved(*self._address)
        error: OSError | None = None
        for entry in fetching.reachable(entries, ALLOW_LOCAL, allow_local=self._allow_local):
            sock = socket.socket(entry[0], socket.SOCK_STREAM)
            sock.settimeout(_CONNECT_S)
            try:
                sock.connect(entry[4])
            except OSError as exc:
                sock.close()
                error = exc
            else:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return sock
        assert error is not None  # reachable yields an entry, or raises
        host, port = self._address
        raise OSError(error.errno, f"{host} port {port}: {error.strerror or error}")

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def kill(self, after_s: float) -> None: ...


def _ports(text: str | None) -> range:
    """Return the ports of FIRST:END.  Raises CannotStart."""
    if text is None:
        return range(0)
    match = _RANGE.fullmatch(text)
    ports = range(int(match[1]), int(match[2])) if match else range(0)
    if not ports or ports[0] < 1 or ports[-1] > _MOST_PORT:
        raise errors.CannotStart(
            reason=f"cannot use the configuration, group [console]: option port_range takes two "
            f"ports such as 10000:11000, not {text!r}",
        )
    return ports
