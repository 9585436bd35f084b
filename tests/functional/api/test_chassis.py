"""Chassis: create, read, change, delete, list, and the nodes of one."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.api.versions import MAX
from bloomery.model.nouns import CHASSIS

URL = "http://localhost/v1/chassis"
UNKNOWN = str(uuids.UUID(int=1))
ALL = set(CHASSIS.fields) | {"links", "nodes"}


@pytest.fixture
def chassis(api):
    answer = api.post("/v1/chassis", {"description": "row B", "extra": {"a": 1}})
    assert answer.status == 201
    return answer.json


@pytest.fixture
def path(chassis):
    return f"/v1/chassis/{chassis['uuid']}"


def test_created_chassis_is_answered_whole_with_its_address(api, chassis, path):
    assert set(chassis) == ALL
    assert (chassis["description"], chassis["extra"]) == ("row B", {"a": 1})
    assert api.get(path, version=1).json == chassis
    [[own, bookmark]] = chassis["nodes"]  # Ironic wraps them twice
    assert own == {"href": f"{URL}/{chassis['uuid']}/nodes", "rel": "self"}
    assert bookmark["rel"] == "bookmark"


def test_nothing_need_be_said_of_a_chassis(api):
    for raw in (b"", b"{}"):
        answer = api.ask("POST", "/v1/chassis", raw=raw)
        assert (answer.status, answer.json["description"]) == (201, None)
        assert answer.headers["location"] == f"{URL}/{answer.json['uuid']}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"uuid": UNKNOWN}, 201),
        ({"uuid": "x"}, 400),
        ({"description": "x" * 255}, 201),
        ({"description": "x" * 256}, 400),
        ({"description": 5}, 400),
        ({"extra": None}, 201),
        ({"extra": []}, 400),
        ({"extra": {"a": [{"$sealed": "x"}]}}, 400),
        ({"created_at": None}, 400),
        ({"node_uuid": UNKNOWN}, 400),
    ],
    ids=str,
)
def test_chassis_is_checked(api, body, status):
    assert api.post("/v1/chassis", body).status == status


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(("ident", "status"), [("row-B", 400), (UNKNOWN, 404)])
def test_chassis_go_by_uuid_only(api, chassis, method, ident, status):
    answer = api.ask(method, f"/v1/chassis/{ident}", [] if method == "PATCH" else None)
    assert (answer.status, answer.form) == (status, "first")


# ---------------------------------------------------------------------------------------- patch


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        ({"op": "replace", "path": "/description", "value": "row C"}, "description", "row C"),
        ({"op": "remove", "path": "/description"}, "description", None),
        ({"op": "add", "path": "/extra/b", "value": 2}, "extra", {"a": 1, "b": 2}),
        ({"op": "remove", "path": "/extra"}, "extra", {}),
    ],
    ids=str,
)
def test_chassis_is_changed(api, path, operation, name, value):
    answer = api.patch(path, [operation])
    assert (answer.status, answer.json[name]) == (200, value)
    assert answer.json["updated_at"] is not None


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/uuid", "value": UNKNOWN},
        {"op": "remove", "path": "/uuid"},
        {"op": "replace", "path": "/description", "value": "x" * 256},
        {"op": "replace", "path": "/created_at", "value": "x"},
        {"op": "replace", "path": "/extra/no", "value": 1},
        {"op": "add", "path": "/extra/c", "value": {"$sealed": "x"}},
    ],
    ids=str,
)
def test_bad_changes_are_refused(api, path, operation):
    assert api.patch(path, [operation]).status == 400


def test_the_same_uuid_is_no_change(api, chassis, path):
    same = {"op": "replace", "path": "/uuid", "value": chassis["uuid"]}
    assert api.patch(path, [same]).json == chassis
    assert "uuid" in api.patch(path, [{"op": "remove", "path": "/x"}]).said


# ---------------------------------------------------------------------------- nodes of a chassis


@pytest.fixture
def nodes(world, chassis):
    made = {"name": "in", "driver": "fake-hardware", "chassis_uuid": chassis["uuid"]}
    assert world.api.post("/v1/nodes", made).status == 201
    world.node(name="out")
    return world.api


def test_nodes_of_a_chassis_are_listed(nodes, chassis, path):
    assert [node["name"] for node in nodes.get(f"{path}/nodes").json["nodes"]] == ["in"]
    [detailed] = nodes.get(f"{path}/nodes/detail").json["nodes"]
    assert detailed["chassis_uuid"] == chassis["uuid"]
    assert nodes.get(f"{path}/nodes?maintenance=true").json["nodes"] == []
    page = nodes.get(f"{path}/nodes?limit=1").json
    assert page["next"].startswith("http://localhost/v1/nodes?sort_key=id")
    assert nodes.get(f"/v1/chassis/{UNKNOWN}/nodes").status == 404
    assert nodes.get("/v1/chassis/row-B/nodes").status == 400


def test_a_chassis_goes_when_its_nodes_are_gone(nodes, path):
    answer = nodes.delete(path)
    assert (answer.status, answer.form) == (400, "first")
    assert "contains nodes" in answer.said
    assert nodes.delete("/v1/nodes/in").status == 204
    assert nodes.delete(path).status == 204
    assert nodes.get(path).status == 404


# ---------------------------------------------------------------------------------------- lists


def test_list_shows_uuid_and_description(api, chassis):
    api.post("/v1/chassis", {"description": "row C"})
    [first, second] = api.get("/v1/chassis").json["chassis"]
    assert set(first) == {"uuid", "description", "links"}
    for query in ("/detail", "?detail=true"):
        assert set(api.get(f"/v1/chassis{query}").json["chassis"][0]) == ALL
    [last] = api.get("/v1/chassis?sort_key=description&sort_dir=desc&limit=1").json["chassis"]
    assert last == second
    page = api.get("/v1/chassis?limit=1").json
    assert page["next"] == (
        f"{URL}?sort_key=id&sort_dir=asc&fields=uuid,description&limit=1&marker={first['uuid']}"
    )
    [asked] = api.get("/v1/chassis?fields=nodes,created_at&limit=1").json["chassis"]
    assert set(asked) == {"nodes", "created_at", "links"}


@pytest.mark.parametrize(
    ("query", "version", "status"),
    [
        ("fields=uuid", 7, 406), ("fields=nonsense", MAX, 400), ("detail=true", 42, 400),
        ("detail=true&fields=uuid", MAX, 400), ("sort_key=extra", MAX, 400),
        ("description=x", MAX, 400), (f"marker={UNKNOWN}", MAX, 404), ("marker=x", MAX, 400),
    ],
)  # fmt: skip
def test_lists_are_checked(api, chassis, query, version, status):
    assert api.get(f"/v1/chassis?{query}", version=version).status == status


def test_every_version_knows_chassis(api):
    assert "chassis" in api.get("/v1", version=1).json
