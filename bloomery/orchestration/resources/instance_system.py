"""The system of an Instance: deployment and rebuild, power and first boot, and retries.

    deployed -> deploy                                              again on the same node
    deployed -> replace_node -> replaced_node -> reserve            on another one
    deployed -> quarantine -> look_after                            after a later success

A deployment that failed is retried, on another node if the Instance has a selector.  Its node goes
into maintenance after its cleaning, so that no other instance gets it, if the stack owner may set
maintenance.  ``OS::Ironic::FirstBoot`` tells that a system has come up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import HOLD_STATES, UNSTABLE_STATES, Power, State
from bloomery.orchestration.properties.schema import OnChange
from bloomery.orchestration.resources import (
    allocation,
    base,
    first_boot,
    instance_fields,
    instance_hardware,
    instance_info,
    instance_network,
    instance_preparation,
    instance_schema,
    instance_teardown,
    machines,
    step_run,
    stepwise,
)
from bloomery.orchestration.resources.drains import Drained
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.resources.stepwise import OnNode

ON_ITS_WAY: Final = frozenset({State.DEPLOYING, State.DEPLOYWAIT, State.DEPLOYHOLD})
PREPARED: Final = instance_preparation.CLEANABLE | {State.AVAILABLE}  # not deployed yet
BOOTS: Final = "boots"  # the number of deployments and rebuilds
BOOTING: Final = frozenset({Action.CREATE, Action.UPDATE})
POWER: Final = {"on": Power.ON, "off": Power.OFF}
FAILED: Final = "failed_nodes"  # last_error by UUID of a node
QUARANTINED: Final = "quarantined"  # failed nodes whose quarantine is settled
ABANDONED: Final = "given_up"  # a later traversal made the action useless: no further attempt
CLEANED_WITHIN_S: Final = 600.0  # a deployed instance waits this long for a failed node


def prepare(instance: OnNode) -> str | None:
    """Claim the node.  Raises MachineRefused if it cannot be used."""
    node = instance.get_node()
    instance.check_unmarked(node["instance_info"], f"node {node['name'] or node['uuid']}")
    if reason := reason_to_refuse(node, instance.record.data["instance"]):
        raise stepwise.MachineRefused(reason)
    instance_network.placed_networks(instance, node["uuid"])
    instance.note_move(node)
    info = instance_fields.info_of(instance.properties) | {machines.MARK: instance.mark()}
    fields = {f"instance_info/{key}": value for key, value in info.items()}
    fields["instance_name"] = host_name(instance)
    if node["instance_uuid"] is None:
        fields["instance_uuid"] = instance.record.data["instance"]
    instance.machines.update_node(node["uuid"], stepwise.patch_of(fields))
    instance_network.attach(instance, node["uuid"])
    arm(instance)
    instance.record.data.pop(instance_preparation.BEFORE, None)
    return "before" if instance.properties["runbook_before"] else "deploy"


def reason_to_refuse(node: Mapping[str, Any], own: str | None = None) -> str:
    """Return why a node cannot be claimed, or ""; ``own``: the UUID of the instance."""
    name = node["name"] or node["uuid"]
    if node["instance_uuid"] not in (None, own):
        return f"cannot use node {name}: another instance has it"
    if node["provision_state"] != State.AVAILABLE:
        return f"cannot use node {name}: it is {node['provision_state']}, not available"
    in_maintenance = ("in maintenance", f"; baremetal node maintenance unset {name} ends that")
    flags = {"maintenance": in_maintenance, "retired": ("retired", ""),
             "protected": ("protected", "")}  # fmt: skip
    for flag, (state, way_out) in flags.items():
        if node[flag]:
            reason = node.get(f"{flag}_reason")
            because = f" ({reason})" if reason else ""
            return f"cannot use node {name}: it is {state}{because}{way_out}"
    return ""


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
        if data.get(FAILED):
            return "quarantine"
        is_serviced = instance.properties["runbook_after"] or data.get(instance_hardware.DUE)
        return "look_after" if is_serviced else _after_deploy(instance, node)
    if state not in (State.DEPLOYFAIL, State.ERROR):
        name = node["name"] or node["uuid"]
        raise stepwise.MachineFailed(f"node {name} is {state}, and was to be deployed")
    return after_failure(instance, node)


def look_after(instance: OnNode) -> stepwise.Following:
    """Choose an order ID for the hardware that is due, or else for runbook_after."""
    node = instance.get_node()
    if node["provision_state"] in step_run.RUNNING_STATES["service"]:
        return instance.wait_in("service", f"while it is {node['provision_state']}")
    if not instance_hardware.service_arguments(instance):
        due = instance.record.data.pop(instance_hardware.DUE, None)
        if not (due and instance_hardware.service_arguments(instance)):  # of runbook_after
            return "check_power"
    instance.note_move(node)
    instance.number_order()
    return "run_after"


def run_after(instance: OnNode) -> str | None:
    """Order the service; go back to ``look_after`` if another client has moved the node."""
    arguments = instance_hardware.service_arguments(instance)
    data = instance.record.data
    data.setdefault(instance_hardware.APPLIED, {}).update(
        dict.fromkeys(data.get(instance_hardware.DUE, ()))
    )
    return "ran_after" if instance.order_numbered("service", **arguments) else "look_after"


def ran_after(instance: OnNode) -> stepwise.Following:
    error = instance.wait_for_flow("service", "for its service to end")
    if isinstance(error, stepwise.UNFINISHED):
        return error
    if error is not None:
        raise stepwise.MachineFailed(error)
    return "look_after" if instance_hardware.note_service(instance) else "check_power"


def end_service(instance: OnNode) -> str | None:
    """Order abort after a failed service: its hardware is not wanted any more, or a rebuild is."""
    instance.order("abort")
    return "renew" if instance.record.data.get("rebuilds") else "check_power"


def check_power(instance: OnNode) -> str | None:
    return _after_deploy(instance, instance.get_node())


def _after_deploy(instance: OnNode, node: Json) -> str | None:
    _protect(instance, node)
    target = instance.record.data["target"] = POWER[instance.properties["power"]]
    return "come_up" if node["power_state"] == target else "switch"


def _protect(instance: OnNode, node: Json) -> None:
    protected = instance.properties["protected"]
    if protected is not None and bool(node["protected"]) is not protected:
        instance.machines.update_node(node["uuid"], stepwise.patch_of({"protected": protected}))


def renew(instance: Drained) -> stepwise.Following:
    try:
        node = instance.get_node()
    except errors.NotFound as exc:
        raise base.UpdateReplace from exc
    state, data = node["provision_state"], instance.record.data
    if reason_to_replace(instance, node):
        raise base.UpdateReplace
    if state in ON_ITS_WAY:
        return instance.wait_in("deploy", "for the node to be active")
    writes_anew = state not in PREPARED and (data.get("rebuilds") or state == State.DEPLOYFAIL)
    if writes_anew and node["protected"] and instance.properties["protected"] is not False:
        raise stepwise.MachineRefused(
            f"cannot rebuild node {node['name'] or node['uuid']}: it is protected; set protected "
            "to false"
        )
    target = POWER[instance.properties["power"]]
    is_due = data.get(instance_hardware.DUE) and state not in PREPARED
    serves = is_due and instance_hardware.service_arguments(instance)
    comes = "power off" if target == Power.OFF != node["power_state"] else ""
    comes = "rebuild" if writes_anew else "service" if serves else comes
    if comes and (drain := instance.begin_drain(node, comes, "renew")):
        return drain
    instance.note_move(node)
    before = instance_fields.info_of(instance.record.properties)
    after = instance_fields.info_of(instance.properties)
    info = after | {key: None for key in before if key not in after}  # the mark stays
    fields = {f"instance_info/{key}": value for key, value in info.items()}
    fields["instance_name"] = host_name(instance)
    instance.machines.update_node(node["uuid"], stepwise.patch_of(fields))
    if data.get("networks"):
        instance_network.attach(instance, node["uuid"])
    if state in PREPARED:  # the node is claimed, but not deployed yet
        data.pop(instance_preparation.BEFORE, None)
        return "prepare" if state == State.AVAILABLE else "before"
    if writes_anew:
        if state == State.SERVICEFAIL:
            return "end_service"
        if node["protected"]:
            _protect(instance, node)
        arm(instance)
        return "rebuild"
    if data.get(instance_hardware.DUE):
        data[instance_hardware.SERVICE_ONLY] = True
        return "look_after"
    if state == State.SERVICEFAIL:
        return "end_service"
    _protect(instance, node)
    data["target"] = target
    return None if node["power_state"] == target else "switch"


def effect_of_renew(
    effect: Effect,
    node: Json,
    properties: Mapping[str, Any],
    names: Collection[str],
    *,
    sections: Collection[str] = (),
    is_ordered: bool = False,
) -> Effect:
    """Return the effect of an update on the node as it is; ``renew`` decides likewise.

    ``sections``: of hardware, that are due.  ``is_ordered``: a rebuild was ordered, whatever has
    changed.
    """
    label, state = f"node {node['name'] or node['uuid']}", node["provision_state"]
    rebuilds = is_ordered or OnChange.REBUILD in instance_info.changes(properties, names)
    if state in ON_ITS_WAY:
        return replace(effect, certain=False, reason=f"{label} is {state}")
    if state in PREPARED:
        reason = f"{label} is {state}: it is claimed, but nothing was deployed yet"
        return replace(
            instance_info.effect_of_create(properties), needs=None, impact=Impact.SERVICE,
            certain=state == State.AVAILABLE, reason=reason,
        )  # fmt: skip
    if rebuilds or state == State.DEPLOYFAIL:
        written = instance_info.effect_of_repair(properties, sections)
        anew = "it is written anew" if written.loses_data else "it boots its ISO anew"
        reason = effect.reason if rebuilds else f"{label} is in {state}: {anew}"
        reason = "a rebuild is ordered" if is_ordered else reason
        verbs = (*(("abort",) if state == State.SERVICEFAIL else ()), *written.verbs)
        written = replace(written, verbs=verbs, certain=True, reason=reason)
        is_allowed = states.allows(state, "rebuild") or state == State.SERVICEFAIL
        return written if is_allowed else _refused(written, label, state)
    target = POWER[properties["power"]]
    serves = state in (State.ACTIVE, State.SERVICEFAIL)
    if sections and not serves:
        return _refused(effect, label, state)
    if not serves or OnChange.POWER in instance_info.changes(properties, names):
        return effect
    if node["power_state"] != target:
        reason = f"{label} is {node['power_state']}: the machine is switched"
        verbs = (f"power {properties['power']}",)
        return Effect(impact=Impact.SERVICE, verbs=verbs, reason=reason)
    written = replace(NO_EFFECT, reason=f"{label} is {state}: nothing on it is written")
    return written if effect.verbs else effect


def _refused(effect: Effect, label: str, state: str) -> Effect:
    """Return the effect on a node whose state refuses the first verb, if it does not pass."""
    if state in UNSTABLE_STATES | HOLD_STATES:
        return replace(effect, certain=False, reason=f"{label} is {state}")
    reason = f"cannot {effect.verbs[0]} {label}: it is {state}"
    return Effect(is_refused=True, certain=effect.certain, reason=reason)


def reason_to_replace(instance: OnNode, node: Json) -> str:
    """Return why an update must replace the instance, or "" if it can keep the node."""
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
    if handle := handle_of_boot(instance):
        drive = handle.with_token(drive)
    steps = instance_preparation.steps_of_hardware(instance)
    steps += instance.properties["deploy_steps"] or []
    instance.order(verb, configdrive=drive, deploy_steps=steps or None)
    instance.record.data["ordered_at"] = instance.context.utc()
    instance.record.data.pop(instance_hardware.SERVICE_ONLY, None)
    return None if instance.properties["wait_for"] == "none" else "deployed"


def host_name(instance: OnNode) -> str:
    return instance.properties["name"] or instance.physical_resource_name()


# -------------------------------------------------------------------- power and first boot


def handle_of_boot(instance: OnNode) -> first_boot.FirstBoot | None:
    """Return the FirstBoot to wait for, or None.  Raises EntityNotFound if it is missing."""
    named, siblings = instance.properties["first_boot"], instance.context.siblings
    if not named or instance.properties["wait_for"] in ("active", "none"):
        return None
    handle = siblings and siblings.find(named)
    if not isinstance(handle, first_boot.FirstBoot):
        raise errors.EntityNotFound(entity="FirstBoot of this stack", name=named)
    return handle


def arm(instance: OnNode) -> None:
    """Let the handle accept only signals of the system that is deployed next."""
    if handle := handle_of_boot(instance):
        boots = instance.record.data[BOOTS] = instance.record.data.get(BOOTS, 0) + 1
        whole_drive = bool(instance.properties["configdrive"])
        handle.arm(f"{instance.record.uuid}/{boots}", new_token=not whole_drive)


def come_up(instance: OnNode) -> stepwise.Following:
    handle = handle_of_boot(instance)
    if handle is None:
        return None
    try:
        if handle.has_come_up():
            return None
    except ValueError as exc:
        raise stepwise.MachineFailed(str(exc)) from exc
    chosen = (instance.properties["timeouts"] or {}).get("first_boot")
    timeout_s = float(chosen or handle.properties["timeout"])
    return instance.wait_for(handle.record.uuid, timeout_s, "for the system to come up")


def switch(instance: OnNode) -> str | None:
    """Order the target power state, unless the node has it."""
    node, target = instance.get_node(), instance.record.data["target"]
    if node["power_state"] != reached(target):
        instance.machines.set_power_state(node["uuid"], target)
    return "switched"


def switched(instance: OnNode) -> stepwise.Following:
    node, target = instance.get_node(), instance.record.data["target"]
    if node["power_state"] != reached(target):
        if node["target_power_state"] is None and node["last_error"]:
            raise stepwise.MachineFailed(str(node["last_error"]))
        return instance.wait_in("power", f"for {target}")
    return "come_up" if instance.record.action in BOOTING else None


def reached(target: str) -> str:
    return Power.OFF if target in (Power.OFF, Power.SOFT_OFF) else Power.ON


# ---------------------------------------------------------------------------------- retries


def first_attempt(instance: OnNode) -> None:
    instance.record.data["attempt"] = 1
    for name in ("errors", FAILED, QUARANTINED, ABANDONED):
        instance.record.data.pop(name, None)


def _setting(instance: OnNode, name: str) -> int:
    retry = instance.properties["retry"] or {}
    value = retry.get(name)
    return int(instance_schema.RETRY[name].default if value is None else value)


def after_failure(instance: OnNode, node: Json) -> str:
    data = instance.record.data
    data["errors"] = [*data.get("errors", ()), str(node["last_error"])]
    ended = data["attempt"] >= _setting(instance, "attempts") or data.get(ABANDONED)
    if instance.record.action is not base.Action.CREATE or ended:
        _quarantine(instance)
        raise stepwise.MachineFailed("; ".join(data["errors"]))
    instance.note_move(node)
    if instance.properties["selector"] and _setting(instance, "other_node"):
        data.setdefault(FAILED, {})[node["uuid"]] = str(node["last_error"])
        return "replace_node"
    data["attempt"] += 1
    arm(instance)
    return "deploy"


def replace_node(instance: OnNode) -> str | None:
    instance.order("deleted")
    return "replaced_node"


def replaced_node(instance: OnNode) -> stepwise.Following:
    if instance_teardown.waits_for_teardown(instance, instance.get_node()):
        return instance.wait_in("teardown", "for the instance to go")
    allocation.withdraw(instance, str(instance.record.data["instance"]))
    instance.record.data["attempt"] += 1
    return "reserve"


def quarantine(instance: OnNode) -> stepwise.Following:
    if waits := _quarantine(instance):
        with contextlib.suppress(stepwise.MachineTimedOut):
            return instance.wait_for(waits, CLEANED_WITHIN_S, "for a failed node to be clean")
    return "look_after"


def _quarantine(instance: OnNode) -> str | None:
    data, waits = instance.record.data, None
    requirer = f"{instance.record.name} of stack {instance.context.stack_name}"
    remaining = {
        uuid: error for uuid, error in data.get(FAILED, {}).items()
        if uuid not in data.get(QUARANTINED, ()) and _setting(instance, "quarantine_failed")
    }  # fmt: skip
    for uuid, error in remaining.items():
        try:
            node = instance.machines.get_node(uuid)
            if node["provision_state"] in UNSTABLE_STATES:
                waits = uuid
                continue
            if node["instance_uuid"] is None and not node["maintenance"]:
                reason = f"cannot be deployed for {requirer} ({instance.context.stack_id}): {error}"
                instance.machines.set_maintenance(uuid, True, reason)
        except machines.Busy:
            waits = uuid
            continue
        except (errors.Forbidden, errors.NodeNotFound):
            pass  # not allowed, or the node is gone
        data.setdefault(QUARANTINED, []).append(uuid)
    return waits
