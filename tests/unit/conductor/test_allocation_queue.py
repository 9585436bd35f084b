"""Who waits for the worker that looks for nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bloomery.conductor.allocation_queue import AllocationQueue, Entry
from bloomery.model.request import Request


@pytest.fixture
def queue() -> AllocationQueue:
    return AllocationQueue()


def entry(uuid: str) -> Entry:
    return Entry(uuid=uuid, request=Request.new())


def uuids(queue: AllocationQueue) -> list[str]:
    served = []
    while (one := queue.next()) is not None:
        served.append(one.uuid)
    return served


def test_first_come_first_served_by_one_worker(queue: AllocationQueue) -> None:
    assert [queue.add(entry(uuid)) for uuid in "abc"] == [True, False, False]
    assert uuids(queue) == ["a", "b", "c"]


def test_worker_is_started_anew_once_it_has_gone(queue: AllocationQueue) -> None:
    queue.add(entry("a"))
    assert uuids(queue) == ["a"]
    assert queue.add(entry("b"))


def test_who_is_queued_or_waits_for_a_timer_is_not_added_twice(queue: AllocationQueue) -> None:
    waiting = entry("a")
    queue.add(waiting)
    assert not queue.add(entry("a"))
    assert queue.next() == waiting
    assert not queue.add(entry("a")), "it comes again by a timer"
    again = replace(waiting, attempt=2)
    queue.add_again(again)
    assert queue.next() == again
    assert queue.next() is None


def test_who_is_settled_may_come_anew(queue: AllocationQueue) -> None:
    queue.add(entry("a"))
    uuids(queue)
    queue.forget("a")
    assert queue.add(entry("a"))


def test_closed_queue_serves_nobody(queue: AllocationQueue) -> None:
    queue.add(entry("a"))
    queue.close()
    assert queue.next() is None
    assert not queue.add(entry("b"))
    assert not queue.add_again(entry("a"))
