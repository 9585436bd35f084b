"""Allocations as clients see them; what becomes of one is a story of the real conductor."""

from __future__ import annotations

import json

import pytest

from bloomery.api.versions import MAX

A = "/v1/allocations"
FIELDS = {
    "uuid", "name", "node_uuid", "resource_class", "state", "last_error", "candidate_nodes",
    "traits", "extra", "owner", "created_at", "updated_at", "links",
}  # fmt: skip


@pytest.fixture
def node(api):
    return api.post("/v1/nodes", {"driver": "fake-hardware", "name": "web-1"}).json["uuid"]


@pytest.fixture
def allocation(api):
    answer = api.post(A, {"name": "one", "resource_class": "large", "traits": ["CUSTOM_A"]})
    assert answer.status == 201, answer.body
    return answer.json


def test_allocation_is_answered_whole_before_a_node_is_looked_for(api, allocation):
    assert set(allocation) == FIELDS
    assert (allocation["state"], allocation["node_uuid"]) == ("allocating", None)
    assert (allocation["candidate_nodes"], allocation["traits"]) == ([], ["CUSTOM_A"])
    assert (allocation["extra"], allocation["owner"], allocation["updated_at"]) == ({}, None, None)


@pytest.mark.parametrize(
    ("body", "version", "status"),
    [
        ({}, 52, 201),
        ({}, 51, 405),
        ({"resource_class": ""}, MAX, 400),
        ({"resource_class": None}, MAX, 400),
        ({"resource_class": "x" * 80}, MAX, 201),
        ({"resource_class": "x" * 81}, MAX, 400),
        ({"name": "5c0fdd3a-7e3a-4d0e-9e63-2a8d2f4e6c11"}, MAX, 201),
        ({"name": "no blanks"}, MAX, 400),
        ({"name": "x" * 256}, MAX, 400),
        ({"name": None, "extra": None, "traits": None, "candidate_nodes": None}, MAX, 201),
        ({"uuid": "no-uuid"}, MAX, 400),
        ({"uuid": "", "owner": "", "name": ""}, MAX, 201),
        ({"traits": ["NO_TRAIT"]}, MAX, 400),
        ({"traits": "CUSTOM_A"}, MAX, 400),
        ({"traits": [1]}, MAX, 400),
        ({"candidate_nodes": ["nobody"]}, MAX, 400),
        ({"candidate_nodes": [None]}, MAX, 400),
        ({"candidate_nodes": ["web-1"]}, MAX, 201),
        ({"extra": {"$sealed": "x"}}, MAX, 400),
        ({"node": "nobody"}, MAX, 400),
        ({"node": None}, 57, 400),
        ({"node": "web-1"}, 57, 400),
        ({"owner": "p"}, 60, 201),
        ({"owner": None}, 59, 406),
        ({"state": "active"}, MAX, 400),
        ({"node_uuid": None}, MAX, 400),
        ({"last_error": "x"}, MAX, 400),
    ],
    ids=str,
)
def test_bodies_are_checked(api, node, body, version, status):
    answer = api.post(A, {"resource_class": "large"} | body, version=version)
    assert answer.status == status, answer.body


def test_traits_are_as_many_as_a_node_may_have(api):
    traits = [f"CUSTOM_{number}" for number in range(51)]
    twice = {"resource_class": "large", "traits": traits[:50] * 2}
    assert api.post(A, twice).json["traits"] == traits[:50] * 2
    answer = api.post(A, {"resource_class": "large", "traits": traits})
    assert answer.status == 400
    assert "traits must be 50 at most" in answer.said


def test_candidates_are_kept_in_order_as_uuids(api, node):
    other = api.post("/v1/nodes", {"driver": "fake-hardware"}).json["uuid"]
    body = {"resource_class": "large", "candidate_nodes": [other, "web-1"]}
    assert api.post(A, body).json["candidate_nodes"] == [other, node]


