"""A web server on this machine that answers as a test says, for whoever fetches from URLs.

with web.serving({"/a": web.text("hello")}) as site:
    site.url("/a")  # http://127.0.0.1:PORT/a
    site.asked  # paths, in the order in which they were asked for
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


def text(content: str | bytes, status: int = 200, **headers: str) -> Answer:
    body = content.encode() if isinstance(content, str) else content

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)

    return answer


def moved(to: str, status: int = 302) -> Answer:
    return text("", status, Location=to)


def raw(reply: bytes) -> Answer:
    """The bytes of a reply, and then the end of the connection."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(reply)

    return answer


def dripping(enough: threading.Event, part: bytes = b"# ") -> Answer:
    """A server that goes on saying a little more, until the test has seen enough."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        with contextlib.suppress(OSError):
            while not enough.wait(0.01):
                request.wfile.write(part)
                request.wfile.flush()

    return answer


class Site:
    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_address[1]
        self.asked: list[str] = []

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def serving(answers: Mapping[str, Answer]) -> AbstractContextManager[Site]:
    return serving_by(lambda request: answers.get(request.path, text("", 404))(request))


@contextlib.contextmanager
def serving_by(answer: Answer) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            answer(self)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
