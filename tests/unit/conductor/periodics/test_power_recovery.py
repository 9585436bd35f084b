"""Recovery: maintenance that a power failure began ends when the BMC answers again."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.conductor.periodics import power_recovery
from tests.kit.bmc import UNREACHABLE, Bmc

FAULTY = {
    "provision_state": "active",
    "maintenance": True,
    "fault": "power failure",
    "maintenance_reason": "power sync failed 4 times",
    "power_state": None,
}


@pytest.fixture
def bmc():
    return Bmc()


@pytest.fixture
def site(make_site, bmc):
    return make_site(registry=bmc.registry(), periodic_max_workers=2)


def faulty(site, **values):
    node = site.enrol()
    site.set(node, **FAULTY | values)
    return node


def corrections(site, node):
    found = [e for e in site.events(node) if e["action"] == "power_state_corrected"]
    return [json.loads(event["facts"])["from_power"] for event in found]


def test_answer_ends_the_maintenance(site, bmc):
    node = faulty(site)
    bmc.reads = "power off"
    power_recovery.run(site.house)
    shown = site.node(node)
    assert (shown.power_state, shown.maintenance) == ("power off", False)
    assert (shown.fault, shown.maintenance_reason, shown.reservation) == (None, None, None)
    assert corrections(site, node) == [None]


def test_nothing_is_corrected_where_the_row_was_right(site, bmc):
    node = faulty(site, power_state="power on")
    power_recovery.run(site.house)
    assert not site.node(node).maintenance
    assert corrections(site, node) == []


@pytest.mark.parametrize("reads", [UNREACHABLE, RuntimeError("a bug"), "error", None])
def test_silence_changes_nothing(site, bmc, reads):
    faulty(site)
    bmc.reads = reads
    before = site.everything()
    power_recovery.run(site.house)
    assert bmc.looks
    assert site.everything() == before


def test_values_that_are_still_missing_change_nothing(site, bmc):
    faulty(site)
    bmc.usable = errors.MissingParameterValue(reason="missing driver_info/address")
    before = site.everything()
    power_recovery.run(site.house)
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
    power_recovery.run(site.house)
    assert bmc.looks == []
    site.set(node, reservation=None)


def test_one_pass_treats_so_many(site, bmc):
    for _ in range(3):
        faulty(site)
    bmc.reads = UNREACHABLE
    power_recovery.run(site.house)
    assert len(bmc.looks) == 2
