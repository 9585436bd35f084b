"""One delivery to one address: which replies count, and which addresses are called."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from typing import Any

import pytest

from bloomery import fetching
from bloomery.conf.notifications import Events
from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.webhooks import DeliveryFailed, WebhookSink
from bloomery.model.webhook import Webhook
from bloomery.secrets import Sealer
from tests.kit.servers import site as kit
from tests.kit.servers import web

SECRET = base64.b64encode(bytes(range(32))).decode()
OK = b"HTTP/1.1 200 OK\r\n"


def sink_to(db: Database, url: str, **options: Any) -> WebhookSink:
    sealer = Sealer(kit.KEY)
    webhook = Webhook(uuid="w", url=url, secret=sealer.seal_text(SECRET))
    conf = Events(**({"webhook_allow_local": True} | options))
    return WebhookSink(db, webhook, sealer, conf)


@pytest.fixture
def event(db: Database, happen) -> EventRow:
    happen()
    with db.read() as conn:
        return events.list_after(conn, 0, 1)[0]


@pytest.mark.parametrize(
    "reply",
    [OK + b"\r\n", OK + b"Content-Length: 2\r\n\r\nok", OK + b"\r\n" + b"#" * 2**18,
     OK + b"Content-Length: 999999\r\n\r\n" + b"#" * 2**18, b"HTTP/1.1 204 No Content\r\n\r\n"],
    ids=["no body", "a body", "a long body", "a long body that is cut", "204"],
)  # fmt: skip
def test_a_whole_reply_means_that_the_event_was_taken(db, event, reply: bytes):
    with web.serving({"/": web.raw(reply)}) as receiver:
        sink_to(db, receiver.url("/")).send(event)


@pytest.mark.parametrize(
    "reply",
    [b"", OK[:9], OK, OK + b"Content-Le", OK + b"Content-Length: 9\r\n\r\nhalf",
     OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"],
    ids=["nothing", "half a line", "no end of the head", "half a header", "half a body",
         "half a chunk"],
)  # fmt: skip
def test_a_reply_that_was_cut_off_is_a_failure(db, event, reply: bytes):
    with web.serving({"/": web.raw(reply)}) as receiver, pytest.raises(DeliveryFailed):
        sink_to(db, receiver.url("/")).send(event)


@pytest.mark.parametrize("begin", [OK, OK + b"\r\n"], ids=["head", "body"])
def test_a_reply_that_drips_is_a_failure(db, event, begin: bytes):
    enough = threading.Event()

    def drip(request: Any) -> None:
        request.wfile.write(begin)
        with contextlib.suppress(OSError):
            while not enough.wait(0.01):
                request.wfile.write(b"X: y\r\n")

    with web.serving({"/": drip}) as receiver:
        sink = sink_to(db, receiver.url("/"), webhook_timeout=0.3)
        with pytest.raises(DeliveryFailed, match=r"longer than 0\.3 s"):
            sink.send(event)
        enough.set()


# ------------------------------------------------------------------------------------- addresses


def entry(address: str, port: int = 80) -> tuple[Any, ...]:
    return socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254",
     "fd20:ce::254", "100.100.100.200", "168.63.129.16", "64:ff9b::a9fe:a9fe"],
)  # fmt: skip
def test_metadata_and_the_machine_itself_are_called_only_where_that_is_allowed(
    db, event, monkeypatch, address: str
):
    monkeypatch.setattr(fetching, "resolved", lambda host, port: [entry(address, 1)])
    with pytest.raises(DeliveryFailed, match="webhook_allow_local"):
        sink_to(db, "http://hooks.example/", webhook_allow_local=False).send(event)


def test_an_address_of_this_machine_s_network_is_its_own():
    """The kernel is asked: loopback, which every machine has, stands for all of them."""
    assert fetching.is_own(entry("127.0.0.1"))
    assert fetching.is_own(fetching.resolved("127.0.0.1", 0)[0]), "without a port, too"
    assert not fetching.is_own(entry("198.51.100.1"))


def test_own_addresses_are_not_called(db, event, monkeypatch):
    monkeypatch.setattr(fetching, "resolved", lambda host, port: [entry("198.51.100.1", 1)])
    monkeypatch.setattr(fetching, "is_own", lambda entry: True)
    with pytest.raises(DeliveryFailed, match="webhook_allow_local"):
        sink_to(db, "http://hooks.example/", webhook_allow_local=False).send(event)
