from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.notifications import Events, OsloMessagingNotifications
from bloomery.db import event_cursors, rows
from bloomery.db.engine import Database, Meter
from bloomery.db.events import EventRow
from bloomery.db.tables import EVENT_CURSORS, EVENTS
from bloomery.events import relay
from bloomery.events.relay import Relay
from bloomery.events.sink_worker import Pace, SinkWorker
from bloomery.events.trimmer import Trimmer
from tests.kit.waiting import wait_for

# Polls and retries never come by themselves within a test: what happens was asked for.
NEVER = 3600.0
QUICK = Pace(poll_s=NEVER, acknowledge_s=0.0, retry_least_s=0.001, retry_most_s=0.002)


class Keeper:
    """A sink that keeps what it gets, and may be told to fail or to be stuck."""

    wants_snapshots = False

    def __init__(self, name: str = "keeper") -> None:
        self.name = name
        self.got: list[int] = []
        self.refuses: Callable[[EventRow], bool] = lambda event: False
        self.asked = 0
        self.opened = self.closed = 0
        self.free = threading.Event()
        self.free.set()

    def open(self) -> None:
        self.opened += 1

    def send(self, event: EventRow) -> None:
        self.asked += 1
        self.free.wait(10)
        if self.refuses(event):
            raise ConnectionError("the broker is away")
        self.got.append(event.id)

    def close(self) -> None:
        self.closed += 1


Make = Callable[..., Relay]


@pytest.fixture
def make(db: Database) -> Iterator[Make]:
    """Make relays that are started, and stopped after the test."""
    made: list[Relay] = []

    def start(*sinks: Keeper, pace: Pace = QUICK) -> Relay:
        one = Relay(db, sinks, holder="here:1", keep_hours=1, pace=pace)
        made.append(one)
        one.start()
        return one

    yield start
    for one in made:
        for sink in [sink_worker.sink for sink_worker in one.sink_workers]:
            sink.free.set()
        one.stop()


def cursor(db: Database, sink: str = "keeper") -> event_cursors.Cursor:
    with db.read() as conn:
        found = event_cursors.find(conn, sink)
    assert found is not None
    return found


def test_events_are_taken_in_order(make: Make, happen):
    sink = Keeper()
    running = make(sink)
    ids = [happen() for _ in range(5)]
    running.wake()
    wait_for(lambda: sink.got == ids, "all to be taken")


def test_a_new_sink_begins_at_the_current_end(make: Make, happen):
    happen()
    sink = Keeper()
    running = make(sink)
    new = happen()
    running.wake()
    wait_for(lambda: sink.got == [new], "the new one alone")


def test_a_sink_that_comes_back_goes_on_where_it_stopped(make: Make, happen):
    first, again = Keeper(), Keeper()
    running = make(first)
    seen = happen()
    running.wake()
    wait_for(lambda: first.got == [seen], "the first event")
    running.stop()
    missed = [happen(), happen()]
    make(again)
    wait_for(lambda: again.got == missed, "what was missed")


def test_what_was_not_acknowledged_is_told_again(db: Database, make: Make, happen):
    dying = Keeper()
    lazy = dataclasses.replace(QUICK, acknowledge_s=NEVER)
    sink_worker = SinkWorker(db, dying, holder="here:1", pace=lazy)
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    event = happen()
    sink_worker.send_batch()  # and it dies here
    assert dying.got == [event]
    again = Keeper()
    make(again)
    wait_for(lambda: again.got == [event], "the event to be told again")


def test_stopping_notes_how_far_the_sink_got(db: Database, make: Make, happen):
    sink = Keeper()
    running = make(sink, pace=dataclasses.replace(QUICK, acknowledge_s=NEVER))
    event = happen()
    running.wake()
    wait_for(lambda: sink.got == [event], "the event")
    running.stop()
    assert (cursor(db).last_id, cursor(db).holder) == (event, None)
    assert sink.closed == 1


def test_a_failing_sink_is_asked_again_and_misses_nothing(make: Make, happen):
    sink = Keeper()
    sink.refuses = lambda event: len(sink.got) == 2 and sink.asked < 8
    running = make(sink)
    ids = [happen() for _ in range(4)]
    running.wake()
    wait_for(lambda: sink.got == ids, "everything, once, in order")
    assert sink.asked > len(ids)


def test_what_a_sink_took_before_it_failed_is_not_asked_of_it_again(
    db: Database, happen, make: Make
):
    sink = Keeper()
    running = make(sink)
    sink.refuses = lambda event: len(sink.got) == 1
    ids = [happen() for _ in range(3)]
    running.wake()
    wait_for(lambda: sink.asked > 4, "some tries")
    assert sink.got == ids[:1]
    wait_for(lambda: cursor(db).last_id == ids[0], "the first to be acknowledged")


