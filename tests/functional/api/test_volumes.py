"""Volume connectors and targets: create, read, change, delete, list, and the lists below a node."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.model.volume import CONNECTOR_FIELDS, TARGET_FIELDS

V = "/v1/volume"
IQN = {"type": "iqn", "connector_id": "iqn.2017-07.org.example:web-1"}
DISK = {"volume_type": "iscsi", "volume_id": "vol-1", "boot_index": 0}
KINDS = (("connectors", IQN, CONNECTOR_FIELDS), ("targets", DISK, TARGET_FIELDS))


@pytest.fixture
def node(world):
    return world.node(name="web-1", power_state="power off")


@pytest.fixture(params=KINDS, ids=[kind[0] for kind in KINDS])
def kind(request):
    return request.param


@pytest.fixture
def record(world, node, kind):
    """A record of each kind, and where its collection is."""
    plural, body, _fields = kind
    answer = world.api.post(f"{V}/{plural}", body | {"node_uuid": node})
    assert answer.status == 201
    return f"{V}/{plural}/{answer.json['uuid']}"


def add_target(api, node, **more):
    return api.post(f"{V}/targets", DISK | {"node_uuid": node} | more)


def test_record_is_answered_whole_with_its_address(api, node, kind, record):
    _plural, body, fields = kind
    document = api.get(record).json
    assert set(document) == set(fields) | {"links"}
    assert {name: document[name] for name in body} == body
    assert (document["node_uuid"], document["extra"]) == (node, {})


@pytest.mark.parametrize(
    ("plural", "body", "status"),
    [
        ("connectors", IQN | {"type": "anything"}, 201),
        ("connectors", IQN | {"connector_id": ""}, 201),
        ("connectors", IQN | {"type": "x" * 33}, 400),
        ("connectors", {"type": "iqn"}, 400),
        ("connectors", {"connector_id": "x"}, 400),
        ("connectors", IQN | {"type": None}, 400),
        ("connectors", IQN | {"node_uuid": "web-1"}, 400),
        ("connectors", IQN | {"node_uuid": str(uuids.UUID(int=1))}, 400),
        ("connectors", IQN | {"extra": {"$sealed": "x"}}, 400),
        ("connectors", IQN | {"nonsense": 1}, 400),
        ("targets", DISK | {"volume_type": "anything"}, 201),
        ("targets", DISK | {"boot_index": -1}, 201),
        ("targets", DISK | {"boot_index": 2**31}, 400),
        ("targets", DISK | {"boot_index": 2**70}, 400),
        ("targets", DISK | {"boot_index": "0"}, 400),
        ("targets", DISK | {"volume_id": "x" * 37}, 400),
        ("targets", {"volume_type": "iscsi", "volume_id": "v"}, 400),
        ("targets", DISK | {"properties": {"$sealed": "x"}}, 400),
    ],
    ids=str,
)
def test_bodies_are_checked(api, node, plural, body, status):
    assert api.post(f"{V}/{plural}", {"node_uuid": node} | body).status == status


def test_a_connector_is_unique_by_type_and_id_and_a_target_by_its_boot_index(world, node):
    other = world.node()
    assert world.api.post(f"{V}/connectors", IQN | {"node_uuid": node}).status == 201
    assert world.api.post(f"{V}/connectors", IQN | {"node_uuid": other}).status == 409
    assert add_target(world.api, node).status == 201
    assert add_target(world.api, other).status == 201
    assert add_target(world.api, node, volume_id="vol-2").status == 409
    answer = add_target(world.api, node, volume_id="vol-2", boot_index=1)
    path = f"{V}/targets/{answer.json['uuid']}"
    taken = [{"op": "replace", "path": "/boot_index", "value": 0}]
    assert world.api.patch(path, taken).status == 409


# -------------------------------------------------------------------------------------- changes


@pytest.mark.parametrize(
    ("plural", "operation"),
    [
        ("connectors", {"op": "remove", "path": "/type"}),
        ("connectors", {"op": "remove", "path": "/connector_id"}),
        ("connectors", {"op": "replace", "path": "/uuid", "value": "x"}),
        ("connectors", {"op": "replace", "path": "/node_uuid", "value": "web-1"}),
        ("targets", {"op": "remove", "path": "/volume_id"}),
        ("targets", {"op": "remove", "path": "/boot_index"}),
        ("targets", {"op": "replace", "path": "/boot_index", "value": "1"}),
        ("targets", {"op": "replace", "path": "/boot_index", "value": 2**40}),
        ("targets", {"op": "add", "path": "/properties", "value": {"$sealed": "x"}}),
    ],
    ids=str,
)
def test_bad_changes_are_refused(api, node, plural, operation):
    body = {"connectors": IQN, "targets": DISK}[plural]
    uuid = api.post(f"{V}/{plural}", body | {"node_uuid": node}).json["uuid"]
    assert api.patch(f"{V}/{plural}/{uuid}", [operation]).status == 400


# ---------------------------------------------------------------------------------------- lists


def test_lists_show_little_or_all(api, node, kind, record):
    plural, _body, fields = kind
    [short] = api.get(f"{V}/{plural}").json[plural]
    assert "extra" not in short
    assert "links" in short
    [whole] = api.get(f"{V}/{plural}?detail=true").json[plural]
    assert set(whole) == set(fields) | {"links"}
    [some] = api.get(f"{V}/{plural}?fields=uuid,extra").json[plural]
    assert set(some) == {"uuid", "extra", "links"}
    assert api.get(f"{V}/{plural}?fields=uuid&detail=true").status == 400
    assert api.get(f"{V}/{plural}/detail").status == 400  # no UUID
    assert api.get(f"{V}/{plural}/web-1").status == 400


def test_lists_are_filtered_by_node_and_paged(world, node):
    other = world.node()
    for index in range(3):
        add_target(world.api, node, boot_index=index)
    add_target(world.api, other)
    for ident in (node, "web-1"):
        rows = world.api.get(f"{V}/targets?node={ident}").json["targets"]
        assert [row["boot_index"] for row in rows] == [0, 1, 2]
    assert world.api.get(f"{V}/targets?node=nobody").status == 404
    page = world.api.get(f"{V}/targets?limit=2&sort_key=boot_index").json
    assert page["next"].startswith(f"http://localhost{V}/targets?")
    below = world.api.get(f"/v1/nodes/{node}/volume/targets?limit=2").json
    assert len(below["targets"]) == 2
    assert world.api.get(f"/v1/nodes/{node}/volume/targets/detail").status == 400


def test_the_root_and_a_node_say_where_volumes_are(api, node):
    root = api.get(V).json
    assert set(root) == {"links", "connectors", "targets"}
    assert root["connectors"][0]["href"] == f"http://localhost{V}/connectors"
    below = api.get("/v1/nodes/web-1/volume").json
    assert below["targets"][0]["href"] == f"http://localhost/v1/nodes/{node}/volume/targets"
    assert api.get("/v1/nodes/web-1/volume/targets").status == 404  # by UUID only
    assert api.get(f"/v1/nodes/{node}").json["volume"][0]["href"].endswith(f"/{node}/volume")
    assert (api.get(V, version=31).status, api.get(V, version=31).form) == (404, "first")
    assert "volume" not in api.get(f"/v1/nodes/{node}", version=31).json
    assert "volume" in api.get(f"/v1/nodes/{node}", version=32).json
    assert api.post(f"/v1/nodes/{node}/volume/targets", DISK | {"node_uuid": node}).status == 400
