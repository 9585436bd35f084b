"""Power sync: every rule by which a row is compared with what its BMC says."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.conductor.periodics.power_sync import PowerSync
from tests.kit.bmc import UNREACHABLE, Bmc
from tests.kit.stories import full_pool
from tests.kit.waiting import wait_for

ON, OFF = "power on", "power off"
RETRIES = 3


@pytest.fixture
def bmc():
    return Bmc()


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
        self.sync = PowerSync(site.house)

    def node(self, **values):
        said = {"provision_state": "manageable", "power_state": ON} | values
        node = self.site.enrol()
        self.site.set(node, **said)
        return node

    def run(self, times=1):
        for _ in range(times):
            self.sync.run()
            wait_for(lambda: not self.site.house.gates.held, "what was driven to arrive")

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


@pytest.mark.parametrize("why", ["option", "driver", "node"])
def test_row_follows_the_machine_where_it_must_not_be_driven(make_rack, bmc, why):
    rack = make_rack(force_power_state_during_sync=why != "option")
    bmc.syncs = why != "driver"
    node = rack.node(disable_power_off=why == "node")
    bmc.reads = OFF
    rack.run()
    assert rack.power(node) == OFF
    assert rack.corrections(node) == [(ON, OFF)]
    assert bmc.orders == []


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


def test_nodes_that_failed_most_are_asked_first(make_rack, bmc):
    rack = make_rack(sync_power_state_workers=1)
    nodes = [rack.node() for _ in range(3)]
    bmc.one[nodes[2]] = UNREACHABLE
    rack.run()
    bmc.looks.clear()
    rack.run()
    assert bmc.looks[0] == nodes[2]


def test_full_pool_leaves_the_work_to_the_next_pass(make_rack, bmc):
    rack = make_rack(workers_pool_size=3, power_state_sync_max_retries=99)
    nodes = [rack.node() for _ in range(3)]
    bmc.reads = OFF
    with full_pool(rack.site):
        rack.sync.run()
    assert set(bmc.looks) == set(nodes)
    assert bmc.orders == []
    assert [rack.power(node) for node in nodes] == [ON] * 3
    rack.run()
    wait_for(lambda: rack.site.house.workers.busy == 0, "every worker to be given back once")
    assert {state for state, _ in bmc.orders} == {ON}


def test_node_that_somebody_takes_meanwhile_is_left_alone(rack, bmc):
    node = rack.node()
    bmc.reads = OFF
    with rack.site.acquire(node, purpose="something else"):
        before = rack.site.everything()
        rack.sync._sync(rack.site.context(), node)  # listed before it was taken
        assert rack.site.everything() == before


def test_nothing_to_do_is_nothing(rack):
    rack.run()
