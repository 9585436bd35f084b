"""Recovery: maintenance that a power failure began ends when the BMC answers again."""

from __future__ import annotations

import json

import pytest

from bloomery import clock as clock_of_deadlines
from bloomery import errors
from bloomery.conductor.periodics.power_recovery import PowerRecovery
from tests.kit.clock import HandClock
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.servers.stories import full_pool
from tests.kit.waiting import wait_for

INTERVAL_S = 300

FAULTY = {
    "provision_state": "active",
    "maintenance": True,
    "fault": "power failure",
    "maintenance_reason": "power sync failed 4 times",
    "power_state": None,
}


@pytest.fixture
def bmc():
    return FakeBmc()


@pytest.fixture
def site(make_site, bmc):
    return make_site(registry=bmc.registry(), periodic_max_workers=2)


def faulty(site, **values):
    node = site.enrol()
    site.set(node, **FAULTY | values)
    return node


def settle(recovery):
    wait_for(lambda: recovery.is_idle, "all looks to end")


def recover(site):
    recovery = PowerRecovery(site.runtime)
    recovery.run()
    settle(recovery)


def corrections(site, node):
    found = [e for e in site.events(node) if e["action"] == "power_state_corrected"]
    return [json.loads(event["facts"])["from_power"] for event in found]


def test_answer_ends_the_maintenance(site, bmc):
    node = faulty(site)
    bmc.reads = "power off"
    recover(site)
    shown = site.node(node)
    assert (shown.power_state, shown.maintenance) == ("power off", False)
    assert (shown.fault, shown.maintenance_reason, shown.reservation) == (None, None, None)
    assert corrections(site, node) == [None]


def test_nothing_is_corrected_where_the_row_was_right(site, bmc):
    node = faulty(site, power_state="power on")
    recover(site)
    assert not site.node(node).maintenance
    assert corrections(site, node) == []


@pytest.mark.parametrize("reads", [UNREACHABLE, RuntimeError("a bug"), "error", None])
def test_silence_changes_nothing(site, bmc, reads):
    faulty(site)
    bmc.reads = reads
    before = site.everything()
    recover(site)
    assert bmc.looks
    assert site.everything() == before


def test_values_that_are_still_missing_change_nothing(site, bmc):
    faulty(site)
    bmc.usable = errors.MissingParameterValue(reason="missing driver_info/address")
    before = site.everything()
    recover(site)
    assert site.everything() == before


@pytest.mark.parametrize(
    "values",
    [
        {"fault": "clean failure"},
        {"fault": None},
        {"maintenance": False},
        {"provision_state": "enroll"},
        {"target_power_state": "power on"},
        {"reservation": "somebody"},
    ],
)
def test_other_nodes_are_not_asked(site, bmc, values):
    node = faulty(site, **values)
    bmc.reads = "power on"
    recover(site)
    assert bmc.looks == []
    site.set(node, reservation=None)


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def recovery(site, clock):
    return PowerRecovery(site.runtime, clock=clock, slow_after_s=0.01)


def run(recovery, clock, times=1):
    for _ in range(times):
        recovery.run()
        settle(recovery)
        clock.turn(INTERVAL_S)


def test_nodes_behind_dead_ones_recover(site, bmc, recovery, clock):
    """Twelve nodes, the eight that moved longest ago dead for good."""
    dead = [faulty(site) for _ in range(8)]
    back = [faulty(site) for _ in range(4)]
    bmc.reads = "power on"
    bmc.one = dict.fromkeys(dead, UNREACHABLE)
    run(recovery, clock)
    assert [site.node(node).maintenance for node in dead + back] == [True] * 8 + [False] * 4


def test_nodes_behind_mute_ones_recover(make_site, bmc):
    site = make_site(registry=bmc.registry(), workers_pool_size=100)
    recovery = PowerRecovery(site.runtime, slow_after_s=0.01)
    mute = [faulty(site) for _ in range(8)]
    back = [faulty(site) for _ in range(4)]
    bmc.reads, bmc.mute = "power on", set(mute)
    bmc.may_answer.clear()
    running = site.runtime.workers.spawn(recovery.run)
    wait_for(lambda: not any(site.node(n).maintenance for n in back), "the others to recover")
    bmc.may_answer.set()
    running.result(timeout=20)
    settle(recovery)


def test_a_node_that_stays_silent_is_asked_less_and_less_but_for_ever(site, bmc, recovery, clock):
    faulty(site)
    bmc.reads = UNREACHABLE
    asked = []
    for number in range(16):
        before = len(bmc.looks)
        run(recovery, clock)
        if len(bmc.looks) > before:
            asked.append(number)
    assert asked == [0, 1, 3, 7, 11, 15]


@pytest.fixture
def not_due(site, bmc, recovery, clock):
    """A node that was asked often, and has its turn much later."""
    node = faulty(site)
    bmc.reads = UNREACHABLE
    run(recovery, clock, times=4)
    bmc.looks.clear()
    run(recovery, clock)
    assert bmc.looks == []
    return node


def test_a_node_whose_bmc_answered_somebody_has_its_turn(site, bmc, recovery, not_due):
    bmc.has_answered, bmc.reads = True, "power on"
    recovery.run()
    settle(recovery)
    assert not site.node(not_due).maintenance


def test_a_node_that_was_changed_has_its_turn(site, bmc, recovery, not_due):
    site.set(not_due, updated_at=clock_of_deadlines.now())
    recovery.run()
    settle(recovery)
    assert bmc.looks == [not_due]


def test_the_end_of_maintenance_is_history(site, bmc):
    node = faulty(site)
    bmc.reads = "power on"
    recover(site)
    assert "its BMC answers again: maintenance ends" in [e["event"] for e in site.history(node)]


def test_a_node_that_fails_again_is_asked_soon_again(site, bmc, recovery, clock):
    node = faulty(site)
    bmc.reads = UNREACHABLE
    run(recovery, clock, times=4)
    site.set(node, maintenance=False, fault=None)
    run(recovery, clock)
    site.set(node, **FAULTY)
    bmc.looks.clear()
    run(recovery, clock)
    assert bmc.looks == [node]


def test_a_node_that_no_worker_asked_keeps_its_turn(site, bmc, recovery, clock):
    faulty(site)
    bmc.reads = UNREACHABLE
    with full_pool(site):
        run(recovery, clock)
    assert recovery.lag_s() == pytest.approx(INTERVAL_S)
    run(recovery, clock)
    assert (len(bmc.looks), recovery.lag_s()) == (1, 0)


def test_lag_is_how_late_the_oldest_turn_is(site, bmc, recovery, clock):
    faulty(site)
    bmc.reads = UNREACHABLE
    assert recovery.lag_s() == 0
    run(recovery, clock)
    assert recovery.lag_s() == 0
    clock.turn(40)
    assert recovery.lag_s() == pytest.approx(40)
    assert recovery.suspects() == 1


def test_a_row_that_breaks_everything_ends_no_run(site, bmc, recovery, clock):
    faulty(site, driver_info="[1")
    sound = faulty(site)
    bmc.reads = "power on"
    run(recovery, clock)
    assert not site.node(sound).maintenance
