from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bloomery import errors
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.model.request import IN_LOG, Request
from tests.kit.waiting import wait_for


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(size=10, reserved_percentage=20)
    yield made
    made._pool.shutdown(wait=False)


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers()
    made.start()
    yield made
    made.stop()


def test_a_slot_that_is_not_used_is_given_back(workers: Workers):
    with workers.slot():
        assert workers.busy == 1
    assert workers.busy == 0


def test_a_slot_that_is_used_is_given_back_when_the_work_ends(workers: Workers):
    go_on = threading.Event()
    with workers.slot() as slot:
        future = slot.spawn(go_on.wait, 5)
    assert workers.busy == 1
    go_on.set()
    assert future.result(timeout=5)
    wait_for(lambda: workers.busy == 0, "the slot to be free")


def test_work_that_fails_frees_its_slot(workers: Workers):
    future = workers.spawn(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        future.result(timeout=5)
    wait_for(lambda: workers.busy == 0, "the slot to be free")


def test_a_full_pool_says_so_and_how_to_have_more(workers: Workers):
    slots = [workers.slot() for _ in range(10)]
    with pytest.raises(errors.NoFreeConductorWorker, match=r"workers_pool_size \(now 10\)"):
        workers.slot()
    with slots[0]:
        pass
    workers.slot()


def test_work_is_logged_in_the_name_of_who_ordered_it_and_of_nobody_after():
    one = Workers(size=2)
    request = Request.new()
    IN_LOG.set(request)
    assert one.submit(IN_LOG.get).result(timeout=5) is request
    IN_LOG.set(None)
    assert one.submit(IN_LOG.get).result(timeout=5) is None
    one.stop()


def test_a_call_back_is_logged_in_the_name_of_who_asked_for_it(timers: Timers):
    requests, names = [Request.new(), None, Request.new()], []
    for request in requests:
        IN_LOG.set(request)
        timers.after(0, lambda: names.append(IN_LOG.get()))
    wait_for(lambda: len(names) == len(requests), "the calls")
    assert sorted(map(id, names)) == sorted(map(id, requests))


def test_a_part_of_the_pool_is_kept_for_orders(workers: Workers):
    for _ in range(8):
        workers.slot(allow_reserved=False)
    with pytest.raises(errors.NoFreeConductorWorker):
        workers.slot(allow_reserved=False)
    workers.slot()


def test_work_that_cannot_begin_frees_its_slot(workers: Workers, monkeypatch):
    def refuse(*_args: object, **_more: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "submit", refuse)
    with pytest.raises(RuntimeError):
        workers.spawn(print)
    assert workers.busy == 0


def test_calls_come_in_the_order_of_their_times(timers: Timers):
    called: list[str] = []
    timers.after(0.03, called.append, "late")
    timers.after(0.0, called.append, "early")
    timers.after(0.01, called.append, "between")
    wait_for(lambda: len(called) == 3, "the calls")
    assert called == ["early", "between", "late"]


def test_calls_of_one_time_come_in_the_order_they_were_asked_for():
    now = [0.0]
    timers = Timers(clock=lambda: now[0])
    called: list[int] = []
    for number in range(20):
        timers.after(0, called.append, number)
    timers.start()
    wait_for(lambda: len(called) == 20, "the calls")
    timers.stop()
    assert called == list(range(20))


def test_a_call_that_fails_does_not_end_the_others(timers: Timers):
    called: list[int] = []
    timers.after(0, lambda: 1 / 0)
    timers.after(0, called.append, 1)
    wait_for(lambda: called == [1], "the second call")


def test_what_is_not_due_is_dropped_at_the_end():
    timers = Timers()
    timers.start()
    called: list[int] = []
    timers.after(60, called.append, 1)
    timers.stop()
    assert called == []
    assert not timers._thread.is_alive()


def test_timers_that_never_began_can_be_stopped():
    Timers().stop()


def test_a_caller_may_take_the_place_of_the_thread():
    now, calls = [100.0], []
    timers = Timers(lambda: now[0])
    timers.after(5, calls.append, "late")
    timers.after(2, calls.append, "early")
    assert (timers.call_next(), timers.due_at()) == (False, 102)
    now[0] = 104
    assert (timers.call_next(), timers.call_next()) == (True, False)
    assert (calls, timers.due_at()) == (["early"], 105)


# ------------------------------------------------------------------------------------ each


def test_each_node_is_worked_on_once_and_a_failure_ends_no_other(caplog):
    workers, seen = Workers(4), []

    def work(uuid):
        seen.append(uuid)
        if uuid == "b":
            raise RuntimeError("a bug")

    workers.each(["a", "b", "c"], work, most=2)
    workers.stop()
    assert sorted(seen) == ["a", "b", "c"]
    assert "node b: " in caplog.text


def test_without_a_free_worker_the_calling_thread_works_on_each_node():
    workers, threads = Workers(2), []
    with workers.slot(), workers.slot():
        workers.each(["a", "b"], lambda _: threads.append(threading.get_ident()), most=2)
    assert threads == [threading.get_ident()] * 2
    workers.stop()


def test_each_returns_once_nothing_has_ended_for_its_patience():
    workers, may_end = Workers(2), threading.Event()
    workers.each(["slow"], lambda _: may_end.wait(20), most=1, patience_s=0.01)
    assert workers.busy == 1, "it goes on behind"
    may_end.set()
    workers.stop()
