"""Deployment and rebuild of an Instance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.properties.schema import OnChange
from bloomery.orchestration.resources import (
    base,
    instance_boot,
    instance_info,
    instance_network,
    instance_preparation,
    instance_retry,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import OnNode

ON_ITS_WAY: Final = frozenset({State.DEPLOYING, State.DEPLOYWAIT, State.DEPLOYHOLD})
PREPARED: Final = instance_preparation.CLEANABLE | {State.AVAILABLE}  # not deployed yet


def prepare(instance: OnNode) -> str | None:
    """Claim the node.  Raises MachineRefused if it cannot be used."""
    node = instance.get_node()
    name = node["name"] or node["uuid"]
    label = f"node {name}"
    instance.check_unmarked(node["instance_info"], label)
    if node["instance_uuid"] not in (None, instance.record.data["instance"]):
        raise stepwise.MachineRefused(f"cannot use {label}: another instance has it")
    if node["provision_state"] != State.AVAILABLE:
        raise stepwise.MachineRefused(
            f"cannot use {label}: it is {node['provision_state']}, not available"
        )
    in_maintenance = ("in maintenance", f"; baremetal node maintenance unset {name} ends that")
    flags = {"maintenance": in_maintenance, "retired": ("retired", ""),
             "protected": ("protected", "")}  # fmt: skip
    for flag, (state, way_out) in flags.items():
        if node[flag]:
            reason = node.get(f"{flag}_reason")
            because = f" ({reason})" if reason else ""
            raise stepwise.MachineRefused(f"cannot use {label}: it is {state}{because}{way_out}")
    instance_network.placed_networks(instance, node["uuid"])
    instance.note_move(node)
    info = instance_info.info_of(instance.properties) | {machines.MARK: instance.mark()}
    fields = {f"instance_info/{key}": value for key, value in info.items()}
    fields["instance_name"] = host_name(instance)
    if node["instance_uuid"] is None:
        fields["instance_uuid"] = instance.record.data["instance"]
    instance.machines.update_node(node["uuid"], stepwise.patch_of(fields))
    instance_network.attach(instance, node["uuid"])
    instance_boot.arm(instance)
    instance.record.data.pop(instance_preparation.BEFORE, None)
    return "before" if instance.properties["runbook_before"] else "deploy"


def deploy(instance: OnNode) -> str | None:
    return _order_system(instance, "active")


def deployed(instance: OnNode) -> stepwise.Following:
    node = instance.get_node()
    state = node["provision_state"]
    if state in ON_ITS_WAY:
        return instance.wait_in("deploy", "for the node to be active")
    if state == State.ACTIVE:
        data = instance.record.data
        data["deployed_at"] = node["provision_updated_at"]
        instance_preparation.note_hardware(instance)
        data["deploy_duration"] = round(instance.context.utc() - data["ordered_at"], 3)
        if data.get(instance_retry.FAILED):
            return "quarantine"
        return (
            "look_after" if instance.properties["runbook_after"] else _after_deploy(instance, node)
        )
    if state not in (State.DEPLOYFAIL, State.ERROR):
        name = node["name"] or node["uuid"]
        raise stepwise.MachineFailed(f"node {name} is {state}, and was to be deployed")
    return instance_retry.after_failure(instance, node)


def look_after(instance: OnNode) -> str | None:
    if not instance.properties["runbook_after"]:
        return "check_power"
    instance.note_move(instance.get_node())
    instance.number_order()
    return "run_after"


def run_after(instance: OnNode) -> str | None:
    """Order the runbook; go back to ``look_after`` if another client has moved the node."""
    runbook = instance.properties["runbook_after"]
    return "ran_after" if instance.order_numbered("service", runbook=runbook) else "look_after"


def ran_after(instance: OnNode) -> stepwise.Following:
    error = instance.wait_for_flow("service", "for its runbook to end")
    if isinstance(error, stepwise.UNFINISHED):
        return error
    if error is not None:
        raise stepwise.MachineFailed(error)
    return "check_power"


def check_power(instance: OnNode) -> str | None:
    return _after_deploy(instance, instance.get_node())


def _after_deploy(instance: OnNode, node: Json) -> str | None:
    _protect(instance, node)
    target = instance.record.data["target"] = instance_boot.POWER[instance.properties["power"]]
    return "come_up" if node["power_state"] == target else "switch"


def _protect(instance: OnNode, node: Json) -> None:
    protected = instance.properties["protected"]
    if protected is not None and bool(node["protected"]) is not protected:
        instance.machines.update_node(node["uuid"], stepwise.patch_of({"protected": protected}))


def renew(instance: OnNode) -> stepwise.Following:
    try:
        node = instance.get_node()
    except errors.NotFound as exc:
        raise base.UpdateReplace from exc
    state, data = node["provision_state"], instance.record.data
    if reason_to_replace(instance, node):
        raise base.UpdateReplace
    if state in ON_ITS_WAY:
        return instance.wait_in("deploy", "for the node to be active")
    instance.note_move(node)
    before = instance_info.info_of(instance.record.properties)
    after = instance_info.info_of(instance.properties)
    info = after | {key: None for key in before if key not in after}  # the mark stays
    fields = {f"instance_info/{key}": value for key, value in info.items()}
    fields["instance_name"] = host_name(instance)
    instance.machines.update_node(node["uuid"], stepwise.patch_of(fields))
    if data.get("networks"):
        instance_network.attach(instance, node["uuid"])
    if state in PREPARED:  # the node is claimed, but not deployed yet
        data.pop(instance_preparation.BEFORE, None)
        return "prepare" if state == State.AVAILABLE else "before"
    if data.get("rebuilds") or state == State.DEPLOYFAIL:
        if node["protected"] and instance.properties["protected"] is not False:
            raise stepwise.MachineRefused(
                f"cannot rebuild node {node['name'] or node['uuid']}: it is protected; set "
                "protected to false"
            )
        if node["protected"]:
            _protect(instance, node)
        instance_boot.arm(instance)
        return "rebuild"
    _protect(instance, node)
    data["target"] = instance_boot.POWER[instance.properties["power"]]
    return None if node["power_state"] == data["target"] else "switch"


def effect_of_renew(
    effect: Effect, node: Json, properties: Mapping[str, Any], names: Collection[str]
) -> Effect:
    """Return the effect of an update on the node as it is; ``renew`` decides likewise."""
    label, state = f"node {node['name'] or node['uuid']}", node["provision_state"]
    rebuilds = OnChange.REBUILD in instance_info.changes(properties, names)
    if state in ON_ITS_WAY:
        return replace(effect, certain=False, reason=f"{label} is {state}")
    if state in PREPARED:
        reason = f"{label} is {state}: it is claimed, but nothing was deployed yet"
        made = instance_info.effect_of_create(properties)
        made = replace(made, needs=None)
        return replace(made, impact=Impact.SERVICE, certain=state == State.AVAILABLE, reason=reason)
    if rebuilds or state == State.DEPLOYFAIL:
        reason = effect.reason if rebuilds else f"{label} is in {state}: it is written anew"
        return replace(instance_info.effect_of_repair(properties), certain=True, reason=reason)
    target = instance_boot.POWER[properties["power"]]
    if state != State.ACTIVE or OnChange.POWER in instance_info.changes(properties, names):
        return effect
    if node["power_state"] != target:
        reason = f"{label} is {node['power_state']}: the machine is switched"
        verbs = (f"power {properties['power']}",)
        return Effect(impact=Impact.SERVICE, verbs=verbs, reason=reason)
    written = replace(NO_EFFECT, reason=f"{label} is {state}: nothing on it is written")
    return written if effect.verbs else effect


def reason_to_replace(instance: OnNode, node: Json) -> str:
    """Return why an update must replace the instance; empty: it can keep the node."""
    name = node["name"] or node["uuid"]
    if not instance.is_ours(node["instance_info"]):
        return f"node {name} was never prepared for it, or is another's now"
    return f"node {name} is in {State.ERROR}" if node["provision_state"] == State.ERROR else ""


def rebuild(instance: OnNode) -> str | None:
    return _order_system(instance, "rebuild")


def _order_system(instance: OnNode, verb: str) -> str | None:
    properties = instance.properties
    if properties["network_data"] == instance_network.AUTO:
        ports, portgroups = instance.machines.list_ports(instance.node_uuid())
        networks = instance_network.placed_networks(instance, instance.node_uuid())
        network_data = instance_network.network_data(ports, portgroups, networks)
        properties = {**properties, "network_data": network_data}
    drive = instance_info.config_drive(properties, host_name(instance))
    if handle := instance_boot.handle_of_boot(instance):
        drive = handle.with_token(drive)
    steps = instance_preparation.steps_of_hardware(instance)
    steps += instance.properties["deploy_steps"] or []
    instance.order(verb, configdrive=drive, deploy_steps=steps or None)
    instance.record.data["ordered_at"] = instance.context.utc()
    return None if instance.properties["wait_for"] == "none" else "deployed"


def host_name(instance: OnNode) -> str:
    return instance.properties["name"] or instance.physical_resource_name()
