"""Inspection rules: create, read, change, delete, list."""

from __future__ import annotations

import uuid

import pytest

R = "/v1/inspection_rules"
CONDITION = {"op": "is-true", "args": {"value": "{inventory[ready]}"}}
ACTION = {"op": "set-attribute", "args": {"path": "extra/rack", "value": 7}}
RULE = {"conditions": [CONDITION], "actions": [ACTION], "description": "Racks"}
NOBODY = "6f0a43a1-5a4b-4b3c-8d21-0d6f64e1f3aa"


@pytest.fixture
def rule(api):
    answer = api.post(R, RULE)
    assert answer.status == 201
    assert answer.headers["location"].endswith(f"{R}/{answer.json['uuid']}")
    return answer.json


def test_rule_is_answered_whole_and_its_links_say_inspection(api, rule):
    assert set(rule) == {
        "uuid", "description", "priority", "phase", "sensitive", "conditions", "actions",
        "created_at", "updated_at", "links",
    }  # fmt: skip
    assert rule["conditions"] == [CONDITION]
    assert rule["actions"] == [ACTION]
    assert (rule["priority"], rule["phase"], rule["sensitive"]) == (0, "main", False)
    assert [link["href"] for link in rule["links"]] == [
        f"http://localhost/v1/inspection/{rule['uuid']}",
        f"http://localhost/inspection/{rule['uuid']}",
    ]
    assert api.get(f"{R}/{rule['uuid']}").json == rule


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"conditions": []}, 201),
        ({"priority": 9999}, 201),
        ({"priority": 10000}, 400),
        ({"priority": -1}, 400),
        ({"priority": "5"}, 400),
        ({"priority": None}, 400),
        ({"phase": "main"}, 201),
        ({"phase": "preprocess"}, 400),
        ({"scope": "x"}, 400),
        ({"sensitive": "yes"}, 400),
        ({"sensitive": True}, 201),
        ({"conditions": None}, 400),
        ({"conditions": {}}, 400),
        ({"actions": []}, 400),
        ({"actions": None}, 400),
        ({"actions": [ACTION] * 201}, 400),
        ({"description": "x" * 256}, 400),
        ({"uuid": NOBODY}, 201),
        ({"uuid": "x"}, 400),
        ({"conditions": [CONDITION | {"op": "!is-true"}]}, 201),
        ({"conditions": [CONDITION | {"op": "! is-true"}]}, 201),
        ({"conditions": [CONDITION | {"op": "!!is-true"}]}, 400),
        ({"conditions": [CONDITION | {"op": "set-attribute"}]}, 400),
        ({"conditions": [CONDITION | {"loop": [1], "multiple": "last"}]}, 201),
        ({"conditions": [CONDITION | {"multiple": "none"}]}, 400),
        ({"conditions": [CONDITION | {"phase": "main"}]}, 400),
        ({"conditions": [{"op": "is-true"}]}, 400),
        ({"conditions": [{"op": "eq", "args": {"values": [1]}}]}, 400),
        ({"conditions": [{"op": "eq", "args": {"values": [1, 1], "force_strings": 5}}]}, 400),
        ({"conditions": [{"op": "eq", "args": [[1, 1], True]}]}, 201),
        ({"conditions": [{"op": "eq", "args": [[1, 1], True, 3]}]}, 400),
        ({"conditions": [{"op": "eq", "args": [1, 1, 1]}]}, 201),
        ({"conditions": [{"op": "eq", "args": [1]}]}, 400),
        ({"conditions": [{"op": "eq", "args": []}]}, 400),
        ({"conditions": [{"op": "is-none", "args": [None]}]}, 201),
        ({"actions": [ACTION | {"multiple": "any"}]}, 400),
        ({"actions": [ACTION | {"op": "!fail"}]}, 400),
        ({"actions": [ACTION | {"args": ["extra/x", 5]}]}, 201),
        ({"actions": [ACTION | {"args": ["extra/x"]}]}, 400),
        ({"actions": [ACTION | {"args": {"path": 5, "value": 5}}]}, 400),
        ({"actions": [ACTION | {"args": {"path": "x", "value": 5, "more": 1}}]}, 400),
        ({"actions": [{"op": "log", "args": {"msg": "x", "level": "loud"}}]}, 400),
        ({"actions": [{"op": "api-call", "args": {"url": "http://x", "timeout": -1}}]}, 400),
        ({"actions": [{"op": "api-call", "args": {"url": "http://x", "headers": {}}}]}, 201),
        ({"actions": [{"op": {}, "args": {}}]}, 400),
        ({"actions": ["fail"]}, 400),
    ],
    ids=str,
)
def test_bodies_are_checked(api, body, status):
    answer = api.post(R, RULE | body)
    assert answer.status == status, answer.body
    assert status == 201 or next(iter(body)) in answer.said


