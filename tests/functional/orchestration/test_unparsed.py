"""What is no request for any application is answered in Heat's form, on Heat's port."""

from __future__ import annotations

import json
import socket

import pytest

from bloomery.api import server
from bloomery.api.orchestration import replies
from bloomery.conf import Conf
from bloomery.conf.api import Api


@pytest.fixture
def address():
    def nobody(environ, start_response):
        raise AssertionError

    serving = server.make(nobody, Conf(api=Api(port=0)), fault=replies.unparsed)
    serving.start()
    yield serving.address
    serving.stop()


def answer(address, data):
    """Return status and document."""
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(data)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        (b"BREW /v1/p/stacks HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "HTTPMethodNotAllowed"),
        (b"GET /v1/p/stacks HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n", 400, "HTTPBadRequest"),
        (b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n", 400, "HTTPBadRequest"),
        (
            b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            431,
            "HTTPClientError",
        ),
    ],
)
def test_what_the_server_refuses_has_the_form_of_the_api(address, data, status, kind):
    received, document = answer(address, data)
    assert (received, document["code"], document["error"]["type"]) == (status, status, kind)
    assert set(document) == {"code", "title", "explanation", "error"}
