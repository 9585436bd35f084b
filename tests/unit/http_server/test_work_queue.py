from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bloomery.http_server.server import WorkQueue
from tests.kit.waiting import wait_for


def rest_in(work: WorkQueue, number: int, taken: list[tuple[int, Any]]) -> threading.Thread:
    """Return a thread that rests until it gets one thing."""
    thread = threading.Thread(target=lambda: taken.append((number, work.get())))
    thread.start()
    wait_for(lambda: len(work._resting) == number, "a thread that rests")
    return thread


def test_thread_that_has_rested_least_is_called_and_no_other():
    work, taken = WorkQueue(), []
    threads = [rest_in(work, number, taken) for number in (1, 2, 3)]
    for number, thread in zip((3, 2, 1), reversed(threads), strict=True):
        work.put(number)
        thread.join()
        assert taken.pop() == (number, number)
        assert len(work._resting) == number - 1


def test_what_waits_for_a_thread_is_taken_in_order():
    work = WorkQueue()
    for number in range(5):
        work.put(number)
    assert [work.get() for _ in range(5)] == list(range(5))


def test_nothing_is_lost_or_taken_twice_and_nobody_rests_while_there_is_work():
    work, each = WorkQueue(), 2_000

    def take() -> list[Any]:
        return list(iter(work.get, None))

    with ThreadPoolExecutor(7) as pool:
        takers = [pool.submit(take) for _ in range(4)]
        putters = [
            pool.submit(lambda first: [work.put(first + n) for n in range(each)], first * each)
            for first in range(3)
        ]
        for putter in putters:
            putter.result()
        wait_for(lambda: len(work._resting) == len(takers), "all to be taken")
        for _ in takers:
            work.put(None)
        numbers = [number for taker in takers for number in taker.result()]
    assert sorted(numbers) == list(range(3 * each))
