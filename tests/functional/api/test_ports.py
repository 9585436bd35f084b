"""Ports: create, read, change, delete, list."""

from __future__ import annotations

import uuid as uuids

import pytest
import sqlalchemy as sa

from bloomery.api.versions import MAX
from bloomery.db import rows, tables
from bloomery.model import port as model

MAC = "52:54:00:12:34:56"
OTHER = "52:54:00:12:34:57"
VTEP = {"port_id": "eth0", "vtep-logical-switch": "a", "vtep-physical-switch": "b"}
LINK = {"port_id": "eth0", "switch_id": "0a:1b:2c:3d:4e:5f"}


@pytest.fixture
def node(world):
    return world.node(name="web-1")


@pytest.fixture
def port(world, node):
    answer = world.api.post("/v1/ports", {"address": MAC, "node_uuid": node, "name": "first"})
    assert answer.status == 201
    return answer.json


def test_created_port_is_answered_whole_with_its_address(api, node, port):
    assert set(port) == set(model.FIELDS) | {"links"}
    assert (port["address"], port["node_uuid"], port["pxe_enabled"]) == (MAC, node, True)


def test_mac_is_stored_in_lower_case(api, node):
    answer = api.post("/v1/ports", {"address": MAC.upper(), "node_ident": "web-1"})
    assert answer.json["address"] == MAC
    assert answer.headers["location"].endswith(answer.json["uuid"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"address": MAC}, 400),
        ({"node_uuid": "NODE"}, 400),
        ({"address": MAC, "node_uuid": "NODE", "node_ident": "web-1"}, 400),
        ({"address": MAC, "node_uuid": "web-1"}, 400),
        ({"address": MAC, "node_ident": "unknown"}, 400),
        ({"address": MAC, "node_uuid": str(uuids.UUID(int=1))}, 400),
        ({"address": MAC.replace(":", "-"), "node_uuid": "NODE"}, 400),
        ({"address": "nonsense", "node_uuid": "NODE"}, 400),
        ({"address": 5, "node_uuid": "NODE"}, 400),
        ({"address": MAC, "node_uuid": "NODE", "nonsense": 1}, 400),
        ({"address": MAC, "node_uuid": "NODE", "internal_info": {}}, 400),
        ({"address": MAC, "node_uuid": "NODE", "physical_network": ""}, 400),
        ({"address": MAC, "node_uuid": "NODE", "physical_network": "x" * 65}, 400),
        ({"address": MAC, "node_uuid": "NODE", "vendor": "x" * 33}, 400),
        ({"address": MAC, "node_uuid": "NODE", "uuid": "x"}, 400),
        ({"address": MAC, "node_uuid": "NODE", "pxe_enabled": "no"}, 201),
        ({"address": MAC, "node_uuid": "NODE", "name": "blanks are fine"}, 201),
        ({"address": MAC, "node_uuid": "NODE", "is_smartnic": True}, 201),
    ],
    ids=str,
)
def test_port_is_checked(api, node, body, status):
    said = body | ({"node_uuid": node} if body.get("node_uuid") == "NODE" else {})
    assert api.post("/v1/ports", said).status == status


@pytest.mark.parametrize(
    ("link", "version", "status"),
    [
        ({}, MAX, 201),
        (None, MAX, 201),
        (LINK, MAX, 201),
        (LINK | {"switch_info": "x"}, MAX, 201),
        (LINK | {"switch_id": "0123456789abcdef"}, MAX, 201),
        (LINK | {"switch_id": "0x0123456789abcdef"}, MAX, 400),
        (LINK | {"switch_id": "nonsense"}, MAX, 400),
        (LINK | {"nonsense": 1}, MAX, 400),
        ({"port_id": "rep0-0", "hostname": "host1"}, MAX, 201),
        ({"port_id": "eth0"}, MAX, 400),
        ({"switch_id": LINK["switch_id"]}, MAX, 400),
        (LINK | {"hostname": "host1"}, MAX, 201),
        (LINK | {"hostname": 5}, MAX, 400),
        ({"network_type": "unmanaged"}, MAX, 201),
        ({"network_type": "unmanaged", "port_id": "eth0"}, MAX, 201),
        ({"network_type": "managed"}, MAX, 400),
        (LINK | {"network_type": "managed"}, MAX, 201),
        ({"network_type": "unmanaged"}, 63, 406),
        (VTEP, 89, 406),
        (VTEP, 104, 201),
        (VTEP, 105, 406),
        ({name: VTEP[name] for name in VTEP if name != "port_id"}, 104, 400),
        ([], MAX, 400),
    ],
    ids=str,
)
def test_local_link_connection_has_a_form(api, node, link, version, status):
    body = {"address": MAC, "node_uuid": node, "local_link_connection": link}
    assert api.post("/v1/ports", body, version=version).status == status


