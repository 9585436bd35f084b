"""Teardown of an Instance, in its deletion or before its replacement is created.

release [<-> drain, order_before] -> undeploy -> undeployed [-> cleaned] -> free [-> reserve_again]
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import Power, State
from bloomery.orchestration.resources import (
    allocation,
    instance_fields,
    instance_network,
    instance_preparation,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.drains import Drained
from bloomery.orchestration.resources.effects import Effect
from bloomery.orchestration.resources.machine_orders import QUARANTINED
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.resources.stepwise import OnNode

UNDEPLOYABLE: Final = frozenset({
    State.ACTIVE, State.DEPLOYFAIL, State.DEPLOYWAIT, State.ERROR, State.RESCUE, State.RESCUEFAIL,
    State.UNRESCUEFAIL, State.SERVICEFAIL, State.SERVICEWAIT,
})  # fmt: skip
SOFT_S: Final = 120
_REASON_CHARS: Final = 4096  # of a retired_reason
REPLACED: Final = "replaced"  # the replacement waits for the node
KEPT: Final = ("uuid", "name", "resource_class", "traits", "owner", "extra")  # of an allocation


def release(instance: Drained) -> stepwise.Following:
    try:
        node = instance.get_node() if instance.record.physical_id else None
    except errors.NotFound:
        node = None
    if node is None or not instance.is_ours(node["instance_info"]):
        return "free"
    state = node["provision_state"]
    if node["protected"] and instance.properties["protected"] is False:
        instance.machines.update_node(
            node["uuid"], [{"op": "add", "path": "/protected", "value": False}]
        )
    elif node["protected"]:
        raise stepwise.MachineRefused(
            f"cannot undeploy node {node['name'] or node['uuid']}: it is protected; set protected "
            "to false"
        )
    if step := instance_preparation.bring_back(instance, node):
        return step
    comes = "replace" if instance.record.data.get(REPLACED) else "delete"
    if step := instance.begin_drain(node, comes, "release"):
        return step
    reason = instance.record.data.get(QUARANTINED)
    if reason and state != State.AVAILABLE and not node["retired"]:
        text = f"{instance.record.name} of stack {instance.context.stack_name}: {reason}"
        retired = stepwise.patch_of({"retired": True, "retired_reason": text[:_REASON_CHARS]})
        instance.machines.update_node(node["uuid"], retired)
    if state in (State.AVAILABLE, State.CLEANFAIL):
        _forget(instance, node)
        return "free"
    if state == State.DEPLOYHOLD:
        instance.machines.set_provision_state(node["uuid"], "abort")
    if state not in UNDEPLOYABLE:
        phase = "clean" if state in instance_preparation.CLEANING else "teardown"
        return instance.wait_in(phase, f"while it is {state}")
    instance_network.detach(instance, node["uuid"], keep=())
    teardown, data = instance.properties["teardown"] or {}, instance.record.data
    ident = instance.properties["allocation"]
    keeps = ident and (teardown.get("keep_allocation") or data.get(REPLACED))
    if keeps and (record := instance.machines.find(machines.ALLOCATION, ident)):
        # the teardown deletes the allocation: note what ``reserve_again`` asks for
        kept = {name: record[name] for name in KEPT if record.get(name)}
        data["allocation"] = kept | {"candidate_nodes": [record["node_uuid"]]}
    instance.note_move(node)
    soft = teardown.get("secure_power_off") == "soft"
    return "shut_down" if soft and node["power_state"] == Power.ON else "undeploy"


def effect_of_release(instance: OnNode, effect: Effect, node: Json) -> Effect:
    """Return the effect of a deletion on the node as it is; ``release`` decides likewise."""
    state, label = node["provision_state"], f"node {node['name'] or node['uuid']}"
    if state in UNDEPLOYABLE or state == State.DEPLOYHOLD:
        return effect
    if state not in (State.AVAILABLE, State.MANAGEABLE, State.CLEANFAIL):
        return replace(effect, certain=False, reason=f"{label} is {state}")
    verbs: tuple[str, ...] = ("provide",) if state == State.MANAGEABLE else ()
    if state == State.CLEANFAIL and instance_preparation.is_cleaned_before(instance):
        verbs = ("manage", "provide")
    reason = f"{label} is {state}: nothing was deployed on it"
    return replace(effect, verbs=verbs, loses_data=False, reason=reason)


def shut_down(instance: OnNode) -> str | None:
    instance.machines.set_power_state(instance.node_uuid(), Power.SOFT_OFF)
    return "is_shut_down"


def is_shut_down(instance: OnNode) -> stepwise.Following:
    node = instance.get_node()
    if node["power_state"] == Power.ON:
        timeout_s = float((instance.properties["teardown"] or {}).get("soft_timeout") or SOFT_S)
        with contextlib.suppress(stepwise.MachineTimedOut):
            return instance.wait_for(node["uuid"], timeout_s, "for the system to shut down")
    return "undeploy"


def _forget(instance: OnNode, node: Json) -> None:
    written = {*instance_fields.info_of(instance.properties), machines.MARK}
    fields = [f"instance_info/{key}" for key in node["instance_info"] if key in written]
    if node["instance_name"] is not None:
        fields.append("instance_name")
    if node["instance_uuid"] == instance.derived_id("instance"):
        fields.append("instance_uuid")
    instance.machines.update_node(node["uuid"], stepwise.patch_of(dict.fromkeys(fields)))


def undeploy(instance: OnNode) -> str | None:
    with contextlib.suppress(errors.NodeNotFound):
        instance.order("deleted")
    return "undeployed"


def undeployed(instance: OnNode) -> stepwise.Following:
    try:
        node = instance.get_node()
    except errors.NodeNotFound:
        return "free"
    if waits_for_teardown(instance, node):
        return instance.wait_in("teardown", "for the instance to go")
    data, teardown = instance.record.data, instance.properties["teardown"] or {}
    if teardown.get("wait_for_cleaning") or data.get(REPLACED) or data.get("allocation"):
        return "cleaned"
    return "free"


def waits_for_teardown(instance: OnNode, node: Json) -> bool:
    """Tell whether the teardown is still going on.  Raises MachineFailed if it has failed."""
    if node["provision_state"] == State.ERROR:
        raise _failure_of(instance, node)
    return node["provision_state"] == State.DELETING or instance.is_ours(node["instance_info"])


def _failure_of(instance: OnNode, node: Json) -> stepwise.MachineFailed:
    state = node["provision_state"]
    way_out = states.advice(state, maintenance=bool(node["maintenance"]))
    if instance.record.action is Action.DELETE:
        way_out += "; then delete the stack again"
    return stepwise.MachineFailed(
        f"node {node['name'] or node['uuid']} is {state}: {node['last_error']}; {way_out}"
    )


def cleaned(instance: OnNode) -> stepwise.Following:
    node = instance.get_node()
    if node["provision_state"] in instance_preparation.CLEANING:
        return instance.wait_in("clean", "for the node to be clean")
    another = instance.record.data.get(REPLACED) and instance.properties["selector"]
    if node["provision_state"] == State.CLEANFAIL and not another:
        raise _failure_of(instance, node)
    return "free"


def free(instance: OnNode) -> str | None:
    if instance.properties["selector"] and (uuid := instance.record.data.get("instance")):
        allocation.withdraw(instance, uuid)
    return "reserve_again" if instance.record.data.get("allocation") else None


def reserve_again(instance: OnNode) -> stepwise.Following:
    """Recreate the allocation that is to be kept, under the same UUID."""
    fields = instance.record.data["allocation"]
    present = instance.machines.find(machines.ALLOCATION, fields["uuid"])
    if present is None:
        instance.machines.create(machines.ALLOCATION, fields)
        present = instance.machines.find(machines.ALLOCATION, fields["uuid"]) or {}
    if present.get("state") == "error":
        raise stepwise.MachineFailed(str(present["last_error"]))
    if present.get("state") != "active":
        return instance.wait_in("allocate", "for the node again", fields["uuid"])
    del instance.record.data["allocation"]
    return None
