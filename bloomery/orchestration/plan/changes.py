"""Compare a resource with its new definition, as far as values are known beforehand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from bloomery import errors
from bloomery.orchestration.plan import tree_diff
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.differences import Unknown
from bloomery.orchestration.plan.forecast import Forecast, Judge, Knowledge, NotKnown
from bloomery.orchestration.properties import values
from bloomery.orchestration.properties.schema import Schema
from bloomery.orchestration.template.entries import ResourceDefinition
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
    try:
        change = _compare_properties(builder, name)
        _pass_over_names(builder, name, change)
        change.template = _compare_template(builder, name)
    except errors.Misplaced as exc:
        raise exc.under("resources", name) from exc
    return change


# ------------------------------------------------------------------------------------ properties


def _compare_properties(builder: PlanBuilder, name: str) -> Change:
    if builder.records[name] is None and _evidently_same(builder, name):
        return Change()
    schema = builder.new.kind(name).properties_schema
    later = _unknown(builder.new.definitions[name].properties, builder.after, schema, builder.judge)
    earlier = _unknown_before(builder, name, schema)
    try:
        if later or earlier:
            return _partly_known(builder, name, later, earlier)
        before, after = _before(builder, name, ()), builder.new.properties(name, builder.after)
    except NotKnown as exc:  # a function reads more than its references()
        return _unknown_change(builder, name, exc.reference)
    compared = {**schema, **_removed_schema(builder, name)}
    changed = _differing(before, after, compared)
    return Change(
        properties=changed, before=before, after=after, known_before=True, known_after=True
    )


def _pass_over_names(builder: PlanBuilder, name: str, change: Change) -> None:
    """Drop changes that only name the same thing in another way."""
    record, kind = builder.records[name], builder.new.kind(name)
    if record is not None:
        find_node = builder.existing.find_node
        change.properties = {
            key: each
            for key, each in change.properties.items()
            if not kind.names_same_object(record, key, each.after, find_node)
        }


def _evidently_same(builder: PlanBuilder, name: str) -> bool:
    """Return whether nothing can differ, without resolving values; for resources without a row."""
    old, new = builder.old.definitions[name].properties, builder.new.definitions[name].properties
    if not builder.same_context or old != new or not _declared_alike(builder, name):
        return False
    trees = new.values() if isinstance(new, dict) else [new]
    asked = (each for tree in trees for each in builder.after.references(tree))
    return all(builder.judge(each) <= Knowledge.STEADY for each in asked)


def _declared_alike(builder: PlanBuilder, name: str) -> bool:
    """Return whether both kinds have the same schema: templates may differ in defaults."""
    old, new = builder.old.kind(name), builder.new.kind(name)
    return old is new or old.properties_schema == new.properties_schema


def _before(builder: PlanBuilder, name: str, without: Collection[str]) -> Mapping[str, Any]:
    record = builder.records[name]
    if record is not None:
        return record.properties
    return builder.old.properties(name, builder.before, without)


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


Unresolved: TypeAlias = Mapping[str, list[Reference]]  # references to wait for, by property


def _partly_known(
    builder: PlanBuilder, name: str, later: Unresolved, earlier: Unresolved
) -> Change:
    """Compare values where they are known on both sides, and trees where they are not."""
    schema = builder.new.kind(name).properties_schema
    either = {*later, *earlier}
    before = _before(builder, name, earlier)
    after = builder.new.properties(name, builder.after, later)
    compared = {**schema, **_removed_schema(builder, name)}
    rest = {key: schema for key, schema in compared.items() if key not in either}
    differing = _differing(before, after, rest)
    changed = {key: _by_trees(builder, name, key, before, after, later) for key in either}
    differing |= {key: value for key, value in changed.items() if value is not None}
    ordered = {key: differing[key] for key in sorted(differing)}
    return Change(
        properties=ordered,
        before=before,
        after=after,
        known_before=not earlier,
        known_after=not later,
    )


def _unknown_before(builder: PlanBuilder, name: str, schema: Mapping[str, Schema]) -> Unresolved:
    if builder.records[name] is not None:
        return {}
    old, new = builder.old.definitions[name].properties, builder.new.definitions[name].properties
    if (
        builder.same_context and old == new
    ):  # the same references, and these have been found already
        return _unknown(new, builder.after, schema, builder.before.judge)
    return _unknown(old, builder.before, schema, builder.before.judge)


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
    old = before.get(key, Unknown())
    was, will_be = (_tree(side.definitions.get(name), key) for side in (builder.old, builder.new))
    parts = _parts(builder, was, will_be, before.get(key, Unknown()))
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


def _parts(builder: PlanBuilder, was: Any, will_be: Any, before: Any) -> tuple[Any, Any] | None:
    try:
        if isinstance(before, Unknown):
            before = tree_diff.displayable(was, builder.old)
        return tree_diff.parts(builder, was, will_be, before)
    except errors.Failure:  # the old tree is invalid: show the whole value
        return None


def _tree(definition: ResourceDefinition | None, key: str) -> Any:
    if definition is None:
        return None
    tree = definition.properties
    return tree if isinstance(tree, Function) else tree.get(key)


def _unknown_change(builder: PlanBuilder, name: str, reference: Reference) -> Change:
    """Return a change in which every property may change."""
    after = tree_diff.known_after(builder, [reference])
    keys = builder.new.kind(name).properties_schema
    return Change(properties={key: Changed(Unknown(), after, certain=False) for key in keys})


# ------------------------------------------------------------------ metadata, policies, the rest


def _compare_template(builder: PlanBuilder, name: str) -> dict[str, Changed]:
    """Compare the parts of the definition other than properties."""
    old, new = builder.old.definitions.get(name), builder.new.definitions[name]
    if old is None:
        return {}
    parts: dict[str, Changed | None] = {
        part: _compare_part(builder, part, getattr(old, part), getattr(new, part))
        for part in ("metadata", "update_policy")
        if getattr(old, part) or getattr(new, part)
    }
    parts |= {part: _compare_word(old, new, part) for part in ("deletion_policy", "depends_on")}
    record = builder.records[name]
    if (was := record.type if record else old.type) != new.type:
        parts["type"] = Changed(was, new.type)
    return {part: changed for part, changed in parts.items() if changed is not None}


def _compare_word(old: ResourceDefinition, new: ResourceDefinition, part: str) -> Changed | None:
    """Compare a part without calls; as in Heat, another order of names is a change."""
    was, will_be = getattr(old, part), getattr(new, part)
    return None if was == will_be else Changed(_plain(was), _plain(will_be))


def _plain(part: str | tuple[str, ...]) -> str | list[str]:
    return list(part) if isinstance(part, tuple) else str(part)


def _compare_part(builder: PlanBuilder, part: str, old: Any, new: Any) -> Changed | None:
    # References in update_policy add no dependency, so their actions may not be decided yet.
    references = (
        tree_diff.unresolved(new, builder.after, builder.judge) if part == "metadata" else []
    )
    moving = [each for each in references if builder.judge(each) > Knowledge.STEADY]
    same = tree_diff.same(builder, old, new)
    if moving:
        is_certain = not same or any(builder.judge(each) is Knowledge.CHANGES for each in moving)
        before = tree_diff.displayable(old, builder.old)
        parts = tree_diff.parts(builder, old, new, before)
        return Changed(before, tree_diff.known_after(builder, moving), is_certain, parts)
    return (
        None
        if same
        else Changed(
            tree_diff.displayable(old, builder.old), tree_diff.displayable(new, builder.new)
        )
    )
