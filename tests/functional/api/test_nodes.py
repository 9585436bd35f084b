"""A node from enrolment to deletion, as a client sees it."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.model import node as model

MASK = "******"
SUBRESOURCES = {"links", "ports", "portgroups", "states", "volume"}


@pytest.fixture
def conf():
    return Conf(
        api=Api(disallowed_enrollment_boot_modes=("bios",)),
        default=Default(default_resource_class="standard"),
    )


def test_created_node_is_answered_whole_with_its_address(api):
    answer = api.post("/v1/nodes", {"driver": "fake-hardware", "name": "web-1"})
    node = answer.json
    assert answer.status == 201
    assert answer.headers["location"] == f"http://localhost/v1/nodes/{node['uuid']}"
    assert set(node) == set(model.FIELDS) | SUBRESOURCES
    assert (node["name"], node["provision_state"], node["power_state"]) == ("web-1", "enroll", None)
    assert node["provision_updated_at"] is None
    assert node["conductor"] == "host-1"
    assert node["resource_class"] == "standard"
    assert node["traits"] == []
    assert (node["extra"], node["driver_internal_info"]) == ({}, {})
    assert node["created_at"].endswith("+00:00")
    assert api.get("/v1/nodes/web-1").json == node


@pytest.mark.parametrize("version", [1, 4, 10, 50, 76, 104, MAX])
def test_node_shows_what_the_version_knows(world, version):
    uuid = world.node()
    known = {field.name for field in model.FIELDS.values() if field.since <= version}
    found = set(world.api.get(f"/v1/nodes/{uuid}", version=version).json)
    assert found - SUBRESOURCES == known
    assert ("states" in found) == (version >= 14)


def test_secrets_are_masked(api):
    node = api.node(
        driver_info={
            "redfish_password": "a",
            "deep": {"snmp_auth_key": "b"},
            "list": [{"password": "c"}],
        },
        instance_info={"configdrive": "d", "image_url": "http://x?sig=e", "plain": "f"},
    )
    assert node["driver_info"] == {
        "redfish_password": MASK,
        "deep": {"snmp_auth_key": MASK},
        "list": [{"password": MASK}],
    }
    assert node["instance_info"]["image_url"] == MASK
    assert node["instance_info"]["plain"] == "f"


def test_uuid_is_kept_as_it_was_spelt(api):
    for spelt in (str(uuids.uuid4()).upper(), uuids.uuid4().hex):
        answer = api.post("/v1/nodes", {"driver": "fake-hardware", "uuid": spelt})
        assert answer.headers["location"].endswith(spelt)
        assert api.get(f"/v1/nodes/{spelt}").status == 200
        assert api.get(f"/v1/nodes/{spelt.swapcase()}").status == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "driver"),
        ({"driver": None}, "driver"),
        ({"driver": 5}, "driver"),
        ({"driver": "fake-hardware", "nonsense": 1}, "nonsense"),
        ({"driver": "fake-hardware", "uuid": "x"}, "Expected UUID for uuid: x"),
        ({"driver": "fake-hardware", "name": 5}, "name"),
        ({"driver": "fake-hardware", "extra": []}, "extra"),
        ({"driver": "fake-hardware", "maintenance": "maybe"}, "maintenance"),
        ({"driver": "fake-hardware", "protected": True}, "protected"),
        ({"driver": "fake-hardware", "provision_state": "active"}, "provision_state"),
        ({"driver": "fake-hardware", "traits": []}, "traits"),
        ({"driver": "fake-hardware", "description": "x" * 4097}, "description"),
        ({"driver": "fake-hardware", "resource_class": "x" * 81}, "resource_class"),
        ({"driver": "fake-hardware", "instance_name": ""}, "instance_name"),
        ({"driver": "fake-hardware", "instance_uuid": "x"}, "instance_uuid"),
        ({"driver": "fake-hardware", "chassis_uuid": "x"}, "chassis_uuid"),
        ({"driver": "fake-hardware", "chassis_uuid": str(uuids.UUID(int=1))}, "could not be found"),
        ({"driver": "fake-hardware", "parent_node": "unknown"}, "parent_node"),
        ({"driver": "fake-hardware", "properties": {"memory_mb": "much"}}, "memory_mb"),
        ({"driver": "fake-hardware", "properties": {"local_gb": -1}}, "local_gb"),
        ({"driver": "fake-hardware", "properties": {"local_gb": 1.5}}, "local_gb"),
        (
            {"driver": "fake-hardware", "properties": {"capabilities": "boot_mode:bios"}},
            "boot_mode",
        ),
        ({"driver": "fake-hardware", "network_data": {"links": 5}}, "network_data"),
        ({"driver": "fake-hardware", "owner": "me"}, "owner"),
        ({"driver": "fake-hardware", "boot_interface": "nonsense"}, "enabled"),
        ({"driver": "fake-hardware", "driver_info": {"a": {"$sealed": "x"}}}, "$sealed"),
        ({"driver": "nonsense"}, "nonsense"),
        ({"driver": ""}, "driver"),
        ({"driver": "fake-hardware", "conductor_group": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_node_is_refused_with_the_field_that_is_wrong(api, body, said):
    answer = api.post("/v1/nodes", body)
    assert (answer.status, answer.form) == (400, "first")
    assert said in answer.said


def test_accepted_spellings_are_stored_plainly(api):
    node = api.node(
        maintenance="yes",
        automated_clean="0",
        retired="true",
        lessee="project",
        properties={
            "memory_mb": "4096",
            "local_gb": 10,
            "cpus": "many",
            "capabilities": "boot_mode:uefi",
        },
        network_data=None,
        description=None,
        secure_boot=True,
        boot_mode="uefi",
        console_enabled="1",
    )
    assert (node["maintenance"], node["automated_clean"], node["retired"]) == (True, False, True)
    assert node["console_enabled"] is True
    assert node["boot_mode"] is None


NAMES = [
    ("web-1", 201, 201), ("web.1", 201, 201), ("a" * 63, 201, 201), ("ports", 201, 201),
    ("a" * 64, 400, 201), ("web_1", 400, 201), ("web~1", 400, 201), ("-web", 400, 201),
    ("", 400, 400), ("web 1", 400, 400), ("wéb", 400, 400), ("a" * 256, 400, 400),
    ("states", 400, 400), ("detail", 400, 400), ("validate", 400, 400), ("management", 400, 400),
    (str(uuids.UUID(int=5)), 400, 400), (uuids.UUID(int=6).hex, 400, 400),
]  # fmt: skip


@pytest.mark.parametrize(("name", "hostname", "any_name"), NAMES)
def test_names_follow_the_rules_of_their_version(api, name, hostname, any_name):
    body = {"driver": "fake-hardware", "name": name}
    assert api.post("/v1/nodes", body, version=4).status in (400, 406)
    old = api.post("/v1/nodes", body, version=9)
    assert old.status == hostname
    if old.status == 201:
        api.delete(f"/v1/nodes/{old.json['uuid']}")
    assert api.post("/v1/nodes", body, version=10).status == any_name


@pytest.mark.parametrize(
    "field",
    [f for f in model.FIELDS.values() if f.since > 1 and f.access in ("RW", "C")],
    ids=lambda f: f.name,
)
def test_newer_field_is_refused_unless_null(api, field):
    value = {"text": "x", "bool": False, "object": {}, "uuid": str(uuids.uuid4())}[field.kind]
    body = {"driver": "fake-hardware", field.name: value}
    assert api.post("/v1/nodes", body, version=field.since - 1).status == 406
    if field.nullable and field.name != "conductor_group":
        body[field.name] = None
        assert api.post("/v1/nodes", body, version=field.since - 1).status == 201


def test_empty_conductor_group_passes_at_any_version(api):
    assert api.node(version=45, conductor_group="")


def test_fields_choose_what_is_shown(world):
    uuid = world.node()
    shown = world.api.get(f"/v1/nodes/{uuid}?fields=UUID, name,uuid").json
    assert set(shown) == {"uuid", "name", "links"}
    assert set(world.api.get(f"/v1/nodes/{uuid}?fields=").json) == {"links"}
    both = world.api.get(f"/v1/nodes/{uuid}?fields=uuid&fields=driver,traits,conductor").json
    assert set(both) == {"uuid", "driver", "traits", "conductor", "links"}


@pytest.mark.parametrize(
    ("fields", "version", "status"),
    [
        ("uuid", 7, 406), ("uuid", 8, 200), ("nonsense", MAX, 400), ("created_at", MAX, 400),
        ("links", MAX, 400), ("ports", MAX, 400), ("states", MAX, 400), ("id", MAX, 400),
        ("lessee", 64, 406), ("lessee", 65, 200),
        ("chassis_uuid,conductor,allocation_uuid", MAX, 200),
    ],
)  # fmt: skip
def test_fields_are_checked(world, fields, version, status):
    uuid = world.node()
    assert world.api.get(f"/v1/nodes/{uuid}?fields={fields}", version=version).status == status
    assert world.api.get(f"/v1/nodes?fields={fields}", version=version).status == status


# ----------------------------------------------------------------------------------- children


def test_child_knows_its_parent_by_uuid(api):
    parent = api.node(name="rack")
    child = api.node(parent_node="rack")
    assert child["parent_node"] == parent["uuid"]
    found = api.get("/v1/nodes/rack/children").json
    assert found == {
        "children": [child["uuid"]],
        "links": {
            "href": f"http://localhost/v1/nodes?parent_node={parent['uuid']}",
            "rel": "children",
        },
    }


def test_children_of_a_deleted_node_have_no_parent(api):
    api.node(name="rack")
    child = api.node(parent_node="rack")["uuid"]
    assert api.delete("/v1/nodes/rack").status == 204
    assert api.get(f"/v1/nodes/{child}").json["parent_node"] is None
    assert child in [node["uuid"] for node in api.get("/v1/nodes").json["nodes"]]


# --------------------------------------------------------------------------------- validation


def test_validation_tells_of_each_interface(world):
    uuid = world.node()
    found = world.api.get(f"/v1/nodes/{uuid}/validate").json
    assert set(found) == set(model.INTERFACES) - {"vendor"}
    assert world.api.get(f"/v1/nodes/validate?node={uuid}").json == found
    assert world.api.get(f"/v1/nodes/validate?node_uuid={uuid}").json == found
    assert world.api.get("/v1/nodes/validate").status == 400
    assert world.api.get("/v1/nodes/validate?node=unknown").status == 404


# -------------------------------------------------------------------------------- maintenance


def test_maintenance_keeps_its_reason_and_forgets_the_fault(world):
    uuid = world.node(fault="power failure")
    path = f"/v1/nodes/{uuid}/maintenance"
    shown = f"/v1/nodes/{uuid}?fields=maintenance,maintenance_reason,fault"
    answer = world.api.put(path, {"reason": "new fan"})
    assert (answer.status, answer.body) == (202, b"")
    assert "location" not in answer.headers
    assert world.api.get(shown).json["maintenance_reason"] == "new fan"
    assert world.api.put(path).status == 202
    assert world.api.get(shown).json["maintenance_reason"] is None
    assert world.api.delete(path).status == 202
    found = world.api.get(shown).json
    assert (found["maintenance"], found["fault"]) == (False, None)
    assert world.api.delete(path).status == 202


def test_maintenance_of_a_locked_node_is_a_conflict(world):
    uuid = world.node(reservation="somebody")
    answer = world.api.put(f"/v1/nodes/{uuid}/maintenance")
    assert answer.status == 409
    assert "is locked by host somebody" in answer.said
    assert "retry-after" not in answer.headers  # python-ironicclient fails on it


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_maintenance_without_a_conductor_is_a_bad_request(world, method):
    uuid = world.node(driver="gone")
    assert world.api.ask(method, f"/v1/nodes/{uuid}/maintenance").status == 400


# ----------------------------------------------------------------------------------- deletion


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"provision_state": "enroll"}, 204),
        ({"provision_state": "manageable"}, 204),
        ({"provision_state": "adopt failed"}, 204),
        ({"provision_state": "available"}, 204),
        ({"provision_state": "active"}, 409),
        ({"provision_state": "clean failed"}, 409),
        ({"provision_state": "active", "maintenance": True}, 204),
        ({"provision_state": "enroll", "instance_uuid": str(uuids.UUID(int=3))}, 409),
        (
            {
                "provision_state": "enroll",
                "instance_uuid": str(uuids.UUID(int=4)),
                "maintenance": True,
            },
            204,
        ),
        ({"provision_state": "active", "protected": True, "maintenance": True}, 403),
        ({"provision_state": "enroll", "reservation": "somebody"}, 409),
    ],
)
def test_node_is_deleted_where_nothing_depends_on_it(world, values, status):
    uuid = world.node(**values)
    answer = world.api.delete(f"/v1/nodes/{uuid}")
    assert answer.status == status
    assert world.api.get(f"/v1/nodes/{uuid}").status == (404 if status == 204 else 200)


def test_unknown_node_is_not_found_under_every_path(api):
    unknown = str(uuids.uuid4())
    assert api.delete(f"/v1/nodes/{unknown}").status == 404
    assert api.patch(f"/v1/nodes/{unknown}", []).status == 404
    assert api.get(f"/v1/nodes/{unknown}/states").status == 404
    assert api.put(f"/v1/nodes/{unknown}/states/power", {"target": "power on"}).status == 404


@pytest.mark.parametrize("name", sorted(model.SECRET_OBJECTS & {"driver_info", "instance_info"}))
def test_value_of_the_wrong_type_is_repeated_unless_it_may_be_secret(api, name):
    refused = api.post("/v1/nodes", {"driver": "fake-hardware", name: "hunter2"})
    assert refused.status == 400
    assert name in refused.said
    assert "hunter2" not in refused.said
    assert "hunter2" in api.post("/v1/nodes", {"driver": "fake-hardware", "extra": "hunter2"}).said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "Schema error for node: the body must be a JSON object"),
        ({"driver": "x", "colour": 1}, "('colour' was unexpected). Only the following can be"),
    ],
    ids=["a list", "an unknown name"],
)
def test_the_form_of_a_body_is_told(api, body, said):
    answer = api.post("/v1/nodes", body)
    assert answer.status == 400
    assert said in answer.said
