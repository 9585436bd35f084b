"""Events in a stream of NATS JetStream, on a server of Debian's package."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import nats
import orjson
import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.notifications import Events
from bloomery.db import event_cursors, events
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events import selection
from bloomery.events.nats_sink import NatsSink
from bloomery.events.relay import Relay, make_relay
from bloomery.events.sink_worker import Pace
from tests.kit.servers import own
from tests.kit.servers import site as kit
from tests.kit.waiting import wait_for
from tools import servers

STREAM = "machines"
NODES = [str(uuid.UUID(int=number)) for number in range(3)]
QUICK = Pace(poll_s=0.05, acknowledge_s=0.01, retry_least_s=0.05, retry_most_s=0.05)


@dataclass
class Nats:
    """A server, and what its stream has."""

    server: servers.OwnServer

    @property
    def conf(self) -> Events:
        url = f"nats://127.0.0.1:{self.server.port}"
        return Events(nats_servers=(url,), nats_stream=STREAM, keep_hours=2)

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """Return what JetStream answers."""

        async def connected() -> Any:
            client = await nats.connect(self.conf.nats_servers[0], connect_timeout=30)
            try:
                return await question(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def messages(self) -> list[Any]:
        async def read(stream: Any) -> list[Any]:
            last = (await stream.stream_info(STREAM)).state.last_seq
            return [await stream.get_msg(STREAM, seq) for seq in range(1, last + 1)]

        return self.ask(read)  # type: ignore[no-any-return]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Nats]:
    with contextlib.ExitStack() as until:
        yield Nats(own.start(servers.own_nats(tmp_path / "nats"), until))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    opened = kit.database(tmp_path / "events.sqlite")
    yield opened
    opened.close()


def happen(db: Database, count: int = 1) -> None:
    """Write events of three nodes in turn."""
    for number in range(count):
        event = events.Event(
            object="node", object_uuid=NODES[number % 3], action="power_set", status="end",
            facts={"power_state": "power on"},
        )  # fmt: skip
        db.transact(partial(events.insert, encoded=[events.encode(event)]))


def stored(db: Database) -> list[EventRow]:
    with db.read() as conn:
        return events.list_after(conn, 0, 1000)


@pytest.fixture
def relay(db: Database, server: Nats) -> Iterator[Relay]:
    with running(db, server) as started:
        yield started


@contextlib.contextmanager
def running(db: Database, server: Nats) -> Iterator[Relay]:
    started = Relay(db, [NatsSink(server.conf)], holder="a", keep_hours=2, pace=QUICK)
    started.start()
    yield started
    started.stop()


def cursor(db: Database) -> int:
    with db.read() as conn:
        found = event_cursors.find(conn, "nats")
    return 0 if found is None else found.last_id


def test_messages_are_those_of_webhooks_by_subject_and_id(db, server: Nats, relay: Relay):
    happen(db, 7)
    relay.wake()
    rows = stored(db)
    wait_for(lambda: cursor(db) == rows[-1].id, "the sink to take the last event")
    messages = server.messages()
    assert [message.subject for message in messages] == [
        f"bloomery.node.{row.object_uuid}.power_set.end" for row in rows
    ]
    assert [message.headers["Nats-Msg-Id"] for message in messages] == [
        row.message_id for row in rows
    ]
    assert [message.data for message in messages] == [selection.message(row) for row in rows]
    assert orjson.loads(messages[0].data)["data"]["facts"] == {"power_state": "power on"}


def test_a_missing_stream_is_created_and_another_one_kept(db, server: Nats):
    async def describe(stream: Any) -> tuple[Any, ...]:
        config = (await stream.stream_info(STREAM)).config
        return config.subjects, config.max_age

    sink = NatsSink(server.conf)
    sink.open()
    assert server.ask(describe) == (["bloomery.>"], 2 * 3600)
    sink.close()
    server.ask(lambda stream: stream.delete_stream(STREAM))
    server.ask(lambda stream: stream.add_stream(name=STREAM, subjects=["bloomery.port.>"]))
    sink = NatsSink(server.conf)
    sink.open()
    assert server.ask(describe)[0] == ["bloomery.port.>"]
    happen(db)
    with pytest.raises(nats.errors.Error):  # no stream takes events of nodes
        sink.send(stored(db)[0])
    sink.close()


def test_a_repeated_event_is_in_the_stream_once(db, server: Nats):
    happen(db, 2)
    sink = NatsSink(server.conf)
    sink.open()
    for row in [*stored(db), *stored(db)]:
        sink.send(row)
    sink.close()
    assert len(server.messages()) == 2


def test_events_of_an_outage_arrive_in_order_and_once(db, server: Nats, relay: Relay):
    happen(db, 3)
    relay.wake()
    wait_for(lambda: cursor(db) == 3, "the first events")
    server.server.stop(signal.SIGKILL)
    happen(db, 30)
    relay.wake()
    wait_for(lambda: relay.sink_workers[0]._failures > 1, "the sink to fail twice")
    assert cursor(db) == 3
    server.server.start()
    wait_for(lambda: cursor(db) == 33, "the rest")
    ids = [message.headers["Nats-Msg-Id"] for message in server.messages()]
    assert ids == [row.message_id for row in stored(db)]


def test_the_next_process_goes_on_from_the_cursor(db, server: Nats):
    for count in (4, 9):
        with running(db, server) as relay:
            happen(db, count)
            relay.wake()
            last = stored(db)[-1].id
            wait_for(lambda last=last: cursor(db) == last, "the events")
    ids = [message.headers["Nats-Msg-Id"] for message in server.messages()]
    assert ids == [row.message_id for row in stored(db)]


def test_a_sink_without_a_server_ends(server: Nats):
    conf = server.conf
    server.server.stop()
    sink = NatsSink(conf)
    with pytest.raises(OSError, match="Connect call failed"):
        sink.open()
    sink.close()
    assert sink._thread is not None
    assert not sink._thread.is_alive()


@pytest.mark.parametrize("count", [0, 1])
def test_servers_in_the_options_make_a_sink(db, count: int):
    conf = Conf(events=Events(nats_servers=("nats://127.0.0.1:1",) * count))
    relay = make_relay(conf, db)
    assert [worker.sink.name for worker in relay.sink_workers] == ["nats"] * count


def test_a_missing_library_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(errors.CannotStart, match=r"pip install 'bloomery\[nats\]'"):
        NatsSink(Events(nats_servers=("nats://127.0.0.1:1",)))
