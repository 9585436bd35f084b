"""Who wrote to which machine, under which lock: told by conductors, kept where nobody dies.

In the test a ``Witness`` listens; in each conductor ``install`` lets the fake machines tell it of
every order, when the lease has been checked.  An order under an older lock than one that came
before is a write that the fence did not stop.  Around each order its process holds the machine's
key in Redis, which is set only where it is not there: who finds the key of another process that
lives has met a second holder.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bloomery.drivers import base
from bloomery.drivers.fake import behaviour

VARIABLE: Final = "BLOOMERY_TEST_WITNESS"
REDIS: Final = "BLOOMERY_TEST_REDIS"
_ANSWERS_WITHIN_S: Final = 10.0
_ORDER_TAKES_S: Final = 0.01
# A process may be stopped between the look at its lease and the order.  No software prevents that,
# and no software can: such an order is counted by itself.
_SENT_AT_ONCE_S: Final = 1.0


class Witness:
    """Listens on a port of its own; ``faults`` is what must not happen."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.count = self.late = 0
        self._newest: dict[str, dict[str, Any]] = {}
        self._mutex = threading.Lock()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        note = self._note

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # who told was killed
                    for line in self.rfile:
                        note(json.loads(line))
                        self.wfile.write(b"\n")

        return Handler

    def _note(self, order: dict[str, Any]) -> None:
        with self._mutex:
            if met := order.get("met"):
                self.faults.append(f"{order} while {met} was at work there")
                return
            self.count += 1
            if time.monotonic() - order["checked_at"] > _SENT_AT_ONCE_S:
                self.late += 1
                return
            newest = self._newest.get(order["node"])
            if newest is not None and newest["generation"] > order["generation"]:
                self.faults.append(f"{order} came after {newest}")
            else:
                self._newest[order["node"]] = order

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Lines:
    """A connection of one thread, on which each line that is sent is answered."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), _ANSWERS_WITHIN_S)
        self._file = self._connection.makefile("rwb")

    def ask(self, line: bytes) -> bytes:
        self._file.write(line)
        self._file.flush()
        return self._file.readline()

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()
        self._connection.close()


class Keys:
    """Keys in Redis, spoken to in its own protocol: a client library for three commands is much."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections = threading.local()

    def _ask(self, *words: str) -> str | None:
        if not hasattr(self._connections, "redis"):
            self._connections.redis = Lines(self._port)
        lines: Lines = self._connections.redis
        encoded = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
        head = lines.ask(b"*%d\r\n%s" % (len(words), encoded)).decode().strip()
        if not head.startswith("$"):
            return head
        size = int(head[1:])
        return None if size < 0 else lines.read(size + 2)[:-2].decode()

    def take(self, node: str, holder: str) -> str | None:
        """Take a machine; return who has it, if somebody does who lives."""
        expires_ms = str(int(base.WRITE_BUDGET_S * 1000))
        while self._ask("SET", f"bmc:{node}", holder, "NX", "PX", expires_ms) != "+OK":
            if (other := self._ask("GET", f"bmc:{node}")) and _lives(other):
                return other
            self._ask("DEL", f"bmc:{node}")
        return None

    def leave(self, node: str, holder: str) -> None:
        if self._ask("GET", f"bmc:{node}") == holder:
            self._ask("DEL", f"bmc:{node}")

    def close(self) -> None:
        """Let the connection of this thread go."""
        self._connections.redis.close()


def _lives(holder: str) -> bool:
    return Path(f"/proc/{holder.rsplit(maxsplit=1)[-1]}").exists()


class Reporter:
    """Tells the witness of the environment of each order of this process."""

    def __init__(self) -> None:
        self._port = int(os.environ[VARIABLE])
        self._keys = Keys(int(os.environ[REDIS])) if REDIS in os.environ else None
        self._connections = threading.local()

    def _tell(self, order: dict[str, Any]) -> None:
        if not hasattr(self._connections, "witness"):
            self._connections.witness = Lines(self._port)
        self._connections.witness.ask(json.dumps(order).encode() + b"\n")

    @contextlib.contextmanager
    def order(self, guard: Any, name: str, checked_at: float) -> Iterator[None]:
        """Be at work on a machine for as long as the block lasts."""
        order = {"node": guard.node_uuid, "order": name, "host": guard.holder,
                 "generation": guard.generation, "checked_at": checked_at}  # fmt: skip
        holder = f"{guard.holder} {threading.get_ident()} {os.getpid()}"
        if self._keys is None:
            self._tell(order)
            yield
            return
        if met := self._keys.take(guard.node_uuid, holder):
            self._tell(order | {"met": met})
        self._tell(order)
        try:
            yield
            threading.Event().wait(_ORDER_TAKES_S)
        finally:
            self._keys.leave(guard.node_uuid, holder)


def install() -> None:
    """Let the fake machines of this process tell the witness of the environment."""
    reporter, act = Reporter(), behaviour.FakeInterface.act

    def act_and_tell(
        fake: Any, task: base.DriverTask, method: str, limit_s: float | None = None
    ) -> Any:
        guard = getattr(task, "_guard", None)
        if guard is None or task.turn != 0:
            return act(fake, task, method, limit_s)
        task.assert_lease()
        with reporter.order(guard, f"{fake.kind}.{method}", time.monotonic()):
            return act(fake, task, method, limit_s)

    behaviour.FakeInterface.act = act_and_tell
