"""What is too long, too many, or no word at all: 400 with a sentence, and nothing is kept."""

from __future__ import annotations

import pytest

from bloomery.model.rules import steps as step_rules
from bloomery.model.rules.attributes import MOST_TEXT

LONG = "x" * (MOST_TEXT + 1)
STEP = {"interface": "deploy", "step": "erase_devices"}


def clean(world, *steps):
    node = world.node(provision_state="manageable")
    body = {"target": "clean", "clean_steps": list(steps)}
    return world.api.put(f"/v1/nodes/{node}/states/provision", body)


def deploy(world, *steps):
    node = world.node(provision_state="available")
    body = {"target": "active", "deploy_steps": list(steps)}
    return world.api.put(f"/v1/nodes/{node}/states/provision", body)


@pytest.mark.parametrize("priority", ["abc", "", "-1", "1.5", "1\n", "9" * 10, -1, 10**9, 1.5])
def test_a_priority_is_a_number(world, priority):
    answer = deploy(world, STEP | {"args": {}, "priority": priority})
    assert (answer.status, answer.form) == (400, "first")
    assert "deploy_steps: 0/priority" in answer.said


@pytest.mark.parametrize("priority", ["0", "95", 0, 999_999_999])
def test_a_priority_may_be_digits(world, priority):
    assert deploy(world, STEP | {"args": {}, "priority": priority}).status == 202


@pytest.mark.parametrize("limit", ["0", "00", "0" * 19, "0" * 1000, "-1"])
def test_a_page_holds_something(world, limit):
    answer = world.api.get(f"/v1/nodes?limit={limit}")
    assert (answer.status, answer.form) == (400, "first")


@pytest.mark.parametrize("limit", ["1", "0" * 30 + "1", "9" * 19, "9" * 1000])
def test_a_page_holds_what_is_asked_or_the_most(world, limit):
    first, _ = sorted([world.node(), world.node()])
    nodes = world.api.get(f"/v1/nodes?limit={limit}&sort_key=uuid").json["nodes"]
    assert nodes[0]["uuid"] == first
    assert len(nodes) == (1 if limit.endswith("1") else 2)


@pytest.mark.parametrize("order", ["abc", "", -1])
def test_an_order_is_a_number(world, order):
    answer = clean(world, STEP | {"order": order})
    assert answer.status == 400
    assert "clean_steps: 0/order" in answer.said


@pytest.mark.parametrize(
    "name", ["erase\nERROR forged", "a b", "\x1b[2J", "", "x" * 256, "löschen", "erase\n"]
)
def test_a_step_is_named_by_a_word(world, name):
    for answer in (
        clean(world, STEP | {"step": name}),
        deploy(world, STEP | {"step": name, "args": {}, "priority": 1}),
    ):
        assert answer.status == 400
        assert "0/step" in answer.said


def test_so_many_steps_are_enough(world):
    most = step_rules.MOST_STEPS
    assert clean(world, *[STEP] * most).status == 202
    answer = clean(world, *[STEP] * (most + 1))
    assert answer.status == 400
    assert f"at most {most} steps" in answer.said
    assert len(answer.body) < 2000


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/nodes/detail", "/v1/ports", "/v1/ports/detail"])
@pytest.mark.parametrize("length", [MOST_TEXT + 1, 50_001])
def test_a_text_to_look_for_is_no_longer_than_a_description(api, path, length):
    answer = api.get(f"{path}?description_contains={'x' * length}")
    assert (answer.status, answer.form) == (400, "first")
    assert f"description_contains: at most {MOST_TEXT} characters" in answer.said
    assert len(answer.body) < 2000
    assert api.get(f"{path}?description_contains={'x' * MOST_TEXT}").status == 200


def test_a_reason_is_no_longer_than_a_description(world):
    node = world.node(provision_state="active")
    path = f"/v1/nodes/{node}/maintenance"
    answer = world.api.put(path, {"reason": LONG})
    assert (answer.status, answer.form) == (400, "first")
    assert f"reason: at most {MOST_TEXT} characters" in answer.said
    assert world.api.get(f"/v1/nodes/{node}").json["maintenance"] is False
    assert world.api.put(path, {"reason": LONG[1:]}).status == 202
    for flag in ("protected", "retired"):
        patch = [
            {"op": "add", "path": f"/{flag}", "value": True},
            {"op": "add", "path": f"/{flag}_reason", "value": LONG},
        ]
        answer = world.api.patch(f"/v1/nodes/{node}", patch)
        assert answer.status == 400
        assert f"{flag}_reason" in answer.said
        assert len(answer.body) < 2000
