"""The effects of a plan's actions on machines, which resource kinds derive from known values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Forecast, NotKnown
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Action, Key, Unknown, Verb
from bloomery.orchestration.resources.base import Action as Doing
from bloomery.orchestration.resources.base import Resource, ResourceState, Status
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machine_orders import ANOTHER
from bloomery.orchestration.resources.machines import Busy
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.functions import base

LATER: Final = Effect(certain=False, reason="what it does to the machine is known later")
T = TypeVar("T")
MADE: Final = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def of_update(
    kind: type[Resource],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    names: Collection[str],
) -> Effect:
    old, new = _decisive(kind, before), _decisive(kind, after)
    if _knows_all(kind, old) and _knows_all(kind, new):
        return kind.effect_of_update(old, new, names)
    return LATER


def _decisive(kind: type[Resource], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that decide the effect, with defaults for missing properties."""
    schema = kind.properties_schema
    names = kind.effect_properties | kind.machine_properties
    return {name: values.get(name, schema[name].default) for name in names}


def _knows_all(kind: type[Resource], values: Mapping[str, Any]) -> bool:
    return not any(isinstance(values[name], Unknown) for name in kind.effect_properties)


def set_effects(builder: PlanBuilder) -> None:
    """Set the effect of each action on its machine.

    A resource that has failed may be in any state, so its effects are not certain.  A check
    changes nothing.
    """
    keys_by_node = functools.cache(lambda: _keys_by_node(builder))  # only where a plan asks
    for key, action in builder.actions.items():
        effect = action.effect
        if key.phase == MAKE and action.verb in MADE:
            effect = _of_create(builder, key)
        elif key.phase == CLEAN and action.verb is Verb.DELETE:
            effect = _of_delete(builder, key, action)
        elif action.verb is Verb.UPDATE and _has_failed(action):
            effect = _of_repair(builder, key, action)
        checked = action.record is not None and action.record.action is Doing.CHECK
        if effect.certain and _has_failed(action) and not checked:
            effect = replace(effect, certain=False)
        if action.verb is Verb.UPDATE:
            effect = _as_machine_is(builder, key, action, effect)
        if key.phase == MAKE and action.verb in {*MADE, Verb.UPDATE}:
            is_new = action.verb in MADE
            effect = _at_its_node(builder, key, effect, keys_by_node, is_new=is_new)
        if effect is not action.effect:
            reason = effect.reason if action.reason == action.effect.reason else action.reason
            builder.actions[key] = replace(action, effect=effect, reason=reason)


def _as_machine_is(builder: PlanBuilder, key: Key, action: Action, effect: Effect) -> Effect:
    values = action.properties
    if values is not None:
        values = _decisive(builder.new.kind(key.name), values)
    names = {str(each.path[0]) for each in action.differences}
    now = answer_of(
        builder, action.record, lambda real: real.current_effect(effect, values, names), effect
    )
    if not now.is_refused:
        return now
    # The plan may free the machine: it deletes a resource of the same one.
    ends = (each.record for end, each in builder.actions.items() if end.phase == CLEAN)
    machine = action.record and action.record.physical_id
    is_freed = any(each is not None and each.physical_id == machine for each in ends)
    return replace(now, certain=False) if is_freed else now


def _at_its_node(
    builder: PlanBuilder,
    key: Key,
    effect: Effect,
    keys_by_node: Callable[[], Mapping[str, set[Key]]],
    *,
    is_new: bool,
) -> Effect:
    """Set the node of an effect, and whether this node will refuse the verbs.

    Another action of the plan may leave the node as a creation needs it.
    """
    if reason := builder.lookup_faults.get(key.name):
        return replace(effect, is_refused=True, certain=False, reason=reason)
    kind = builder.new.kind(key.name)
    if is_new:
        values = _values(builder.new, key.name, kind, builder.after)
        if reason := kind.reason_to_refuse_new(values, builder.existing.find_node):
            return replace(effect, is_refused=True, certain=False, reason=reason)
    properties, tree = builder.new.definitions[key.name].properties, None
    if isinstance(properties, Mapping):
        names = (name for name in kind.node_properties if name in properties)
        tree = next((properties[name] for name in names), None)
    if tree is None or not effect.verbs:
        return effect
    ident = _value(tree, builder.after)
    effect = replace(effect, node=ident if isinstance(ident, str) else None)
    state = None  # in which the referenced resource leaves its node, if that is known
    for each in builder.after.references(tree):
        definition = builder.new.definitions.get(each.resource)
        if each.attribute is None and definition is not None and definition.external_id is None:
            node_kind = builder.new.kind(each.resource)
            values = _values(builder.new, each.resource, node_kind, builder.after)
            state = node_kind.state_of_node(values) if _knows_all(node_kind, values) else None
            break
    if state is None and effect.node:
        node = builder.existing.find_node(effect.node)
        idents = (node["uuid"], node["name"]) if is_new and node else ()
        others = {each for ident in idents for each in keys_by_node().get(ident, ())} - {key}
        if is_new and node and not others:
            if reason := kind.reason_to_refuse_now(node, effect.verbs):
                return replace(effect, is_refused=True, certain=False, reason=reason)
            return effect
        return _refused_now(builder, kind, effect, effect.node)
    if state is None:
        return effect
    reason = kind.reason_to_refuse_at(state, effect.verbs)
    return replace(effect, is_refused=True, reason=reason) if reason else effect


