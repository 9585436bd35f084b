"""Runbooks and the real conductor: traits, owners, and cleaning by one."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.db.tables import RUNBOOKS

BOOK = "/v1/runbooks/book"
REBOOT = {"interface": "power", "step": "reboot", "order": 2, "args": {}}
ON = {"interface": "power", "step": "power_on", "order": 1, "args": {}}


@pytest.fixture
def book(stage: Any) -> str:
    answer = stage.api.post("/v1/runbooks", {"name": "book", "steps": [REBOOT, ON]})
    assert answer.status == 201
    return str(answer.json["uuid"])


def traits(stage: Any) -> list[str]:
    return stage.api.get(f"{BOOK}/traits").json["traits"]


def clean(stage: Any, node: str) -> Any:
    body = {"target": "clean", "runbook": "book", "disable_ramdisk": True}
    return stage.api.put(f"/v1/nodes/{node}/states/provision", body)


def test_traits_are_set_added_and_taken_away(stage: Any, book: str):
    assert stage.api.put(f"{BOOK}/traits", {"traits": ["CUSTOM_B", "CUSTOM_A"]}).status == 204
    added = stage.api.put(f"{BOOK}/traits/CUSTOM_C")
    assert (added.status, added.headers["location"][-21:]) == (204, "/book/traits/CUSTOM_C")
    assert stage.api.put(f"{BOOK}/traits/CUSTOM_C").status == 204
    assert traits(stage) == ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
    for _twice in range(2):
        assert stage.api.delete(f"{BOOK}/traits/CUSTOM_B").status == 204
    assert traits(stage) == ["CUSTOM_A", "CUSTOM_C"]
    assert stage.api.put(f"{BOOK}/traits", {"traits": ["b"]}).status == 400
    assert stage.api.put(f"{BOOK}/traits", {}).status == 400
    assert stage.api.delete(f"{BOOK}/traits").status == 204
    assert traits(stage) == []


def test_a_runbook_that_becomes_public_loses_its_owner(stage: Any, book: str):
    def change(name: str, value: Any) -> Any:
        return stage.api.patch(BOOK, [{"op": "replace", "path": f"/{name}", "value": value}])

    assert change("owner", "p").json["owner"] == "p"
    assert change("public", True).json["owner"] is None
    assert change("owner", "p").status == 400
    assert change("public", False).status == 200
    assert change("owner", "p").status == 200


def test_a_node_is_cleaned_by_a_runbook_of_one_of_its_traits_in_its_order(stage: Any, book: str):
    node = stage.bring_to("manageable")
    assert clean(stage, node).status == 400  # the runbook has no traits
    stage.api.put(f"{BOOK}/traits", {"traits": ["CUSTOM_A", "CUSTOM_B"]})
    assert clean(stage, node).status == 400  # the node has none of them
    stage.api.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_B"]})
    assert clean(stage, node).status == 202
    stage.wait_for(node, "manageable")
    steps = [name for name, _state in stage.steps(node, "clean") if name.startswith("power.")]
    assert steps == ["power.power_on", "power.reboot"]


def test_secrets_of_steps_are_sealed(stage: Any):
    steps = [ON | {"args": {"admin_password": "hunter2"}}]
    stage.api.post("/v1/runbooks", {"name": "secret", "steps": steps})
    [row] = stage.site.rows(RUNBOOKS, name="secret")
    assert "hunter2" not in str(row)
