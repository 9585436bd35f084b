"""The pulse: queues of nodes, their pace, their workers, and a thread that may break off."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from datetime import UTC, datetime
from unittest.mock import AsyncMock, Mock

import pytest

from bloomery import errors
from bloomery.conductor.pulse import Lane, Pulse, gap_s
from bloomery.conductor.workers import Workers
from bloomery.model.request import IN_LOG
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for


@pytest.fixture
def pulse():
    workers = Workers(8)
    pulse = Pulse(workers)
    yield pulse
    pulse.stop()
    workers.stop()


def polled(lane):
    wait_for(lambda: lane.is_idle, "all polls to end")


@pytest.mark.parametrize(
    ("count", "in_all_s"), [(1, 0.01), (100, 1), (1000, 10), (9000, 90), (50_000, 90)]
)
def test_small_fleets_are_done_soon_and_large_ones_spread(count, in_all_s):
    assert gap_s(count, 120, 100) * count == pytest.approx(in_all_s)


def test_each_node_is_polled_once_however_often_it_is_queued(pulse):
    seen, may_go = [], threading.Event()

    async def poll(uuid):
        await lane.in_worker(may_go.wait, 20)
        seen.append(uuid)

    lane = Lane(pulse, poll, most=1)
    lane.walk(["a", "b"])
    lane.walk(["b", "c"])
    lane.put("a")
    may_go.set()
    polled(lane)
    assert sorted(seen) == ["a", "b", "c"]


class HandLoop:
    """A loop whose time is turned by hand, and whose tasks end at once."""

    def __init__(self):
        self.now, self.begun, self.next_at = time.monotonic() + 1, [], None

    def time(self):
        return self.now

    def create_task(self, poll):
        poll.close()
        self.begun.append(self.now)
        return Mock()

    def call_at(self, at, _work):
        self.next_at = at
        return Mock()


@pytest.mark.parametrize(("late_s", "at_once"), [(0, 1), (0.5, 3), (60, 5)])
def test_polls_begin_at_the_pace_of_the_pass_and_late_ones_not_all_at_once(
    monkeypatch, late_s, at_once
):
    """The polls of a second may catch up, those of a minute may not."""
    loop, pulse = HandLoop(), Mock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    lane = Lane(pulse, AsyncMock(), most=1)
    lane.walk([str(n) for n in range(20)], 0.25)
    lane._next_at = loop.now
    loop.now += late_s
    lane._begin_due()
    assert len(loop.begun) == at_once
    while lane._todo:
        loop.now = loop.next_at
        lane._begin_due()
    later = [at - loop.begun[0] for at in loop.begun[at_once:]]
    gaps = {round(b - a, 6) for a, b in itertools.pairwise(later)}
    assert gaps == {0.25}


def test_a_node_that_comes_while_the_last_poll_ends_is_polled(pulse):
    seen = []

    async def poll(uuid):
        seen.append(uuid)
        if len(seen) < 50:
            lane.put(f"{uuid}+")

    lane = Lane(pulse, poll, most=1)
    lane.put("a")
    wait_for(lambda: len(seen) == 50, "each poll that the one before queued")


def test_each_poll_has_a_request_of_its_own_and_its_worker_the_same(pulse):
    names = []

    async def poll(_uuid):
        names.append(IN_LOG.get().request_id)
        await lane.in_worker(lambda: names.append(IN_LOG.get().request_id))

    lane = Lane(pulse, poll, most=1)
    lane.put("a")
    polled(lane)
    lane.put("b")
    polled(lane)
    assert names[0] == names[1] != names[2] == names[3]


ERRORS = {
    "a bug": (RuntimeError("a bug"), "node a: poll failed"),
    "the database": (errors.DatabaseBusy(reason="no connection left"), "node a: not polled"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_of_a_poll_is_logged_and_ends_no_other(pulse, caplog, case):
    error, line = ERRORS[case]
    seen = []

    async def poll(uuid):
        if uuid == "a":
            raise error
        seen.append(uuid)

    lane = Lane(pulse, poll, most=1)
    lane.walk(["a", "b"])
    polled(lane)
    assert seen == ["b"]
    assert any(record.getMessage().startswith(line) for record in caplog.records)


def test_a_full_pool_is_left_to_the_next_pass(pulse, caplog):
    seen = []

    async def poll(uuid):
        await lane.in_worker(seen.append, uuid)

    lane = Lane(pulse, poll, most=1)
    slots = [pulse.workers.slot() for _ in range(8)]
    lane.put("a")
    polled(lane)
    assert (seen, caplog.records) == ([], [])
    for slot in slots:
        with slot:
            pass
    lane.put("a")
    polled(lane)
    assert seen == ["a"]


def test_slow_workers_make_room_up_to_a_limit(pulse):
    running, most, may_go = [], [], threading.Event()

    def work(uuid):
        running.append(uuid)
        most.append(len(running))
        assert may_go.wait(20)
        running.remove(uuid)

    async def poll(uuid):
        await lane.in_worker(work, uuid)

    lane = Lane(pulse, poll, most=2, most_slow=3, slow_after_s=0.001)
    lane.walk([str(n) for n in range(8)])
    wait_for(lambda: len(running) == 5, "two, and three that are slow")
    may_go.set()
    polled(lane)
    assert max(most) == 5


def test_a_stopped_lane_begins_no_further_poll(pulse):
    seen, may_go = [], threading.Event()

    def work(uuid):
        seen.append(uuid)
        assert may_go.wait(20)

    async def poll(uuid):
        await lane.in_worker(work, uuid)

    lane = Lane(pulse, poll, most=1)
    lane.walk(["a", "b", "c"])
    wait_for(lambda: seen, "the first")
    lane.stop()
    may_go.set()
    polled(lane)
    lane.put("d")
    assert seen == ["a"]


class Closed:
    """A look that knows whether it was closed."""

    def __init__(self):
        self.is_closed = False

    def close(self):
        self.is_closed = True


def test_a_look_is_good_until_its_node_is_changed(pulse):
    first, second, later = Closed(), Closed(), datetime(2026, 1, 2, tzinfo=UTC)
    pulse.keep("a", None, first)
    assert pulse.look("a", None) is first
    assert pulse.look("a", later) is None
    assert pulse.look("b", None) is None
    pulse.keep("a", later, second)
    wait_for(lambda: first.is_closed, "the old one to be closed")
    assert pulse.look("a", later) is second
    pulse.drop_unused(3600)
    assert pulse.look("a", later) is second
    pulse.drop_unused(-1)
    wait_for(lambda: second.is_closed, "the one that nobody uses to be closed")


def test_a_thread_that_breaks_off_is_told_and_goes_on(pulse, caplog, monkeypatch):
    monkeypatch.setattr("bloomery.conductor.pulse._RESTART_S", 0.01)
    seen, look = [], Closed()

    async def poll(uuid):
        if uuid == "hangs":
            await asyncio.Event().wait()
        seen.append(uuid)

    lane = Lane(pulse, poll, most=1)
    pulse.keep("a", None, look)
    lane.put("hangs")

    def breaks():
        raise SystemExit("a fault of the loop itself")

    pulse.call(breaks)
    wait_for(lambda: pulse.breaks, "the thread to break off")
    polled(lane)
    lane.walk(["a", "b"])
    polled(lane)
    assert seen == ["a", "b"]
    assert look.is_closed, "its connection belonged to the old loop"
    assert "the pulse of BMCs broke off" in caplog.text
    assert pulse.missing() == []


def test_a_node_that_comes_while_the_old_loop_ends_is_polled_in_the_next(pulse, monkeypatch):
    monkeypatch.setattr("bloomery.conductor.pulse._RESTART_S", 0.01)
    seen, hangs = [], threading.Event()

    async def poll(uuid):
        if uuid == "hangs":
            hangs.set()
            try:
                await asyncio.Event().wait()
            finally:
                lane.walk(["a", "b"])  # as another thread may at this moment
        seen.append(uuid)

    lane = Lane(pulse, poll, most=1)
    lane.put("hangs")

    def breaks():
        raise SystemExit("a fault of the loop itself")

    assert hangs.wait(20)
    pulse.call(breaks)
    wait_for(lambda: seen == ["a", "b"], "the polls of the next loop")
    polled(lane)


def test_a_thread_that_does_not_answer_is_a_problem():
    may_go, clock, workers = threading.Event(), HandClock(), Workers(2)
    pulse = Pulse(workers, clock)
    assert pulse.missing() == [], "nothing was asked of it yet"
    pulse.call(lambda: may_go.wait(20))
    assert pulse.missing() == []
    clock.turn(11)
    assert pulse.missing() == ["the thread that looks at BMCs has not answered for 11 s"]
    may_go.set()
    wait_for(lambda: not pulse.missing(), "its answer")
    pulse.stop()
    workers.stop()


def test_a_pulse_that_stops_closes_its_looks():
    workers = Workers(2)
    pulse, look = Pulse(workers), Closed()
    pulse.keep("a", None, look)
    pulse.call(lambda: None)
    pulse.stop()
    assert look.is_closed
    pulse.call(lambda: pytest.fail("it runs nothing afterwards"))
    assert pulse.missing() == []
    workers.stop()


def test_dead_bmcs_hold_up_no_living_one(pulse):
    """Three of ten thousand wait for answers that do not come."""
    seen, never = [], asyncio.Event()

    async def poll(uuid):
        if int(uuid) % 10 < 3:
            await never.wait()
        seen.append(uuid)

    lane = Lane(pulse, poll, most=1)
    lane.walk([str(number) for number in range(10_000)])
    wait_for(lambda: (len(seen), len(lane)) == (7000, 3000), "all the living ones")
    pulse.call(never.set)
    polled(lane)


def test_a_look_that_fails_to_close_leaves_the_others_closed(pulse, caplog):
    class Stuck(Closed):
        def close(self):
            raise RuntimeError("no running event loop")

    closed = Closed()
    pulse.keep("a", None, Stuck())
    pulse.keep("b", None, closed)
    pulse.call(lambda: None)
    pulse.stop()
    assert closed.is_closed