@pytest.mark.parametrize(
    "field",
    [f for f in model.FIELDS.values() if f.since > 1 and f.access != "R"],
    ids=lambda f: f.name,
)  # fmt: skip
def test_newer_field_is_refused_even_if_null(api, node, field):
    for value in ({"text": "x", "bool": False, "object": {}, "uuid": None}[field.kind], None):
        body = {"address": MAC, "node_uuid": node, field.name: value}
        assert api.post("/v1/ports", body, version=field.since - 1).status == 406


def test_node_ident_is_known_since_1_94(api, node):
    body = {"address": MAC, "node_ident": "web-1"}
    assert api.post("/v1/ports", body, version=93).status == 406
    assert api.post("/v1/ports", body, version=94).status == 201


def test_port_shows_what_the_version_knows(api, port):
    for version in (1, 18, 19, 53, 88, MAX):
        known = {field.name for field in model.FIELDS.values() if field.since <= version}
        found = api.get(f"/v1/ports/{port['uuid']}", version=version).json
        assert set(found) == known | {"links"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/v1/ports/{MAC}", 400),
        ("DELETE", f"/v1/ports/{MAC}", 400),
        ("DELETE", "/v1/ports/first", 400),
        ("GET", "/v1/ports/first", 200),
        ("PATCH", "/v1/ports/first", 200),
        ("GET", "/v1/ports/unknown", 404),
        ("GET", "/v1/ports/first?fields=created_at,links,address", 200),
        ("GET", "/v1/ports/first?fields=nonsense", 400),
    ],
)
def test_ports_go_by_uuid_and_mostly_by_name(api, port, method, path, status):
    assert api.ask(method, path, [] if method == "PATCH" else None).status == status
    assert api.ask("GET", path.split("?")[0], version=1).status in (status, 200, 400, 404)


# ------------------------------------------------------------------------------------- patch


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        ({"op": "replace", "path": "/address", "value": OTHER.upper()}, "address", OTHER),
        ({"op": "add", "path": "/extra/a", "value": 1}, "extra", {"a": 1}),
        ({"op": "remove", "path": "/name"}, "name", None),
        (
            {"op": "add", "path": "/local_link_connection", "value": LINK},
            "local_link_connection",
            LINK,
        ),
        ({"op": "replace", "path": "/pxe_enabled", "value": "no"}, "pxe_enabled", False),
        ({"op": "remove", "path": "/pxe_enabled"}, "pxe_enabled", False),
        ({"op": "add", "path": "/extra/a~1b", "value": 1}, "extra", {"a/b": 1}),
        ({"op": "remove", "path": "/node_uuid"}, "address", MAC),
    ],
    ids=str,
)
def test_port_is_changed(api, port, operation, name, value):
    answer = api.patch(f"/v1/ports/{port['uuid']}", [operation])
    assert (answer.status, answer.json[name]) == (200, value)


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "remove", "path": "/address"}, 400),
        ({"op": "replace", "path": "/address", "value": "nonsense"}, 400),
        ({"op": "replace", "path": "/address", "value": None}, 400),
        ({"op": "replace", "path": "/uuid", "value": "x"}, 400),
        ({"op": "replace", "path": "/internal_info", "value": {}}, 400),
        ({"op": "replace", "path": "/node_uuid", "value": str(uuids.UUID(int=2))}, 400),
        ({"op": "add", "path": "/local_link_connection/port_id", "value": "x"}, 400),
        ({"op": "add", "path": "/extra", "value": []}, 400),
        ({"op": "remove", "path": "/extra/gone"}, 400),
        ({"op": "add", "path": "/name/x", "value": 1}, 400),
    ],
    ids=str,
)
def test_wrong_patch_is_refused(api, port, operation, status):
    assert api.patch(f"/v1/ports/{port['uuid']}", [operation]).status == status
    assert api.get(f"/v1/ports/{port['uuid']}").json == port


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [("pxe_enabled", 18, 406), ("is_smartnic", 52, 406), ("name", 87, 200), ("category", 100, 200)],
)
def test_only_some_newer_fields_are_refused_in_a_patch(api, port, name, version, status):
    value = "x" if name in ("name", "category") else True
    operation = {"op": "add", "path": f"/{name}", "value": value}
    assert api.patch(f"/v1/ports/{port['uuid']}", [operation], version=version).status == status


def test_node_of_a_port_stays(world, port):
    other = world.node()
    operation = {"op": "replace", "path": "/node_uuid", "value": other}
    assert world.api.patch(f"/v1/ports/{port['uuid']}", [operation]).status == 400
    operation["value"] = port["node_uuid"]
    assert world.api.patch(f"/v1/ports/{port['uuid']}", [operation]).status == 200


