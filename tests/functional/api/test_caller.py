"""What a page learns of its caller, and of the verbs that a node takes."""

from __future__ import annotations

import pytest

from bloomery.conductor import states
from bloomery.conductor.states import State
from tests.kit.clients.callers import Site
from tests.kit.servers.identity import Identity


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Identity() as identity:
        made = Site(tmp_path_factory.mktemp("callers"), identity)
        yield made
        made.db.close()


def test_whoever_got_in_without_roles_may_do_everything(api) -> None:
    me = api.get("/ext/v1/me").json
    assert (me["auth_strategy"], me["user"], me["project"], me["roles"]) == (
        "noauth", None, None, [],
    )  # fmt: skip
    rules = dict(me["rules"])
    assert rules["baremetal:node:set_provision_state"]
    assert rules["stacks:create"]
    assert all(rules.values())


@pytest.mark.parametrize(
    ("role", "granted"),
    [("nobody", []), ("reader", ["list", "history:get"]),
     ("member", ["list", "history:get", "set_provision_state"])],
)  # fmt: skip
def test_rules_are_told_as_they_are_for_objects_of_the_own_project(site, role, granted) -> None:
    site.become("owner", role)
    me = site.ask("GET", "/ext/v1/me").json
    asked = ("list", "history:get", "set_provision_state", "create")
    assert [name for name in asked if me["rules"][f"baremetal:node:{name}"]] == granted
    assert me["rules"]["stacks:create"] is (role == "member")
    assert me["project"]


def test_who_may_enrol_own_nodes_may_not_import_nodes(site) -> None:
    site.become("owner", "admin")
    nodes = [{"name": "own-1", "driver": "fake-hardware"}]
    nodes.append(nodes[0] | {"name": "own-2", "imported": {"provision_state": "active"}})
    results = site.ask("POST", "/ext/v1/nodes:batch", {"nodes": nodes}).json["results"]
    assert [(each["result"], (each["error"] or {}).get("status")) for each in results] == [
        ("created", None), ("refused", 403),
    ]  # fmt: skip


def test_states_are_told_without_a_login(site) -> None:
    site.become("stranger", "nobody")
    document = site.api.get("/ext/v1/states").json
    assert [each["name"] for each in document["states"]] == list(State)
    assert {(each["source"], each["event"]) for each in document["edges"]} == states.DRAWN
    verbs = {each["verb"]: each for each in document["verbs"]}
    assert {each["target"] for each in verbs.values()} == states.VERBS.keys() - {
        "deploy", "undeploy",
    }  # fmt: skip
    assert "available" in verbs["deploy"]["from"]
    assert [verb for verb, row in verbs.items() if row["loses_data"]] == [
        "provide", "clean", "rebuild", "undeploy", "service",
    ]  # fmt: skip
    assert [verb for verb, row in verbs.items() if not row["in_maintenance"]] == [
        "clean", "deploy", "rebuild", "rescue", "unrescue", "service",
    ]  # fmt: skip
    assert [name for name, row in verbs.items() if "runbook" in row["arguments"]] == [
        "clean", "service",
    ]  # fmt: skip
    assert len({tuple(row["place"]) for row in document["states"]}) == len(State)
    codes = {row["cause_code"] for row in document["states"] if row["is_problem"]}
    assert codes < document["problems"].keys()
    assert [each["command"] for each in document["power"] if "power on" not in each["from"]] == [
        "power on"
    ]


@pytest.mark.parametrize("state", State)
def test_why_allows_the_verbs_that_the_api_takes(world, state: State) -> None:
    more = {
        "clean": {"clean_steps": [{"interface": "power", "step": "x"}]},
        "service": {"service_steps": [{"interface": "power", "step": "x"}]},
        "rescue": {"rescue_password": "secret"},
    }
    node = world.node(provision_state=state)
    for each in world.api.get(f"/ext/v1/nodes/{node}/why").json["verbs"]:
        world.set(node, provision_state=state)
        body = {"target": each["target"]} | more.get(each["target"], {})
        answer = world.api.put(f"/v1/nodes/{node}/states/provision", body)
        assert (answer.status == 202) == each["allowed"], (each, answer.body)
        assert each["allowed"] or each["reason"] in answer.said


def test_why_says_what_refuses_a_verb(world) -> None:
    node = world.node(provision_state="available", maintenance=True)
    verbs = {e["verb"]: e for e in world.api.get(f"/ext/v1/nodes/{node}/why").json["verbs"]}
    assert "in maintenance" in verbs["deploy"]["reason"]
    assert verbs["manage"]["allowed"]
    assert verbs["rescue"]["reason"] == 'it is in state "available"'
    assert len({each["reason"] for each in verbs.values() if not each["allowed"]}) == 2
    world.set(node, maintenance=False, reservation="host-1", reserved_for="a rest")
    verbs = {e["verb"]: e for e in world.api.get(f"/ext/v1/nodes/{node}/why").json["verbs"]}
    assert "host-1" in verbs["rescue"]["reason"]


def test_a_reader_is_allowed_no_verb(site) -> None:
    idents = site.idents("{node}")
    site.become("owner", "reader")
    verbs = site.ask("GET", f"/ext/v1/nodes/{idents['node']}/why").json["verbs"]
    assert not any(each["allowed"] for each in verbs)
    assert "baremetal:node:set_provision_state" in verbs[0]["reason"]
