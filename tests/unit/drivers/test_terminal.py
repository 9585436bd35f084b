"""A terminal: one serial line for several connections, each told why it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading

import pytest

from bloomery import errors
from bloomery.conf.drivers import Console
from bloomery.drivers import terminal
from bloomery.drivers.terminal import Record, Terminal
from tests.kit.waiting import wait_for


class FakeLine:
    """A serial line whose other end a test holds: ``machine``; ``fault``: it cannot be opened."""

    def __init__(self):
        self.opened = self.closed = 0
        self.ends = contextlib.ExitStack()
        self.fault = None
        self.ready = threading.Semaphore(0)

    def open(self):
        if self.fault is not None:
            raise self.fault
        ours, self.machine = socket.socketpair()
        self.ends.enter_context(self.machine)
        self.machine.settimeout(20)
        self.opened += 1
        self.ready.release()
        return ours

    def close(self):
        self.closed += 1

    def abort(self): ...

    def kill(self, after_s): ...


class Audit:
    def __init__(self):
        self.records, self.is_full = [], False

    def add(self, kind, facts, *, is_durable):
        if self.is_full:
            raise errors.AuditUnwritable(reason="the disk is full")
        self.records.append(kind)


@pytest.fixture
def line():
    line = FakeLine()
    yield line
    line.ends.close()


@pytest.fixture
def serve(line):
    with contextlib.ExitStack() as stack:

        def serve(terminal_timeout=0, **more):
            conf = Console(terminal_timeout=terminal_timeout)
            made = Terminal(
                name="web-1", listener=terminal.listen("127.0.0.1", [0]), line=line, conf=conf,
                **more,
            )  # fmt: skip
            stack.callback(made.stop)
            return made

        yield serve


@pytest.fixture
def dial():
    with contextlib.ExitStack() as stack:

        def dial(made):
            return stack.enter_context(socket.create_connection(("127.0.0.1", made.port), 20))

        yield dial


def until(client, words):
    data = b""
    while words not in data and (more := client.recv(4096)):
        data += more
    return data


def test_all_connections_read_and_type(line, serve, dial):
    made = serve()
    first, second = dial(made), dial(made)
    wait_for(lambda: len(made._connections) == 2, "two connections")
    line.ready.acquire(timeout=20)
    line.machine.sendall(b"login: ")
    assert until(first, b"login: ") == until(second, b"login: ") == b"login: "
    first.sendall(b"ro")
    assert line.machine.recv(9) == b"ro"
    second.sendall(b"ot")
    assert line.machine.recv(9) == b"ot"
    assert line.opened == 1


def test_a_later_connection_sees_the_end_of_what_was_written(line, serve, dial):
    made = serve()
    first = dial(made)
    line.ready.acquire(timeout=20)
    line.machine.sendall(b"x" * (2 * terminal.REPLAYED) + b"\nlogin: ")
    until(first, b"login: ")
    assert until(dial(made), b"login: ") == b"login: "


def test_the_last_connection_closes_the_line(line, serve, dial):
    made = serve()
    for number in (1, 2):
        with dial(made):
            assert line.ready.acquire(timeout=20)
        wait_for(lambda number=number: line.closed == number, "the line to be closed")
    assert line.opened == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [(OSError(111, "ts-1 port 7001: refused"), b"cannot be opened: ts-1 port 7001: refused]"),
     (errors.AuditUnwritable(reason="the disk is full"), b"the disk is full")],
)  # fmt: skip
def test_a_line_that_cannot_be_opened_is_told(line, serve, dial, fault, words):
    line.fault = fault
    made = serve()
    assert words in until(dial(made), b"never")
    line.fault = None
    dial(made)
    assert line.ready.acquire(timeout=20)


def test_a_line_that_ends_is_told_and_opened_again(line, serve, dial):
    made = serve()
    client = dial(made)
    line.ready.acquire(timeout=20)
    line.machine.close()
    assert b"[console the serial line ended]" in until(client, b"never")
    dial(made)
    assert line.ready.acquire(timeout=20)


def test_a_client_that_does_not_read_delays_no_other(line, serve, dial):
    made = serve()
    silent, reader = dial(made), dial(made)
    wait_for(lambda: len(made._connections) == 2, "two connections")
    line.ready.acquire(timeout=20)
    piece = b"x" * 65536
    for _ in range(20 * terminal.MOST_UNREAD // len(piece)):
        if len(made._connections) == 1:
            break
        line.machine.sendall(piece)
        size = 0
        while size < len(piece):
            size += len(reader.recv(65536))
    wait_for(lambda: len(made._connections) == 1, "the silent one to be closed")
    line.machine.sendall(b"login: ")
    assert until(reader, b"login: ").endswith(b"login: ")
    assert silent.fileno() >= 0


def test_one_connection_too_many_is_refused_in_words(line, serve, dial):
    made = serve()
    clients = [dial(made) for _ in range(terminal.MOST_CONNECTIONS)]
    wait_for(lambda: len(made._connections) == len(clients), "all connections")
    assert b"refused: 16 connections are open" in until(dial(made), b"never")


def test_a_silent_line_ends_its_connections(line, serve, dial):
    now = [0.0]
    made = serve(600, clock=lambda: now[0])
    client = dial(made)
    line.ready.acquire(timeout=20)
    now[0] = 599.0
    line.machine.sendall(b"x")
    until(client, b"x")
    now[0] = 1198.0
    client.sendall(b"y")
    assert line.machine.recv(1) == b"y"
    now[0] = 1799.0
    wake(made)
    assert b"no byte came for 600 s" in until(client, b"never")
    wait_for(lambda: line.closed == 1, "the line to be closed")


def wake(made):
    """Let the terminal look at its clock."""
    os.eventfd_write(made._bell, 1)


def test_a_recorded_line_is_open_without_connections(line, serve, dial, tmp_path):
    path = tmp_path / "web-1.log"
    made = serve(record=Record(path, 1 << 20))
    assert line.ready.acquire(timeout=20)
    line.machine.sendall(b"boots\r\n")
    wait_for(lambda: path.exists() and b"boots" in path.read_bytes(), "the record")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with dial(made) as client:
        client.sendall(b"secret\r")
        assert line.machine.recv(9) == b"secret\r"
    assert b"secret" not in path.read_bytes(), "what the machine does not echo"
    assert line.closed == 0


def test_a_recorded_line_that_ends_is_opened_again_after_a_pause(line, serve, dial, tmp_path):
    now = [0.0]
    made = serve(record=Record(tmp_path / "a", 1 << 20), clock=lambda: now[0])
    assert line.ready.acquire(timeout=20)
    line.machine.close()
    wait_for(lambda: line.closed == 1, "the end")
    assert made._open_at == 2.0
    now[0] = 3.0
    wake(made)
    assert line.ready.acquire(timeout=20)
    assert b"console closed: the serial line ended]" in (tmp_path / "a").read_bytes()


def test_a_record_is_bounded(tmp_path):
    record = Record(tmp_path / "a", 1000)
    for number in range(100):
        record.add(b"%050d" % number)
    sizes = [each.stat().st_size for each in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert sum(sizes) <= 1000
    assert (tmp_path / "a").read_bytes().endswith(b"%050d" % 99)
    record.add(b"x" * 5000)
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= 1000


def test_a_record_that_cannot_be_written_is_warned_of_once(tmp_path, caplog):
    record = Record(tmp_path / "gone" / "a", 1000)
    for _ in range(3):
        record.add(b"x")
    assert caplog.text.count("misses output") == 1
    (tmp_path / "gone").mkdir()
    record.add(b"y")
    assert (tmp_path / "gone" / "a").read_bytes() == b"y"


def test_connections_are_in_the_audit_or_are_none(line, serve, dial):
    audit = Audit()
    made = serve(trail=audit)
    dial(made).close()
    wait_for(lambda: audit.records == ["console_opened", "console_closed"], "both records")
    audit.is_full = True
    assert until(dial(made), b"never") == b""


def test_a_stop_closes_the_port_the_line_and_the_connections(line, dial):
    made = Terminal(
        name="web-1", listener=terminal.listen("127.0.0.1", [0]), line=line,
        conf=Console(),
    )  # fmt: skip
    client = dial(made)
    line.ready.acquire(timeout=20)
    made.stop()
    assert b"switched off" in until(client, b"never")
    assert line.closed == 1
    with pytest.raises(ConnectionRefusedError):
        dial(made)
