"""Whether a plan tells that its machines are more than the free nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bloomery.model.stacks import Action, StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import capacity, document
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.resources.effects import Need
from tests.kit.stacks import simulations

Json = dict[str, Any]


def web(traits: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    selector = {"resource_class": "pool", "traits": list(traits)} | more
    properties = {"selector": selector, "image": {"source": "http://a"}}
    return {"type": "OS::Ironic::Instance", "properties": properties}


def slot(**more: Any) -> dict[str, Any]:
    return {"type": "OS::Ironic::Allocation", "properties": {"resource_class": "pool"} | more}


def group(count: int) -> dict[str, Any]:
    member = web()["properties"]
    return {"type": "OS::Ironic::InstanceGroup", "properties": {"count": count, "member": member}}


def free(*traits: str) -> dict[str, Any]:
    return {"uuid": f"u-{'-'.join(traits)}", "name": None, "traits": list(traits)}


NODE = {
    "type": "OS::Ironic::Node",
    "properties": {"name": "n1", "driver": "redfish", "resource_class": "pool"},
}
A, B, GPU = "CUSTOM_A", "CUSTOM_B", "CUSTOM_GPU"


@pytest.mark.parametrize(
    ("resources", "nodes", "refused", "warned"),
    [
        ({"a": web(), "b": web()}, [free(), free()], [], ""),
        ({"a": web(), "b": web()}, [free()], [], "2 nodes of class pool needed (a, b), and 1 free"),
        ({"a": web()}, [], ["a"], "1 node of class pool needed (a), and 0 free"),
        ({"a": web((GPU,))}, [free()], ["a"], "1 node of class pool needed (a), and 1 free"),
        ({"a": web(), "b": web((A,))}, [free(A), free(B)], [], ""),
        ({"a": web(), "b": web((A,))}, [free(A), free(A)], [], ""),
        ({"g": group(3)}, [free(), free()], [], "3 nodes of class pool needed (g/0, g/1, g/2)"),
        ({"a": slot()}, [], ["a"], "and 0 free"),
        ({"a": slot(), "n": NODE}, [], [], ""),
        ({"a": slot(wait_for_capacity=True)}, [], [], "and 0 free"),
        ({"a": web(exclude_nodes=["u-"])}, [free()], ["a"], "and 1 free"),
        ({"a": slot(node="n1", resource_class=None)}, [], [], ""),
    ],
    ids=["enough", "too few", "none", "no trait", "traits", "a scarce trait", "a group",
         "an allocation", "a node that is enrolled", "one that waits", "excluded", "a named node"],
)  # fmt: skip
def test_a_plan_counts_the_free_nodes(
    resources: Any, nodes: list[dict[str, Any]], refused: list[str], warned: str
) -> None:
    stack = simulations.stack(json.dumps({"resources": resources})[1:-1])
    existing = ExistingStack(records={}, list_free=lambda _resource_class: nodes)
    plan = document.of_templates(foresight.create(stack, existing))
    actions = {step["resource"]: step for step in plan["steps"]}
    assert [name for name, step in actions.items() if step["action"] == "refuse"] == refused
    assert all(actions[name]["certain"] for name in refused)
    assert warned in "".join(plan["warnings"])
    assert bool(plan["warnings"]) == bool(warned)


def test_machines_that_are_given_back_before_make_nothing_certain() -> None:
    old = simulations.stack(json.dumps({"resources": {"a": web()}})[1:-1])
    properties = web()["properties"] | {
        "image": {"source": "http://b"}, "image_update_policy": "replace",
        "replace_order": "delete_first",
    }  # fmt: skip
    first = {"type": "OS::Ironic::Instance", "properties": properties}
    new = simulations.stack(json.dumps({"resources": {"a": first}})[1:-1])
    row = StoredResource(
        uuid="r", name="a", type="OS::Ironic::Instance", action=Action.CREATE, physical_id="n",
        properties=old.properties("a", old.view),
    )  # fmt: skip
    existing = ExistingStack(records={"a": row}, list_free=lambda _resource_class: [])
    plan = foresight.plan(old, new, existing)
    assert not plan.refused


def machine(name: str, *traits: str, free: bool = True, instance: str | None = None) -> Json:
    return {
        "uuid": name, "name": name, "traits": list(traits), "is_free": free,
        "instance_uuid": instance,
    }  # fmt: skip


ROWS: dict[str, tuple[list[Need], list[Json], list[tuple[object, ...]]]] = {
    "none is there": (
        [Need(resource_class="bm", traits=("T",))], [], [(["T"], 0, 0, 0, 1, 0, -1)],
    ),
    "the one without traits is taken": (
        [Need(resource_class="bm")], [machine("a"), machine("b", "T")],
        [([], 1, 0, 1, 1, 0, 0), (["T"], 1, 0, 1, 0, 0, 1)],
    ),
    "reserved, broken and returned ones": (
        [Need(resource_class="bm")],
        [machine("a", free=False, instance="i"), machine("b", free=False), machine("c")],
        [([], 3, 1, 1, 1, 1, 0)],
    ),
    "more needed than free": (
        [Need(resource_class="bm")] * 3, [machine("a"), machine("b")],
        [([], 2, 0, 2, 3, 0, -1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("needs", "nodes", "rows"), [*ROWS.values()], ids=[*ROWS])
def test_rows_tell_what_a_plan_leaves_free(
    needs: list[Need], nodes: list[Json], rows: list[tuple[object, ...]]
) -> None:
    keys = ("traits", "nodes", "reserved", "free", "needed", "returned", "left")
    returned = {node["uuid"] for node in nodes if node["instance_uuid"]}
    told = capacity.list_rows(needs, {"bm": nodes}, returned)
    assert [tuple(row[key] for key in keys) for row in told] == rows
    assert {row["resource_class"] for row in told} == {"bm"}