def test_a_failing_sink_holds_up_no_other(make: Make, happen):
    failing, well = Keeper("failing"), Keeper("well")
    failing.refuses = lambda event: True
    running = make(failing, well)
    ids = [happen() for _ in range(3)]
    running.wake()
    wait_for(lambda: well.got == ids, "the other sink")
    assert failing.got == []


def test_a_sink_that_is_stuck_holds_up_no_other(make: Make, happen):
    stuck, well = Keeper("stuck"), Keeper("well")
    stuck.free.clear()
    running = make(stuck, well)
    ids = [happen(), happen()]
    running.wake()
    wait_for(lambda: well.got == ids, "the other sink")


def test_a_poke_does_not_hurry_a_sink_that_fails(db: Database, make: Make, happen, caplog):
    caplog.set_level(logging.WARNING)
    sink = Keeper()
    sink.refuses = lambda event: True
    running = make(sink, pace=dataclasses.replace(QUICK, retry_least_s=NEVER, retry_most_s=NEVER))
    happen()
    running.wake()
    wait_for(lambda: sink.asked == 1, "the first try")
    for _ in range(20):
        running.wake()
    assert sink.asked == 1
    running.stop()
    assert [r.message for r in caplog.records if "asked again" in r.message]


def test_the_log_warns_when_a_sink_begins_to_fail_and_when_it_takes_events_again(
    make: Make, happen, caplog
):
    caplog.set_level(logging.DEBUG)
    sink = Keeper()
    sink.refuses = lambda event: sink.asked < 5
    running = make(sink)
    happen()
    running.wake()
    wait_for(lambda: any("takes events again" in each.message for each in caplog.records), "it")
    tries = [each.levelname for each in caplog.records if "asked again" in each.message]
    assert tries == ["WARNING", *["DEBUG"] * (len(tries) - 1)]
    assert len(tries) > 2


