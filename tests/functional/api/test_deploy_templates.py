"""Deploy templates: create, read, change, delete, list."""

from __future__ import annotations

import pytest

T = "/v1/deploy_templates"
STEP = {"interface": "bios", "step": "apply_configuration", "args": {}, "priority": 150}
OTHER = STEP | {"step": "factory_reset"}


@pytest.fixture
def template(api):
    body = {"name": "CUSTOM_HYPER", "steps": [STEP | {"args": {"admin_password": "x", "n": 1}}]}
    answer = api.post(T, body)
    assert answer.status == 201
    return answer.json


def test_template_is_answered_whole_its_secrets_masked(api, template):
    assert set(template) == {
        "uuid", "name", "steps", "extra", "created_at", "updated_at", "links"
    }  # fmt: skip
    assert template["steps"] == [STEP | {"args": {"admin_password": "******", "n": 1}}]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 201),
        ({"name": "HW_CPU_X86_VMX"}, 201),
        ({"name": "no_trait"}, 400),
        ({"name": ""}, 400),
        ({"name": None}, 400),
        ({"steps": []}, 400),
        ({"steps": None}, 400),
        ({"steps": [STEP, STEP]}, 400),
        ({"steps": [STEP, OTHER]}, 201),
        ({"steps": [{"interface": "bios", "step": "x", "args": {}}]}, 400),
        ({"steps": [STEP | {"order": 1}]}, 400),
        ({"steps": [STEP | {"interface": "network"}]}, 400),
        ({"steps": [STEP | {"priority": -1}]}, 400),
        ({"steps": [STEP | {"priority": "x"}]}, 400),
        ({"steps": [STEP | {"priority": "7"}]}, 201),
        ({"steps": [STEP | {"args": {"$sealed": "x"}}]}, 400),
        ({"extra": {"a": 1}}, 201),
        ({"nonsense": 1}, 400),
    ],
    ids=str,
)
def test_bodies_are_checked(api, body, status):
    assert api.post(T, {"name": "CUSTOM_A", "steps": [STEP]} | body).status == status


def test_a_priority_written_as_text_is_a_number(api):
    uuid = api.post(T, {"name": "CUSTOM_A", "steps": [STEP | {"priority": "7"}]}).json["uuid"]
    assert api.get(f"{T}/{uuid}").json["steps"][0]["priority"] == 7


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "replace", "path": "/name", "value": "CUSTOM_B"}, 200),
        ({"op": "replace", "path": "/name", "value": "b"}, 400),
        ({"op": "remove", "path": "/name"}, 400),
        ({"op": "remove", "path": "/steps"}, 400),
        ({"op": "replace", "path": "/steps", "value": [OTHER]}, 200),
        ({"op": "replace", "path": "/steps", "value": []}, 400),
        ({"op": "add", "path": "/extra/a", "value": 1}, 200),
        ({"op": "replace", "path": "/uuid", "value": "x"}, 400),
        ({"op": "replace", "path": "/description", "value": "x"}, 400),
    ],
    ids=str,
)
def test_changes_are_checked(api, template, operation, status):
    assert api.patch(f"{T}/CUSTOM_HYPER", [operation]).status == status


def test_lists_show_little_or_all(api, template):
    [short] = api.get(T).json["deploy_templates"]
    assert set(short) == {"uuid", "name", "links"}
    [whole] = api.get(f"{T}?detail=true").json["deploy_templates"]
    assert whole == template
    assert api.get(f"{T}?sort_key=steps").status == 400
    assert api.get(f"{T}?fields=steps").json["deploy_templates"][0]["steps"] == template["steps"]
