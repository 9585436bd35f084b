"""What the fields of a node admit in which state: one row of a table for each rule of the API."""

from __future__ import annotations

from typing import Any

import pytest

CREATE = {"driver": "fake-hardware"}


def add(name: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": f"/{name}", "value": value}


def remove(name: str) -> dict[str, Any]:
    return {"op": "remove", "path": f"/{name}"}


KEPT = {"protected": 1, "protected_reason": "keep"}
RETIRED = {"retired": 1, "retired_reason": "old"}
# What the node is before; the patch; the status; fields afterwards, or a part of the refusal.
ROWS: list[tuple[dict[str, Any], list[Any], int, Any]] = [
    ({}, [add("protected", True)], 409, "only in active or rescue"),
    ({"provision_state": "active"}, [add("protected", "yes")], 200, {"protected": True}),
    ({"provision_state": "rescue"}, [add("protected", True)], 200, {"protected": True}),
    ({"provision_state": "active"}, [add("protected_reason", "x")], 400, "it is not protected"),
    (
        {"provision_state": "active"},
        [add("protected_reason", "x"), add("protected", "1")],
        200,
        {"protected": True, "protected_reason": "x"},
    ),
    (KEPT, [add("protected", True)], 200, {"protected_reason": "keep"}),
    (KEPT, [add("protected", "off")], 200, {"protected": False, "protected_reason": None}),
    (KEPT, [add("protected", None)], 200, {"protected": False, "protected_reason": None}),
    (RETIRED, [add("retired", None)], 200, {"retired": False, "retired_reason": None}),
    ({"disable_power_off": 1}, [add("disable_power_off", None)], 200,
     {"disable_power_off": False}),
    ({}, [add("maintenance", None)], 400, "maintenance"),
    ({}, [add("parent_node", None)], 400, "parent_node cannot be null"),
    (KEPT, [remove("protected")], 200, {"protected": False, "protected_reason": None}),
    (KEPT, [remove("protected_reason")], 200, {"protected": True, "protected_reason": None}),
    ({"provision_state": "available"}, [add("retired", True)], 409, "while it is available"),
    ({"provision_state": "available"}, [add("retired", False)], 200, {"retired": False}),
    (
        {"provision_state": "active"},
        [add("retired", "t"), add("retired_reason", "old")],
        200,
        {"retired": True, "retired_reason": "old"},
    ),
    ({}, [add("retired_reason", "old")], 400, "it is not retired"),
    (RETIRED, [add("retired", "no")], 200, {"retired": False, "retired_reason": None}),
    (RETIRED, [remove("retired")], 200, {"retired": False, "retired_reason": None}),
    ({"automated_clean": 1}, [remove("automated_clean")], 200, {"automated_clean": None}),
    ({"automated_clean": 1}, [add("automated_clean", None)], 200, {"automated_clean": None}),
    ({}, [add("automated_clean", "off")], 200, {"automated_clean": False}),
    ({}, [add("disable_power_off", "yes")], 200, {"disable_power_off": True}),
    ({"disable_power_off": 1}, [remove("disable_power_off")], 200, {"disable_power_off": False}),
    ({"owner": "p"}, [add("owner", "q")], 200, {"owner": "q"}),
    ({"owner": "p", "provision_state": "active"}, [remove("owner")], 200, {"owner": None}),
    ({"lessee": "p"}, [remove("lessee")], 200, {"lessee": None}),
    ({"shard": "s"}, [remove("shard")], 200, {"shard": None}),
    (
        {"maintenance": 1, "maintenance_reason": "x", "fault": "power failure"},
        [add("maintenance", "f")],
        200,
        {"maintenance": False, "maintenance_reason": None, "fault": None},
    ),
    ({"console_enabled": 1}, [add("driver", "fake-hardware")], 200, {"console_enabled": True}),
    ({}, [add("instance_info/display_name", "vm")], 200, {"instance_name": "vm"}),
    ({"instance_name": "a"}, [add("instance_info", {"display_name": "vm"})], 200,
     {"instance_name": "a"}),
    ({"provision_state": "active"}, [add("resource_class", "big")], 200, {"resource_class": "big"}),
    *[
        ({"provision_state": state, "resource_class": "big"}, [add("resource_class", value)],
         status, told)
        for state, value, status, told in (
            ("active", "big", 200, {"resource_class": "big"}),
            ("active", "small", 409, "only in available, enroll"),
            ("deploy failed", "small", 409, "in maintenance"),
            ("manageable", "small", 200, {"resource_class": "small"}),
        )
    ],
    (
        {"provision_state": "active", "resource_class": "big", "maintenance": 1},
        [add("resource_class", "small")],
        409,
        "resource_class",
    ),
    ({"provision_state": "active"}, [add("bios_interface", "fake")], 200,
     {"bios_interface": "fake"}),
    ({"provision_state": "service wait", "target_provision_state": "active"},
     [add("extra/a", 1)], 409, "state transition"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "patch", "status", "told"), ROWS, ids=str)
def test_a_patch_does_what_the_state_admits(stage, before, patch, status, told):
    node = stage.enrol()
    stage.site.set(node, **{"provision_state": "enroll"} | before)
    answer = stage.api.patch(f"/v1/nodes/{node}", patch)
    assert answer.status == status, answer.body
    if status == 200:
        assert {name: answer.json[name] for name in told} == told
    else:
        assert told in answer.said


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"retired": "yes", "retired_reason": "old"}, 201),
        ({"protected_reason": "x"}, 400),
        ({"protected": False}, 400),
        ({"owner": "p"}, 400),
        ({"lessee": "p"}, 201),
        ({"automated_clean": None}, 201),
        ({"disable_power_off": "1"}, 201),
        ({"parent_node": None}, 201),
        ({"retired": None, "disable_power_off": None}, 201),
        ({"instance_name": "x" * 256}, 400),
    ],
    ids=str,
)
def test_a_creation_takes_what_is_of_creations(stage, fields, status):
    assert stage.api.post("/v1/nodes", CREATE | fields).status == status


