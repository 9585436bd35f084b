from __future__ import annotations

import pytest

from bloomery.drivers.bmc.state import Breaker
from tests.kit.clock import HandClock

NO = RuntimeError("no")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def breaker(clock):
    return Breaker(3, 30, clock)


def fail(breaker, times):
    for _ in range(times):
        assert breaker.admit() == 0
        breaker.failed(NO)


def test_it_opens_after_so_many_failures_in_a_row(breaker):
    fail(breaker, 3)
    assert breaker.is_open
    assert breaker.admit() == 30


def test_a_success_in_between_starts_the_count_anew(breaker):
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.admit() == 0
    assert breaker.last is NO


def test_after_the_pause_one_may_try_and_the_others_wait(breaker, clock):
    fail(breaker, 3)
    clock.now += 30
    assert breaker.admit() == 0
    assert breaker.admit() > 0


def test_a_try_that_fails_opens_it_for_another_pause(breaker, clock):
    fail(breaker, 3)
    clock.now += 30
    fail(breaker, 1)
    assert breaker.admit() == 30


def test_a_try_that_succeeds_closes_it(breaker, clock):
    fail(breaker, 3)
    clock.now += 31
    assert breaker.admit() == 0
    breaker.succeeded()
    assert not breaker.is_open
    assert (breaker.admit(), breaker.since, breaker.last) == (0, None, None)


def test_a_try_that_is_abandoned_lets_the_next_one_try(breaker, clock):
    fail(breaker, 3)
    clock.now += 30
    assert breaker.admit() == 0
    breaker.abandoned()
    assert breaker.admit() == 0


def test_it_says_how_often_since_when_and_until_when(breaker):
    fail(breaker, 3)
    told = breaker.sentence(breaker.admit())
    assert told.startswith("left alone after 3 failures in a row since ")
    assert told.endswith("next try in 30 s")


def test_who_insists_need_not_wait_but_is_one_at_a_time(breaker):
    fail(breaker, 3)
    assert breaker.admit() == 30
    assert breaker.admit(insists=True) == 0
    assert breaker.admit(insists=True) > 0
    breaker.succeeded()
    assert breaker.admit() == 0


def test_pauses_double_up_to_the_longest(clock):
    breaker, pauses = Breaker(1, 60, clock, 300), []
    for _ in range(5):
        assert breaker.admit() == 0
        breaker.failed(NO)
        pauses.append(breaker.admit())
        clock.now += pauses[-1]
    assert pauses == [60, 120, 240, 300, 300]
