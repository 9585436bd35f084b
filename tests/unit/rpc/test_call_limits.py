"""Threads that wait for conductors are few enough for the others to go on."""

from __future__ import annotations

import contextlib
import threading

import pytest

from bloomery import errors
from bloomery.rpc import remote
from bloomery.rpc.remote import CallLimits
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def silent(limits: CallLimits, clock: HandClock, host: str, calls: int) -> contextlib.ExitStack:
    """Let so many wait for a host that answers nobody any more."""
    waiting = contextlib.ExitStack()
    for _ in range(calls):
        waiting.enter_context(limits.call(host))
    clock.now += remote.LATELY_S
    return waiting


def test_a_dead_host_takes_three_quarters_of_half_the_threads(clock):
    limits = CallLimits(16, clock)
    with silent(limits, clock, "dead", 6):
        with pytest.raises(errors.ConductorCallsBusy, match="6 requests wait for it already"):
            limits.call("dead").__enter__()
        with limits.call("alive"), limits.call("alive"):
            clock.now += remote.LATELY_S
            with pytest.raises(errors.ConductorCallsBusy, match="8 requests wait for conductors"):
                limits.call("third").__enter__()


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (2, 1), (4, 2), (5, 2), (16, 8)])
def test_at_most_half_of_the_threads_wait(clock, threads, most):
    limits = CallLimits(threads, clock)
    waiting = 0
    with contextlib.ExitStack() as calls:
        for host in range(2 * threads):
            clock.now += remote.LATELY_S
            with contextlib.suppress(errors.ConductorCallsBusy):
                calls.enter_context(limits.call(str(host)))
                waiting += 1
    assert waiting == most
    assert limits.calls == 0


def test_a_crowd_queues_where_calls_come_back(clock):
    limits = CallLimits(2, clock)
    is_in = threading.Event()

    def second() -> None:
        with limits.call("busy"):
            is_in.set()

    thread = threading.Thread(target=second)
    with limits.call("busy"):
        thread.start()
        wait_for(lambda: limits._room._waiters, "the second to queue")
        assert not is_in.is_set()
        limits.came_back("busy")
    assert is_in.wait(5)
    thread.join()


def test_a_queue_has_an_end(monkeypatch):
    monkeypatch.setattr(remote, "QUEUE_S", 0.01)
    limits = CallLimits(2)
    with limits.call("busy"), pytest.raises(errors.ConductorCallsBusy):
        limits.call("busy").__enter__()


def test_a_queue_breaks_up_when_answers_stop(monkeypatch):
    monkeypatch.setattr(remote, "LATELY_S", 0.01)
    limits = CallLimits(2)
    with limits.call("dying"), pytest.raises(errors.ConductorCallsBusy):
        limits.call("dying").__enter__()


def test_whoever_is_refused_takes_no_place(clock):
    limits = CallLimits(4, clock)
    with silent(limits, clock, "dead", 1):
        for _ in range(3):
            with pytest.raises(errors.ConductorCallsBusy):
                limits.call("dead").__enter__()
    assert limits.calls == 0
    with limits.call("dead"):
        assert limits.calls == 1
