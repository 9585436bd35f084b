from __future__ import annotations

import dataclasses
import threading

import pytest

from bloomery import clock as steady
from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import BmcOptions
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.gateway import Gateway
from bloomery.drivers.bmc.state import Latency, Slots
from bloomery.metrics import METRICS
from tests.kit.clock import HandClock
from tests.kit.machines.driver_task import FakeTask

ADDRESS = "https://bmc-1"
SILENT = errors.BmcUnreachable(node="n", address=ADDRESS, reason="no route")
REFUSED = errors.BmcRefused(node="n", address=ADDRESS, reason="not now")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def made(clock):
    limits = BmcOptions(call_timeout=20, breaker_failures=2, breaker_pause=30)
    return Gateway(dataclasses.replace(Conf(), bmc=limits), clock)


@pytest.fixture
def task():
    return FakeTask({})


def call(made, task, exc=None, *, address=ADDRESS, write=False):
    with made.guard(address, task, write=write) as one:
        if exc is not None:
            raise exc
    return one


def test_a_call_has_what_is_left_of_its_time(made, task, clock):
    with made.guard(ADDRESS, task, write=False) as one:
        clock.now += 8
        assert one.left_s() == 12


def test_a_bmc_that_stays_silent_is_not_asked_any_more(made, task):
    for _ in range(2):
        with pytest.raises(errors.BmcUnreachable, match="no route"):
            call(made, task, SILENT)
    with pytest.raises(errors.BmcUnreachable, match=r"no route \(left alone after 2 failures"):
        call(made, task)


def test_it_is_asked_again_after_the_pause(made, task, clock):
    for _ in range(2):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, SILENT)
    clock.now += 30
    call(made, task)
    assert made.bmc(ADDRESS).breaker.admit() == 0


def test_other_bmcs_are_asked_meanwhile(made, task):
    for _ in range(2):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, SILENT)
    call(made, task, address="https://bmc-2")


def test_a_no_is_an_answer_and_no_silence(made, task):
    for _ in range(5):
        with pytest.raises(errors.BmcRefused):
            call(made, task, REFUSED)
    shown = made.bmc(ADDRESS).describe()
    assert shown["left_alone"] is False
    assert shown["last_contact_at"] is not None
    assert "not now" in shown["last_error"]


def test_it_knows_whether_a_bmc_has_answered_since_a_silence_began(made, task):
    before = steady.now()
    with pytest.raises(errors.BmcUnreachable):
        call(made, task, SILENT)
    assert not made.bmc(ADDRESS).has_answered(before)
    with pytest.raises(errors.BmcRefused):
        call(made, task, REFUSED)
    assert made.bmc(ADDRESS).has_answered(before)
    assert not made.bmc(ADDRESS).has_answered(steady.now())


def test_an_error_of_ours_counts_for_nothing(made, task):
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            call(made, task, ZeroDivisionError())
    assert made.bmc(ADDRESS).describe()["last_error"] is None
    call(made, task)


def test_a_write_needs_an_exclusive_lock_and_a_read_does_not(made):
    looking = FakeTask({}, shared=True)
    call(made, looking)
    with pytest.raises(errors.ExclusiveLockRequired):
        call(made, looking, write=True)


def test_a_write_without_a_lease_is_not_sent(made, task):
    def lost():
        raise errors.LockLost(node="n", holder="other")

    task.assert_lease = lost
    with pytest.raises(errors.LockLost):
        call(made, task, write=True)
    assert made.bmc(ADDRESS).last_contact_at is None


def test_one_write_and_two_calls_in_all_are_let_in_at_a_time(made, task):
    slots = made.bmc(ADDRESS).slots
    with made.guard(ADDRESS, task, write=True):
        assert not slots.enter(write=True, timeout_s=0)
        assert slots.enter(write=False, timeout_s=0)
        assert not slots.enter(write=False, timeout_s=0)
        slots.leave(write=False)


def test_a_bmc_that_stays_busy_is_told(task):
    made = Gateway(dataclasses.replace(Conf(), bmc=BmcOptions(call_timeout=0)))
    with made.guard(ADDRESS, task, write=True), pytest.raises(errors.BmcQueueTimeout) as told:
        call(made, task, write=True)
    assert "other calls of this conductor came first for 0 s" in str(told.value)
    assert "[bmc]requests_at_once (2 now)" in str(told.value)
    assert "cannot reach" not in str(told.value)
    bmc = made.bmc(ADDRESS)
    assert (bmc.is_suspect, bmc.last_error, bmc.breaker.is_open) == (False, None, False)


def test_the_time_of_a_call_counts_from_its_turn(made, task, clock):
    left, waits = [], threading.Event()

    def wait_and_call():
        waits.set()
        left.append(call(made, task, write=True).left_s())

    waiting = threading.Thread(target=wait_and_call)
    with made.guard(ADDRESS, task, write=True):
        waiting.start()
        assert waits.wait(10)
        clock.now += 15
    waiting.join()
    assert left == [20]


def test_places_are_given_back_after_errors(made, task):
    for _ in range(10):
        with pytest.raises(errors.BmcRefused):
            call(made, task, REFUSED, write=True)
    call(made, task, write=True)


