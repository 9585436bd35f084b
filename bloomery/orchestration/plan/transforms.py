"""The transforms of a traversal's plan: each is a function that changes a builder.

``TRANSFORMS`` orders them.  A resource has a vertex to make it, and one for each row to clean.  The
traversal decides at each vertex, when values are known.  ``foresight`` compares beforehand, and
adds parts that only previews show: members of groups, effects on machines, outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import rules
from bloomery.orchestration.plan.builder import ExistingStack, PlanBuilder, Transform
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Action, Key, Plan, Verb
from bloomery.orchestration.plan.rules import Candidate
from bloomery.orchestration.resources.base import ResourceState, Status
from bloomery.orchestration.stack.template_side import NOTHING, TemplateSide
from bloomery.orchestration.template.dialect import DeletionPolicy

ROLLED_BACK: Final = "made by the update that is rolled back"
LEFT_OVER: Final = "left over from an earlier update"
EMPTY: Final = "nothing stands behind it: only its row goes"


def take_rows(builder: PlanBuilder) -> None:
    """Take the current row of each name; ``compare`` may take a leftover in its place."""
    records = builder.existing.records
    builder.records.update(dict.fromkeys(builder.old.definitions) if records is None else records)


# ---------------------------------------------------------------------------------------- make


def add_resources(builder: PlanBuilder) -> None:
    """Add a vertex for each resource of the new template, to create it unless it exists."""
    for name, definition in builder.new.definitions.items():
        verb, reason = Verb.CREATE, ""
        if definition.external_id is not None:
            verb, reason = Verb.ADOPT, "external_id: it is there already and stays another's"
        elif builder.rollback:
            verb, reason = Verb.RECREATE, "it is gone"
        action = Action(verb=verb, type=definition.type, reason=reason, definition=definition)
        builder.put(Key(name, MAKE), action)


def order_creation(builder: PlanBuilder) -> None:
    """Order the new template: each resource comes after the resources that it requires."""
    definitions = builder.new.definitions
    for name in definitions:
        key = Key(name, MAKE)
        for required in builder.new.required(name):
            if required in definitions:  # depends_on may name a disabled resource
                builder.graph.add(key, Key(required, MAKE))


def expect_changes(builder: PlanBuilder) -> None:
    """Leave each existing resource to the traversal, with a vertex to delete it if replaced."""
    for key, candidate in candidates(builder):
        record, planned = candidate.record, builder.actions[key]
        is_gone = record is not None and record.has_no_object
        verb, certain = (planned.verb, True) if is_gone else (Verb.UNCHANGED, False)
        builder.actions[key] = replace(planned, verb=verb, record=record, certain=certain)
        if not is_gone or key.name in builder.old.definitions:  # its creation may still run
            end = Key(key.name, CLEAN)
            _delete(builder, end, record, "if it is replaced", certain=False)


def candidates(builder: PlanBuilder) -> Iterator[tuple[Key, Candidate]]:
    """Yield the existing resources in the order of creation.

    The action on a resource decides which values are known to the resources that refer to it.
    """
    for key in builder.graph.order():
        _choose_row(builder, key.name)
        if key.name in builder.records:
            record = builder.records[key.name]
            yield key, Candidate(builder.for_row(record), key.name)


def _choose_row(builder: PlanBuilder, name: str) -> None:
    """Choose among the rows of one name, which an update that failed in a replacement leaves.

    A row that equals its new definition is kept.  Else a rollback takes the old row back.  So does
    an update while the new row is not usable, because the old one may be good enough.
    """
    current = builder.records.get(name)
    usable = [row for row in reversed(builder.existing.leftovers.get(name, ())) if _usable(row)]
    if not usable:
        return
    preferred = [*usable, current] if builder.rollback else [current, *usable]
    rows = [row for row in preferred if row is not None and _usable(row)]
    chosen = rows[0]
    for row in rows:
        builder.records[name] = row
        if rules.judge(Candidate(builder.for_row(row), name)).verb is Verb.UNCHANGED:
            chosen = row
            break
    builder.records[name] = chosen
    if chosen is not current:
        builder.taken_back.add(name)


def _usable(record: ResourceState) -> bool:
    return not record.has_no_object and record.status is Status.COMPLETE


# --------------------------------------------------------------------------------------- clean


def add_ends(builder: PlanBuilder) -> None:
    """Add a clean vertex for each row to delete: removed, left over or replaced.

    The old row of a replacement is deleted once the new resource exists and all resources that
    used the old one use the new one.
    """
    for name, row in builder.records.items():
        replacement = builder.actions.get(Key(name, MAKE))
        if replacement is None:
            if row is not None and row.has_no_object:
                reason = EMPTY
            elif builder.rollback:
                reason = ROLLED_BACK
            else:
                reason = builder.absence(name) if builder.new is not NOTHING else ""
            _delete(builder, Key(name, CLEAN), row, reason)
        elif replacement.verb is Verb.REPLACE:
            reason = "replaced" if replacement.certain else "if it is replaced"
            _delete(builder, Key(name, CLEAN), row, reason, certain=replacement.certain)
    current = builder.existing.records or {}
    for name, leftovers in builder.existing.leftovers.items():
        for record in (current.get(name), *leftovers):
            if record is None or record is builder.records.get(name):
                continue
            newest = builder.rollback and record is current.get(name)
            reason = EMPTY if record.has_no_object else ROLLED_BACK if newest else LEFT_OVER
            _delete(builder, Key(name, CLEAN, record.uuid), record, reason)


def _delete(
    builder: PlanBuilder,
    key: Key,
    record: ResourceState | None,
    reason: str,
    *,
    certain: bool = True,
) -> None:
    definition = builder.for_row(record).old.definitions.get(key.name)
    kind = record.type if record is not None else definition.type if definition else ""
    builder.put(
        key,
        Action(
            verb=Verb.DELETE,
            type=kind,
            reason=reason,
            certain=certain,
            definition=definition,
            record=record,
        ),
    )


def keep_retained(builder: PlanBuilder) -> None:
    """Keep resources that must not be deleted: deletion policy Retain, and external_id."""
    for key, action in builder.actions.items():
        definition = action.definition
        if action.verb is not Verb.DELETE or definition is None:
            continue
        if definition.external_id is not None:
            why = "external_id: it is another's"
        elif definition.deletion_policy is DeletionPolicy.RETAIN:
            why = "deletion policy Retain"
        elif definition.deletion_policy is DeletionPolicy.SNAPSHOT:
            why = "deletion policy Snapshot: a snapshot first"
        else:
            continue
        is_snapshot = definition.deletion_policy is DeletionPolicy.SNAPSHOT
        verb = Verb.DELETE if is_snapshot else Verb.KEEP
        reason = f"{action.reason}; {why}" if action.reason else why
        builder.actions[key] = replace(action, verb=verb, reason=reason)


def order_deletion(builder: PlanBuilder) -> None:
    """Order the deletion of old resources by the old template, after creations and updates.

    An old resource is deleted after its replacement exists and after all resources that required
    it are deleted or updated.  For that, a row that stays has a clean vertex too: a no-op.
    """
    ends: dict[str, list[Key]] = {}
    for key in builder.actions:
        if key.phase == CLEAN:
            ends.setdefault(key.name, []).append(key)
    if not ends:
        return
    for name in (*builder.records, *builder.old.definitions):
        ends.setdefault(name, [Key(name, CLEAN)])
    for name, keys in ends.items():
        replacement = Key(name, MAKE)
        for key in keys:
            builder.graph.add(key, replacement if replacement in builder.graph else None)
    for name, keys in ends.items():
        if name in builder.old.definitions:
            _after_users(builder, builder.old.required(name), keys, ends)
    for name, required in builder.existing.requires.items():
        if name in ends:
            _after_users(builder, required, ends[name], ends, careful=True)


def _after_users(
    builder: PlanBuilder,
    names: Iterable[str],
    keys: list[Key],
    ends: Mapping[str, list[Key]],
    *,
    careful: bool = False,
) -> None:
    """Clean ``names`` after ``keys``, whose resource required them.

    ``careful``: skip edges that would close a cycle; a row's own requirements may be outdated.
    """
    for required in dict.fromkeys(names):
        for end in ends.get(required, ()):
            for key in keys:
                if not (careful and _reaches(builder.graph, key, end)):
                    builder.graph.add(end, key)


def _reaches(graph: Graph[Key], key: Key, end: Key) -> bool:
    """Whether ``key`` requires ``end``, directly or through others."""
    todo, seen = [key], {key}
    while todo:
        each = todo.pop()
        if each == end:
            return True
        needs = graph.requires(each) if each in graph else ()
        todo += [need for need in needs if need not in seen]
        seen.update(needs)
    return False


def drop_noop_vertices(builder: PlanBuilder) -> None:
    """Take away the no-op vertices that nothing waits for, and those that save no edge.

    A no-op is the clean vertex of a row that stays: it only passes on the order.
    """
    graph = builder.graph
    ends = [key for key in graph.keys() if key.phase == CLEAN]  # noqa: SIM118  # no order
    todo = [key for key in ends if key in builder.actions]
    needed = set(todo)
    while todo:
        for key in graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    for key in ends:
        if key not in needed:
            graph.remove(key)
        elif key in builder.actions:
            continue
        elif min(len(graph.requires(key)), len(graph.required_by(key))) <= 1:
            graph.bypass(key)  # joins the neighbours directly, and adds no edges


# ---------------------------------------------------------------------------------------- the plan

TRANSFORMS: Final[tuple[Transform, ...]] = (
    take_rows,
    add_resources,
    order_creation,
    expect_changes,
    add_ends,
    keep_retained,
    order_deletion,
    drop_noop_vertices,
)


def traversal(
    old: TemplateSide, new: TemplateSide, existing: ExistingStack, *, rollback: bool = False
) -> Plan:
    """Return the plan for the engine: without members, effects, differences and outputs."""
    return PlanBuilder(
        old=old, new=new, existing=existing, rollback=rollback, transforms=TRANSFORMS
    ).build()
