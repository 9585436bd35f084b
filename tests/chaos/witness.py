"""Who wrote to which machine, under which lock: told by conductors, kept where nobody dies.

In the test a ``Witness`` listens; in each conductor ``install`` lets the fake machines tell it of
every order, when the lease has been checked.  An order under an older lock than one that came
before is a write that the fence did not stop.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from typing import Any, Final

from bloomery.drivers import base
from bloomery.drivers.fake import behaviour

VARIABLE: Final = "BLOOMERY_TEST_WITNESS"
_ANSWERS_WITHIN_S: Final = 10.0


class Witness:
    """Listens on a port of its own; ``faults`` is what must not happen."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.count = 0
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
                for line in self.rfile:
                    note(json.loads(line))
                    self.wfile.write(b"\n")

        return Handler

    def _note(self, order: dict[str, Any]) -> None:
        with self._mutex:
            self.count += 1
            newest = self._newest.get(order["node"])
            if newest is not None and newest["generation"] > order["generation"]:
                self.faults.append(f"{order} came after {newest}")
            else:
                self._newest[order["node"]] = order

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def install() -> None:
    """Let the fake machines of this process tell the witness of the environment."""
    port, act = int(os.environ[VARIABLE]), behaviour.act
    connections = threading.local()

    def tell(order: dict[str, Any]) -> None:
        if not hasattr(connections, "file"):
            connection = socket.create_connection(("127.0.0.1", port), _ANSWERS_WITHIN_S)
            connections.file = connection.makefile("rwb")
        connections.file.write(json.dumps(order).encode() + b"\n")
        connections.file.flush()
        connections.file.readline()

    def act_and_tell(
        conf: Any, task: base.DriverTask, kind: str, method: str, limit_s: float | None = None
    ) -> Any:
        guard = getattr(task, "_guard", None)
        if guard is not None and task.turn == 0:
            task.assert_lease()
            tell({"node": guard.node_uuid, "order": f"{kind}.{method}",
                  "host": guard.holder, "generation": guard.generation})  # fmt: skip
        return act(conf, task, kind, method, limit_s)

    behaviour.act = act_and_tell
