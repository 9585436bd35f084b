"""The verbs that bring a node to its properties, and the reasons to refuse them.

Plans and handlers share these functions of properties and of nodes from the API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery.conductor.states import UNSTABLE_STATES, State
from bloomery.orchestration.resources import node_schema, step_run
from bloomery.orchestration.resources.effects import Effect, Impact
from bloomery.orchestration.resources.machines import Json

FAILED: Final = frozenset({State.INSPECTFAIL, State.CLEANFAIL, State.ADOPTFAIL})
HOLD_STATES: Final = frozenset({State.CLEANHOLD})
MOVING: Final = UNSTABLE_STATES | HOLD_STATES  # an update waits until the node has left these
WITHOUT_INSTANCE: Final = FAILED | {State.ENROLL, State.MANAGEABLE, State.AVAILABLE}
REMOVABLE: Final = frozenset({State.ENROLL, State.MANAGEABLE, State.ADOPTFAIL})
CONFIGURATION: Final = "hardware_configuration"
HARDWARE: Final = frozenset({"driver", "driver_info", "interfaces"})  # "always": inspect anew
END_STATES: Final = {
    "manage": State.MANAGEABLE, "inspect": State.MANAGEABLE, "clean": State.MANAGEABLE,
    "provide": State.AVAILABLE,
}  # fmt: skip


def target_of(properties: Mapping[str, Any]) -> str:
    """Return the target state, which is manageable instead of available for a retired node."""
    target = str(properties["target_state"])
    is_retired = properties.get("retired") is True and target == State.AVAILABLE
    return State.MANAGEABLE if is_retired else target


def is_free(node: Json) -> bool:
    return node["provision_state"] in WITHOUT_INSTANCE and node["instance_uuid"] is None


def next_verb(state: str, target: str, *, inspects: bool, configures: bool = False) -> str | None:
    """Return the next verb towards ``target``, or None.

    ``inspects`` and ``configures``: pending, for which an available node becomes manageable first.
    """
    if state == State.ENROLL:
        return None if target == State.ENROLL else "manage"
    if state in FAILED:
        return "manage"
    if state == State.AVAILABLE:
        return None if target == State.AVAILABLE and not (inspects or configures) else "manage"
    if state != State.MANAGEABLE:
        return None
    if inspects:
        return "inspect"
    if configures:
        return "clean"
    return "provide" if target == State.AVAILABLE else None


def inspects_anew(after: Mapping[str, Any], names: Collection[str]) -> bool:
    return bool(after["inspect"] == "always" and not HARDWARE.isdisjoint(names))


def unapplied(applied: Mapping[str, Any], properties: Mapping[str, Any]) -> Sequence[str]:
    stated = properties.get(CONFIGURATION)
    return step_run.changed_sections(applied, stated) if isinstance(stated, Mapping) else []


def boot_settings(node: Json, properties: Mapping[str, Any]) -> Json:
    settings = {name: properties.get(name) for name in node_schema.BOOT}
    return {n: v for n, v in settings.items() if v is not None and node[n] != v}


def destruction_refusal(
    ident: str, properties: Mapping[str, Any], sections: Collection[str]
) -> str:
    if "raid" not in sections or properties[CONFIGURATION].get("allow_destructive"):
        return ""
    return (
        f"cannot change RAID of node {ident}, which destroys data: set "
        f"{CONFIGURATION}.allow_destructive to true"
    )


def configuration_refusal(node: Json, target: str, sections: Collection[str]) -> str:
    if not sections or target == State.ENROLL or is_free(node):
        return ""
    in_use = ", and in use" if node["instance_uuid"] else ""
    return f"cannot configure node {_name_of(node)}: it is {node['provision_state']}{in_use}"


def boot_refusal(node: Json, properties: Mapping[str, Any], names: Collection[str]) -> str:
    changed = {*names} & {*boot_settings(node, properties)}
    is_used = node["provision_state"] not in WITHOUT_INSTANCE | UNSTABLE_STATES
    if not changed or not (is_used or node["instance_uuid"] is not None):
        return ""
    return f"cannot set {' and '.join(sorted(changed))} of node {_name_of(node)}: it is in use"


def stays(node: Json, on_delete: str) -> bool:
    """Tell whether a deletion leaves the node in the service."""
    is_available = node["provision_state"] == State.AVAILABLE
    return on_delete == "keep" or (on_delete == "retire" and not is_available)


def deletion_refusal(node: Json) -> str:
    if node["instance_uuid"] is None:
        return ""
    instance = node["instance_uuid"]
    return f"cannot delete node {_name_of(node)}: instance {instance} is on it; delete that first"


def current_effect_of_delete(node: Json, properties: Mapping[str, Any]) -> Effect:
    """Return the effect of a deletion on the node as it is; step_leave decides likewise."""
    on_delete, state = str(properties["on_delete"]), node["provision_state"]
    if stays(node, on_delete):
        ends = ", and is retired" if on_delete == "retire" else ""
        return Effect(reason=f"node {_name_of(node)} is {state}: it stays{ends}")
    if reason := deletion_refusal(node):
        return Effect(is_refused=True, certain=False, reason=reason)
    verbs = () if state in REMOVABLE else ("manage",)
    return Effect(verbs=verbs, certain=state not in MOVING)


def _name_of(node: Json) -> str:
    return str(node["name"] or node["uuid"])


def effect_of_create(properties: Mapping[str, Any]) -> Effect:
    inspects = properties["inspect"] != "none"
    sections = unapplied({}, properties)
    return _effect(State.ENROLL, target_of(properties), inspects, sections, properties)


def effect_of_update(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
) -> Effect:
    """Return the effect of an update; it is not certain where an instance may be on the node."""
    state = target_of(before)
    applied = {} if state == State.ENROLL else before.get(CONFIGURATION) or {}
    sections = unapplied(applied, after)
    was_inspected = before["inspect"] != "none" and before["target_state"] != State.ENROLL
    inspects = after["inspect"] != "none" and (not was_inspected or inspects_anew(after, names))
    effect = _effect(state, target_of(after), inspects, sections, after)
    may_be_applied = state != State.ENROLL and not all(applied.get(each) for each in sections)
    ident = str(after.get("name") or "(its name is made)")
    if reason := destruction_refusal(ident, after, sections):
        return Effect(is_refused=True, certain=not may_be_applied, reason=reason)
    certain = state != State.AVAILABLE and "inspect" not in names and not may_be_applied
    return replace(effect, certain=certain) if effect.verbs else effect


def current_effect(
    node: Json, data: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
) -> Effect:
    """Return the effect of an update on the current node; ``data``: of its resource."""
    sections = unapplied(data.get("applied") or {}, after)
    is_moving = node["provision_state"] in MOVING
    reason = destruction_refusal(node["uuid"], after, sections)
    reason = reason or boot_refusal(node, after, names)
    if not is_moving:
        reason = reason or configuration_refusal(node, target_of(after), sections)
    if reason:
        return Effect(is_refused=True, reason=reason)
    inspects = not data.get("inspected") or inspects_anew(after, names)
    inspects = inspects and after["inspect"] != "none" and is_free(node)
    effect = _effect(node["provision_state"], target_of(after), inspects, sections, after)
    return replace(effect, certain=not is_moving)


def _effect(
    state: str, target: str, inspects: bool, sections: Sequence[str], after: Mapping[str, Any]
) -> Effect:
    verbs: list[str] = []
    pending = {"inspects": inspects, "configures": bool(sections)}
    while (verb := next_verb(state, target, **pending)) is not None:
        verbs.append(verb)
        state = END_STATES[verb]
        pending |= {"inspect": {"inspects": False}, "clean": {"configures": False}}.get(verb, {})
    impact = Impact.SERVICE if {"inspect", "clean", "provide"}.intersection(verbs) else Impact.PATCH
    reasons = [f"the node goes through {', '.join(verbs)}"] if verbs else []
    stated = after.get(CONFIGURATION) or {}
    loses_data = "clean" in verbs and step_run.loses_data(stated, sections)
    if loses_data:
        reasons.append(step_run.LOSES_DATA)
    return Effect(
        impact=impact, verbs=tuple(verbs), loses_data=loses_data, reason="; ".join(reasons)
    )
