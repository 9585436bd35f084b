"""One rule, one sentence: asked before the lock by operations, and under it by the conductor."""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass, field
from typing import Any

import pytest

from bloomery import errors
from bloomery.model import node, nouns
from tests.kit.waiting import wait_for

NOBODY = str(uuids.uuid4())


def add(path, value):
    return {"op": "add", "path": path, "value": value}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What the API refuses and the conductor refuses: method, arguments; the node's fields."""

    path: str
    body: Any
    order: tuple[Any, ...]
    row: dict[str, Any] = field(default_factory=dict)
    status: int = 400


def patch(*operations: Any, **more: Any) -> Rule:
    return Rule(path="", body=[*operations], order=("update_node", [*operations], False), **more)


def power(target: str, **more: Any) -> Rule:
    order = ("change_node_power_state", target, None)
    return Rule(path="/states/power", body={"target": target}, order=order, **more)


def verb(target: str, **more: Any) -> Rule:
    order = "do_provisioning_action", target, {}
    return Rule(path="/states/provision", body={"target": target}, order=order, **more)


RULES = {
    "a busy node": patch(
        add("/extra/a", 1),
        row={"provision_state": "deploying", "target_provision_state": "active"},
        status=409,
    ),
    "an unknown chassis": patch(add("/chassis_uuid", NOBODY)),
    "a word that is no boolean": patch(add("/maintenance", "maybe")),
    "a number that is no boolean": patch(add("/retired", 2)),
    "a text that is too long": patch(add("/resource_class", "x" * 81)),
    "a UUID that is none": patch(add("/instance_uuid", "x")),
    "a size in an object": patch(add("/properties", {"memory_mb": "1_000"})),
    "a size": patch(add("/properties/local_gb", "+5")),
    "a sealed value": patch(add("/extra/a", [{"b": {"$sealed": "x"}}])),
    "power off": power("power off", row={"disable_power_off": 1}, status=409),
    "soft power off": power("soft power off", row={"disable_power_off": 1}, status=409),
    "power while it is cleaned": power("power on", row={"provision_state": "clean wait"}),
    "boot mode on its way": Rule(
        path="/states/boot_mode",
        body={"target": "uefi"},
        order=("change_node_boot_mode", "uefi"),
        row={"provision_state": "wait call-back"},
        status=409,
    ),
    "secure boot on its way": Rule(
        path="/states/secure_boot",
        body={"target": "true"},
        order=("change_node_secure_boot", True),
        row={"provision_state": "wait call-back"},
        status=409,
    ),
    "a verb without an edge": verb("active"),
    "rebuild without an edge": verb("rebuild"),
    "provide without an edge": verb("provide"),
    "deleted without an edge": verb("deleted"),
    "deploying in maintenance": verb(
        "active",
        row={"provision_state": "available", "maintenance": 1},
    ),
    "rebuilding in maintenance": verb(
        "rebuild",
        row={"provision_state": "active", "maintenance": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_the_same_before_the_lock_and_under_it(stage, name):
    rule, uuid = RULES[name], stage.enrol()
    if rule.row:
        stage.site.set(uuid, **rule.row)
    before = stage.show(uuid)
    ask = stage.api.patch if rule.path == "" else stage.api.put
    answer = ask(f"/v1/nodes/{uuid}{rule.path}", rule.body)
    assert answer.status == rule.status
    method, *args = rule.order
    assert refusal_of(stage, method, uuid, *args) == (answer.status, answer.said)
    assert stage.show(uuid) == before


MAC = "52:54:00:12:34:56"
VALUES = {
    "address": MAC, "node_uuid": NOBODY, "type": "iqn", "connector_id": "x", "volume_type": "iscsi",
    "volume_id": "v", "boot_index": 0, "name": "CUSTOM_A",
    "actions": [{"op": "fail", "args": {"msg": "no"}}],
}  # fmt: skip
STEP = {"interface": "power", "step": "reboot", "args": {}}
STEPS = {"deploytemplate": [STEP | {"priority": 1}], "runbook": [STEP | {"order": 1}]}


def refusal_of(stage, method, *args):
    with pytest.raises(errors.Failure) as refusal:
        stage.site.order(method, *args)
    return refusal.value.status, str(refusal.value)


@pytest.mark.parametrize(
    "noun", [n for n in nouns.BY_NAME.values() if n.of_node], ids=lambda noun: noun.name
)
def test_a_record_belongs_to_a_node_that_exists(stage, noun):
    body = {name: VALUES[name] for name in noun.required} | {"node_uuid": NOBODY}
    answer = stage.api.post(f"/v1/{noun.path}", body)
    values = body | {"uuid": str(uuids.uuid4())}
    refusal = refusal_of(stage, "create_record", noun.name, values)
    assert refusal == (answer.status, answer.said) == (400, answer.said)


def test_a_port_stays_with_its_node(stage):
    body = {"address": MAC, "node_uuid": stage.enrol()}
    port = stage.api.post("/v1/ports", body).json["uuid"]
    move = [add("/node_uuid", stage.enrol())]
    answer = stage.api.patch(f"/v1/ports/{port}", move)
    refusal = refusal_of(stage, "update_record", "port", port, move)
    assert refusal == (answer.status, answer.said) == (400, answer.said)


# ------------------------------------------------------------------------------------- sizes

SIZES = [
    (7, 200), ("7", 200), ("0", 200), (0, 200), (None, 200),
    ("1_000", 400), (" 7 ", 400), ("+5", 400), ("-5", 400), (-5, 400), ("٣", 400), ("", 400),
    (7.0, 400), (True, 400), ([7], 400), ("9" * 5000, 400),
]  # fmt: skip


@pytest.mark.parametrize("name", ["memory_mb", "local_gb"])
@pytest.mark.parametrize(("size", "status"), SIZES)
def test_a_size_is_digits_however_it_is_written(stage, name, size, status):
    body = {"driver": "fake-hardware", "properties": {name: size}}
    created = stage.api.post("/v1/nodes", body)
    assert created.status == {200: 201}.get(status, status)
    if status == 200:
        path = f"/v1/nodes/{created.json['uuid']}"
        assert stage.api.patch(path, [add("/properties/cpus", 4)]).status == 200
    path = f"/v1/nodes/{stage.enrol()}"
    assert stage.api.patch(path, [add(f"/properties/{name}", size)]).status == status
    assert stage.api.patch(path, [add("/properties", {name: size})]).status == status


# ------------------------------------------------------------------------------ sealed values


def objects(fields: Any) -> list[str]:
    """Return the objects that a client may write."""
    return [f.name for f in fields.values() if f.kind == "object" and f.access != "R"]


WRITABLE = [("nodes", name) for name in objects(node.FIELDS)] + [
    (noun.path, name) for noun in nouns.BY_NAME.values() for name in objects(noun.fields)
]
FORGED = [
    {"$sealed": "x", "token": "y"},
    {"a": {"$sealed": "x"}},
    {"links": [{"b": [{"$sealed": None}]}]},
]


def body_of(stage: Any, collection: str) -> dict[str, Any]:
    """Return what creates one of the collection."""
    if collection == "nodes":
        return {"driver": "fake-hardware"}
    [noun] = [noun for noun in nouns.BY_NAME.values() if noun.path == collection]
    values = VALUES | {"steps": STEPS.get(noun.name)}
    body = {name: values[name] for name in noun.required}
    body |= {"resource_class": "large"} if noun.name == "allocation" else {}
    return body | ({"node_uuid": stage.enrol()} if noun.of_node else {})


@pytest.mark.sampled
@pytest.mark.parametrize("forged", FORGED, ids=str)
@pytest.mark.parametrize(("collection", "name"), WRITABLE)
def test_nobody_writes_what_looks_sealed(stage, collection, name, forged):
    body = body_of(stage, collection)
    refused = stage.api.post(f"/v1/{collection}", body | {name: forged})
    assert (refused.status, "'$sealed'" in refused.said) == (400, True), refused.said
    thing = stage.api.post(f"/v1/{collection}", body).json
    path = f"/v1/{collection}/{thing['uuid']}"
    if collection == "allocations":
        wait_for(lambda: stage.api.get(path).json["state"] != thing["state"], "the allocation")
        thing = stage.api.get(path).json
    parts = [add(f"/{name}/{key}", value) for key, value in forged.items() if key != "token"]
    operations = [add(f"/{name}", forged), *parts]
    for operation in operations:
        refused = stage.api.patch(path, [operation])
        assert refused.status == 400
        assert stage.api.get(path).json == thing
    assert "'$sealed'" in stage.api.patch(path, [operations[0]]).said


def test_nobody_attaches_what_looks_sealed(stage):
    path = f"/v1/nodes/{stage.enrol()}/vifs"
    refused = stage.api.post(path, {"id": "vif-1", "extra": {"$sealed": "x"}})
    assert (refused.status, "'$sealed'" in refused.said) == (400, True), refused.said
