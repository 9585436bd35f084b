"""Compare a resource with its new definition, as far as values are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from bloomery import errors
from bloomery.orchestration.plan import tree_diff
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Forecast, Judge, Knowledge, NotKnown
from bloomery.orchestration.plan.plans import Unknown
from bloomery.orchestration.properties import values
from bloomery.orchestration.properties.schema import Schema
from bloomery.orchestration.template.functions.base import Function, Reference


class Changed(NamedTuple):
    before: Any
    after: Any
    certain: bool = True
    parts: tuple[Any, Any] | None = None  # both, if only parts of ``after`` are unknown


@dataclass(slots=True, kw_only=True)
class Change:
    """``before`` and ``after``: known property values; ``template``: other parts that differ."""

    properties: dict[str, Changed] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    template: dict[str, Changed] = field(default_factory=dict)
    known_before: bool = False  # whether ``before`` has every value
    known_after: bool = False


def compare(builder: PlanBuilder, name: str) -> Change:
    """Compare the existing resource ``name`` with its new definition."""
    record, find_node = builder.records[name], builder.existing.find_node
    try:
        change, kind = _compare_properties(builder, name), builder.new.kind(name)
        if record is not None:  # drop changes that only name the same object in another way
            change.properties = {
                key: each
                for key, each in change.properties.items()
                if not kind.names_same_object(record, key, each.after, find_node)
            }
        change.template = _compare_template(builder, name)
    except errors.Misplaced as exc:
        raise exc.under("resources", name) from exc
    return change


# ------------------------------------------------------------------------------------ properties

Unresolved: TypeAlias = dict[str, list[Reference]]  # references to wait for, by property


def _compare_properties(builder: PlanBuilder, name: str) -> Change:
    """Compare values where they are known on both sides, and trees where they are not."""
    record, schema = builder.records[name], builder.new.kind(name).properties_schema
    if record is None and _is_evidently_same(builder, name):
        return Change()
    new = builder.new.definitions[name].properties
    later, earlier = _unknown(new, builder.after, schema, builder.judge), Unresolved()
    if record is None:
        old = builder.old.definitions[name].properties
        is_found = builder.same_context and old == new  # the same references
        tree, view = (new, builder.after) if is_found else (old, builder.before)
        earlier = _unknown(tree, view, schema, builder.before.judge)
    either = {*later, *earlier}
    try:
        if record is None:
            before = builder.old.properties(name, builder.before, earlier)
        else:
            before = record.properties
        after = builder.new.properties(name, builder.after, later)
        compared = {**schema, **_removed_schema(builder, name)}
        known = {key: each for key, each in compared.items() if key not in either}
        changed = _differing(before, after, known)
        if either:
            by_trees = {key: _by_trees(builder, name, key, before, after, later) for key in either}
            changed |= {key: each for key, each in by_trees.items() if each is not None}
            changed = {key: changed[key] for key in sorted(changed)}
    except NotKnown as exc:  # a function reads more than its references(): all may change
        unknown = tree_diff.known_after(builder, [exc.reference])
        return Change(properties=dict.fromkeys(schema, Changed(Unknown(), unknown, certain=False)))
    return Change(
        properties=changed,
        before=before,
        after=after,
        known_before=not earlier,
        known_after=not later,
    )


def _is_evidently_same(builder: PlanBuilder, name: str) -> bool:
    """Return whether nothing can differ, without resolving values; for resources without a row."""
    old, new = builder.old.definitions[name].properties, builder.new.definitions[name].properties
    if not builder.same_context or old != new:
        return False
    old_kind, new_kind = builder.old.kind(name), builder.new.kind(name)
    if old_kind is not new_kind and old_kind.properties_schema != new_kind.properties_schema:
        return False  # templates may differ in defaults
    trees = new.values() if isinstance(new, dict) else [new]
    references = (each for tree in trees for each in builder.after.references(tree))
    return all(builder.judge(each) <= Knowledge.STEADY for each in references)


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any], schema: Mapping[str, Schema]
) -> dict[str, Changed]:
    """Compare known values; a property that an old row lacks counts as its default."""
    absent = {key: schema[key].default for key in after if key in schema and key not in before}
    full = {**absent, **before} if absent else before
    changed = values.differences(schema, full, after).changed
    return {key: Changed(full.get(key), after.get(key)) for key in changed}


def _removed_schema(builder: PlanBuilder, name: str) -> Mapping[str, Schema]:
    """Return the properties that only the old kind declares, such as removed parameters."""
    if name not in builder.old.definitions:
        return {}
    old, new = builder.old.kind(name), builder.new.kind(name)
    if old is new:
        return {}
    kept = new.properties_schema
    return {key: value for key, value in old.properties_schema.items() if key not in kept}


def _unknown(tree: Any, view: Forecast, schema: Iterable[str], judge: Judge) -> Unresolved:
    """Return the properties that cannot be resolved yet, and the references they wait for."""
    if isinstance(tree, Function):  # a call returns the whole map: any property may be in it
        references = tree_diff.unresolved(tree, view, judge)
        return dict.fromkeys(schema, references) if references else {}
    by_key = ((key, tree_diff.unresolved(value, view, judge)) for key, value in tree.items())
    return {key: references for key, references in by_key if references}


def _by_trees(
    builder: PlanBuilder,
    name: str,
    key: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    later: Unresolved,
) -> Changed | None:
    """Compare the trees of one property, which is not known on both sides."""
    old, trees = before.get(key, Unknown()), []
    for side in (builder.old, builder.new):
        definition = side.definitions.get(name)
        tree = None if definition is None else definition.properties
        trees.append(tree.get(key) if isinstance(tree, Mapping) else tree)
    was, will_be = trees
    try:
        value = tree_diff.displayable(was, builder.old) if isinstance(old, Unknown) else old
        parts = tree_diff.parts(builder, was, will_be, value)
    except errors.Failure:  # the old tree is invalid: show the whole value
        parts = None
    if key not in later:
        return Changed(old, after.get(key), parts=parts)
    same = tree_diff.same(builder, was, will_be)
    worst = max(builder.judge(each) for each in later[key])
    if same and worst is Knowledge.STEADY:
        return None
    # A call that returns the whole map may leave this property unchanged.
    is_certain = not isinstance(builder.new.definitions[name].properties, Function)
    certain = is_certain and (not same or worst is Knowledge.CHANGES)
    return Changed(old, tree_diff.known_after(builder, later[key]), certain, parts)


# ------------------------------------------------------------------ metadata, policies, the rest


def _compare_template(builder: PlanBuilder, name: str) -> dict[str, Changed]:
    """Compare the parts of the definition other than properties."""
    old, new = builder.old.definitions.get(name), builder.new.definitions[name]
    if old is None:
        return {}
    parts: dict[str, Changed] = {}
    for part in ("metadata", "update_policy"):
        was, will_be = getattr(old, part), getattr(new, part)
        if not (was or will_be):
            continue
        moving = []
        if part == "metadata":  # what update_policy refers to may not be decided yet
            references = tree_diff.unresolved(will_be, builder.after, builder.judge)
            moving = [each for each in references if builder.judge(each) > Knowledge.STEADY]
        same = tree_diff.same(builder, was, will_be)
        if same and not moving:
            continue
        before = tree_diff.displayable(was, builder.old)
        if moving:
            after = tree_diff.known_after(builder, moving)
            certain = not same or any(builder.judge(each) is Knowledge.CHANGES for each in moving)
            leaves = tree_diff.parts(builder, was, will_be, before)
            parts[part] = Changed(before, after, certain, leaves)
        else:
            parts[part] = Changed(before, tree_diff.displayable(will_be, builder.new))
    if old.deletion_policy != new.deletion_policy:
        policies = str(old.deletion_policy), str(new.deletion_policy)
        parts["deletion_policy"] = Changed(*policies)
    if old.depends_on != new.depends_on:  # as in Heat, another order of names is a change
        parts["depends_on"] = Changed(list(old.depends_on), list(new.depends_on))
    record = builder.records[name]
    if (old_type := record.type if record else old.type) != new.type:
        parts["type"] = Changed(old_type, new.type)
    return parts
