from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import sqlalchemy as sa

from bloomery.db import engine, event_cursors, event_numbers, events
from bloomery.db.events import EventRow
from bloomery.db.tables import EVENT_CURSORS, EVENTS
from bloomery.events.relay import Relay
from bloomery.events.trimmer import Trimmer
from tests.kit.probes import database_probes
from tests.kit.probes.database_probes import Other, Reader, event
from tests.kit.servers import event_writer
from tests.kit.waiting import wait_for

LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def elsewhere(db: engine.Database) -> Iterator[engine.Database]:
    """The same database, as another process has it."""
    other = engine.Database(db.url)
    yield other
    other.close()


def test_rows_of_transactions_that_commit_in_reverse_order_are_not_lost(db: engine.Database):
    database_probes.who_commits_late_is_not_passed(db)


def test_numbering_waits_for_no_writer(db: engine.Database):
    reader, writer = Reader(db), Other(db)
    db.transact(lambda conn: events.insert(conn, [event("before")]))
    writer.write("slow")
    db.transact(lambda conn: events.insert(conn, [event("after")]))
    assert reader.read() == ["before", "after"]
    writer.end("rollback")
    assert reader.read() == []


def test_numbers_are_never_lower_than_keys_so_that_old_cursors_stay_right(db: engine.Database):
    lost = Other(db)
    lost.write("lost")
    lost.end("rollback")
    db.transact(lambda conn: events.insert(conn, [event("kept")]))
    with db.read() as conn:
        key = conn.execute(sa.select(EVENTS.c.id)).scalar_one()
    assert key == 2
    assert db.transact(event_numbers.assign) == (2, 1)


def test_who_stands_still_while_it_numbers_holds_nobody_up(
    db: engine.Database, elsewhere: engine.Database
):
    """The server ends its transaction before others give up; it numbers anew, and none twice."""
    db.transact(lambda conn: events.insert(conn, [event("first"), event("second")]))
    has_numbered, goes_on = threading.Event(), threading.Event()

    def number(conn: sa.Connection) -> tuple[int, int]:
        numbers = event_numbers.assign(conn)
        has_numbered.set()
        goes_on.wait()
        return numbers

    numbering = event_numbers.reserved(elsewhere)
    with contextlib.closing(numbering), ThreadPoolExecutor(1) as peer:
        stands_still = peer.submit(numbering.transact, number)
        has_numbered.wait()
        try:
            assert db.transact(event_numbers.assign) == (2, 2)
        finally:
            goes_on.set()
        assert stands_still.result() == (2, 0)


def test_no_number_is_given_that_a_cursor_has_passed(db: engine.Database):
    db.transact(
        lambda conn: conn.execute(
            sa.insert(EVENT_CURSORS), {"sink": "keeper", "last_id": 500, "wants_snapshots": False}
        )
    )
    db.transact(lambda conn: events.insert(conn, [event("new")]))
    with relaying(db, Keeper()) as (_, sink):
        wait_for(lambda: sink.actions == ["new"], "what a database brought from elsewhere has not")


class Keeper:
    name = "keeper"

    def __init__(self, *, wants_snapshots: bool = False) -> None:
        self.taken: list[EventRow] = []
        self.wants_snapshots = wants_snapshots

    @property
    def actions(self) -> list[str]:
        return [stored.action for stored in self.taken]

    def open(self) -> None: ...

    def send(self, stored: EventRow) -> None:
        self.taken.append(stored)

    def close(self) -> None: ...


@contextlib.contextmanager
def relaying(db: engine.Database, *sinks: Keeper) -> Iterator[Any]:
    relay = Relay(db, sinks, holder="here:1", keep_hours=1)
    relay.start()
    try:
        yield relay, *sinks
    finally:
        relay.stop()


def test_a_commit_of_another_process_reaches_a_sink_that_nobody_here_pokes(
    db: engine.Database, elsewhere: engine.Database
):
    with relaying(db, Keeper()) as (_, sink), relaying(elsewhere) as (other,):
        db.transact(lambda conn: events.insert(conn, [event("there")]))
        other.wake()
        wait_for(lambda: sink.actions == ["there"], "the other's", timeout_s=4.0)


