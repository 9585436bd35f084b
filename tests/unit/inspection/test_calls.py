"""The action api-call: what it asks, how often, and where it never goes."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

from bloomery import errors
from bloomery.conf.inspection import InspectionRules
from bloomery.inspection import calls

LOCAL = InspectionRules(api_call_allow_local=True, api_call_most_bytes=1000)


class Server:
    """Answers the statuses that it was told, one after the other; the last one for ever."""

    def __init__(self, *statuses: int, body: bytes = b"{}", **headers: str) -> None:
        self.statuses, self.requests = list(statuses), []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append((self.path, dict(self.headers)))
                more = len(server.statuses) > 1
                self.send_response(server.statuses.pop(0) if more else server.statuses[0])
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_args: Any) -> None:
                """Tests are quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/seen?by=rules"
        self.requests: list[tuple[str, dict[str, str]]] = []

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def call(url: str, conf: InspectionRules = LOCAL, **arguments: Any) -> list[float]:
    pauses: list[float] = []
    until_s = time.monotonic() + 60
    calls.Caller(conf=conf, until_s=until_s, sleep=pauses.append)(url=url, **arguments)
    return pauses


def test_a_call_is_a_get_with_the_headers_of_the_rule():
    with Server(204, body=b"") as server:
        assert call(server.url, headers={"X-Rack": 7}) == []
        [(path, headers)] = server.requests
    assert (path, headers["X-Rack"]) == ("/seen?by=rules", "7")


def test_a_server_in_trouble_is_asked_again_after_pauses_that_double():
    with Server(503, 500, 200) as server:
        assert call(server.url, backoff_factor=0.5) == [0.5, 1.0]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "retries", "requests"), [(503, 2, 3), (503, 0, 1), (404, 3, 1), (302, 3, 1)]
)
def test_a_call_that_fails_says_how(status, retries, requests):
    with Server(status, Location="http://127.0.0.1:1/") as server:
        with pytest.raises(errors.Invalid, match=f"cannot call .* answers {status}") as refusal:
            call(server.url, retries=retries)
        assert len(server.requests) == requests
    assert "by=rules" not in str(refusal.value)


def test_a_long_answer_is_not_read_to_its_end():
    with Server(200, body=b"x" * 5000) as server, pytest.raises(errors.Invalid, match="longer"):
        call(server.url)


@pytest.fixture
def silent_url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_a_server_that_says_nothing_is_given_up(silent_url):
    with pytest.raises(errors.Invalid, match="longer than its timeout"):
        call(silent_url, timeout=0.05, retries=0)


def test_all_calls_of_an_inspection_together_end(silent_url):
    ask = calls.Caller(conf=LOCAL, until_s=time.monotonic())
    with pytest.raises(errors.Invalid, match="together take longer"):
        ask(url=silent_url, timeout=60)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "::ffff:127.0.0.1", "224.0.0.1"],
)
def test_the_machine_itself_and_its_neighbours_are_off_limits(address):
    def resolve(_host: str, port: int) -> Any:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    pauses: list[float] = []
    ask = dataclasses.replace(
        calls.Caller.of(InspectionRules()), sleep=pauses.append, resolve=resolve
    )
    with pytest.raises(errors.Invalid, match="api_call_allow_local"):
        ask(url="http://cmdb.example/")
    assert pauses == []


@pytest.mark.parametrize(
    ("url", "arguments", "message"),
    [
        ("ftp://a/", {}, "only URLs of http and https"),
        ("file:///etc/passwd", {}, "only URLs of http and https"),
        ("http://", {}, "names no server"),
        ("http://u:hush@a/", {}, "leave user and password out"),
        ("http://a/", {"proxies": {"http": "http://b"}}, "no proxies"),
        ("http://a/", {"headers": {"X": "a\r\nY: b"}}, "headers"),
        ("http://a/", {"headers": {f"X-{n}": n for n in range(60)}}, "headers"),
    ],
    ids=str,
)
def test_calls_that_nobody_should_make_are_refused(url, arguments, message):
    with pytest.raises(errors.Invalid, match=message) as refusal:
        call(url, **arguments)
    assert "hush" not in str(refusal.value)
