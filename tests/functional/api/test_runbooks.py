"""Runbooks: create, read, change, delete, list, and their traits."""

from __future__ import annotations

import pytest

from bloomery.api.versions import MAX

R = "/v1/runbooks"
STEP = {"interface": "bios", "step": "apply_configuration", "order": 1}
OTHER = STEP | {"step": "factory_reset"}


@pytest.fixture
def runbook(api):
    steps = [STEP | {"args": {"admin_password": "x", "n": 1}}]
    answer = api.post(R, {"name": "bios-reset", "steps": steps, "description": "Reset"})
    assert answer.status == 201
    return answer.json


def test_runbook_is_answered_whole_its_secrets_masked(api, runbook):
    assert set(runbook) == {
        "uuid", "name", "description", "steps", "disable_ramdisk", "extra", "public", "owner",
        "traits", "created_at", "updated_at", "links",
    }  # fmt: skip
    assert runbook["steps"] == [STEP | {"args": {"admin_password": "******", "n": 1}}]
    assert (runbook["public"], runbook["owner"], runbook["traits"]) == (False, None, [])


@pytest.mark.parametrize(
    ("body", "version", "status"),
    [
        ({}, MAX, 201),
        ({}, 111, 400),
        ({"name": "CUSTOM_A"}, 111, 201),
        ({"name": "no blanks"}, MAX, 400),
        ({"name": ""}, MAX, 400),
        ({"steps": []}, MAX, 400),
        ({"steps": [STEP, STEP]}, MAX, 400),
        ({"steps": [STEP, OTHER]}, MAX, 201),
        ({"steps": [{"interface": "bios", "step": "x"}]}, MAX, 400),
        ({"steps": [STEP | {"priority": 1}]}, MAX, 400),
        ({"steps": [STEP | {"order": "7"}]}, MAX, 201),
        ({"steps": [STEP | {"order": -1}]}, MAX, 400),
        ({"steps": [STEP | {"args": {"$sealed": "x"}}]}, MAX, 400),
        ({"public": "yes"}, MAX, 400),
        ({"public": None, "disable_ramdisk": True}, MAX, 201),
        ({"owner": "p"}, MAX, 400),
        ({"traits": ["CUSTOM_A"]}, MAX, 400),
        ({"description": "x" * 256}, MAX, 400),
        ({"name": "CUSTOM_A", "description": "x"}, 111, 400),
    ],
    ids=str,
)
def test_bodies_are_checked(api, body, version, status):
    answer = api.post(R, {"name": "book", "steps": [STEP]} | body, version=version)
    assert answer.status == status


def test_steps_without_arguments_have_none_and_orders_are_numbers(api):
    steps = [STEP | {"order": "7"}]
    uuid = api.post(R, {"name": "book", "steps": steps}).json["uuid"]
    assert api.get(f"{R}/{uuid}").json["steps"] == [STEP | {"order": 7, "args": {}}]


@pytest.mark.parametrize(
    ("operation", "version", "status"),
    [
        ({"op": "replace", "path": "/name", "value": "b"}, MAX, 200),
        ({"op": "replace", "path": "/name", "value": "b"}, 111, 400),
        ({"op": "remove", "path": "/name"}, MAX, 400),
        ({"op": "remove", "path": "/steps"}, MAX, 400),
        ({"op": "replace", "path": "/steps", "value": [OTHER]}, MAX, 200),
        ({"op": "replace", "path": "/traits", "value": ["CUSTOM_A"]}, MAX, 400),
        ({"op": "replace", "path": "/public", "value": "yes"}, MAX, 400),
        ({"op": "replace", "path": "/owner", "value": "p"}, MAX, 200),
        ({"op": "replace", "path": "/description", "value": "x"}, 111, 406),
        ({"op": "replace", "path": "/nonsense", "value": "x"}, MAX, 400),
    ],
    ids=str,
)
def test_changes_are_checked(api, runbook, operation, version, status):
    path = f"{R}/{runbook['uuid']}"
    assert api.patch(path, [operation], version=version).status == status


def test_lists_show_little_or_all(api, runbook):
    [short] = api.get(R).json["runbooks"]
    assert set(short) == {"uuid", "name", "links"}
    [whole] = api.get(f"{R}?detail=true").json["runbooks"]
    assert whole == runbook
    assert api.get(f"{R}?sort_key=steps").status == 400


def test_a_trait_in_the_path_and_traits_in_the_body_are_not_both_taken(api, runbook):
    path = f"{R}/{runbook['uuid']}/traits"
    assert api.get(path, version=111).status == 404
    assert api.put(f"{path}/CUSTOM_A", {"traits": ["CUSTOM_A"]}).status == 400
    assert api.get(path).json["traits"] == []
