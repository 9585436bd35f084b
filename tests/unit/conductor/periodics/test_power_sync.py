"""Power sync: every rule by which a row is compared with what its BMC says."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bloomery import errors
from bloomery.conductor.periodics.power_sync import LOOK_BUDGET_S, PowerSync
from bloomery.drivers.fake.hardware import FakeManagement
from bloomery.metrics import METRICS
from tests.kit.clock import HandClock
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.servers.stories import full_pool
from tests.kit.waiting import wait_for

ON, OFF = "power on", "power off"
RETRIES = 3
QUEUED = errors.BmcQueueTimeout(
    node="it", address="bmc.test", retry_after_s=0.01, cause="others", reason="others came first"
)


@pytest.fixture
def bmc():
    return FakeBmc()


@pytest.fixture
def make_rack(make_site, bmc):
    """Return a site, a way to add nodes, and a way to let one pass run."""
    return lambda **conductor: Rack(make_site(registry=bmc.registry(), **conductor))


@pytest.fixture
def rack(make_rack):
    return make_rack()


class Rack:
    def __init__(self, site):
        self.site = site
        self.clock = HandClock()
        runtime = dataclasses.replace(site.runtime, timers=self.clock)
        self.sync = PowerSync(runtime, clock=self.clock, slow_after_s=0.01)

    def node(self, **values):
        said = {"provision_state": "manageable", "power_state": ON} | values
        node = self.site.enrol()
        self.site.set(node, **said)
        return node

    def run(self, times=1):
        """Let everything be looked at once more: suspects when their time comes."""
        for _ in range(times):
            if self.clock.is_armed:
                self.clock.turn_to_next()
            else:
                self.sync.run()
            self.settle()

    def settle(self):
        wait_for(lambda: self.sync.is_idle, "all looks to end")
        wait_for(lambda: not self.site.runtime.node_locks.in_use, "what was driven to arrive")

    def power(self, node):
        shown = self.site.node(node)
        assert shown.target_power_state is None
        return shown.power_state

    def care(self, node):
        shown = self.site.node(node)
        return shown.maintenance, shown.fault

    def corrections(self, node):
        """What each correction told: from what, to what."""
        told = [json.loads(e["facts"]) for e in self.site.events(node) if e["action"] == CORRECTED]
        return [(facts["from_power"], facts["power_state"]) for facts in told]


CORRECTED = "power_state_corrected"
LAST = "ffffffff-ffff-4fff-bfff-ffffffffffff"  # the last one of a pass


def test_row_that_agrees_is_not_written(rack, bmc):
    node = rack.node()
    before = rack.site.everything()
    rack.run(2)
    assert bmc.looks == [node, node]
    assert rack.site.everything() == before


@pytest.mark.parametrize(
    "values",
    [
        {"provision_state": "wait call-back"},
        {"provision_state": "clean wait"},
        {"provision_state": "enroll"},
        {"provision_state": "adopt failed"},
        {"maintenance": True},
        {"target_power_state": OFF},
        {"reservation": "somebody"},
        {"driver_internal_info": '{"redfish_fw_updates": [{"url": "x"}]}'},
    ],
)
def test_some_nodes_are_not_even_asked(rack, bmc, values):
    node = rack.node(**values)
    bmc.reads = OFF
    rack.sync.run()
    assert bmc.looks == []
    assert rack.site.node(node).power_state == ON
    rack.site.set(node, reservation=None)


def test_node_without_driver_values_and_power_is_ignored_for_good(rack, bmc):
    node = rack.node(power_state=None)
    bmc.usable = errors.MissingParameterValue(reason="missing driver_info/address")
    rack.run(RETRIES + 2)
    assert rack.care(node) == (False, None)
    assert bmc.looks == []


def test_node_that_lost_its_driver_values_fails(rack, bmc):
    node = rack.node()
    bmc.usable = errors.MissingParameterValue(reason="missing driver_info/address")
    rack.run(RETRIES + 1)
    assert rack.care(node) == (True, "power failure")


@pytest.mark.parametrize("reads", [UNREACHABLE, RuntimeError("a bug"), "error"])
def test_silent_bmc_puts_its_node_into_maintenance_after_the_retries(rack, bmc, reads):
    node = rack.node()
    bmc.reads = reads
    rack.run(RETRIES)
    assert rack.care(node) == (False, None)
    assert rack.power(node) == ON
    rack.run()
    shown = rack.site.node(node)
    assert rack.care(node) == (True, "power failure")
    assert rack.power(node) is None
    assert shown.maintenance_reason == shown.last_error
    assert f"failed {RETRIES + 1} times" in shown.last_error
    assert rack.corrections(node) == [(ON, None)]
    [entry] = [row for row in rack.site.history(node) if row["severity"] == "ERROR"]
    assert (entry["event"], entry["event_type"]) == (shown.last_error, "monitoring")


def test_a_look_that_got_no_turn_does_not_count_against_the_bmc(rack, bmc):
    node = rack.node()
    bmc.reads = QUEUED
    rack.run(RETRIES + 2)
    assert rack.care(node) == (False, None)
    assert rack.sync.suspects() == 0
    assert rack.power(node) == ON


def test_number_of_retries_is_an_option(make_rack, bmc):
    rack = make_rack(power_state_sync_max_retries=0)
    node = rack.node()
    bmc.reads = UNREACHABLE
    rack.run()
    assert rack.care(node) == (True, "power failure")


def test_answer_in_between_makes_the_count_begin_anew(rack, bmc):
    node = rack.node()
    for _ in range(2):
        bmc.reads = UNREACHABLE
        rack.run(RETRIES)
        bmc.reads = ON
        rack.run()
    assert rack.care(node) == (False, None)


def test_unknown_power_is_recorded(rack, bmc):
    node = rack.node(power_state=None)
    bmc.reads = OFF
    rack.run()
    assert rack.power(node) == OFF
    assert rack.corrections(node) == [(None, OFF)]
    assert warnings_in_history(rack, node) == []
    assert bmc.orders == []


def test_machine_is_driven_back_to_what_is_recorded(rack, bmc):
    node = rack.node()
    bmc.one[node] = OFF
    rack.run()
    assert bmc.orders == [(ON, None)]
    assert rack.power(node) == ON
    assert rack.corrections(node) == []
    told = [f"{e['action']}.{e['status']}" for e in rack.site.events(node)]
    assert told[-2:] == ["power_set.start", "power_set.end"]


def warnings_in_history(rack, node):
    return [row["event"] for row in rack.site.history(node) if row["severity"] == "WARNING"]


def count_of(action, actual):
    labels = {"actual": actual, "action": action}
    return METRICS.registry.get_sample_value("bloomery_power_corrections_total", labels) or 0


@pytest.mark.parametrize(
    ("recorded", "actual", "action"),
    [(ON, OFF, "switched on again"), (OFF, ON, "switched off again")],
)
def test_machine_that_changes_its_power_itself_is_warned_of(
    rack, bmc, caplog, recorded, actual, action
):
    node, counted = rack.node(power_state=recorded), count_of("driven", actual)
    for _ in range(3):
        bmc.one[node] = actual
        rack.run()
        bmc.one.pop(node, None)
        rack.run()
    sentence = f"power sync: was {actual}, recorded {recorded}: {action}"
    assert warnings_in_history(rack, node) == [
        sentence, f"{sentence}, 2 times in 1 min", f"{sentence}, 3 times in 1 min",
    ]  # fmt: skip
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len([line for line in warned if node in line and sentence in line]) == 3
    assert count_of("driven", actual) == counted + 3


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("option", "[conductor]force_power_state_during_sync is false"),
        ("driver", "power interface fake does not support power sync"),
        ("node", "disable_power_off is set"),
    ],
)
def test_row_follows_the_machine_where_it_must_not_be_driven(make_rack, bmc, why, reason):
    rack = make_rack(force_power_state_during_sync=why != "option")
    bmc.syncs = why != "driver"
    node = rack.node(disable_power_off=why == "node")
    bmc.reads, counted = OFF, count_of("recorded", OFF)
    rack.run()
    assert rack.power(node) == OFF
    assert rack.corrections(node) == [(ON, OFF)]
    assert bmc.orders == []
    assert warnings_in_history(rack, node) == [
        f"power sync: was {OFF}, recorded {ON}: recorded {OFF} now, because {reason}"
    ]
    assert count_of("recorded", OFF) == counted + 1


@pytest.mark.parametrize(
    ("parent_power", "own_supply", "driven"),
    [(ON, False, True), (OFF, False, False), (OFF, True, True), (None, False, True)],
    ids=["parent on", "parent off", "own supply", "parent not known"],
)
def test_a_child_whose_parent_is_off_is_recorded_as_it_is(
    rack, bmc, parent_power, own_supply, driven
):
    parent = rack.node(power_state=parent_power)
    supply = json.dumps({"has_dedicated_power_supply": own_supply})
    child = rack.node(parent_node=parent, driver_info=supply)
    bmc.one |= {parent: parent_power or errors.MissingParameterValue(reason="no BMC"), child: OFF}
    rack.run()
    assert rack.power(child) == (ON if driven else OFF)
    assert rack.power(parent) == parent_power
    assert bmc.orders == ([(ON, None)] if driven else [])
    if not driven:
        [told] = warnings_in_history(rack, child)
        assert told.endswith(f"because its parent {parent}, which gives it power, is off")


def test_machine_that_cannot_be_driven_goes_into_maintenance_as_it_is(rack, bmc):
    node = rack.node()
    bmc.reads, bmc.obeys = OFF, False
    rack.run(RETRIES)
    assert rack.care(node) == (False, None)
    assert len(bmc.orders) == RETRIES
    rack.run()
    assert rack.care(node) == (True, "power failure")
    assert rack.power(node) == OFF
    assert rack.corrections(node)[-1] == (ON, OFF)
    assert len(bmc.orders) == RETRIES


def test_bmc_that_refuses_to_be_driven_counts_as_well(rack, bmc):
    node = rack.node()
    bmc.reads, bmc.accepts = OFF, UNREACHABLE
    rack.run(RETRIES + 1)
    assert rack.care(node) == (True, "power failure")


@pytest.mark.parametrize("state", ["manageable", "active"])
def test_error_that_the_history_keeps_is_cleared_when_all_is_well(rack, bmc, state):
    node = rack.node(provision_state=state, last_error="it was off")
    rack.run()
    assert rack.site.node(node).last_error is None


@pytest.mark.parametrize("state", ["deploy failed", "clean failed", "error", "service failed"])
@pytest.mark.parametrize("is_driven", [False, True])
def test_error_of_a_failed_state_is_kept(rack, bmc, state, is_driven):
    node = rack.node(provision_state=state, last_error="the disk is full")
    if is_driven:
        bmc.one[node] = OFF
    rack.run()
    assert rack.site.node(node).last_error == "the disk is full"
    assert rack.power(node) == ON


def test_error_is_kept_where_no_history_is(make_rack, bmc):
    rack = make_rack(node_history=False)
    node = rack.node(last_error="it was off")
    rack.run()
    assert rack.site.node(node).last_error == "it was off"


def test_one_bad_node_does_not_end_the_pass(rack, bmc):
    nodes = [rack.node() for _ in range(4)]
    bmc.one = {nodes[0]: UNREACHABLE, nodes[1]: RuntimeError("a bug"), nodes[3]: OFF}
    rack.site.set(nodes[2], driver="gone-hardware")
    rack.run(2)
    assert set(bmc.looks) == {nodes[0], nodes[1], nodes[3]}
    assert rack.power(nodes[3]) == ON


def test_a_mute_rack_holds_up_nobody(make_rack, bmc):
    """Thirty BMCs that are mute for now, two workers, and one BMC that answers."""
    rack = make_rack(workers_pool_size=200, sync_power_state_workers=2)
    mute = [rack.node() for _ in range(30)]
    living = rack.node()
    rack.site.set(living, uuid=LAST)
    bmc.mute = set(mute)
    bmc.may_answer.clear()
    rack.sync.run()
    wait_for(lambda: len(bmc.looks) == len(mute) + 1, "the living one, behind those that are mute")
    assert LAST in bmc.looks
    bmc.may_answer.set()
    rack.settle()


def test_so_many_are_slow_at_a_time_and_no_more(make_rack, bmc):
    rack = make_rack(workers_pool_size=20, sync_power_state_workers=2)  # a quarter may be slow
    nodes = [rack.node() for _ in range(12)]
    bmc.may_answer.clear()
    rack.sync.run()
    wait_for(lambda: len(bmc.looks) == 2 + 5, "as many looks as there may be")
    bmc.may_answer.set()
    rack.settle()
    assert bmc.most_at_once == 2 + 5
    assert sorted(bmc.looks) == sorted(nodes)


def test_suspects_are_left_out_of_passes_and_have_times_of_their_own(make_rack, bmc):
    rack = make_rack()
    mute, living = rack.node(), rack.node()
    bmc.one[mute] = UNREACHABLE
    rack.sync.run()
    rack.settle()
    for _ in range(3):
        bmc.looks.clear()
        rack.sync.run()
        rack.settle()  # a look that is slow goes on after the pass
        assert bmc.looks == [living]
    rack.clock.turn_to_next()
    rack.settle()
    assert bmc.looks == [living, mute]


def test_suspects_are_asked_later_and_later_and_all_within_three_intervals(make_rack, bmc):
    rack = make_rack(sync_power_state_interval=120)
    node = rack.node()
    bmc.reads = UNREACHABLE
    began_at, asked_at = rack.clock(), []
    rack.sync.run()
    rack.settle()
    while rack.clock.is_armed:
        asked_at.append(rack.clock() - began_at)
        rack.clock.turn_to_next()
        rack.settle()
    asked_at.append(rack.clock() - began_at)
    assert asked_at == [0, 30, 90, 180]
    assert rack.care(node) == (True, "power failure")


def test_looks_are_short_but_for_the_one_that_ends_in_maintenance(rack, bmc):
    rack.node()
    bmc.reads = UNREACHABLE
    rack.run(RETRIES + 1)
    assert bmc.budgets == [LOOK_BUDGET_S] * RETRIES + [None]


def test_a_suspect_that_answers_is_back_in_the_pass(rack, bmc):
    node = rack.node()
    bmc.reads = UNREACHABLE
    rack.run()
    bmc.reads = ON
    rack.run()
    assert rack.sync.suspects() == 0
    bmc.looks.clear()
    rack.sync.run()
    rack.settle()
    assert bmc.looks == [node]


def test_a_suspect_that_is_worked_on_meanwhile_is_back_in_the_pass(rack, bmc):
    node = rack.node()
    bmc.reads = UNREACHABLE
    rack.run()
    rack.site.set(node, target_power_state=OFF)
    rack.run()
    rack.site.set(node, target_power_state=None)
    assert rack.sync.suspects() == 0
    bmc.looks.clear()
    rack.sync.run()
    rack.settle()
    assert bmc.looks == [node]


def test_a_suspect_whose_timer_found_no_worker_is_asked_by_the_next_pass(rack, bmc):
    node = rack.node()
    bmc.reads = UNREACHABLE
    rack.run()
    with full_pool(rack.site):
        rack.clock.turn_to_next()
        wait_for(lambda: rack.sync.is_idle, "the timer's poll to end")
    bmc.reads = ON
    rack.sync.run()
    rack.settle()
    assert (bmc.looks, rack.sync.suspects()) == ([node] * 2, 0)


def test_a_pass_that_is_stopped_looks_at_no_more_nodes(make_rack, bmc):
    rack = make_rack(sync_power_state_workers=1)
    nodes = [rack.node() for _ in range(5)]
    bmc.may_answer.clear()
    rack.sync.run()
    wait_for(lambda: bmc.looks, "the first look")
    rack.sync.stop()
    bmc.may_answer.set()
    rack.settle()
    assert len(bmc.looks) < len(nodes)


def test_lag_is_what_the_oldest_look_is_late(make_rack, bmc):
    rack = make_rack(sync_power_state_interval=120)
    assert rack.sync.lag_s() == 0
    rack.node()
    rack.run()
    rack.clock.turn(100)
    assert rack.sync.lag_s() == 0
    rack.clock.turn(50)
    assert rack.sync.lag_s() == pytest.approx(30)
    rack.run()
    assert rack.sync.lag_s() == 0


def test_a_node_that_no_worker_looked_at_is_late(make_rack, bmc):
    rack = make_rack(sync_power_state_interval=120, workers_pool_size=4)
    rack.node()
    rack.run()
    rack.clock.turn(100)
    with full_pool(rack.site):
        rack.sync.run()
        rack.settle()
    rack.clock.turn(50)
    assert rack.sync.lag_s() == pytest.approx(30)


def test_a_row_that_breaks_everything_ends_no_pass(rack, bmc):
    broken, sound = rack.node(driver_info="[1"), rack.node()
    rack.sync.run()
    rack.settle()  # a look that is slow goes on after the pass
    assert sound in bmc.looks
    assert broken not in bmc.looks


def test_full_pool_leaves_the_work_to_the_next_pass(make_rack, bmc):
    rack = make_rack(workers_pool_size=3, power_state_sync_max_retries=99)
    nodes = [rack.node() for _ in range(3)]
    bmc.reads = OFF
    with full_pool(rack.site):
        rack.sync.run()
        rack.settle()
    assert (bmc.looks, bmc.orders) == ([], [])
    assert [rack.power(node) for node in nodes] == [ON] * 3
    rack.run()
    wait_for(lambda: rack.site.runtime.workers.busy == 0, "every worker to be given back once")
    assert {state for state, _ in bmc.orders} == {ON}


@pytest.mark.parametrize("poll", ["_renew_or_sync", "_sync_in_task"])
def test_node_that_somebody_takes_meanwhile_is_left_alone(rack, bmc, poll):
    node = rack.node()
    bmc.reads = OFF
    with rack.site.acquire(node, purpose="something else"):
        before = rack.site.everything()
        assert getattr(rack.sync, poll)(node) is None  # listed before it was taken
        assert rack.site.everything() == before


@pytest.mark.parametrize("poll", ["_renew_or_sync", "_sync_in_task"])
def test_a_power_state_read_before_another_flow_corrects_nothing(rack, bmc, monkeypatch, poll):
    """A reboot takes and frees the node between the poll and the lock of the correction."""
    node, read = rack.node(), bmc.read
    bmc.one[node] = OFF

    def off_in_the_middle_of_a_reboot(row):
        with rack.site.acquire(node, purpose="a reboot"):
            return read(row)

    monkeypatch.setattr(bmc, "read", off_in_the_middle_of_a_reboot)
    getattr(rack.sync, poll)(node)
    assert (bmc.orders, warnings_in_history(rack, node)) == ([], [])
    monkeypatch.undo()
    rack.run()
    assert bmc.orders == [(ON, None)], "the next poll has to correct it"


def test_nothing_to_do_is_nothing(rack):
    rack.run()


# ------------------------------------------------------------------------------------- health


@pytest.fixture
def healths(monkeypatch):
    """What the next looks read of the machine's health; an error is raised."""
    told = ["OK"]

    def read(_interface, _task):
        if isinstance(told[-1], Exception):
            raise told[-1]
        return told[-1]

    monkeypatch.setattr(FakeManagement, "get_node_health", read)
    return told


def told_of_health(rack, node):
    entries = rack.site.history(node)
    return [(e["severity"], e["event"]) for e in entries if e["event_type"] == "monitoring"]


def test_the_health_is_recorded_and_each_change_is_told(rack, healths):
    node = rack.node()
    rack.run(2)
    assert rack.site.node(node).health == "OK"
    healths.append("Critical")
    rack.run(2)
    assert rack.site.node(node).health == "Critical"
    assert told_of_health(rack, node) == [
        ("INFO", "health of the machine: unknown -> OK"),
        ("ERROR", "health of the machine: OK -> Critical"),
    ]
    assert rack.site.node(node).last_error is None


def test_a_machine_whose_health_is_not_told_keeps_what_it_had(rack, healths):
    node = rack.node()
    rack.run()
    healths.append(UNREACHABLE)
    rack.run()
    assert (rack.site.node(node).health, rack.care(node)) == ("OK", (False, None))


def test_health_is_not_asked_for_where_it_is_not_wanted(make_rack, healths):
    rack = make_rack(enable_health_monitoring=False)
    node = rack.node()
    rack.run()
    assert rack.site.node(node).health is None
