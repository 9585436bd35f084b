"""Calls of the webhooks of drains: what a server does, and what the drain learns of it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import standardwebhooks

from bloomery.conf.notifications import Events
from bloomery.orchestration.engine_host import webhook_calls
from bloomery.orchestration.engine_host.webhook_calls import WebhookCalls
from bloomery.orchestration.resources.base import Answer
from tests.kit.waiting import wait_for

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
BODY = {"type": "drain.requested", "data": {"resource": "web"}}


class Server:
    """Answers ``status`` and ``text``; ``released``: until then it hangs."""

    def __init__(self) -> None:
        self.status, self.text = 200, ""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.released = threading.Event()
        self.released.set()
        outer, verify = self, standardwebhooks.Webhook(SECRET).verify

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.calls.append((self.headers["webhook-id"], verify(body, dict(self.headers))))
                outer.released.wait(30)
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.text)))
                self.end_headers()
                self.wfile.write(outer.text.encode())

            def log_message(self, *_args: Any) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,)).start()

    @property
    def webhook(self) -> dict[str, str]:
        return {"url": f"http://127.0.0.1:{self.http.server_address[1]}/", "secret": SECRET}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.released.set()
    server.http.shutdown()
    server.http.server_close()


def ask(calls: WebhookCalls, webhook: dict[str, str], call: str = "id/0") -> Answer:
    return wait_for(lambda: calls.post(call, "id", webhook, BODY), "the answer")


@pytest.mark.parametrize(
    ("status", "text", "answer"),
    [
        (200, json.dumps({"drained": True}), Answer(is_drained=True)),
        (200, json.dumps({"drained": "yes"}), Answer()),
        (200, "[1", Answer()),
        (204, "", Answer()),
        (202, json.dumps([True]), Answer()),
        (503, json.dumps({"drained": True}), Answer(fault="the server answers 503")),
        (302, "", Answer(fault="the server answers 302")),
    ],
)
def test_an_answer_clears_accepts_or_fails(server: Server, status, text, answer) -> None:
    server.status, server.text = status, text
    assert ask(WebhookCalls(Events(webhook_allow_local=True)), server.webhook) == answer
    assert server.calls == [("id", BODY)]


@pytest.mark.parametrize(
    ("change", "options", "fault"),
    [
        ({}, {"webhook_allow_local": False}, "webhook_allow_local"),
        ({"url": "ftp://lb/"}, {}, "only URLs of http and https"),
        ({"url": "http://127.0.0.1:9/"}, {}, "refused"),
        ({"secret": "whsec_" + "A" * 33}, {}, "its secret cannot be used: 24 to 64 bytes"),
    ],
)
def test_a_call_that_cannot_be_made_says_why(server: Server, change, options, fault) -> None:
    conf = Events(**{"webhook_allow_local": True} | options)
    answer = ask(WebhookCalls(conf), server.webhook | change)
    assert fault in answer.fault
    assert SECRET not in answer.fault
    assert server.calls == []


def test_a_server_that_hangs_is_waited_for_by_no_turn_and_called_once(server: Server) -> None:
    server.released.clear()
    calls = WebhookCalls(Events(webhook_allow_local=True))
    for _ in range(3):
        assert calls.post("id/0", "id", server.webhook, BODY) is None
    wait_for(lambda: server.calls, "the call")
    assert calls.post("id/0", "id", server.webhook, BODY) is None
    server.released.set()
    assert ask(calls, server.webhook) == Answer()
    assert len(server.calls) == 1


def test_a_server_that_answers_too_late_has_failed(server: Server) -> None:
    server.released.clear()
    answer = ask(WebhookCalls(Events(webhook_allow_local=True, webhook_timeout=1)), server.webhook)
    assert answer.fault == "it took longer than 1 s"


def test_servers_that_hang_take_no_more_than_their_threads(server: Server, monkeypatch) -> None:
    monkeypatch.setattr(webhook_calls, "MOST_CALLS", 2)
    monkeypatch.setattr(webhook_calls, "MOST_KEPT", 1)
    server.released.clear()
    calls = WebhookCalls(Events(webhook_allow_local=True))
    for number in range(3):
        calls.post(f"id/{number}", "id", server.webhook, BODY)
    wait_for(lambda: len(server.calls) == 2, "two calls")
    server.released.set()
    assert ask(calls, server.webhook, "id/2") == Answer()
    assert len(server.calls) == 3
