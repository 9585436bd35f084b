"""What the events of a node show: its condition, its steps, the new values of a change."""

from __future__ import annotations

import json
from typing import Any

LOG = {"interface": "vendor", "step": "log_passthrough"}
SHOWN = (
    "provision_state", "target_provision_state", "provision_updated_at", "power_state",
    "maintenance", "fault",
)  # fmt: skip


def rows(stage, node: str) -> list[dict[str, Any]]:
    return asked(stage, f"node={node}")


def asked(stage, query: str) -> list[dict[str, Any]]:
    """Ask for events, once they have their numbers: no relay runs here."""
    stage.site.number_events()
    return stage.api.get(f"/ext/v1/events?{query}").json["events"]


def condition(stage, node: str) -> dict[str, Any]:
    """Return what the node's newest event with a condition shows."""
    return [each["facts"] for each in rows(stage, node) if "provision_state" in each["facts"]][-1]


def listed(stage, node: str) -> dict[str, Any]:
    return stage.api.get(f"/ext/v1/nodes/{node}").json["node"]


def test_the_newest_event_shows_what_the_list_shows(stage) -> None:
    node = stage.bring_to("active")
    for change in (
        lambda: None,
        lambda: stage.power(node, "power off"),
        lambda: stage.ask(node, "deleted"),
    ):
        change()
        stage.wait_until_free(node)
        facts, row = condition(stage, node), listed(stage, node)
        assert {name: facts[name] for name in SHOWN} == {name: row[name] for name in SHOWN}


def test_a_change_that_is_no_move_is_told_as_well(stage) -> None:
    node = stage.enrol()
    with stage.site.acquire(node) as task:
        task.node.power_state, task.node.properties = "power on", {"rack": "r7"}
        task.save()
        task.save()
    (facts,) = stage.facts(node, "changed")
    assert facts["columns"] == ["power_state", "properties"]
    assert condition(stage, node) == facts
    assert listed(stage, node)["power_state"] == facts["power_state"] == "power on"


def test_steps_that_clients_see_begin_and_end(stage) -> None:
    node = stage.bring_to("manageable")
    stage.ask(node, "clean", clean_steps=[LOG])
    stage.wait_for(node, "manageable")
    told = [each for each in rows(stage, node) if ".step." in each["event_type"]]
    assert [each["event_type"] for each in told[-2:]] == [
        "baremetal.node.step.start", "baremetal.node.step.end",
    ]  # fmt: skip
    for each in told[-2:]:
        assert each["facts"] | {"flow_id": ""} == {
            "flow": "clean", "flow_id": "", "step": "vendor.log_passthrough",
            "position": 2, "of": 3,
            "child_node": None,
        }  # fmt: skip


def test_a_step_that_fails_is_told_as_an_error(stage) -> None:
    node = stage.bring_to("manageable")
    stage.behave(node, fail=["vendor.log_passthrough"])
    stage.ask(node, "clean", clean_steps=[LOG])
    stage.wait_for(node, "clean failed")
    last = [each for each in rows(stage, node) if ".step." in each["event_type"]][-1]
    assert (last["event_type"], last["level"]) == ("baremetal.node.step.error", "error")


def test_a_change_tells_its_new_values_without_secrets(stage) -> None:
    node = stage.enrol(name="web-1", extra={"password": "hush", "rack": 7})
    stage.patch(node, **{"description": "mine", "driver_info.token": "hush", "owner": "p1"})
    created, updated = (stage.facts(node, action)[-1] for action in ("create", "update"))
    assert created["changes"]["name"] == "web-1"
    assert created["changes"]["extra"] == {"password": "******", "rack": 7}
    assert updated["patched"] == ["/description", "/driver_info/token", "/owner"]
    assert updated["changes"] == {"description": "mine", "owner": "p1"}
    assert "hush" not in json.dumps([created, updated])


def test_a_change_of_a_port_names_its_node(stage) -> None:
    node = stage.enrol()
    port = stage.api.post("/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:01"}).json
    stage.api.patch(f"/v1/ports/{port['uuid']}", [
        {"op": "replace", "path": "/address", "value": "52:54:00:00:00:02"},
    ])  # fmt: skip
    stage.api.delete(f"/v1/ports/{port['uuid']}")
    told = asked(stage, f"object={port['uuid']}")
    ends = [each["facts"] for each in told if each["event_type"].endswith(".end")]
    assert [each["node_uuid"] for each in ends] == [node] * 3
    assert ends[1]["changes"] == {"address": "52:54:00:00:00:02"}


def test_why_names_the_user_of_the_last_move(stage) -> None:
    node = stage.bring_to("manageable")
    user = stage.api.get(f"/v1/nodes/{node}/history?detail=true").json["history"][-1]["user"]
    assert stage.why(node)["by"] == user


def test_steps_to_choose_from_are_those_that_the_node_offers(stage) -> None:
    node = stage.bring_to("manageable")
    path = f"/ext/v1/nodes/{node}/steps"
    names = [f"{each['interface']}.{each['step']}" for each in stage.api.get(path).json["steps"]]
    assert "vendor.log_passthrough" in names
    deploys = stage.api.get(f"{path}?phase=deploy").json["steps"]
    assert ("deploy", "deploy") in [(each["interface"], each["step"]) for each in deploys]
    stage.configure("api", disallow_clean_steps=("vendor.log_passthrough",))
    left = [f"{each['interface']}.{each['step']}" for each in stage.api.get(path).json["steps"]]
    assert set(names) - set(left) == {"vendor.log_passthrough"}
    assert stage.api.get(f"{path}?phase=wash").status == 400
    assert stage.api.get("/ext/v1/nodes/nobody/steps").status == 404
