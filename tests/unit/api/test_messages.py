"""Requests as they come off a connection: what is refused before its end is there."""

from __future__ import annotations

import pytest

from bloomery.api.messages import MAX_HEADER_BYTES, MAX_HEADERS, Bodies, Reader

START = b"GET / HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture
def reader():
    return Reader(Bodies(2**20))


def test_headers_are_counted_while_they_come(reader):
    reader.feed(START + b"a:\r\n" * 10_000)
    (message,) = reader.messages
    assert (message.refusal.status, len(message.headers)) == (431, MAX_HEADERS)


def test_as_many_headers_as_there_may_be(reader):
    reader.feed(START + b"a:\r\n" * (MAX_HEADERS - 1) + b"\r\n")
    (message,) = reader.messages
    assert (message.refusal, message.is_whole) == (None, True)


def test_one_header_too_many_at_the_end(reader):
    reader.feed(START + b"a:\r\n" * MAX_HEADERS + b"\r\n")
    assert reader.messages[0].refusal.status == 431


@pytest.mark.parametrize("start", [START + b"X: ", START + b"X", b"GET /"])
def test_a_head_that_never_ends_is_refused_near_its_limit(reader, start):
    reader.feed(start)
    sent = 0
    while reader.messages[0].refusal is None:
        reader.feed(b"y" * 1000)
        sent += 1000
        assert sent < MAX_HEADER_BYTES + 4000
    assert reader.messages[0].refusal.status == 431
