"""Port groups: create, read, change, delete, list, and the lists below and above them."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.api.versions import MAX
from bloomery.model.portgroup import FIELDS

MAC = "52:54:00:12:34:56"
OTHER = "52:54:00:12:34:57"
URL = "http://localhost/v1/portgroups"
ALL = set(FIELDS) | {"links", "ports"}


@pytest.fixture
def node(world):
    return world.node(name="web-1")


@pytest.fixture
def group(world, node):
    answer = world.api.post("/v1/portgroups", {"address": MAC, "node_uuid": node, "name": "bond0"})
    assert answer.status == 201
    return answer.json


def test_created_group_is_answered_whole_with_its_address(api, node, group):
    assert set(group) == ALL
    assert (group["mode"], group["standalone_ports_supported"]) == ("active-backup", True)
    assert (group["node_uuid"], group["properties"]) == (node, {})
    assert "portgroups" not in api.get(f"/v1/nodes/{node}", version=23).json
    assert "portgroups" in api.get(f"/v1/nodes/{node}", version=24).json
    assert [link["href"] for link in group["ports"]] == [
        f"{URL}/{group['uuid']}/ports",
        f"http://localhost/portgroups/{group['uuid']}/ports",
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 201),
        ({"node_uuid": None}, 400),
        ({"node_uuid": "web-1"}, 400),
        ({"node_uuid": str(uuids.UUID(int=1))}, 400),
        ({"node_ident": "web-1"}, 400),
        ({"address": "nonsense"}, 400),
        ({"address": None}, 201),
        ({"name": ""}, 201),
        ({"name": "maintenance"}, 201),
        ({"name": str(uuids.UUID(int=2))}, 201),
        ({"name": "no blanks"}, 400),
        ({"mode": ""}, 201),
        ({"mode": "anything"}, 201),
        ({"mode": 5}, 400),
        ({"standalone_ports_supported": "no"}, 201),
        ({"internal_info": {}}, 400),
        ({"dynamic_portgroup": True}, 400),
        ({"category": "x" * 81}, 400),
        ({"extra": {"a": [{"$sealed": "x"}]}}, 400),
        ({"properties": {"$sealed": "x"}}, 400),
        ({"nonsense": 1}, 400),
    ],
    ids=str,
)
def test_group_is_checked(api, node, body, status):
    assert api.post("/v1/portgroups", {"node_uuid": node} | body).status == status


def test_node_is_required(api, node):
    assert api.post("/v1/portgroups", {"address": MAC}).status == 400


# ------------------------------------------------------------------------------------- versions


def test_group_shows_what_the_version_knows_and_details_show_all(api, group):
    for version in (23, 25, 26, 101, 102, 103, 111):
        known = {field.name for field in FIELDS.values() if field.since <= version}
        found = api.get("/v1/portgroups/bond0", version=version).json
        assert set(found) == known | {"links", "ports"}
    [listed] = api.get("/v1/portgroups/detail", version=23).json["portgroups"]
    assert set(listed) == ALL
    [listed] = api.get("/v1/portgroups?detail=true", version=43).json["portgroups"]
    assert set(listed) == ALL


@pytest.mark.parametrize(
    ("name", "value", "version", "status"),
    [
        ("mode", "x", 25, 406), ("mode", "x", 26, 200), ("mode", None, 25, 200),
        ("properties", {"a": 1}, 25, 406), ("properties", {}, 25, 200),
        ("physical_network", "x", 101, 200), ("category", "x", 102, 200),
    ],
)  # fmt: skip
def test_only_some_newer_fields_are_refused(api, node, name, value, version, status):
    body = {"node_uuid": node, name: value}
    created = {200: 201}.get(status, status)
    answer = api.post("/v1/portgroups", body, version=version)
    assert answer.status == created
    if created == 201:
        assert (name in answer.json) == (FIELDS[name].since <= version)
        path = f"/v1/portgroups/{answer.json['uuid']}"
        assert api.get(path).json[name] == ("active-backup" if value is None else value)


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [("mode", 25, 406), ("properties", 25, 406), ("mode", 26, 200), ("category", 26, 200)],
)
def test_only_some_newer_fields_are_refused_in_a_patch(api, group, name, version, status):
    value = {} if name == "properties" else "x"
    operation = {"op": "replace", "path": f"/{name}", "value": value}
    answer = api.patch("/v1/portgroups/bond0", [operation], version=version)
    assert answer.status == status


# ---------------------------------------------------------------------------------------- patch


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        ({"op": "replace", "path": "/address", "value": OTHER.upper()}, "address", OTHER),
        ({"op": "remove", "path": "/address"}, "address", None),
        ({"op": "add", "path": "/extra/a", "value": 1}, "extra", {"a": 1}),
        ({"op": "remove", "path": "/properties"}, "properties", {}),
        (
            {"op": "remove", "path": "/standalone_ports_supported"},
            "standalone_ports_supported",
            False,
        ),
        ({"op": "remove", "path": "/name"}, "name", None),
        ({"op": "remove", "path": "/node_uuid"}, "address", MAC),
        ({"op": "replace", "path": "/mode", "value": ""}, "mode", ""),
        (
            {"op": "replace", "path": "/standalone_ports_supported", "value": "no"},
            "standalone_ports_supported",
            False,
        ),
    ],
    ids=str,
)
def test_group_is_changed(api, group, operation, name, value):
    answer = api.patch("/v1/portgroups/bond0", [operation])
    assert (answer.status, answer.json[name]) == (200, value)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/mode"},
        {"op": "remove", "path": "/mode", "value": "x"},
        {"op": "replace", "path": "/mode", "value": None},
        {"op": "replace", "path": "/uuid", "value": "x"},
        {"op": "replace", "path": "/internal_info", "value": {}},
        {"op": "replace", "path": "/dynamic_portgroup", "value": True},
        {"op": "replace", "path": "/name", "value": "no blanks"},
        {"op": "replace", "path": "/address", "value": "nonsense"},
        {"op": "replace", "path": "/node_uuid", "value": str(uuids.UUID(int=3))},
        {"op": "replace", "path": "/node_uuid", "value": "web-1"},
        {"op": "replace", "path": "/extra/no", "value": 1},
        {"op": "add", "path": "/mode/x", "value": 1},
        {"op": "add", "path": "/extra", "value": {"$sealed": "x"}},
    ],
    ids=str,
)
def test_bad_changes_are_refused(api, group, operation):
    assert api.patch("/v1/portgroups/bond0", [operation]).status == 400


def test_groups_of_a_node_under_inspection_are_left_alone(world, node, group):
    world.set(node, provision_state="inspecting")
    patch = [{"op": "remove", "path": "/name"}]
    assert world.api.patch("/v1/portgroups/bond0", patch, version=39).status == 409
    assert world.api.patch("/v1/portgroups/bond0", patch, version=38).status == 200


# --------------------------------------------------------------------------------------- delete


def test_group_goes_by_name_or_uuid_when_its_ports_are_gone(world, node, group):
    port = {"address": OTHER, "node_uuid": node, "portgroup_uuid": group["uuid"]}
    member = world.api.post("/v1/ports", port).json["uuid"]
    answer = world.api.delete("/v1/portgroups/bond0")
    assert (answer.status, answer.form) == (400, "first")
    assert "contains ports" in answer.said
    assert world.api.delete(f"/v1/ports/{member}").status == 204
    assert world.api.delete("/v1/portgroups/bond0").status == 204
    assert world.api.delete(f"/v1/portgroups/{group['uuid']}").status == 404


def test_groups_and_their_ports_go_with_their_node(world, node, group):
    port = {"address": OTHER, "node_uuid": node, "portgroup_uuid": group["uuid"]}
    world.api.post("/v1/ports", port)
    assert world.api.delete(f"/v1/nodes/{node}").status == 204
    assert world.api.get("/v1/portgroups").json["portgroups"] == []


# ---------------------------------------------------------------------------------------- lists


@pytest.fixture
def two(world, node, group):
    body = {"address": OTHER, "node_uuid": world.node(shard="x"), "name": "bond1"}
    assert world.api.post("/v1/portgroups", body).status == 201
    return world.api


def names(answer):
    assert answer.status == 200, answer.body
    return [group["name"] for group in answer.json["portgroups"]]


def test_list_shows_uuid_address_and_name(two):
    for group in two.get("/v1/portgroups").json["portgroups"]:
        assert set(group) == {"uuid", "address", "name", "links"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("node=web-1", ["bond0"]),
        ("node={node}", ["bond0"]),
        (f"address={OTHER.upper()}", ["bond1"]),
        ("shard=x,y", ["bond1"]),
        ("conductor_groups=", []),
        ("sort_key=name&sort_dir=desc", ["bond1", "bond0"]),
        ("limit=1", ["bond0"]),
        ("fields=name,ports,created_at", ["bond0", "bond1"]),
    ],
)
def test_filters_choose(two, node, query, found):
    assert names(two.get(f"/v1/portgroups?{query.format(node=node)}")) == found


@pytest.mark.parametrize(
    ("query", "version", "status"),
    [
        ("node=unknown", MAX, 404), ("address=x", MAX, 400), ("name=bond0", MAX, 400),
        ("shard=x", 105, 406), ("conductor_groups=x", 98, 406), ("node_uuid=x", MAX, 400),
        ("node=web-1&shard=x", MAX, 400), (f"node=web-1&address={MAC}", MAX, 400),
        ("sort_key=properties", MAX, 400), ("sort_key=mode", 25, 406), ("fields=mode", 25, 406),
        ("fields=nonsense", MAX, 400), ("detail=true&fields=uuid", MAX, 400),
        ("detail=true", 42, 400), (f"marker={uuids.UUID(int=4)}", MAX, 404), ("limit=0", MAX, 400),
    ],
)  # fmt: skip
def test_filters_are_checked(two, query, version, status):
    assert two.get(f"/v1/portgroups?{query}", version=version).status == status


def test_next_names_the_default_fields(two):
    page = two.get("/v1/portgroups?limit=1").json
    uuid = page["portgroups"][0]["uuid"]
    assert page["next"] == (
        f"{URL}?sort_key=id&sort_dir=asc&fields=uuid,address,name&limit=1&marker={uuid}"
    )
    assert names(two.get(page["next"].removeprefix("http://localhost"))) == ["bond1"]


def test_groups_of_a_node_go_by_its_uuid_only(two, node):
    assert names(two.get(f"/v1/nodes/{node}/portgroups")) == ["bond0"]
    [group] = two.get(f"/v1/nodes/{node}/portgroups/detail").json["portgroups"]
    assert set(group) == ALL
    for ident in ("web-1", str(uuids.uuid4())):
        answer = two.get(f"/v1/nodes/{ident}/portgroups")
        assert (answer.status, answer.form) == (404, "first")
    assert two.get(f"/v1/nodes/{node}/portgroups", version=23).form == "second"


def test_ports_of_a_group_go_by_its_uuid_only(two, node, group):
    port = {"address": MAC, "node_uuid": node, "portgroup_uuid": group["uuid"]}
    two.post("/v1/ports", port)
    two.post("/v1/ports", {"address": OTHER, "node_uuid": node})
    path = f"/v1/portgroups/{group['uuid']}/ports"
    assert [port["address"] for port in two.get(path).json["ports"]] == [MAC]
    [detailed] = two.get(f"{path}/detail").json["ports"]
    assert detailed["portgroup_uuid"] == group["uuid"]
    assert two.get(f"{path}?limit=1").json["next"].startswith("http://localhost/v1/ports?sort_key")
    for ident in ("bond0", str(uuids.uuid4())):
        assert two.get(f"/v1/portgroups/{ident}/ports").status == 404
    assert two.get(path, version=23).form == "second"


@pytest.mark.parametrize("plural", ["portgroups", "ports"])
def test_a_name_that_looks_like_a_uuid_hides_nobody(api, node, plural):
    def make(number, **more):
        body = {"node_uuid": node, "address": f"52:54:00:00:00:0{number}"} | more
        return api.post(f"/v1/{plural}", body).json

    first = make(1)
    second = make(2, name=first["uuid"])
    assert api.get(f"/v1/{plural}/{first['uuid']}").json["uuid"] == first["uuid"]
    assert api.delete(f"/v1/{plural}/{first['uuid']}").status == 204
    assert api.get(f"/v1/{plural}/{first['uuid']}").status == 404
    assert api.get(f"/v1/{plural}/{second['uuid']}").status == 200