def test_what_a_process_committed_that_died_before_it_numbered_is_told(db: engine.Database):
    with relaying(db, Keeper()) as (_, sink):
        db.transact(lambda conn: events.insert(conn, [event("last words")]))
        wait_for(lambda: sink.actions == ["last words"], "the net below pokes", timeout_s=9.0)


def test_a_listener_that_was_cut_off_hears_again(db: engine.Database):
    with relaying(db, Keeper()) as (relay, sink):
        bell = relay._numberer._bell
        if db.url.get_backend_name() != "postgresql":
            assert not bell.hears_others
            return
        wait_for(lambda: bell.hears_others, "it to listen")
        cut = sa.text("SELECT pg_terminate_backend(:pid)")
        with db.read() as conn:
            conn.execute(cut, {"pid": bell._conn.info.backend_pid})
        wait_for(lambda: not bell.hears_others, "it to notice")
        db.transact(lambda conn: events.insert(conn, [event("unheard")]))
        wait_for(lambda: sink.actions == ["unheard"], "the poll", timeout_s=4.0)
        bell._try_at = 0.0
        wait_for(lambda: bell.hears_others, "it to listen again")


def test_writers_in_four_processes_lose_no_event_and_keep_the_order_of_each_node(
    db: engine.Database, elsewhere: engine.Database, add_node: Any
):
    nodes = db.transact(lambda conn: [add_node(conn) for _ in range(8)])
    turns = int(os.environ.get("BLOOMERY_TEST_EVENTS", "400")) // event_writer.EVENTS_OF_A_TURN
    url = db.url.render_as_string(hide_password=False)
    with relaying(db, Keeper()) as (_, sink), relaying(elsewhere):
        writers = [
            subprocess.Popen(
                [sys.executable, "-m", event_writer.__name__, url, str(turns), str(seed)],
                stdout=subprocess.PIPE, text=True,
            )
            for seed in range(4)
        ]  # fmt: skip
        count = sum(int(writer.communicate()[0]) for writer in writers)
        wait_for(lambda: len(sink.taken) >= count, "all events", timeout_s=30.0)
    assert len({stored.id for stored in sink.taken}) == len(sink.taken) == count
    for node in nodes:
        steps = [tuple(each.facts.values()) for each in sink.taken if each.object_uuid == node]
        assert steps == sorted(steps)
        assert len(steps) == len(set(steps)) > 0


# -------------------------------------------------------------------------------- facts of the site


def test_rows_are_kept_for_a_sink_that_only_another_process_has(db: engine.Database, caplog):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["theirs"]))
    db.transact(lambda conn: events.insert(conn, [event("old") | {"created_at": LONG_AGO}]))
    trimmer = Trimmer(db, None, keep_hours=1)
    db.transact(event_numbers.assign)
    assert trimmer.trim() == 0
    assert "bloomery events forget theirs" in caplog.text
    assert db.transact(lambda conn: event_cursors.delete(conn, "theirs"))
    assert trimmer.trim() == 1


def test_rows_without_a_number_are_not_trimmed(db: engine.Database):
    db.transact(lambda conn: events.insert(conn, [event("old") | {"created_at": LONG_AGO}]))
    assert Trimmer(db, None, keep_hours=1).trim() == 0


def test_every_process_writes_snapshots_once_the_sink_of_one_wants_them(
    db: engine.Database, elsewhere: engine.Database
):
    with relaying(db) as (without,):
        assert not without.wants_snapshots()
        with relaying(elsewhere, Keeper(wants_snapshots=True)):
            wait_for(without.wants_snapshots, "it to hear of the sink", timeout_s=4.0)
        assert without.wants_snapshots()  # the sink comes back, and tells what happened meanwhile


def test_a_cursor_that_was_taken_meanwhile_is_not_taken_again(db: engine.Database):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    with db.read() as conn:
        found = event_cursors.find(conn, "keeper")
    assert found is not None
    assert db.transact(lambda conn: event_cursors.take(conn, found, "here:1")) is not None
    assert db.transact(lambda conn: event_cursors.take(conn, found, "there:2")) is None
