"""Members of groups, chains and nested templates in the graph of the parent stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.foresight import effects, nested
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.builder import ExistingStack, PlanBuilder
from bloomery.orchestration.plan.plans import (
    BATCH,
    BEGIN,
    CLEAN,
    MAKE,
    Action,
    Key,
    NestedPlan,
    Phase,
    Verb,
)
from bloomery.orchestration.resources import groups
from bloomery.orchestration.resources.base import ResourceState
from bloomery.orchestration.resources.batches import Batch
from bloomery.orchestration.resources.resource_group import Indexed
from bloomery.orchestration.stack import Stack

MADE: Final = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def add_members(builder: PlanBuilder) -> None:
    """Add the members of groups, chains and nested templates to the graph.

    Members begin after the vertices that their resource requires; the resource ends after them.
    """
    for key, action in list(builder.actions.items()):
        nested_plan = _nested_plan(builder, key, action)
        if nested_plan is not None and nested_plan.plan.changes:
            _merge(builder, key, nested_plan)


def _nested_plan(builder: PlanBuilder, key: Key, action: Action) -> NestedPlan | None:
    if key.phase == CLEAN:
        side = builder.for_row(action.record).old
        ends = action.verb is Verb.DELETE and key.name in side.definitions
        is_stack = ends and nested.is_composite(side, key.name)
        return nested.deleted(builder, key.name, action.record) if is_stack else None
    if action.verb in MADE and nested.is_composite(builder.new, key.name):
        builder.nested_plan[key.name] = nested.created(builder, key.name)
    return builder.nested_plan.get(key.name)


def _merge(builder: PlanBuilder, owner: Key, nested_plan: NestedPlan) -> None:
    plan, begin = nested_plan.plan, _begin(builder.graph, owner)
    for key in plan.graph.keys():  # noqa: SIM118  # iterating the graph would sort it
        member = _member_key(owner, key)
        builder.graph.add(owner, member)
        for need in plan.requires(key):
            builder.graph.add(member, _member_key(owner, need))
        if begin is not None and not plan.requires(key):
            builder.graph.add(member, begin)
        if key in plan.actions:
            builder.actions[member] = _doubted(plan.actions[key], builder.actions[owner])


def _member_key(owner: Key, key: Key) -> Key:
    return Key(f"{owner.name}/{key.name}", key.phase, owner.part + key.part)


def _begin(graph: Graph[Key], owner: Key) -> Key | None:
    """Return the no-op vertex that members wait for; None: the resource requires nothing."""
    needs = list(graph.requires(owner))
    begin = Key(owner.name, BEGIN, "" if owner.phase == MAKE else owner.phase + owner.part)
    for need in needs:
        graph.add(begin, need)
    return begin if needs else None


def _doubted(action: Action, owner: Action) -> Action:
    return action if owner.certain else replace(action, certain=False)


# ------------------------------------------------------------------------------------- batches

STANDS_IN: Final = "stands in while others change"


def batch_members(builder: PlanBuilder) -> None:
    """Order the changes of a group's members by the batches and pauses of its update policy.

    A batch waits for the batch before it.  If too many members must stay in service, the group
    gets extra members: an early batch creates them, the last batch deletes them.
    """
    for name, nested_plan in builder.nested_plan.items():
        if nested_plan is None or not nested_plan.plan.changes:
            continue
        group = nested_plan.after
        if not isinstance(group, Indexed):
            continue
        before, child = nested_plan.before, _child(builder, name)
        existing = _members(nested_plan, child)
        properties = None if before is None else before.properties
        records = None if child is None else child.records
        states = None if records is None else {n: record.status for n, record in records.items()}
        try:
            foreseen = group.foresee_batches(properties, existing, states)
        except errors.Misplaced as exc:
            raise exc.under("resources", name) from exc
        _Batches(builder, name, group.member, existing, records or {}).lay_out(foreseen)


def _child(builder: PlanBuilder, name: str) -> ExistingStack | None:
    record = builder.records.get(name)
    return None if record is None else builder.existing.child(record)


def _members(nested_plan: NestedPlan, child: ExistingStack | None) -> groups.Members:
    """Return the members as the child stack has them, those of an unfinished roll-out too."""
    if nested_plan.before is None:
        return {}
    if child is not None and isinstance(child.template, Stack):
        return groups.members_of(child.template.definition.template.document)
    return groups.members_of(nested_plan.before.child_document())


@dataclass(slots=True)
class _Batches:
    """The batches of one group in the graph.

    ``define`` returns the definition of a member; ``existing``: the members before the update;
    ``records``: their rows.
    """

    builder: PlanBuilder
    name: str
    define: Callable[[str], Mapping[str, Any]]
    existing: groups.Members
    records: Mapping[str, ResourceState]

    def lay_out(self, foreseen: Sequence[Batch]) -> None:
        wait, keys = None, [self._keys(batch) for batch in foreseen]
        for number, batch in enumerate(foreseen, 1):
            self._put(keys[number - 1], wait)
            wait = Key(self.name, BATCH, str(number))
            if number < len(foreseen) or batch.wait_s:
                self._wait(wait, batch, f"batch {number} of {len(foreseen)}")
                for key in keys[number - 1]:
                    self.builder.graph.add(wait, key)
        if wait is not None and wait in self.builder.actions:  # after the last batch
            self.builder.graph.add(Key(self.name, MAKE), wait)

    def _keys(self, batch: Batch) -> list[Key]:
        deleted = (self.key(name, CLEAN) for name in batch.deleted)
        return [*self.members(batch.changed), *deleted]

    def members(self, changed: Iterable[str]) -> Iterator[Key]:
        for name in changed:
            new, old = self.key(name, MAKE), self.key(name, CLEAN)
            yield new
            if new in self.builder.actions and old in self.builder.actions:
                yield old

    def key(self, member: str, phase: Phase) -> Key:
        return Key(f"{self.name}/{member}", phase)

    # --------------------------------------------------------------------------- into the graph

    def _put(self, keys: list[Key], wait: Key | None) -> None:
        for key in keys:
            if key not in self.builder.actions:
                self._stand_in(key)
            if wait is not None:
                self.builder.graph.add(key, wait)

    def _stand_in(self, key: Key) -> None:
        """Add a member that does not exist after the update; it may exist before."""
        name = key.name.rpartition("/")[2]
        before, after, record = self.existing.get(name), self.define(name), self.records.get(name)
        verb = Verb.DELETE
        if key.phase == MAKE:
            is_there = before is not None and (record is None or record.physical_id is not None)
            verb = Verb.UPDATE if is_there else Verb.CREATE
        effect = effects.of_substitute(self.builder, verb, before or {}, after)
        stands_in = Action(verb=verb, type=after["type"], reason=STANDS_IN, effect=effect)
        self.builder.put(key, stands_in)
        self.builder.graph.add(Key(self.name, MAKE), key)

    def _wait(self, wait: Key, batch: Batch, place: str) -> None:
        reason = f"{batch.wait_s:g} s after {place}" if batch.wait_s else f"for {place}"
        if batch.waits_for_signal:
            reason += ", and for a signal to go on"
        kind = self.builder.new.definitions[self.name].type
        pause = Action(verb=Verb.WAIT, type=kind, reason=reason, pause_s=batch.wait_s)
        self.builder.put(wait, pause)
