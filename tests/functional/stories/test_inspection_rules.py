"""Rules and hooks on what fake hardware tells; sensitive rules, whose rows tell nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from bloomery.db.tables import INSPECTION_RULES
from tests.kit.machines.agent import Agent

R = "/v1/inspection_rules"
HUSH = "correct-horse"
MAC = "52:54:00:00:00:0a"
INVENTORY = {
    "interfaces": [{"name": "eth0", "mac_address": MAC, "ipv4_address": "192.0.2.5"}],
    "cpu": {"architecture": "x86_64", "count": 8},
}
SET = {"op": "set-attribute", "args": {"path": "driver_info/x_password", "value": HUSH}}
MARK = {"op": "set-attribute", "args": {"path": "extra/marked", "value": "{inventory[cpu][count]}"}}


@pytest.fixture
def node(stage: Any) -> str:
    return str(stage.bring_to("manageable", driver_info={"fake_inventory": INVENTORY}))


def inspect(stage: Any, node: str) -> Any:
    stage.ask(node, "inspect")
    return stage.wait_for(node, "manageable")


def create(stage: Any, *actions: Any, **more: Any) -> str:
    answer = stage.api.post(R, {"actions": list(actions)} | more)
    assert answer.status == 201, answer.body
    return f"{R}/{answer.json['uuid']}"


def rows(stage: Any) -> str:
    with stage.site.db.read() as conn:
        return str(conn.execute(sa.select(INSPECTION_RULES)).all())


def test_fake_hardware_tells_an_inventory_and_rules_see_it(stage: Any, node: str):
    create(stage, MARK)
    shown = inspect(stage, node)
    assert shown["last_error"] is None
    assert shown["extra"] == {"marked": "8"}
    assert shown["properties"]["cpu_arch"] == "x86_64"
    [port] = stage.api.get(f"/v1/nodes/{node}/ports").json["ports"]
    assert port["address"] == MAC
    assert stage.api.get(f"/v1/nodes/{node}/inventory").json["inventory"] == INVENTORY


def test_an_inventory_that_is_none_is_refused_at_once(stage: Any, node: str):
    stage.patch(node, **{"driver_info.fake_inventory": "nonsense"})
    answer = stage.try_to(node, "inspect")
    assert (answer.status, "fake_inventory" in answer.said) == (400, True)


def test_what_a_sensitive_rule_does_is_sealed_and_done(stage: Any, node: str):
    create(stage, SET, MARK, sensitive=True)
    assert HUSH not in rows(stage)
    shown = inspect(stage, node)
    assert shown["last_error"] is None
    assert (shown["extra"], shown["driver_info"]["x_password"]) == ({"marked": "8"}, "******")
    assert HUSH not in str(stage.site.node(node).driver_info)


def test_a_rule_that_becomes_sensitive_is_sealed(stage: Any, node: str):
    rule = create(stage, SET)
    assert HUSH in rows(stage)
    patch = [{"op": "replace", "path": "/sensitive", "value": True}]
    answer = stage.api.patch(rule, patch)
    assert (answer.status, answer.json["actions"]) == (200, None)
    assert HUSH not in rows(stage)
    replaced = [{"op": "replace", "path": "/actions", "value": [SET, MARK]}]
    assert stage.api.patch(rule, replaced).status == 200
    assert HUSH not in rows(stage)
    assert inspect(stage, node)["extra"] == {"marked": "8"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/sensitive", "value": False},
        {"op": "remove", "path": "/sensitive"},
        {"op": "replace", "path": "/actions/0/op", "value": "log"},
        {"op": "add", "path": "/actions/-", "value": MARK},
        {"op": "remove", "path": "/actions/token"},
    ],
    ids=str,
)
def test_a_sensitive_rule_is_changed_as_a_whole_or_not(stage: Any, operation: Any):
    rule = create(stage, SET, sensitive=True)
    before = rows(stage)
    assert stage.api.patch(rule, [operation]).status == 400
    assert rows(stage) == before


def test_a_rule_is_gone_when_it_is_deleted(stage: Any, node: str):
    rule = create(stage, MARK)
    assert stage.api.delete(rule).status == 204
    assert inspect(stage, node)["extra"] == {}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("network_data", {"nonsense": 1}, "network_data"),
        ("driver_info/fake", {"nonsense": 1}, "driver_info/fake"),
        ("inspect_interface", "nonsense", "nonsense"),
        ("protected", True, "protected"),
        ("driver_info/x_password", "******", "mask"),
    ],
)
def test_what_no_client_could_write_no_rule_can(
    stage: Any, node: str, path: str, value: Any, message: str
):
    create(stage, MARK, {"op": "set-attribute", "args": {"path": path, "value": value}})
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "inspect failed")
    assert message in shown["last_error"]
    assert shown["extra"] == {}
    assert stage.api.get(f"/v1/nodes/{node}/ports").json["ports"] == []


def test_a_rule_of_an_older_release_that_can_do_nothing_says_what_to_do(stage: Any, node: str):
    rule = create(stage, MARK)
    older = orjson.dumps([MARK | {"args": {"path": "uuid", "value": "x"}}]).decode()
    stage.site.db.transact(lambda conn: conn.execute(sa.update(INSPECTION_RULES)
                                                     .values(actions=older)))  # fmt: skip
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "inspect failed")
    assert "cannot change uuid of a node" in shown["last_error"]
    assert ("actions/0 would be refused today: change the rule, or delete it"
            in shown["last_error"])  # fmt: skip
    why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    assert rule.rpartition("/")[2] in why["last_error"]["now"]


# --------------------------------------------------------------------------- what an agent hands in


@pytest.fixture
def agents(make_stage: Any) -> Any:
    return make_stage(enabled_inspect_interfaces=("agent", "fake"))


def wait_for_agent(stage: Any) -> str:
    node = str(stage.bring_to("manageable", inspect_interface="agent"))
    assert stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC}).status == 201
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    return node


def test_rules_see_what_an_agent_hands_in(agents: Any):
    create(
        agents,
        MARK,
        {"op": "add-trait", "args": ["CUSTOM_AGENT"]},
        {
            "op": "set-port-attribute",
            "args": {
                "port_id": "{item[mac_address]}",
                "path": "extra/nic",
                "value": "{item[name]}",
            },
            "loop": "{inventory[interfaces]}",
        },
        conditions=[{"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]}", 1024]}}],
    )
    node = wait_for_agent(agents)
    assert Agent(agents.api, [MAC]).try_to_hand_in().status == 202
    shown = agents.wait_for(node, "manageable")
    assert shown["last_error"] is None
    assert (shown["extra"], shown["traits"]) == ({"marked": "8"}, ["CUSTOM_AGENT"])
    [port] = agents.api.get(f"/v1/nodes/{node}/ports/detail").json["ports"]
    assert port["extra"] == {"nic": "eth0"}


def test_a_rule_may_refuse_what_an_agent_hands_in(agents: Any):
    create(agents, {"op": "fail", "args": {"msg": "not this rack"}})
    node = wait_for_agent(agents)
    assert Agent(agents.api, [MAC]).try_to_hand_in().status == 202
    assert "not this rack" in agents.wait_for(node, "inspect failed")["last_error"]
    assert agents.api.get(f"/v1/nodes/{node}/inventory").status == 404


def test_a_rule_that_could_never_work_is_refused(stage: Any):
    message = "cannot change provision_state of a node"
    impossible = {"op": "set-attribute", "args": ["provision_state", "active"]}
    refusal = stage.api.post(R, {"actions": [MARK, impossible]})
    assert (refusal.status, "actions/1: " in refusal.said, message in refusal.said) == (
        400, True, True,
    )  # fmt: skip
    assert stage.api.get(R).json["inspection_rules"] == []
    rule = create(stage, MARK)
    change = [{"op": "add", "path": "/actions/-", "value": impossible}]
    assert message in stage.api.patch(rule, change).said
    assert stage.api.get(rule).json["actions"] == [MARK]
