"""Relays of consoles: what a client reads, types and is told, whatever ends."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from bloomery import errors
from bloomery.operations import console_relays
from bloomery.operations.console_relays import Relay, Relays
from tests.kit.waiting import wait_for


class FakeClient:
    def __init__(self):
        self.output, self.notices, self.reason = b"", [], None
        self.is_closed, self.is_full = False, False
        self.on_bytes = self.on_closed = self.on_old = None

    def send_bytes(self, data):
        self.output += data
        return not self.is_full

    def send_text(self, text):
        self.notices.append(json.loads(text))
        return True

    def close(self, code, reason):
        self.reason = reason
        self.leave()

    def hang_up(self): ...

    def leave(self):
        self.is_closed = True
        self.on_closed()

    @property
    def states(self):
        return [each["state"] for each in self.notices]


class Port:
    """The TCP port of a console; a test holds its end of each connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.ends = contextlib.ExitStack()
        self.ends.enter_context(self.listener)

    def accept(self):
        end = self.ends.enter_context(self.listener.accept()[0])
        end.settimeout(20)
        return end

    def __call__(self):
        return self.listener.getsockname()


@pytest.fixture
def port():
    port = Port()
    yield port
    port.ends.close()


@pytest.fixture
def begin(port):
    relays, clients = Relays(most=2), []

    def begin(locate=port, **more):
        clients.append(FakeClient())
        options = {"may_type": True, "idle_s": 0, "pauses_s": (0.0,) * 3} | more
        relays.start(Relay(clients[-1], locate, **options), "web-1")
        return clients[-1]

    begin.relays = relays
    yield begin
    relays.stop()
    assert all(each.reason is not None for each in clients)
    assert len(relays) == 0


def ended(client):
    wait_for(lambda: client.reason is not None, "the end")
    assert client.states[-1] == "ended"
    return client.reason


def test_bytes_go_both_ways(begin, port):
    client = begin()
    console = port.accept()
    console.sendall(b"login: ")
    wait_for(lambda: client.output == b"login: ", "the output")
    client.on_bytes(b"root\r")
    assert console.recv(99) == b"root\r"
    assert client.notices == [{"state": "open", "message": "connected", "may_type": True}]


def test_a_console_that_ends_is_connected_again(begin, port):
    client = begin()
    port.accept().close()
    console = port.accept()
    console.sendall(b"again")
    wait_for(lambda: client.output == b"again", "the output")
    assert client.states == ["open", "lost", "open"]
    assert client.notices[1]["message"].startswith("the console closed the connection; connecting")


def test_a_console_that_stays_away_is_given_up_in_words(begin, port):
    place = port()
    port.listener.close()
    client = begin(lambda: place)
    assert "refused; for other hosts, set [console]socat_address" in ended(client)
    assert "given up after 4 tries" in client.reason
    assert client.states == ["lost"] * 3 + ["ended"]


@pytest.mark.parametrize(
    ("error", "tries"),
    [(errors.NodeNotFound(node="web-1"), 1),
     (errors.ConsoleNotEnabled(node="web-1", advice="enable it"), 1),
     (errors.ConsoleNotSerial(node="web-1", interface="fake"), 1),
     (errors.NoValidHost(reason="no conductor"), 4)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_may_pass_is_tried_again(begin, error, tries):
    seen = []

    def locate():
        seen.append(True)
        raise error

    client = begin(locate)
    assert str(error) in ended(client)
    assert len(seen) == tries


def test_a_fault_of_ours_ends_in_words(begin, caplog):
    client = begin(lambda: 1 / 0)
    assert ended(client) == "the service met an unexpected error; its log tells more"
    assert "ZeroDivisionError" in caplog.text
    caplog.clear()


def test_a_reader_types_nothing_and_is_told_once(begin, port):
    client = begin(may_type=False)
    console = port.accept()
    client.on_bytes(b"rm -r /\r")
    client.on_bytes(b"again")
    client.leave()
    assert console.recv(99) == b""
    assert [each["message"] for each in client.notices if "read-only" in each["message"]] == [
        "this console is read-only for you: what you type is dropped"
    ]


def test_more_than_the_console_takes_ends_it(begin, port):
    client = begin()
    port.accept()
    for _ in range(200):
        client.on_bytes(b"x" * console_relays.MOST_TYPED)
        if client.reason is not None:
            break
    assert ended(client) == "more was typed than the console takes"


def test_a_client_that_does_not_read_is_let_go(begin, port):
    client = begin()
    client.is_full = True
    port.accept().sendall(b"x")
    assert ended(client) == "the client does not read"


@pytest.mark.parametrize("by_console", [True, False])
def test_silence_ends_it_and_is_no_loss(begin, port, by_console):
    now = [0.0]
    client = begin(idle_s=600, clock=lambda: now[0])
    console = port.accept()
    console.sendall(b"x")
    wait_for(lambda: client.output == b"x", "the output")
    now[0] = 599.0 if by_console else 600.0
    if by_console:
        console.close()
    assert "no byte came for" in ended(client)
    assert client.notices[-1]["again"] is False


def test_an_old_client_may_come_again(begin, port):
    client = begin()
    port.accept()
    client.on_old()
    assert ended(client) == "the login has to be checked again"
    assert client.notices[-1]["again"] is True


def test_a_client_that_leaves_frees_its_connection(begin, port):
    client = begin()
    console = port.accept()
    client.leave()
    assert console.recv(1) == b""
    wait_for(lambda: len(begin.relays) == 0, "the relay to end")


def test_a_client_that_left_before_the_start_frees_it(port):
    client, ends = FakeClient(), threading.Event()
    client.is_closed = True
    Relay(client, port, may_type=True, idle_s=0, on_end=ends.set).run()
    assert ends.is_set()


def test_one_relay_too_many_is_refused(begin):
    begin()
    begin.relays.check_room()
    begin()
    with pytest.raises(errors.TooManyConsoles, match="2 are open"):
        begin.relays.check_room()
