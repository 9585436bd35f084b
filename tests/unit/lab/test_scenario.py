from __future__ import annotations

import random
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.cli.service import lab
from bloomery.lab import scenario
from bloomery.lab.simulation import Simulation
from bloomery.lab.timers import Distribution, Timers, draw
from tests.kit.waiting import wait_for

AGENT = {"api": "http://127.0.0.1:1"}
GROUP = {"count": 4, "power_s": {"uniform": [0.01, 0.02]}}


def make(tmp_path: Path, *, seed: int = 1, **document: object) -> Simulation:
    built = scenario.of({"seed": seed, "groups": {"web": GROUP}} | document, "s.yaml")
    return Simulation(built, folder=tmp_path)


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ({}, "groups.web: count is missing; write it"),
        ({"count": "x"}, "groups.web.count: 'x' does not fit; write a whole number from 1 to"),
        ({"count": 1, "cuont": 1}, "groups.web: cuont is unknown; its keys are count, protocol"),
        ({"count": 1, "model": "vax"}, "groups.web.model: 'vax' does not fit; write one of"),
        ({"count": 1, "power_s": {"normal": [1, 2]}}, "write a number of seconds, {uniform:"),
        ({"count": 1, "agent": {}}, "groups.web.agent.api: it is missing; write it, or give --api"),
        ({"count": 1, "faults": [{"kind": "x"}]}, "groups.web.faults[0]: kind: 'x' is not one of"),
        ({"count": 1, "protocol": "ipmi", "model": "generic"}, "groups.web.model: IPMI machines"),
    ],
)  # fmt: skip
def test_a_group_that_does_not_fit_is_named_with_the_way_out(group, sentence):
    with pytest.raises(errors.CannotStart) as refused:
        scenario.of({"groups": {"web": group}}, "s.yaml")
    assert str(refused.value).startswith("cannot read s.yaml: ")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({}, "at_s is missing"),
        ({"at_s": 1}, "events[0]: an event needs one of fault, clear, reset and log"),
        ({"at_s": 1, "clear": True, "group": "x"}, "[0].group: 'x' is no group; there are: web"),
        ({"at_s": 1, "reset": "Jump"}, "[0].reset: 'Jump' does not fit; write one of ForceOff"),
    ],
)  # fmt: skip
def test_an_event_that_does_not_fit_is_named(event, sentence):
    with pytest.raises(errors.CannotStart) as refused:
        scenario.of({"groups": {"web": GROUP}, "events": [event]}, "s.yaml")
    assert sentence in str(refused.value)


def test_a_file_with_a_key_twice_names_its_line(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("groups:\n  web: {count: 1}\n  web: {count: 2}\n")
    with pytest.raises(errors.CannotStart, match=r"s\.yaml: line 3: web stands there twice"):
        lab.read(file)


def test_the_example_is_a_scenario_with_each_key_of_a_group():
    shown = lab.read(lab.EXAMPLE, "http://api.test")
    assert {group.agent.api for group in shown.groups if group.agent} == {"http://api.test"}
    text = lab.EXAMPLE.read_text()
    keys = scenario.SCHEMA["properties"]["groups"]["additionalProperties"]["properties"]
    agent = keys["agent"]["properties"]
    assert [key for key in (*keys, *agent) if f"{key}:" not in text] == ["protocol", "idle_s"]


def test_one_seed_gives_one_rack(tmp_path):
    def drawn(seed: int) -> list[float]:
        with make(tmp_path, seed=seed) as built:
            return [system.spec.power_s for system in built.systems()]

    assert drawn(1) == drawn(1) != drawn(2)
    assert all(0.01 <= power_s <= 0.02 for power_s in drawn(1))
    assert len(set(drawn(1))) == 4


def test_machines_of_groups_have_names_and_addresses_of_their_own(tmp_path):
    document = {"groups": {
        "web": {"count": 2, "node": {"resource_class": "a", "driver_info": {"deploy_iso": "x"}}},
        "gpu": {"count": 1, "model": "dell-idrac"},
    }}  # fmt: skip
    with make(tmp_path, **document) as built:
        nodes = built.nodes()
    assert [node["name"] for node in nodes] == ["web-0000", "web-0001", "gpu-0000"]
    assert len({node["ports"][0]["address"] for node in nodes}) == 3
    assert len({node["driver_info"]["redfish_address"] for node in nodes}) == 3
    assert nodes[0]["driver_info"]["deploy_iso"] == "x"
    assert nodes[0]["resource_class"] == "a"
    assert nodes[2]["driver_info"]["redfish_system_id"].endswith("/System.Embedded.1")


def test_an_event_hits_its_share_of_a_group(tmp_path):
    event = {"at_s": 0, "group": "web", "share": 0.5, "fault": {"kind": "hang"}}
    reset = {"at_s": 0, "share": 0.25, "reset": "ForceOn"}
    with make(tmp_path, events=[event, reset]) as built:
        wait_for(lambda: [s.is_on for s in built.systems()].count(True) == 1, "the reset")
        shown = [bmc.faults.shown() for bmc in built.rack.bmcs]
        assert sorted(map(len, shown)) == [0, 0, 1, 1]
        assert built.overview()["power"] == {"on": 1, "off": 3}


def test_a_fault_with_a_probability_hits_that_share(tmp_path):
    faults = [{"kind": "status", "probability": 0.2}]
    with make(tmp_path, groups={"web": {"count": 1, "faults": faults}}) as built:
        [bmc] = built.rack.bmcs
        for _ in range(500):
            bmc.faults.take("GET", "/redfish/v1")
        assert 50 < built.overview()["faults"]["status"] < 150


def test_distributions_are_drawn_within_their_bounds():
    source = random.Random(1)
    assert draw(2.5, source) == 2.5
    uniform = [draw(Distribution("uniform", 1, 3), source) for _ in range(200)]
    assert 1 <= min(uniform) < 1.2
    assert 2.8 < max(uniform) <= 3
    lognormal = sorted(draw(Distribution("lognormal", 4, 0.5), source) for _ in range(999))
    assert 3.5 < lognormal[500] < 4.5


def test_timers_run_when_they_are_due_and_in_order():
    now, ran = [0.0], []
    timers = Timers(lambda work: work(), lambda: now[0])
    for seconds in (3, 1, 2):
        timers.call_in(seconds, lambda s=seconds: ran.append(s))
    assert timers.run_due() == 1
    now[0] = 2.5
    assert (timers.run_due(), ran) == (0.5, [1, 2])
    now[0] = 3
    assert (timers.run_due(), ran) == (None, [1, 2, 3])