def test_pauses_between_tries_grow_up_to_a_limit(db: Database):
    pace = Pace(retry_least_s=0.5, retry_most_s=4.0)
    sink_worker = SinkWorker(db, Keeper(), holder="here:1", pace=pace)
    assert [sink_worker.note_failure(OSError()) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_events_that_nobody_poked_about_are_found_by_the_poll(make: Make, happen):
    sink = Keeper()
    make(sink, pace=dataclasses.replace(QUICK, poll_s=0.01))
    ids = [happen(), happen()]
    wait_for(lambda: sink.got == ids, "the poll")


def test_more_than_a_batch_is_carried_at_once(make: Make, happen):
    sink = Keeper()
    running = make(sink, pace=dataclasses.replace(QUICK, batch=3))
    ids = [happen() for _ in range(10)]
    running.wake()
    wait_for(lambda: sink.got == ids, "four batches")


def test_acknowledgements_do_not_cost_a_commit_per_event(db: Database, make: Make, happen):
    sink = Keeper()
    running = make(sink, pace=dataclasses.replace(QUICK, acknowledge_s=NEVER))
    wait_for(lambda: cursor(db).holder == "here:1", "the cursor to be taken")
    ids = [happen() for _ in range(5)]
    meter = Meter(db)
    for _ in range(5):
        running.wake()
    wait_for(lambda: sink.got == ids, "all")
    running.stop()
    assert meter.commits == 2  # the acknowledgement, and the cursor given back


def test_an_idle_relay_writes_nothing(db: Database, make: Make):
    make(Keeper(), pace=dataclasses.replace(QUICK, poll_s=0.001))
    wait_for(lambda: cursor(db).holder == "here:1", "the cursor to be taken")
    meter = Meter(db)
    wait_for(lambda: len(meter.statements) > 20, "polls, after the commit that took it")
    commits = meter.commits
    wait_for(lambda: len(meter.statements) > 40, "more polls")
    assert meter.commits == commits


def test_a_reader_that_lost_its_cursor_moves_nothing(db: Database, happen):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    old, new = (SinkWorker(db, Keeper(), holder=who, pace=QUICK) for who in ("old:1", "new:2"))
    happen()
    assert old._take_cursor()
    assert new._take_cursor()  # on SQLite the old process is known to be dead
    with pytest.raises(Exception, match="another process reads"):
        old.send_batch()
    assert (cursor(db).last_id, cursor(db).holder) == (0, "new:2")


def test_between_processes_a_cursor_is_taken_when_it_stood_still_long_enough(db: Database):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    now = [0.0]
    holder, heir = (
        SinkWorker(db, Keeper(), holder=who, clock=lambda: now[0], leased=True)
        for who in ("holder:1", "heir:2")
    )
    assert holder._take_cursor()
    assert not heir._take_cursor()
    now[0] = 29
    assert not heir._take_cursor()
    holder._renew()  # it lives: the heir begins to count anew
    now[0] = 31
    assert not heir._take_cursor()
    now[0] = 62
    assert heir._take_cursor()


def test_two_that_would_take_a_cursor_at_once_are_told_apart(db: Database):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    seen = cursor(db)
    assert db.transact(lambda conn: event_cursors.take(conn, seen, "one:1"))
    assert db.transact(lambda conn: event_cursors.take(conn, seen, "two:2")) is None
    assert cursor(db).holder == "one:1"


# -------------------------------------------------------------------------------------- trimming


def age(db: Database, event: int, hours: float) -> None:
    at = rows.now() - timedelta(hours=hours)
    db.transact(
        lambda conn: conn.execute(
            sa.update(EVENTS).where(EVENTS.c.id == event).values(created_at=at),
        ),
    )


def left(db: Database) -> list[int]:
    with db.read() as conn:
        return list(conn.execute(sa.select(EVENTS.c.id).order_by(EVENTS.c.id)).scalars())


def test_old_events_go_and_young_ones_stay(db: Database, happen):
    old, young = happen(), happen()
    age(db, old, 2)
    assert Trimmer(db, [], keep_hours=1).trim() == 1
    assert left(db) == [young]


def test_no_event_goes_before_every_sink_has_passed_it(db: Database, happen):
    db.transact(lambda conn: event_cursors.add_missing(conn, ["fast", "slow"]))
    ids = [happen() for _ in range(3)]
    for event in ids:
        age(db, event, 2)
    for sink, passed in (("fast", ids[2]), ("slow", ids[0])):
        db.transact(
            lambda conn, sink=sink, passed=passed: conn.execute(
                sa.update(EVENT_CURSORS).where(EVENT_CURSORS.c.sink == sink).values(last_id=passed),
            ),
        )
    Trimmer(db, ["fast", "slow"], keep_hours=1).trim()
    assert left(db) == ids[1:]


def test_nothing_goes_while_a_sink_has_not_begun(db: Database, happen):
    event = happen()
    age(db, event, 2)
    assert Trimmer(db, ["keeper"], keep_hours=1).trim() == 0
    assert left(db) == [event]


def test_looking_for_old_events_writes_nothing_when_there_are_none(db: Database, happen):
    happen()
    meter = Meter(db)
    Trimmer(db, [], keep_hours=1).trim()
    assert meter.commits == 0


def test_numbers_of_trimmed_events_are_never_used_again(db: Database, happen):
    event = happen()
    age(db, event, 2)
    Trimmer(db, [], keep_hours=1).trim()
    assert happen() > event


# ----------------------------------------------------------------------------------- what is wired


def configured(
    *, level: str | None = None, driver: tuple[str, ...] = (), log: bool = False
) -> Conf:
    return Conf(
        default=Default(host="bm-cond-1", notification_level=level),
        events=Events(log=log),
        oslo_messaging_notifications=OsloMessagingNotifications(driver=driver),
    )


@pytest.mark.parametrize(
    ("level", "driver", "log", "sinks", "snapshots"),
    [
        (None, (), False, [], False),
        (None, ("test",), False, ["oslo"], False),  # of stacks alone
        ("info", (), False, [], False),
        (None, (), True, ["log"], False),
        ("info", ("test",), False, ["oslo"], True),
        ("info", ("test",), True, ["log", "oslo"], True),
    ],
)
def test_sinks_are_those_that_are_configured(
    db: Database, level: str | None, driver: tuple[str, ...], log: bool, sinks: list[str],
    snapshots: bool,
):  # fmt: skip
    conf = configured(level=level, driver=driver, log=log)
    made = relay.make_relay(conf, db)
    assert [sink_worker.sink.name for sink_worker in made.sink_workers] == sinks
    assert made.wants_snapshots() is snapshots


@pytest.fixture
def own_threads() -> Callable[[], set[str]]:
    """Return the names of relays' threads that did not run before: other tests keep services."""
    before = set(threading.enumerate())
    return lambda: {
        thread.name
        for thread in set(threading.enumerate()) - before
        if thread.name.startswith("events-")
    }


def test_a_relay_without_sinks_costs_no_statement_at_its_start_and_pokes(
    db: Database, own_threads: Callable[[], set[str]]
):
    meter = Meter(db)
    made = relay.make_relay(configured(), db)
    made.start()
    made.wake()
    made.stop()
    assert (meter.statements, meter.commits) == ([], 0)
    assert not own_threads()


def test_every_thread_is_named_and_joined(make: Make, own_threads: Callable[[], set[str]]):
    running = make(Keeper("one"), Keeper("two"))
    assert own_threads() == {"events-one", "events-two", "events-trim"}
    running.stop()
    assert not own_threads()
