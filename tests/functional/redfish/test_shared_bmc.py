"""Two nodes with one BMC and system are told at once, or refused."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import bmc_sharing
from bloomery.conductor.runtime import Context
from bloomery.db import nodes
from bloomery.db.engine import Meter
from bloomery.lab.rack import Machine
from bloomery.model.request import Request
from tests.functional.redfish.conftest import enrol
from tests.kit.servers.stories import Stage

SENTENCE = "its BMC and system are also those of node {}: each power sync drives one machine"


def power_of(stage: Stage, node: str) -> dict[str, object]:
    answer: dict[str, object] = stage.api.get(f"/v1/nodes/{node}/validate").json["power"]
    return answer


def history(stage: Stage, node: str) -> list[tuple[str, str]]:
    entries = stage.api.get(f"/v1/nodes/{node}/history?detail=true").json["history"]
    return [(each["severity"], each["event"]) for each in entries if each["event_type"] == "bmc"]


def refuse(stage: Stage) -> None:
    stage.configure("conductor", allow_shared_bmc_system=False)


def other_words(machine: Machine) -> dict[str, str]:
    """The same machine in other words."""
    return {
        "redfish_address": machine.address.upper().replace("HTTP://", "http://") + "/",
        "redfish_system_id": machine.system_id + "/",
    }


def test_both_are_told_of_each_other(stage: Stage, machine: Machine, caplog) -> None:
    first = enrol(stage, machine)
    assert power_of(stage, first) == {"result": True}
    second = enrol(stage, machine, **other_words(machine))
    assert history(stage, second) == [("WARNING", SENTENCE.format(first))]
    assert any(SENTENCE.format(first) in r.getMessage() for r in caplog.records)
    for node, other in ((first, second), (second, first)):
        sentence = SENTENCE.format(other)
        assert power_of(stage, node) == {"result": True, "reason": sentence}
        why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
        assert sentence in why["cause"]
        assert "driver_info" in why["next_action"]


def test_systems_behind_one_bmc_are_told_apart(stage: Stage, make_rack) -> None:
    one, other = make_rack(2, apart=False).machines
    assert one.address == other.address
    for machine in (one, other):
        assert power_of(stage, enrol(stage, machine)) == {"result": True}


def test_a_node_without_a_system_id_means_the_only_one(stage: Stage, machine: Machine) -> None:
    first = enrol(stage, machine)
    second = enrol(stage, machine, redfish_system_id=None)
    assert power_of(stage, second)["reason"] == SENTENCE.format(first)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("https://BMC-1.test", "bmc-1.test:443/", True),
        ("https://bmc-1.test", "http://bmc-1.test:80/redfish/v1", True),
        ("https://bmc-1.test:8443", "https://bmc-1.test", False),
        ("https://bmc-1.test", "https://bmc-11.test", False),
        ("https://bmc-1.test", "https://bmc_1.test", False),
    ],
)
def test_addresses_are_compared_whatever_their_spelling(
    stage: Stage, one: str, other: str, is_same: bool
) -> None:
    for address in (one, other):
        node = stage.enrol(driver="redfish", driver_info={"redfish_address": address})
    assert ("reason" in power_of(stage, node)) is is_same


def test_an_option_refuses_the_second(stage: Stage, machine: Machine) -> None:
    first = enrol(stage, machine)
    refuse(stage)
    answer = stage.api.post("/v1/nodes", {"driver": "redfish", "driver_info": machine.driver_info})
    assert (answer.status, first in str(answer.json)) == (409, True)
    second = enrol(stage, machine, redfish_address="https://elsewhere.test")
    change = {"op": "replace", "path": "/driver_info/redfish_address", "value": machine.address}
    assert stage.api.patch(f"/v1/nodes/{second}", [change]).status == 409
    stage.patch(first, **{"driver_info.redfish_password": "another"})


@pytest.fixture
def commits_at_look(stage: Stage, monkeypatch) -> list[int]:
    """How many commits there had been at each look at the nodes of a driver."""
    meter, commits, look = Meter(stage.site.db), [], nodes.list_with_bmc_of

    def noting(*args: object) -> list[sa.Row]:
        commits.append(meter.commits)
        return look(*args)

    monkeypatch.setattr(nodes, "list_with_bmc_of", noting)
    return commits


def test_a_look_that_only_warns_keeps_no_writer_waiting(
    stage: Stage, machine: Machine, commits_at_look: list[int]
) -> None:
    node = enrol(stage, machine)
    assert commits_at_look == [1]
    stage.patch(node, **{"driver_info.redfish_address": "https://elsewhere.test"})
    assert commits_at_look == [1, 2]


def test_a_look_that_refuses_is_part_of_what_it_refuses(
    stage: Stage, machine: Machine, commits_at_look: list[int]
) -> None:
    refuse(stage)
    enrol(stage, machine)
    assert commits_at_look == [0]


def test_a_node_stays_stored_where_the_look_fails(
    stage: Stage, machine: Machine, monkeypatch, caplog
) -> None:
    def busy(*args: object) -> None:
        raise errors.DatabaseBusy(reason="no turn")

    monkeypatch.setattr(nodes, "list_with_bmc_of", busy)
    assert stage.show(enrol(stage, machine))["driver"] == "redfish"
    assert "no turn" in caplog.text


def owned(stage: Stage, machine: Machine, **values: str) -> str:
    """Return a node that gets its projects and the machine at once."""
    node = enrol(stage, machine, redfish_address="https://elsewhere.test")
    stage.patch(node, **values, **{"driver_info.redfish_address": machine.address})
    return node


def test_a_history_names_no_node_of_another_project(stage: Stage, machine: Machine) -> None:
    owned(stage, machine, owner="p2")
    owned(stage, machine, owner="p1", lessee="p2")
    node = owned(stage, machine, owner="p1")
    assert history(stage, node) == [("WARNING", SENTENCE.replace("node {}", "another node"))]
    beside = owned(stage, machine, owner="p1")
    assert history(stage, beside) == [("WARNING", SENTENCE.format(f"{node}, another node"))]


@pytest.mark.parametrize(
    ("caller", "is_named"),
    [
        ({"system_scope": "all"}, True),
        ({"project": "p2"}, True),
        ({"project": "p1"}, False),
        ({"domain": "a-domain"}, False),
        ({}, False),
    ],
)
def test_a_node_is_named_to_callers_who_may_see_it(
    stage: Stage, machine: Machine, caller: dict[str, str], is_named: bool
) -> None:
    other, node = owned(stage, machine, owner="p2"), owned(stage, machine, owner="p1")
    stage.configure("default", auth_strategy="keystone")
    runtime = stage.site.runtime
    with runtime.db.read() as conn:
        shown = nodes.get(conn, node)
    context = Context(runtime=runtime, request=Request(request_id="req-1", **caller))
    sentence = bmc_sharing.describe(context, shown)
    assert sentence is not None
    assert (other in sentence, "another node" in sentence) == (is_named, not is_named)
