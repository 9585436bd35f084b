"""The command API of many agents over TLS: a port for each, few threads for all.

    with AgentServer(*tls.certificate(folder)) as server:
        url = server.open(commands)
        server.close(url)

One thread accepts connections, a pool answers them.  A connection carries one request.
Bloomery refuses a ``callback_url`` with a path, so each agent has a port.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import selectors
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from bloomery.lab.agent_commands import Commands, Json

LOG = logging.getLogger(__name__)
HOST: Final = "127.0.0.1"
_THREADS: Final = 32
_TIMEOUT_S: Final = 30.0
_LOOK_S: Final = 0.1


class Handler(http.server.BaseHTTPRequestHandler):
    """One request to an agent; ``server`` is its ``Commands``."""

    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    server: Any

    def log_message(self, *_args: object) -> None:
        """Log nothing: the address has the token."""

    def do_GET(self) -> None:
        if self._is_known():
            self._reply(200, {"commands": self.server.commands})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_known():
            self.serve(body["name"], body["params"])

    def serve(self, name: str, params: Json) -> None:
        """Carry out a command, and answer."""
        self._reply(*self.server.take(name, params))

    def _is_known(self) -> bool:
        url = urlsplit(self.path)
        if url.path.rstrip("/") != "/v1/commands":
            self._reply(404, {"faultcode": "Client", "faultstring": "Not found."})
            return False
        has_token = parse_qs(url.query).get("agent_token") == [self.server.token]
        if not has_token:
            self._reply(401, {"faultcode": "Client", "faultstring": "Token invalid."})
        return has_token

    def _reply(self, status: int, document: Json) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # a thread of the pool serves one request
        self.end_headers()
        self.wfile.write(body)


class AgentServer:
    """Serve agents with one certificate and its key; ``handler`` answers a request."""

    def __init__(
        self, certificate: str, key: str, *, handler: type[Handler] = Handler,
        threads: int = _THREADS,
    ) -> None:  # fmt: skip
        self.certificate = Path(certificate).read_text()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._handler = handler
        self._listeners: dict[str, socket.socket] = {}
        self._ready = selectors.DefaultSelector()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(threads, "lab-agent")
        self._thread = threading.Thread(target=self._run, name="lab-agents", daemon=True)
        self._thread.start()

    def open(self, commands: Commands, port: int = 0) -> str:
        """Listen for an agent; return its URL.  Raises OSError."""
        listener = socket.create_server((HOST, port), backlog=8)
        listener.setblocking(False)
        url = f"https://{HOST}:{listener.getsockname()[1]}"
        self._listeners[url] = listener
        self._ready.register(listener, selectors.EVENT_READ, commands)
        return url

    def close(self, url: str) -> None:
        """Listen no longer for an agent; nothing where it does not listen."""
        if (listener := self._listeners.pop(url, None)) is not None:
            self._ready.unregister(listener)
            listener.close()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        for url in list(self._listeners):
            self.close(url)
        self._pool.shutdown()
        self._ready.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._ready.select(_LOOK_S):
                with contextlib.suppress(OSError):  # the agent has just ended
                    connection, address = key.fileobj.accept()  # type: ignore[union-attr]
                    self._pool.submit(self._answer, connection, address, key.data)

    def _answer(self, raw: socket.socket, address: Any, commands: Commands) -> None:
        try:
            raw.settimeout(_TIMEOUT_S)
            with self._context.wrap_socket(raw, server_side=True) as connection:
                self._handler(connection, address, commands)  # type: ignore[arg-type]
        except OSError:
            raw.close()  # the client has gone
        except Exception:
            LOG.exception("an agent of the lab broke")
