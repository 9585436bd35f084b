"""Nodes are forgotten: their work ends, their record goes, and their machine stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import task_manager
from bloomery.conductor.runtime import Context
from bloomery.db.tables import NODES, PORTS
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

NEVER = {"wait": {"deploy": -1}}
INSTANCE = "55555555-0000-4000-8000-000000000000"


def forget(stage: Stage, node: str, query: str = "") -> Any:
    return stage.api.put(f"/ext/v1/nodes/{node}/forget{query}", None)


def is_gone(stage: Stage, node: str) -> bool:
    return not stage.site.rows(NODES, uuid=node)


def wait_until_gone(stage: Stage, node: str) -> dict[str, Any]:
    """Return the facts of the event that says so."""
    wait_for(lambda: is_gone(stage, node), f"{node} to be forgotten")
    [*_, facts] = stage.facts(node, "delete")
    return facts


def begin(stage: Stage, state: str, verb: str, fake: dict[str, Any], during: str) -> str:
    """Return a node whose order of ``verb`` goes on in the state ``during``."""
    node = stage.bring_to(state) if state != "enroll" else stage.enrol()
    stage.behave(node, **fake)
    stage.ask(node, verb)
    wait_for(lambda: stage.standing(node)[0] == during, f"{node} to be {during}")
    return node


@pytest.mark.parametrize("state", ["enroll", "manageable", "available"])
def test_a_node_without_work_is_forgotten(stage, state):
    node = stage.enrol() if state == "enroll" else stage.bring_to(state)
    port = stage.api.post("/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:01"})
    assert port.status == 201
    assert (forget(stage, node).status, forget(stage, "nobody").status) == (202, 404)
    facts = wait_until_gone(stage, node)
    assert facts == {"is_forgotten": True, "left_open": []}
    assert not stage.site.rows(PORTS, node_uuid=node)


@pytest.mark.parametrize(
    ("state", "verb", "fake", "during"),
    [
        ("manageable", "provide", NEVER, "clean wait"),  # nobody holds it
        ("manageable", "provide", {"delay": {"deploy": 600}}, "cleaning"),  # a flow pauses
        ("manageable", "inspect", {"delay": {"inspect": 600}}, "inspecting"),
    ],
)
def test_the_work_of_a_node_ends(stage, state, verb, fake, during):
    node = begin(stage, state, verb, fake, during)
    assert forget(stage, node).status == 202
    wait_until_gone(stage, node)
    assert not stage.site.runs(node)


def test_a_node_that_another_conductor_holds_is_taken_from_it(stage):
    node = stage.bring_to("manageable")
    other = stage.site.another_host("host-b")
    held = task_manager.acquire(Context(runtime=other, request=stage.site.request()), node)
    assert forget(stage, node).status == 202
    wait_until_gone(stage, node)
    with pytest.raises(errors.LockLost, match="host-b"):
        held.assert_lease()


@pytest.mark.parametrize(
    ("state", "values"), [("active", {}), ("manageable", {"instance_uuid": INSTANCE})]
)
def test_an_instance_is_forgotten_with_force_alone(stage, state, values):
    node = stage.bring_to(state)
    if values:
        stage.patch(node, **values)
    power = stage.show(node)["power_state"]
    refused = forget(stage, node)
    assert refused.status == 409
    assert "ask with force" in str(refused.json)
    assert stage.standing(node)[0] == state
    assert stage.show(node)["power_state"] == power
    assert forget(stage, node, "?force=true").status == 202
    wait_until_gone(stage, node)


def test_a_refusal_leaves_the_work_alone(stage):
    node = begin(stage, "available", "active", {"delay": {"deploy": 600}}, "deploying")
    before = stage.site.node(node)
    assert forget(stage, node).status == 409
    after = stage.site.node(node)
    assert (after.reservation, after.lock_generation) == (
        before.reservation,
        before.lock_generation,
    )
    assert forget(stage, node, "?force=true").status == 202
    wait_until_gone(stage, node)


def test_a_protected_node_stays(stage):
    node = stage.bring_to("active")
    stage.patch(node, protected=True)
    assert forget(stage, node, "?force=true").status == 403
    assert not is_gone(stage, node)


def test_console_and_media_are_closed(stage):
    node = stage.bring_to("manageable")
    answer = stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": True})
    assert answer.status == 202
    wait_for(lambda: stage.show(node)["console_enabled"], "the console")
    stage.wait_until_free(node)
    assert forget(stage, node).status == 202
    assert wait_until_gone(stage, node)["left_open"] == []
    assert stage.told(node)[-4:-2] == ["console_set.start", "console_set.end"]


def test_what_a_silent_bmc_leaves_open_is_named(stage):
    node = stage.bring_to("manageable")
    stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": True})
    wait_for(lambda: stage.show(node)["console_enabled"], "the console")
    stage.wait_until_free(node)
    stage.behave(node, fail=["console.stop_console", "management.detach_virtual_media"])
    assert forget(stage, node).status == 202
    console, media = wait_until_gone(stage, node)["left_open"]
    assert (console[:12], media[:18]) == ("its console:", "its virtual media:")


def test_a_node_whose_driver_is_off_is_forgotten(stage):
    node = stage.bring_to("manageable")
    stage.site.set(node, bios_interface="no-such")
    assert forget(stage, node).status == 202
    [left] = wait_until_gone(stage, node)["left_open"]
    assert "no-such" in left


def test_orders_meanwhile_learn_who_holds_the_node(stage):
    node = begin(stage, "manageable", "provide", {"delay": {"deploy": 600}}, "cleaning")
    assert forget(stage, node).status == 202
    refused = stage.api.put(f"/v1/nodes/{node}/maintenance", {"reason": "disks"})
    assert refused.status in (404, 409)  # it is gone, or locked until then
    wait_until_gone(stage, node)


def test_machines_stay_as_they_are(stage):
    node = stage.bring_to("manageable")
    stage.power(node, "power on")
    before = len(stage.told(node))
    forget(stage, node)
    wait_until_gone(stage, node)
    assert stage.told(node)[before:] == ["delete.start", "delete.end"]