def test_multiple_goes_where_nothing_is_looped_over(api):
    loop = CONDITION | {"loop": [1], "multiple": "all"}
    answer = api.post(R, RULE | {"conditions": [CONDITION | {"multiple": "all"}, loop]})
    assert answer.json["conditions"] == [CONDITION, loop]


def test_conditions_that_are_left_out_are_none(api):
    answer = api.post(R, {"actions": [ACTION]})
    assert (answer.status, answer.json["conditions"]) == (201, [])


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "replace", "path": "/priority", "value": 5}, 200),
        ({"op": "replace", "path": "/priority", "value": 10000}, 400),
        ({"op": "remove", "path": "/conditions"}, 200),
        ({"op": "remove", "path": "/actions"}, 400),
        ({"op": "replace", "path": "/actions", "value": []}, 400),
        ({"op": "remove", "path": "/actions/0"}, 400),
        ({"op": "add", "path": "/actions/-", "value": ACTION}, 200),
        ({"op": "replace", "path": "/actions/0/op", "value": "explode"}, 400),
        ({"op": "replace", "path": "/actions/0/args/value", "value": 8}, 200),
        ({"op": "replace", "path": "/scope", "value": "x"}, 400),
        ({"op": "replace", "path": "/uuid", "value": NOBODY}, 400),
        ({"op": "add", "path": "/nonsense", "value": "x"}, 400),
        ({"op": "replace", "path": "/sensitive", "value": "yes"}, 400),
        ({"op": "replace", "path": "/sensitive", "value": True}, 200),
    ],
    ids=str,
)
def test_changes_are_checked(api, rule, operation, status):
    assert api.patch(f"{R}/{rule['uuid']}", [operation]).status == status


def test_what_is_removed_is_as_if_it_had_been_left_out(api, rule):
    path = f"{R}/{rule['uuid']}"
    api.patch(path, [{"op": "replace", "path": "/priority", "value": 5}])
    names = ("priority", "phase", "conditions", "description")
    patch = [{"op": "remove", "path": f"/{name}"} for name in names]
    changed = api.patch(path, patch).json
    assert [changed[name] for name in names] == [0, "main", [], None]
    assert api.patch(path, [{"op": "replace", "path": "/priority", "value": 1}]).status == 200


def test_a_sensitive_rule_never_shows_what_it_does_and_stays_so(api):
    uuid_ = api.post(R, RULE | {"sensitive": True}).json["uuid"]
    path = f"{R}/{uuid_}"
    shown = [
        api.get(path).json,
        api.get(f"{path}?fields=conditions,actions").json,
        *api.get(f"{R}?detail=true").json["inspection_rules"],
        *api.get(f"{R}?fields=conditions,actions").json["inspection_rules"],
        api.patch(path, [{"op": "replace", "path": "/priority", "value": 5}]).json,
    ]
    assert [(each["conditions"], each["actions"]) for each in shown] == [(None, None)] * 5
    assert "sensitive" not in shown[1]
    for op in ({"op": "replace", "value": False}, {"op": "remove"}):
        assert api.patch(path, [op | {"path": "/sensitive"}]).status == 400
    assert api.get(path).json["sensitive"] is True


def test_lists_are_short_filtered_and_paged(api, rule):
    other = api.post(R, RULE).json["uuid"]
    listed = api.get(R).json["inspection_rules"]
    assert [set(each) for each in listed] == [
        {"uuid", "priority", "phase", "description", "links"}
    ] * 2
    assert len(api.get(f"{R}?phase=main").json["inspection_rules"]) == 2
    assert api.get(f"{R}?phase=x").json["inspection_rules"] == []
    page = api.get(f"{R}?limit=1").json
    assert page["next"].startswith("http://localhost/v1/inspection?")
    marker = f"{R}?limit=1&marker={rule['uuid']}"
    assert [each["uuid"] for each in api.get(marker).json["inspection_rules"]] == [other]
    for key in ("actions", "conditions", "scope"):
        assert api.get(f"{R}?sort_key={key}").status == 400
    assert api.get(f"{R}?sort_key=priority&sort_dir=desc").status == 200


def test_idents_are_uuids(api, rule):
    unknown = str(uuid.uuid4())
    for method in ("GET", "DELETE"):
        assert api.ask(method, f"{R}/racks").status == 400
        assert api.ask(method, f"{R}/{unknown}").status == 404
    assert api.delete(R).status == 405
    assert api.post(R, RULE | {"uuid": rule["uuid"]}).status == 409
    assert api.delete(f"{R}/{rule['uuid']}").status == 204
    assert api.get(f"{R}/{rule['uuid']}").status == 404