@pytest.mark.parametrize(
    ("operation", "version", "status"),
    [
        ({"op": "replace", "path": "/name", "value": "b"}, 57, 200),
        ({"op": "replace", "path": "/name", "value": "b"}, 56, 405),
        ({"op": "replace", "path": "/name", "value": "no blanks"}, MAX, 400),
        ({"op": "remove", "path": "/name"}, MAX, 200),
        ({"op": "add", "path": "/extra/a", "value": 1}, MAX, 200),
        ({"op": "replace", "path": "/extra/a", "value": 1}, MAX, 400),
        ({"op": "replace", "path": "/resource_class", "value": "x"}, MAX, 400),
        ({"op": "replace", "path": "/owner", "value": "x"}, MAX, 400),
        ({"op": "replace", "path": "/state", "value": "x"}, MAX, 400),
        ({"op": "replace", "path": "/node", "value": "x"}, MAX, 400),
    ],
    ids=str,
)
def test_changes_are_checked(api, allocation, operation, version, status):
    path = f"{A}/{allocation['uuid']}"
    assert api.patch(path, [operation], version=version).status == status
    if version == MAX:
        assert api.patch(f"{A}/nobody", [operation]).status == 404


def test_name_of_another_is_a_conflict(api, allocation):
    other = api.post(A, {"resource_class": "large"}).json["uuid"]
    patch = [{"op": "add", "path": "/name", "value": "one"}]
    assert api.patch(f"{A}/{other}", patch).status == 409


def test_lists_show_all_and_filter(api, allocation, node):
    other = api.post(A, {"resource_class": "small", "owner": "p"}).json

    def listed(query):
        return [row["uuid"] for row in api.get(f"{A}?{query}").json["allocations"]]

    assert api.get(A).json == {"allocations": [allocation, other]}
    assert listed("resource_class=small") == listed("owner=p") == [other["uuid"]]
    assert listed("state=nonsense") == listed("node=web-1") == []
    assert listed("state=allocating&sort_dir=desc") == [other["uuid"], allocation["uuid"]]
    for query in ("node=nobody", "detail=true", "sort_key=node_uuid", "sort_key=traits", "name=x"):
        assert api.get(f"{A}?{query}").status == 400, query
    assert api.get(f"{A}?owner=p", version=59).status == 406
    assert api.get(f"{A}?marker={node}").status == 404


def test_next_page_has_the_fields_that_were_asked_for(api, allocation):
    page = api.get(f"{A}?limit=1&fields=uuid,name").json
    assert set(page["allocations"][0]) == {"uuid", "name", "links"}
    marker = f"limit=1&marker={allocation['uuid']}"
    query = page["next"].partition("?")[2]
    assert query == f"sort_key=id&sort_dir=asc&fields=uuid,name&{marker}"
    query = api.get(f"{A}?limit=1").json["next"].partition("?")[2]
    assert query == f"sort_key=id&sort_dir=asc&{marker}"


def test_owner_is_hidden_from_older_clients(api, allocation):
    old = api.get(f"{A}/one", version=59).json
    assert set(old) == FIELDS - {"owner"}
    assert api.get(f"{A}/one?fields=owner", version=59).status == 400
    assert api.get(f"{A}?fields=owner", version=59).status == 400
    assert api.get(f"{A}/one?fields=node", version=MAX).status == 400


def test_allocation_is_deleted_by_uuid_or_name(api, allocation):
    assert api.delete(f"{A}/nobody").status == 404
    assert api.delete(f"{A}/one").status == 204
    assert api.get(f"{A}/{allocation['uuid']}").status == 404


def test_node_without_allocation(api, node):
    path = f"/v1/nodes/{node}/allocation"
    assert api.get(path).status == api.delete(path).status == 404
    assert "has no allocation" in json.loads(api.get(path).json["error_message"])["faultstring"]
    assert api.get("/v1/nodes/nobody/allocation").status == 400
    assert api.delete("/v1/nodes/nobody/allocation").status == 404
    old = api.get(path, version=51)
    assert (old.status, old.form) == (404, "second")
