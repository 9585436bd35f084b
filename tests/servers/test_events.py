from __future__ import annotations

import threading
from typing import Any

import sqlalchemy as sa

from bloomery.db import engine, event_cursors, events
from bloomery.db.events import Stored
from bloomery.events.relay import Relay
from tests.kit.waiting import wait_for

ANY = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"


def event(action: str) -> dict[str, Any]:
    return events.encode(
        events.Event(object="node", object_uuid=ANY, action=action, status="success"),
    )


class Other:
    """A transaction of another process, taken step by step."""

    def __init__(self, db: engine.Database) -> None:
        self._engine = sa.create_engine(db.url)
        self.conn = self._engine.connect()

    def number_itself(self) -> None:
        self.conn.execute(sa.select(sa.func.pg_current_xact_id()))

    def write(self, action: str) -> None:
        events.insert(self.conn, [event(action)])

    def end(self, how: str = "commit") -> None:
        getattr(self.conn, how)()
        self.conn.close()
        self._engine.dispose()


def seen(db: engine.Database, horizon: events.Horizon) -> list[str]:
    with db.read() as conn:
        return [one.action for one in events.list_after(conn, 0, 10, horizon.look(conn))]


def test_rows_of_transactions_that_commit_in_reverse_order_are_not_passed(db: engine.Database):
    horizon, first, second = events.Horizon(), Other(db), Other(db)
    first.write("first")
    second.write("second")
    second.end()
    assert (seen(db, horizon), horizon.waits) == ([], True)
    first.end()
    assert (seen(db, horizon), horizon.waits) == (["first", "second"], False)


def test_nor_when_the_younger_transaction_holds_the_lower_number(db: engine.Database):
    horizon, old, young = events.Horizon(), Other(db), Other(db)
    old.number_itself()
    young.write("first")
    old.write("second")
    old.end()
    assert seen(db, horizon) == []
    young.end()
    assert seen(db, horizon) == ["first", "second"]


def test_a_number_that_was_rolled_back_holds_nobody_up(db: engine.Database):
    horizon, lost, kept = events.Horizon(), Other(db), Other(db)
    lost.write("lost")
    kept.write("kept")
    kept.end()
    assert seen(db, horizon) == []
    lost.end("rollback")
    assert seen(db, horizon) == ["kept"]


def test_a_transaction_that_began_later_holds_up_nothing_before_it(db: engine.Database):
    horizon, first = events.Horizon(), Other(db)
    first.write("first")
    assert seen(db, horizon) == []
    later = Other(db)
    later.write("later")
    first.end()
    assert seen(db, horizon) == ["first"]
    later.end()
    assert seen(db, horizon) == ["first", "later"]


class Keeper:
    name = "keeper"

    def __init__(self) -> None:
        self.got: list[str] = []

    def open(self) -> None: ...

    def send(self, one: Stored) -> None:
        self.got.append(one.action)

    def close(self) -> None: ...


def test_the_relay_waits_for_a_number_and_goes_on_without_being_poked(db: engine.Database):
    sink = Keeper()
    relay = Relay(db, [sink], holder="here:1", keep_hours=1)
    relay.start()
    try:
        first = Other(db)
        first.write("first")
        db.transact(lambda conn: events.insert(conn, [event("second")]))
        relay.wake()
        wait_for(lambda: relay.sink_workers[0]._horizon.waits, "the relay to see that it must wait")
        first.end()
        wait_for(lambda: sink.got == ["first", "second"], "both", timeout_s=4.0)
    finally:
        relay.stop()


def test_many_writers_lose_no_event(db: engine.Database):
    sink = Keeper()
    relay = Relay(db, [sink], holder="here:1", keep_hours=1)
    relay.start()

    def write(number: int) -> None:
        for turn in range(20):
            row = event(f"{number}.{turn}")
            db.transact(lambda conn, row=row: events.insert(conn, [row]))
            relay.wake()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    wait_for(lambda: len(sink.got) >= 120, "all events", timeout_s=20.0)
    relay.stop()
    assert len(set(sink.got)) == len(sink.got) == 120


def test_a_cursor_that_was_taken_meanwhile_is_not_taken_again(db: engine.Database):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    with db.read() as conn:
        found = event_cursors.find(conn, "keeper")
    assert found is not None
    assert db.transact(lambda conn: event_cursors.take(conn, found, "here:1")) is not None
    assert db.transact(lambda conn: event_cursors.take(conn, found, "there:2")) is None
