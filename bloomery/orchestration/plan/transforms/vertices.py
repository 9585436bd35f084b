"""Vertices of each resource: one to make it, one for each row to clean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from bloomery.orchestration.plan import rules
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.rules import Candidate
from bloomery.orchestration.resources.base import ResourceState, Status
from bloomery.orchestration.stack.template_side import NOTHING
from bloomery.orchestration.template.dialect import DeletionPolicy
from bloomery.orchestration.template.entries import ResourceDefinition

ROLLED_BACK: Final = "made by the update that is rolled back"
LEFT_OVER: Final = "left over from an earlier update"
EMPTY: Final = "nothing stands behind it: only its row goes"


def take_rows(builder: PlanBuilder) -> None:
    """Take the current row of each name; ``compare`` may take a leftover in its place."""
    records = builder.existing.records
    builder.records.update(dict.fromkeys(builder.old.definitions) if records is None else records)


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
    chosen = next((row for row in rows if _equals_definition(builder, row)), rows[0])
    builder.records[name] = chosen
    if chosen is not current:
        builder.taken_back.add(name)


def _equals_definition(builder: PlanBuilder, record: ResourceState) -> bool:
    builder.records[record.name] = record
    candidate = Candidate(builder.for_row(record), record.name)
    return rules.judge(candidate).verb is Verb.UNCHANGED


def _usable(record: ResourceState | None) -> bool:
    return record is not None and not record.gone and record.status is Status.COMPLETE


# ---------------------------------------------------------------------------------------- make


def add_resources(builder: PlanBuilder) -> None:
    """Add a vertex for each resource of the new template, to create it unless it exists."""
    for name, definition in builder.new.definitions.items():
        verb, reason = _verb(builder, definition)
        builder.put(
            Key(name, MAKE),
            Action(verb=verb, type=definition.type, reason=reason, definition=definition),
        )


def _verb(builder: PlanBuilder, definition: ResourceDefinition) -> tuple[Verb, str]:
    if definition.external_id is not None:
        return Verb.ADOPT, "external_id: it is there already and stays another's"
    if builder.rollback:
        return Verb.RECREATE, "it is gone"
    return Verb.CREATE, ""


def expect_changes(builder: PlanBuilder) -> None:
    """Leave each existing resource to the traversal, with a vertex to delete it if replaced."""
    for key, candidate in candidates(builder):
        record, planned = candidate.record, builder.actions[key]
        is_gone = record is not None and record.gone
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


# --------------------------------------------------------------------------------------- clean


def add_ends(builder: PlanBuilder) -> None:
    """Add a clean vertex for each row to delete: removed, left over or replaced.

    The old row of a replacement is deleted once the new resource exists and all resources that
    used the old one use the new one.
    """
    for name, record in builder.records.items():
        _end(builder, Key(name, CLEAN), record)
    current = builder.existing.records or {}
    for name, leftovers in builder.existing.leftovers.items():
        for record in (current.get(name), *leftovers):
            if record is None or record is builder.records.get(name):
                continue
            newest = builder.rollback and record is current.get(name)
            reason = EMPTY if record.gone else ROLLED_BACK if newest else LEFT_OVER
            _delete(builder, Key(name, CLEAN, record.uuid), record, reason)


def _end(builder: PlanBuilder, key: Key, record: ResourceState | None) -> None:
    replacement = builder.actions.get(Key(key.name, MAKE))
    if replacement is None:
        _delete(builder, key, record, _absence(builder, key.name, record))
    elif replacement.verb is Verb.REPLACE:
        reason = "replaced" if replacement.certain else "if it is replaced"
        _delete(builder, key, record, reason, certain=replacement.certain)


def _absence(builder: PlanBuilder, name: str, record: ResourceState | None) -> str:
    if record is not None and record.gone:
        return EMPTY
    if builder.rollback:
        return ROLLED_BACK
    return builder.absence(name) if builder.new is not NOTHING else ""


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
        if action.verb is Verb.DELETE and (why := _why_kept(action)):
            reason = f"{action.reason}; {why}" if action.reason else why
            builder.actions[key] = replace(action, verb=_end_verb(action), reason=reason)


def _end_verb(action: Action) -> Verb:
    snapshot = action.definition and action.definition.deletion_policy is DeletionPolicy.SNAPSHOT
    return Verb.DELETE if snapshot else Verb.KEEP


def _why_kept(action: Action) -> str:
    if action.definition is None:
        return ""
    if action.definition.external_id is not None:
        return "external_id: it is another's"
    if action.definition.deletion_policy is DeletionPolicy.RETAIN:
        return "deletion policy Retain"
    if action.definition.deletion_policy is DeletionPolicy.SNAPSHOT:
        return "deletion policy Snapshot: a snapshot first"
    return ""