def _keys_by_node(builder: PlanBuilder) -> Mapping[str, set[Key]]:
    """Return the keys of actions by the node that they work at, its UUID or its name."""
    keys: dict[str, set[Key]] = {}
    for key, action in builder.actions.items():
        if action.record is not None and action.record.physical_id is not None:
            keys.setdefault(action.record.physical_id, set()).add(key)
        if key.phase != MAKE or action.verb not in MADE:
            continue
        properties = builder.new.definitions[key.name].properties
        if isinstance(properties, Mapping):
            names = builder.new.kind(key.name).node_properties
            idents = [
                _value(properties[name], builder.after) for name in names if name in properties
            ]
            for ident in idents:
                if isinstance(ident, str):
                    keys.setdefault(ident, set()).add(key)
    return keys


def answer_of(
    builder: PlanBuilder, record: ResourceState | None, ask: Callable[[Resource], T], default: T
) -> T:
    """Call ``ask`` with an existing resource; return ``default`` without one or if it fails."""
    resource = None if record is None else builder.existing.resource(record)
    try:
        return ask(resource) if resource is not None else default
    except (errors.Failure, Busy):
        return default


def _has_failed(action: Action) -> bool:
    return action.record is not None and action.record.status is not Status.COMPLETE


def _of_create(builder: PlanBuilder, key: Key) -> Effect:
    kind = builder.new.kind(key.name)
    values = _values(builder.new, key.name, kind, builder.after)
    if not _knows_all(kind, values):
        return LATER
    effect, replaced = kind.effect_of_create(values), builder.actions[key]
    if replaced.record is None or replaced.properties is None:
        return effect
    is_another = replaced.record.data.get(ANOTHER)  # the old machine is no use to it
    if not is_another and kind.deletes_first(replaced.record.properties, replaced.properties):
        return replace(effect, needs=None, reason="the old one is given back first")
    return effect


def of_substitute(builder: PlanBuilder, definition: Mapping[str, Any]) -> Effect:
    """Return the effect of the deletion of a member that the update has created."""
    if not isinstance(builder.new, Stack):
        return LATER
    kind = builder.new.kind_of_type("", str(definition["type"]))
    return kind.effect_of_delete(_decisive(kind, definition.get("properties") or {}))


def _of_delete(builder: PlanBuilder, key: Key, action: Action) -> Effect:
    record, actions = action.record, builder.actions
    builder = builder.for_row(record)
    if key.name not in builder.old.definitions:
        return LATER
    kind = builder.old.kind(key.name)
    if record is not None and record.physical_id is None:
        return NO_EFFECT
    if record is not None:
        values = _decisive(kind, record.properties)
    else:
        values = _values(builder.old, key.name, kind, builder.before)
    effect = kind.effect_of_delete(values) if _knows_all(kind, values) else LATER
    deletion = effect
    effect = answer_of(
        builder, record, lambda real: real.current_effect(deletion, None, ()), deletion
    )
    if record is not None and effect.is_refused:  # unless the plan deletes what is on the node
        node = builder.existing.find_node(str(record.physical_id)) or {}
        users = {node.get("uuid"), node.get("allocation_uuid")} - {None}
        ends = [each for end, each in actions.items() if end.phase == CLEAN and end != key]
        if any(each.record is not None and each.record.physical_id in users for each in ends):
            return deletion
    if record is not None and effect.verbs and kind.node_properties:
        return _refused_now(builder, kind, effect, str(record.physical_id))
    return effect


def _refused_now(builder: PlanBuilder, kind: type[Resource], effect: Effect, ident: str) -> Effect:
    node = builder.existing.find_node(ident)
    reason = kind.reason_to_refuse_at(node["provision_state"], effect.verbs) if node else ""
    return replace(effect, is_refused=True, certain=False, reason=reason) if reason else effect


def _of_repair(builder: PlanBuilder, key: Key, action: Action) -> Effect:
    kind = builder.new.kind(key.name)
    if not kind.repairs_failed or action.effect.loses_data:
        return action.effect
    values = _values(builder.new, key.name, kind, builder.after)
    return kind.effect_of_repair(values) if _knows_all(kind, values) else LATER


def _values(side: TemplateSide, name: str, kind: type[Resource], view: Forecast) -> dict[str, Any]:
    names = kind.effect_properties | kind.machine_properties
    tree = side.definitions[name].properties
    if not names:
        return {}
    if not isinstance(tree, Mapping):
        return dict.fromkeys(names, Unknown())
    stated = {key: _value(tree[key], view) for key in names if key in tree}
    return _decisive(kind, {key: value for key, value in stated.items() if value is not None})


def _value(tree: Any, view: Forecast) -> Any:
    try:
        return base.resolve(tree, view)
    except (errors.Failure, NotKnown):
        return Unknown()
