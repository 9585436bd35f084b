"""PATCH of a node: what may be in it, in which state, and what it leaves."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.conductor.states import UPDATE_ALLOWED_STATES, State
from bloomery.model import node as model

INSTANCE = str(uuids.UUID(int=2))


def add(path, value, op="add"):
    return {"op": op, "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


@pytest.fixture
def node(world):
    return world.api.node(name="web-1", extra={"a": 1, "list": [1, 2]}, properties={"cpus": 4})


def test_patch_answers_the_whole_node(api, node):
    answer = api.patch("/v1/nodes/web-1", [add("/extra/b", 2), add("/description", "new")])
    assert answer.status == 200
    found = answer.json
    assert found["extra"] == {"a": 1, "list": [1, 2], "b": 2}
    assert found["description"] == "new"
    assert set(found) == set(node)


def test_secret_behind_an_escaped_key_is_masked(world):
    uuid = world.node()
    patch = [add("/driver_info/bmc~1password", "hunter2hunter2")]
    assert world.api.patch(f"/v1/nodes/{uuid}", patch).json["driver_info"] == {
        "bmc/password": "******"
    }


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_node_is_no_parent_of_itself(world, steps):
    """Neither directly nor through its children."""
    above = first = world.node()
    for _ in range(steps):
        child = world.node()
        assert world.api.patch(f"/v1/nodes/{child}", [add("/parent_node", above)]).status == 200
        above = child
    answer = world.api.patch(f"/v1/nodes/{first}", [add("/parent_node", above)])
    assert (answer.status, "the node itself, or a child of it" in answer.said) == (400, True)
    assert world.api.get(f"/v1/nodes/{first}").json["parent_node"] is None


def test_empty_patch_answers_the_unchanged_node(api, node):
    answer = api.patch("/v1/nodes/web-1", [])
    assert (answer.status, answer.json) == (200, node)


@pytest.mark.parametrize(
    ("operation", "extra"),
    [
        (add("/extra/list/1", 9), {"a": 1, "list": [1, 9, 2]}),
        (add("/extra/list/-", 9), {"a": 1, "list": [1, 2, 9]}),
        (remove("/extra/list/0"), {"a": 1, "list": [2]}),
        (add("/extra", {"new": True}), {"new": True}),
        (add("/extra", {"new": True}, "replace"), {"new": True}),
        (remove("/extra"), {}),
        (remove("/extra/a"), {"list": [1, 2]}),
        (add("/extra/ключ", 1), {"a": 1, "list": [1, 2], "ключ": 1}),
        (add("/extra/k8s-io~1role", 1), {"a": 1, "list": [1, 2], "k8s-io/role": 1}),
        (add("/extra/x~0y~1z", 1), {"a": 1, "list": [1, 2], "x~y/z": 1}),
        (add("/extra/~01", 1), {"a": 1, "list": [1, 2], "~1": 1}),
    ],
)
def test_objects_are_patched_as_rfc_6902_says(api, node, operation, extra):
    assert api.patch("/v1/nodes/web-1", [operation]).json["extra"] == extra


@pytest.mark.parametrize(
    "patch",
    [
        {},
        "x",
        None,
        [5],
        [{"op": "add"}],
        [{"op": "add", "path": "/extra/a"}],
        [{"op": "test", "path": "/extra/a", "value": 1}],
        [{"op": "copy", "path": "/extra/b", "from": "/extra/a"}],
        [{"op": "move", "path": "/extra/b", "from": "/extra/a"}],
        [add("/extra/a", 1) | {"from": "/x"}],
        [add("/extra/a", 1, "ADD")],
        [add("/", 1)],
        [add("", 1)],
        [add("extra/a", 1)],
        [add("/extra/", 1)],
        [add("/extra/a b", 1)],
        [add("/extra/a~2b", 1)],
        [add("/extra/a.b", 1)],
        [add("/extra/no/deeper", 1)],
        [add("/extra/gone", 1, "replace")],
        [remove("/extra/gone")],
        [add("/extra/a", {"$sealed": "x"})],
        [add("/name/first", "x")],
        [add("/extra", [])],
        [add("/extra", "text")],
        [add("/maintenance", "maybe")],
        [add("/description", 5)],
        [add("/description", "x" * 4097)],
        [add("/resource_class", "x" * 81)],
        [add("/instance_uuid", "x")],
        [add("/properties/memory_mb", "much")],
        [add("/properties", {"local_gb": -1})],
        [add("/network_data", {})],
        [add("/name", None)],
        [add("/name", "")],
        [add("/name", "not a name")],
        [add("/name", "states")],
        [add("/chassis_uuid", str(uuids.UUID(int=1)))],
        [add("/parent_node", "unknown")],
        [add("/driver", None)],
        [remove("/driver")],
        [add("/driver", "nonsense")],
        [add("/conductor_group", "nowhere")],
    ],
    ids=str,
)
def test_wrong_patch_is_refused_and_leaves_nothing(api, node, patch):
    answer = api.patch("/v1/nodes/web-1", patch)
    assert (answer.status, answer.form) == (400, "first")
    assert api.get("/v1/nodes/web-1").json == node


@pytest.mark.parametrize(
    "name", [*sorted(set(model.FIELDS) - model.PATCHABLE), "nonsense", "links"]
)
def test_read_only_attribute_is_refused_before_the_node_is_looked_up(api, name):
    answer = api.patch("/v1/nodes/unknown", [add(f"/{name}", "x")])
    assert answer.status == 400
    assert f"Cannot patch /{name}. Only the following can be updated:" in answer.said


def test_failing_operation_leaves_the_others_unapplied(api, node):
    answer = api.patch("/v1/nodes/web-1", [add("/extra/b", 2), remove("/extra/gone")])
    assert answer.status == 400
    assert "b" not in api.get("/v1/nodes/web-1").json["extra"]


@pytest.mark.parametrize(
    "field", [f for f in model.FIELDS.values() if f.since > 1 and f.name in model.PATCHABLE],
    ids=lambda f: f.name,
)  # fmt: skip
def test_newer_attribute_is_refused_but_may_be_removed(world, field):
    path = f"/v1/nodes/{world.node()}"
    for value in ("x", None):
        answer = world.api.patch(path, [add(f"/{field.name}", value)], version=field.since - 1)
        assert answer.status == 406
    version = field.since - 1
    assert world.api.patch(path, [remove(f"/{field.name}")], version=version).status in (200, 400)


def test_chassis_can_be_unset_since_1_25(world):
    path = f"/v1/nodes/{world.node()}"
    assert world.api.patch(path, [remove("/chassis_uuid")], version=24).status == 406
    assert world.api.patch(path, [add("/chassis_uuid", None)], version=24).status == 406
    assert world.api.patch(path, [add("/chassis_uuid", None)], version=25).status == 200


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        (remove("/name"), "name", None),
        (add("/maintenance", "yes"), "maintenance", True),
        (add("/conductor_group", None), "conductor_group", ""),
        (remove("/conductor_group"), "conductor_group", ""),
        (remove("/automated_clean"), "automated_clean", None),
        (add("/owner", "me"), "owner", "me"),
        (add("/boot_interface", None), "boot_interface", "fake"),
        (remove("/boot_interface"), "boot_interface", "fake"),
        (remove("/resource_class"), "resource_class", None),
    ],
    ids=str,
)
def test_attribute_becomes(api, node, operation, name, value):
    answer = api.patch(f"/v1/nodes/{node['uuid']}", [operation])
    assert (answer.status, answer.json[name]) == (200, value)


def test_instance_may_be_written_again_but_not_replaced(world):
    path = f"/v1/nodes/{world.node()}"
    assert world.api.patch(path, [add("/instance_uuid", INSTANCE)]).status == 200
    assert world.api.patch(path, [add("/instance_uuid", INSTANCE)]).status == 200
    answer = world.api.patch(path, [add("/instance_uuid", str(uuids.uuid4()))])
    assert answer.status == 409
    assert INSTANCE in answer.said
    other = f"/v1/nodes/{world.node()}"
    assert world.api.patch(other, [add("/instance_uuid", INSTANCE)]).status == 409
    assert world.api.patch(path, [remove("/instance_uuid")]).json["instance_uuid"] is None


def test_name_that_is_taken_is_a_conflict(api, node):
    other = api.node()
    assert api.patch(f"/v1/nodes/{other['uuid']}", [add("/name", "web-1")]).status == 409


def test_reset_interfaces_goes_with_a_driver(api, node):
    path = "/v1/nodes/web-1?reset_interfaces=true"
    assert api.patch(path, [add("/extra/a", 1)]).status == 400
    assert api.patch(path, [add("/driver", "redfish")], version=44).status == 406
    assert api.patch(path, [add("/driver", "redfish")]).json["driver"] == "redfish"


@pytest.mark.parametrize("state", list(State))
def test_node_on_its_way_is_left_alone(world, state):
    uuid = world.node(provision_state=state, target_provision_state="active")
    answer = world.api.patch(f"/v1/nodes/{uuid}", [add("/extra/a", 1)], version=38)
    assert answer.status == (200 if state in UPDATE_ALLOWED_STATES else 409)


def test_instance_of_a_node_in_maintenance_can_always_be_given_up(world):
    uuid = world.node(
        provision_state="deploying", target_provision_state="active",
        maintenance=True, instance_uuid=INSTANCE,
    )  # fmt: skip
    assert world.api.patch(f"/v1/nodes/{uuid}", [add("/extra/a", 1)]).status == 409
    assert world.api.patch(f"/v1/nodes/{uuid}", [remove("/instance_uuid")]).status == 200


def test_node_under_inspection_is_left_alone_since_1_39(world):
    uuid = world.node(provision_state="inspecting", target_provision_state="manageable")
    path = f"/v1/nodes/{uuid}"
    assert world.api.patch(path, [add("/extra/a", 1)], version=38).status == 200
    assert world.api.patch(path, [add("/extra/a", 1)], version=39).status == 409


def test_locked_node_is_a_conflict(world):
    uuid = world.node(reservation="somebody")
    answer = world.api.patch(f"/v1/nodes/{uuid}", [add("/extra/a", 1)])
    assert answer.status == 409
    assert "is locked by host somebody" in answer.said
