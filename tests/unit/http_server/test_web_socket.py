"""Web sockets: handshakes, messages, ends, and clients that break the protocol."""

from __future__ import annotations

import pytest
from wsproto import events
from wsproto.connection import Connection, ConnectionType
from wsproto.frame_protocol import FrameProtocol

from bloomery.http_server import streams, web_socket
from bloomery.http_server.streams import Stream
from bloomery.http_server.web_socket import BadHandshake, WebSocket

GOOD = {
    "REQUEST_METHOD": "GET",
    "HTTP_UPGRADE": "WebSocket",
    "HTTP_CONNECTION": "keep-alive, Upgrade",
    "HTTP_SEC_WEBSOCKET_VERSION": "13",
    "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_a_handshake_is_answered_as_in_the_rfc():
    upgrade = web_socket.asked_for(GOOD)
    assert dict(upgrade.headers) == {
        "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    }  # fmt: skip


def test_only_our_own_protocol_is_chosen():
    offer = GOOD | {"HTTP_SEC_WEBSOCKET_PROTOCOL": "bloomery.login.e30, bloomery.console"}
    chosen = dict(web_socket.asked_for(offer).headers)
    assert chosen["Sec-WebSocket-Protocol"] == "bloomery.console"


def test_a_plain_request_asks_for_none():
    assert web_socket.asked_for({"REQUEST_METHOD": "GET"}) is None
    assert web_socket.asked_for({"REQUEST_METHOD": "GET", "HTTP_UPGRADE": "h2c"}) is None


@pytest.mark.parametrize(
    ("header", "value"),
    [("REQUEST_METHOD", "POST"), ("HTTP_CONNECTION", "close"),
     ("HTTP_SEC_WEBSOCKET_VERSION", "8"), ("HTTP_SEC_WEBSOCKET_KEY", ""),
     ("HTTP_SEC_WEBSOCKET_KEY", "AAAA"), ("HTTP_SEC_WEBSOCKET_KEY", "ä")],
)  # fmt: skip
def test_a_bad_handshake_is_refused(header, value):
    with pytest.raises(BadHandshake):
        web_socket.asked_for(GOOD | {header: value})


class Wire:
    """A connection to a client that reads at once, unless it is ``full``."""

    def __init__(self):
        self.sent, self.input, self.is_full, self.is_open = b"", b"", False, True

    def send(self, data):
        if self.is_full:
            raise BlockingIOError
        self.sent += bytes(data)
        return len(data)

    def receive(self):
        if not self.input:
            raise BlockingIOError
        data, self.input = self.input, b""
        return data

    def await_turn(self, *, to_write): ...

    def hang_up(self):
        self.is_open = False


class Both:
    """A web socket, and the client at its other end."""

    def __init__(self):
        self.wire, self.now = Wire(), 0.0
        self.stream = Stream(self.wire, lambda: self.now)
        self.socket = WebSocket(self.stream)
        self.client = Connection(ConnectionType.CLIENT)
        self.messages, self.ends = [], []
        self.socket.on_bytes = self.messages.append
        self.socket.on_closed = lambda: self.ends.append(True)

    def receive(self, *data):
        for each in data:
            self.wire.input = each
            self.stream.go_on()

    def got(self):
        self.client.receive_data(self.wire.sent)
        self.wire.sent = b""
        return list(self.client.events())


@pytest.fixture
def both():
    return Both()


def test_messages_go_both_ways(both):
    assert both.socket.send_bytes(b"login: ")
    assert both.socket.send_text("{}")
    assert [each.data for each in both.got()] == [b"login: ", "{}"]
    both.receive(both.client.send(events.BytesMessage(b"ro")),
                 both.client.send(events.TextMessage("ot")))  # fmt: skip
    assert both.messages == [b"ro", b"ot"]


def test_a_message_in_parts_is_one(both):
    first = both.client.send(events.BytesMessage(b"ro", message_finished=False))
    rest = both.client.send(events.BytesMessage(b"ot"))
    data = first + rest
    both.receive(*(data[number : number + 1] for number in range(len(data))))
    assert both.messages == [b"root"]


def test_a_ping_is_answered_and_sent(both):
    both.receive(both.client.send(events.Ping(b"x")))
    assert both.got() == [events.Pong(bytearray(b"x"))]
    both.now = streams.HEARTBEAT_S
    both.stream.beat()
    assert isinstance(both.got()[0], events.Ping)


@pytest.mark.parametrize("by_client", [True, False])
def test_the_end_is_announced_and_answered(both, by_client):
    if not by_client:
        both.socket.close(1000, "the machine is gone" + 200 * "ä")
        (close,) = both.got()
        assert (close.code, close.reason[:19]) == (1000, "the machine is gone")
        assert both.wire.is_open, "until the client has answered"
        assert not both.socket.send_bytes(b"x")
        both.receive(both.client.send(close.response()))
    else:
        both.receive(both.client.send(events.CloseConnection(1001)))
        assert both.got()[0].code == 1001
    assert (both.wire.is_open, both.ends) == (False, [True])


def unmasked():
    return FrameProtocol(client=False, extensions=[]).send_data(b"x", fin=True)


def reserved():
    frame = bytearray(Connection(ConnectionType.CLIENT).send(events.BytesMessage(b"x")))
    frame[0] |= 0x70
    return bytes(frame)


def huge():
    size = web_socket.MOST_MESSAGE + 1
    return Connection(ConnectionType.CLIENT).send(events.BytesMessage(b"x" * size))


@pytest.mark.parametrize(
    ("make", "code"), [(unmasked, 1002), (reserved, 1002), (huge, 1009)],
    ids=["unmasked", "reserved bits", "huge"],
)  # fmt: skip
def test_a_client_that_breaks_the_protocol_is_told_and_closed(both, make, code):
    both.receive(make())
    assert [each.code for each in both.got()] == [code]
    assert (both.wire.is_open, both.messages) == (False, [])


def test_a_client_that_reads_nothing_is_closed(both):
    both.wire.is_full = True
    while both.socket.send_bytes(b"x" * 65536):
        assert both.stream.unsent <= streams.MOST_UNSENT
    assert (both.wire.is_open, both.socket.is_closed) == (False, True)


def test_the_maximal_age_is_told_to_the_owner(both):
    ages = []
    both.socket.on_old = lambda: ages.append(both.now)
    both.now = streams.LIFETIME_S
    both.stream.beat()
    assert (ages, both.wire.is_open) == ([streams.LIFETIME_S], True)


def test_control_frames_in_the_middle_of_a_message_are_handled(both):
    first = both.client.send(events.BytesMessage(b"a", message_finished=False))
    both.receive(first, both.client.send(events.Ping(b"")))
    assert isinstance(both.got()[0], events.Pong)
    both.receive(both.client.send(events.BytesMessage(b"b")))
    assert both.messages == [b"ab"]