def test_ports_of_a_node_under_inspection_are_left_alone(world, node, port):
    world.set(node, provision_state="inspecting")
    path, patch = f"/v1/ports/{port['uuid']}", [{"op": "remove", "path": "/name"}]
    assert world.api.patch(path, patch, version=39).status == 409
    assert world.api.post("/v1/ports", {"address": OTHER, "node_uuid": node}).status == 409
    assert world.api.patch(path, patch, version=38).status == 200


# ------------------------------------------------------------------------------------- lists


@pytest.fixture
def two(world, node, port):
    world.api.post(
        "/v1/ports", {"address": OTHER, "node_uuid": world.node(shard="x"), "description": "slow"}
    )
    return world.api


def addresses(answer):
    assert answer.status == 200, answer.body
    return [port["address"] for port in answer.json["ports"]]


def test_list_shows_uuid_and_address(two):
    found = two.get("/v1/ports").json["ports"]
    assert [set(port) for port in found] == [{"uuid", "address", "links"}] * 2
    for path in ("/v1/ports/detail", "/v1/ports?detail=true"):
        assert set(two.get(path).json["ports"][0]) == set(model.FIELDS) | {"links"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("node=web-1", [MAC]),
        ("node_uuid={node}", [MAC]),
        (f"address={MAC.upper()}", [MAC]),
        ("shard=x,y", [OTHER]),
        ("description_contains=LOW", [OTHER]),
        ("conductor_groups=", []),
        ("sort_key=address&sort_dir=desc", [OTHER, MAC]),
        ("limit=1", [MAC]),
    ],
)
def test_filters_choose(two, node, query, found):
    assert addresses(two.get(f"/v1/ports?{query.format(node=node)}")) == found


@pytest.mark.parametrize(
    ("query", "version", "status"),
    [
        ("node=unknown", MAX, 404), ("node_uuid=web-1", MAX, 400), ("address=x", MAX, 400),
        ("portgroup=unknown", MAX, 404), ("portgroup=unknown", 23, 406), ("shard=x", 81, 406),
        ("description_contains=x", 96, 406), ("conductor_groups=x", 98, 406),
        ("name=first", MAX, 400), ("pxe_enabled=true", MAX, 400),
        ("node=web-1&shard=x", MAX, 403), ("conductor_groups=x&node=web-1", MAX, 400),
        ("sort_key=extra", MAX, 400), ("sort_key=portgroup_uuid", MAX, 400),
        ("detail=true&fields=uuid", MAX, 400), ("detail=true", 42, 400),
    ],
)  # fmt: skip
def test_filters_are_checked(two, query, version, status):
    assert two.get(f"/v1/ports?{query}", version=version).status == status


def test_next_names_the_default_fields(two):
    page = two.get("/v1/ports?limit=1").json
    uuid = page["ports"][0]["uuid"]
    assert page["next"] == (
        "http://localhost/v1/ports?sort_key=id&sort_dir=asc&fields=uuid,address"
        f"&limit=1&marker={uuid}"
    )
    assert len(two.get(page["next"].removeprefix("http://localhost")).json["ports"]) == 1


def test_ports_of_a_node_go_by_its_uuid_only(two, node):
    assert addresses(two.get(f"/v1/nodes/{node}/ports")) == [MAC]
    assert set(two.get(f"/v1/nodes/{node}/ports/detail").json["ports"][0]) >= {"extra"}
    for ident in ("web-1", str(uuids.uuid4())):
        answer = two.get(f"/v1/nodes/{ident}/ports")
        assert (answer.status, answer.form) == (404, "first")
    page = two.get(f"/v1/nodes/{node}/ports?limit=1").json
    assert page["next"].startswith("http://localhost/v1/ports?sort_key=id")


def test_ports_filter_by_port_group(world, node, port):
    group = str(uuids.uuid4())
    values = {
        "uuid": group, "name": "bond0", "node_uuid": node, "extra": "{}", "internal_info": "{}",
        "standalone_ports_supported": True, "mode": "active-backup", "properties": "{}",
        "dynamic_portgroup": False, "created_at": rows.now(),
    }  # fmt: skip
    world.site.db.transact(lambda conn: conn.execute(sa.insert(tables.PORTGROUPS), values))
    body = {"address": OTHER, "node_uuid": node, "portgroup_uuid": group}
    assert world.api.post("/v1/ports", body).status == 201
    for ident in (group, "bond0"):
        assert addresses(world.api.get(f"/v1/ports?portgroup={ident}")) == [OTHER]