def test_a_parent_is_named_by_any_ident_and_has_the_same_owner(stage):
    parent, node = stage.enrol(name="chassis-1"), stage.enrol()
    path = f"/v1/nodes/{node}"
    assert stage.api.patch(path, [add("parent_node", "chassis-1")]).json["parent_node"] == parent
    assert stage.api.patch(path, [add("parent_node", node)]).status == 400, "not itself"
    assert stage.api.patch(path, [remove("parent_node")]).json["parent_node"] is None
    stage.site.set(parent, owner="p")
    for place in (stage.api.patch(path, [add("parent_node", parent)]),
                  stage.api.post("/v1/nodes", CREATE | {"parent_node": parent})):  # fmt: skip
        assert place.status == 400
        assert "has another owner" in place.said


def test_a_protected_node_stays_in_maintenance_as_well(stage):
    node = stage.enrol()
    stage.site.set(node, protected=1, maintenance=1, provision_state="active")
    assert stage.api.delete(f"/v1/nodes/{node}").status == 403
    for verb in ("deleted", "undeploy"):
        assert stage.try_to(node, verb).status == 403


def test_a_retired_node_is_not_provided_and_ends_manageable(stage):
    node = stage.bring_to("active")
    stage.patch(node, retired=True)
    stage.ask(node, "deleted")
    stage.wait_for(node, "manageable")
    answer = stage.try_to(node, "provide")
    assert answer.status == 400
    assert "retired" in answer.said


@pytest.mark.parametrize(
    ("own", "option", "steps"),
    [(None, True, 1), (None, False, 0), (True, False, 1), (False, True, 0)],
)
def test_the_node_knows_better_than_the_option_whether_it_is_cleaned(
    make_stage, own, option, steps
):
    stage = make_stage(automated_clean=option)
    node = stage.bring_to("manageable", automated_clean=own)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    ran = [name for name, _ in stage.steps(node, "clean") if name == "vendor.log_passthrough"]
    assert len(ran) == steps


@pytest.mark.parametrize("target", ["power off", "soft power off"])
def test_a_node_that_must_stay_on_is_only_rebooted(stage, target):
    node = stage.enrol(disable_power_off=True)
    assert stage.try_power(node, target).status == 409
    assert stage.power(node, "rebooting")["power_state"] == "power on"
