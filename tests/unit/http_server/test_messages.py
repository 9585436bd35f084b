"""Requests as they come off a connection: what is refused before its end is there."""

from __future__ import annotations

import pytest

from bloomery.http_server.messages import MAX_HEADER_BYTES, MAX_HEADERS, Bodies, Reader

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


def test_chunks_that_are_hardly_more_than_their_frames_are_refused(reader):
    reader.feed(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    extension = b"1;" + b"x" * 100 + b"\r\na\r\n"
    for _ in range(1000):
        reader.feed(extension)
    (message,) = reader.messages
    assert message.refusal.status == 400
    assert "frames" in message.refusal.text
    message.close()


@pytest.mark.parametrize("chunk", [b"1\r\na\r\n", b"10000\r\n" + b"a" * 0x10000 + b"\r\n"])
def test_chunks_of_an_honest_size_are_taken(reader, chunk):
    reader.feed(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(10):
        reader.feed(chunk)
    reader.feed(b"0\r\n\r\n")
    (message,) = reader.messages
    assert (message.refusal, message.is_whole) == (None, True)
    message.close()
