"""Runbooks and the real conductor: traits, owners, and cleaning by one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bloomery.conf.api import Api
from bloomery.db.tables import RUNBOOKS
from tests.kit.servers import site

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
    refusal = clean(stage, node)
    assert refusal.status == 400
    assert b"no traits configured; name one of the node's by: baremetal runbook" in refusal.body
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


# ------------------------------------------------------------------------- automated cleaning

NAMED = {"automated_cleaning_runbook": "book"}
SOURCE = "automated_cleaning_step_source"
AUTOMATIC = ["power.power_on", "power.reboot"]
OWN = ["vendor.log_passthrough"]


def provide(stage: Any, state: str = "available", **values: Any) -> Any:
    """Let a new node be cleaned by itself; return it and the steps of its cleaning."""
    stage.api.post("/v1/runbooks", {"name": "book", "steps": [REBOOT, ON]})
    stage.api.put(f"{BOOK}/traits", {"traits": ["CUSTOM_A"]})
    node = stage.bring_to("manageable", **values)
    stage.api.put(f"/v1/nodes/{node}/traits/CUSTOM_A")
    return ask(stage, node, state)


def ask(stage: Any, node: str, state: str = "available") -> Any:
    stage.ask(node, "provide")
    shown = stage.wait_for(node, state)
    names = [name for name, _ in stage.steps(node, "clean")]
    return shown, [name for name in names if not name.endswith("_cleaning")]


@pytest.mark.parametrize(
    ("options", "values", "steps"),
    [
        (NAMED, {}, OWN),
        (NAMED | {SOURCE: "runbook"}, {}, AUTOMATIC),
        (NAMED | {SOURCE: "hybrid"}, {}, AUTOMATIC),
        ({SOURCE: "hybrid"}, {}, OWN),
        (
            {SOURCE: "runbook", "automated_cleaning_runbook_by_resource_class": {"big": "book"}},
            {"resource_class": "big"},
            AUTOMATIC,
        ),
        (
            {SOURCE: "hybrid", "automated_cleaning_runbook_by_resource_class": {"big": "book"}},
            {"resource_class": "small"},
            OWN,
        ),
        (
            {SOURCE: "runbook", "automated_cleaning_runbook_from_node": True},
            {"driver_info": {"cleaning_runbook": "book"}},
            AUTOMATIC,
        ),
        ({SOURCE: "hybrid"}, {"driver_info": {"cleaning_runbook": "book"}}, OWN),
    ],
)
def test_a_runbook_is_what_automated_cleaning_runs(make_stage, options, values, steps):
    shown, ran = provide(make_stage(**options), **values)
    assert (shown["last_error"], ran) == (None, steps)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({SOURCE: "runbook"}, "no runbook is named for node"),
        ({SOURCE: "runbook", "automated_cleaning_runbook": "none"}, "none"),
    ],
)
def test_a_runbook_that_is_not_there_fails_the_cleaning_without_harm(make_stage, options, sentence):
    stage = make_stage(**options)
    shown, ran = provide(stage, "clean failed")
    assert ran == ["deploy.refuse"]
    assert sentence in shown["last_error"]
    assert shown["maintenance"] is False


@pytest.mark.parametrize(("validates", "state"), [(True, "clean failed"), (False, "available")])
def test_the_traits_of_runbook_and_node_must_meet(make_stage, validates, state):
    option = {"automated_cleaning_runbook_validate_traits": validates}
    stage = make_stage(**NAMED | {SOURCE: "runbook"} | option)
    stage.api.post("/v1/runbooks", {"name": "book", "steps": [REBOOT, ON]})
    shown, _ = ask(stage, stage.bring_to("manageable"), state)
    assert ("none of its traits" in (shown["last_error"] or "")) is validates


def test_a_node_does_not_name_a_runbook_of_another_project(make_stage):
    stage = make_stage(**{SOURCE: "runbook", "automated_cleaning_runbook_from_node": True})
    stage.api.post("/v1/runbooks", {"name": "book", "steps": [REBOOT, ON]})
    stage.api.patch(BOOK, [{"op": "add", "path": "/owner", "value": "somebody"}])
    info = {"driver_info": {"cleaning_runbook": "book"}}
    shown, _ = provide(stage, "clean failed", **info)
    assert "book" in shown["last_error"]


@pytest.mark.parametrize(
    ("source", "steps"), [("autogenerated", []), ("runbook", ["power.power_on"])]
)
def test_automated_cleaning_leaves_out_what_the_operator_has_ruled_out(
    make_stage, monkeypatch, source, steps
):
    plain, ruled_out = site.conf, ("vendor.log_passthrough", "power.reboot")

    def conf(*args: Any, **more: Any) -> Any:
        return dataclasses.replace(plain(*args, **more), api=Api(disallow_clean_steps=ruled_out))

    monkeypatch.setattr(site, "conf", conf)
    shown, ran = provide(make_stage(**NAMED | {SOURCE: source}))
    assert (shown["last_error"], ran) == (None, steps)
