"""How a worker carries events to a sink that fails now and then, on a clock that the test turns."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

import pytest

from bloomery.db import event_cursors
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.sink_worker import Pace, SinkWorker
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for
from tests.unit.events.conftest import NODE

PACE = Pace()
EAGER = Pace(lease_s=0.01)  # what waits for deliveries looks at the lease every few milliseconds
OTHER = "6f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b12"


class Sink:
    """Takes each event but those that ``refuses`` names, by the number of the attempt."""

    name = "keeper"
    wants_snapshots = False

    def __init__(self, refuses: Callable[[int], bool] = lambda attempt: False) -> None:
        self.refuses = refuses
        self.attempts = 0
        self.taken: list[EventRow] = []

    def open(self) -> None: ...

    def send(self, event: EventRow) -> None:
        self.attempts += 1
        if self.refuses(self.attempts):
            raise ConnectionError("not now")
        self.taken.append(event)

    def close(self) -> None: ...


class Driven(SinkWorker):
    """Waits by turning its clock; stops when ``until`` is true, or after an hour."""

    def __init__(self, db: Database, sink: Sink, clock: HandClock, **more: object) -> None:
        super().__init__(db, sink, holder="here:1", pace=PACE, clock=clock, **more)
        self.turned, self.pauses = clock, []
        self.until: Callable[[], bool] = lambda: False

    def wait(self, pause_s: float) -> bool:
        if self.until():
            return True
        self.turned.turn(pause_s)
        self.pauses.append(pause_s)
        return self.until() or sum(self.pauses) > 3600


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def begun(db: Database) -> None:
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))


@pytest.mark.usefixtures("begun")
def test_a_sink_that_refuses_one_in_twenty_catches_up(db: Database, happen, clock):
    ids = [happen() for _ in range(400)]
    sink = Sink(lambda attempt: attempt % 20 == 0)
    worker = Driven(db, sink, clock)
    worker.until = lambda: len(sink.taken) == len(ids)
    worker._run()
    assert [event.id for event in sink.taken] == ids
    assert sink.attempts == 400 + 21
    assert sum(worker.pauses) < 30


@pytest.mark.usefixtures("begun")
def test_a_worker_notes_how_far_it_got_and_rests(db: Database, happen, clock):
    last = happen()
    worker = Driven(db, Sink(), clock)
    worker.until = lambda: len(worker.pauses) == 4
    worker._run()
    assert worker.pauses == [0.0, PACE.acknowledge_s, PACE.poll_s, PACE.poll_s]
    with db.read() as conn:
        assert event_cursors.find(conn, "keeper").last_id == last


@pytest.mark.usefixtures("begun")
def test_pauses_grow_while_nothing_is_taken_and_begin_anew_after_a_delivery(
    db: Database, happen, clock
):
    for _ in range(3):
        happen()
    sink = Sink(lambda attempt: attempt not in (4, 7))
    worker = Driven(db, sink, clock)
    worker.until = lambda: sink.attempts >= 9
    worker._run()
    assert worker.pauses[1:] == [0.5, 1.0, 2.0, 0.5, 1.0, 0.5]


@pytest.mark.usefixtures("begun")
def test_a_pause_longer_than_the_lease_does_not_lose_the_cursor(db: Database, happen, clock):
    happen()
    sink = Sink(lambda attempt: True)
    worker = Driven(db, sink, clock, leased=True)
    heir = SinkWorker(db, Sink(), holder="there:2", clock=clock, leased=True)
    worker.until = lambda: sink.attempts and (heir._take_cursor() or sink.attempts == 12)
    worker._run()
    assert sink.attempts == 12


@pytest.mark.usefixtures("begun")
def test_a_lost_cursor_is_no_failure_of_the_sink(db: Database, happen, clock, caplog):
    sink = Sink()
    worker = Driven(db, sink, clock, leased=True)
    heir = SinkWorker(db, Sink(), holder="there:2", clock=clock, leased=False)
    assert worker._take_cursor()
    assert heir._take_cursor()
    happen()
    worker.until = lambda: len(worker.pauses) > 2
    worker._run()
    assert "failed" not in caplog.text


class Meeting(Sink):
    """Takes an event of each of two objects only when both are on their way at once."""

    def __init__(self) -> None:
        super().__init__()
        self.meeting = threading.Barrier(2, timeout=10)

    def send(self, event: EventRow) -> None:
        self.meeting.wait()
        super().send(event)


@pytest.mark.usefixtures("begun")
def test_events_of_several_objects_are_sent_side_by_side_and_those_of_one_in_order(
    db: Database, happen, clock
):
    ids = {node: [happen(object_uuid=node) for _ in range(3)] for node in (NODE, OTHER)}
    sink = Meeting()
    worker = Driven(db, sink, clock, lanes=2)
    worker.until = lambda: len(sink.taken) == 6
    worker._run()
    for node, numbers in ids.items():
        assert [event.id for event in sink.taken if event.object_uuid == node] == numbers


@pytest.mark.usefixtures("begun")
def test_what_was_taken_beside_a_refusal_is_not_sent_again(db: Database, happen, clock):
    happen(object_uuid=NODE), happen(object_uuid=OTHER)
    sink = Meeting()
    refusals = []

    def send(event: EventRow) -> None:
        if event.object_uuid == NODE and not refusals:
            sink.meeting.wait()
            raise ConnectionError("not now")
        sink.taken.append(event) if refusals else Meeting.send(sink, event)

    sink.send = send
    worker = Driven(db, sink, clock, lanes=2, on_refusal=refusals.append)
    worker.until = lambda: len(sink.taken) == 2
    worker._run()
    assert [event.object_uuid for event in sink.taken] == [OTHER, NODE]
    assert len(refusals) == 1
    assert worker.pauses == [0.0, 0.5]


@pytest.mark.usefixtures("begun")
def test_a_sink_that_is_away_is_not_asked_for_each_event_of_a_batch(db: Database, happen, clock):
    for number in range(40):
        happen(object_uuid=str(uuid.UUID(int=number)))
    sink, refusals = Sink(lambda attempt: True), []
    worker = Driven(db, sink, clock, lanes=4, on_refusal=refusals.append)
    worker.until = lambda: len(refusals) == 1
    worker._run()
    assert 1 <= sink.attempts <= 4


@pytest.mark.usefixtures("begun")
def test_the_lease_is_renewed_while_a_delivery_takes_long(db: Database, happen):
    happen()
    sink, clock = Sink(), HandClock()
    worker = SinkWorker(db, sink, holder="here:1", clock=clock, leased=True, pace=EAGER)
    heir = SinkWorker(db, Sink(), holder="there:2", clock=clock, leased=True, pace=EAGER)
    generation = []

    def send(event: EventRow) -> None:
        assert not heir._take_cursor()
        clock.turn(EAGER.lease_s * 0.9)
        wait_for(lambda: worker._written_at == clock.now, "the lease to be renewed")
        clock.turn(EAGER.lease_s * 0.9)
        generation.append(heir._take_cursor())

    sink.send = send
    worker.send_batch()
    assert generation == [False]