def test_no_lock_is_held_while_a_bmc_is_asked(made, task):
    inside, may_end = threading.Event(), threading.Event()

    def slow():
        with made.guard(ADDRESS, task, write=True):
            inside.set()
            assert may_end.wait(10)

    thread = threading.Thread(target=slow)
    thread.start()
    assert inside.wait(10)
    call(made, task, address="https://bmc-2", write=True)
    call(made, task)
    may_end.set()
    thread.join()


def test_who_waits_for_a_place_gets_the_next_one():
    slots, entered = Slots(2, 1), []
    assert slots.enter(write=True, timeout_s=0)
    waiting = threading.Thread(
        target=lambda: entered.append(slots.enter(write=True, timeout_s=10)),
    )
    waiting.start()
    slots.leave(write=True)
    waiting.join()
    assert entered == [True]


def test_latency_is_that_of_the_last_requests():
    latency = Latency()
    assert latency.summary() is None
    for n in range(100):
        latency.add(float(n))
    told = latency.summary()
    assert (told.count, told.least_s, told.median_s, told.most_s) == (100, 36.0, 67.5, 99.0)


def test_interfaces_of_one_configuration_share_a_gateway():
    one, other = Conf(), Conf()
    shared = gateway.of(one)
    assert gateway.of(one) is shared
    assert gateway.of(other) is not shared


def test_metrics_may_ask_for_every_bmc(made, task):
    call(made, task)
    call(made, task, address="https://bmc-2")
    assert {bmc.address for bmc in made.bmcs()} == {ADDRESS, "https://bmc-2"}


def test_bmcs_are_counted_by_state_and_failed_calls_by_kind(made, task):
    def count() -> float:
        labels = {"driver": task.node.driver, "fault": "bmc.unreachable"}
        return METRICS.registry.get_sample_value("bloomery_bmc_faults_total", labels) or 0

    before = count()
    call(made, task, address="https://bmc-2")
    for _ in range(2):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, SILENT)
    with pytest.raises(errors.BmcUnreachable):
        call(made, task, SILENT, address="https://bmc-3")
    assert count() == before + 3
    assert made.count_by_state() == {"answering": 1, "silent": 1, "left_alone": 1}


def test_a_call_may_have_less_time_than_others(made, task):
    with made.guard(ADDRESS, task, write=False, budget_s=5) as one:
        assert one.left_s() == 5
    task.budget_s = 3
    with made.guard(ADDRESS, task, write=False) as one:
        assert one.left_s() == 3
    task.budget_s = 3000
    with made.guard(ADDRESS, task, write=False) as one:
        assert one.left_s() == 20


def test_who_failed_last_time_is_a_suspect(made, task):
    assert not made.bmc(ADDRESS).is_suspect
    with pytest.raises(errors.BmcUnreachable):
        call(made, task, SILENT)
    assert made.bmc(ADDRESS).is_suspect
    call(made, task)
    assert not made.bmc(ADDRESS).is_suspect


def test_silence_begins_with_the_first_failure_and_ends_with_an_answer(made):
    bmc = made.bmc(ADDRESS)
    for _ in range(2):
        bmc.failed(SILENT)
    told = bmc.describe()
    assert told["silent_since"] < told["last_error_at"]
    bmc.failed(REFUSED)
    assert bmc.describe()["silent_since"] is None


def test_a_person_who_insists_is_let_through_once(made, task):
    for _ in range(2):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, SILENT)
    task.insists = True
    call(made, task)
    task.insists = False
    call(made, task)


def test_who_was_not_asked_has_not_failed(made, task):
    alone = errors.BmcLeftAlone(node="n", address=ADDRESS, reason="login", retry_after_s=9)
    for _ in range(5):
        with pytest.raises(errors.BmcLeftAlone):
            call(made, task, alone)
    assert not made.bmc(ADDRESS).is_suspect


def test_a_try_of_an_open_breaker_counts_however_short_it_was(made, task, clock):
    """Or callers without time would ask a dead BMC one after another."""
    short = errors.BmcUnreachable(node="n", address=ADDRESS, reason="-", was_cut_short=True)
    for _ in range(3):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, short)
    assert not made.bmc(ADDRESS).breaker.is_open
    for exc in (SILENT, SILENT):
        with pytest.raises(errors.BmcUnreachable):
            call(made, task, exc)
    clock.now += 30
    with pytest.raises(errors.BmcUnreachable):
        call(made, task, short)
    with pytest.raises(errors.BmcLeftAlone):
        call(made, task)


def test_a_refused_login_is_told_to_the_next_node_as_one(made, task):
    bmc, reason = made.bmc(ADDRESS), "the user name or the password"
    refusal = errors.BmcLoginRefused(node="n", address=ADDRESS, reason=reason)
    with pytest.raises(errors.BmcLoginRefused), made.login(bmc, "account", task):
        raise refusal
    with pytest.raises(errors.BmcLoginLeftAlone) as told, made.login(bmc, "account", task):
        pytest.fail("it was tried again")
    assert "cannot reach" not in str(told.value)
    assert f"it refused {reason}, which is remembered for all nodes with this login" in str(
        told.value
    )
    with made.login(bmc, "another account", task):
        pass


def test_a_bmc_whose_first_call_is_under_way_is_in_no_state_yet():
    made = gateway.Gateway(Conf())
    with made.guard("a", FakeTask({}), write=False):
        assert sum(made.count_by_state().values()) == 0
    assert made.count_by_state()["answering"] == 1
