"""Members of groups, chains and nested templates in the graph of the parent stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.foresight import effects, nested
from bloomery.orchestration.plan.builder import PlanBuilder
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
from bloomery.orchestration.resources.batches import Batch
from bloomery.orchestration.resources.resource_group import Indexed
from bloomery.orchestration.resources.windows import Window
from bloomery.orchestration.stack import Stack

MADE: Final = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def add_members(builder: PlanBuilder) -> None:
    """Add the members of groups, chains and nested templates to the graph.

    Members begin after the vertices that their resource requires; the resource ends after them.
    """
    graph = builder.graph
    for owner, action in list(builder.actions.items()):
        nested_plan = builder.nested_plan.get(owner.name)
        if owner.phase == CLEAN:
            side = builder.for_row(action.record).old
            ends = action.verb is Verb.DELETE and owner.name in side.definitions
            is_stack = ends and nested.is_composite(side, owner.name)
            nested_plan = nested.deleted(builder, owner.name, action.record) if is_stack else None
        elif action.verb in MADE and nested.is_composite(builder.new, owner.name):
            nested_plan = builder.nested_plan[owner.name] = nested.created(builder, owner.name)
        if nested_plan is None or not nested_plan.plan.changes:
            continue
        # The no-op vertex that members wait for, if the resource requires anything.
        begin = Key(owner.name, BEGIN, "" if owner.phase == MAKE else owner.phase + owner.part)
        needs = list(graph.requires(owner))
        for need in needs:
            graph.add(begin, need)
        plan = nested_plan.plan
        for key in plan.graph.keys():  # noqa: SIM118  # iterating the graph would sort it
            member = _member_key(owner, key)
            graph.add(owner, member)
            for need in plan.requires(key):
                graph.add(member, _member_key(owner, need))
            if needs and not plan.requires(key):
                graph.add(member, begin)
            if key in plan.actions:
                certain = plan.actions[key].certain and builder.actions[owner].certain
                builder.actions[member] = replace(plan.actions[key], certain=certain)


def _member_key(owner: Key, key: Key) -> Key:
    return Key(f"{owner.name}/{key.name}", key.phase, owner.part + key.part)


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
        before, record = nested_plan.before, builder.records.get(name)
        child = None if record is None else builder.existing.child(record)
        existing: groups.Members = {}
        if before is not None and child is not None and isinstance(child.template, Stack):
            document = child.template.definition.template.document
            existing = groups.members_of(document)  # those of an unfinished roll-out, too
        elif before is not None:
            existing = groups.members_of(before.child_document())
        properties = None if before is None else before.properties
        records = None if child is None else child.records
        states = None if records is None else {n: record.status for n, record in records.items()}
        try:
            foreseen = group.foresee_batches(properties, existing, states)
        except errors.Misplaced as exc:
            raise exc.under("resources", name) from exc
        _Batches(builder, name, group.member, nested_plan).lay_out(foreseen)
        rolling = group.update_policy.get("rolling_update") or {}
        if builder.existing.converges and (window := Window.of(rolling.get("window"))):
            batched = {member for batch in foreseen for member in batch.changed}
            for key, action in builder.actions.items():  # what the update repairs beforehand
                parent, _, member = key.name.rpartition("/")
                if (parent, key.phase) == (name, MAKE) and member not in batched:
                    builder.actions[key] = replace(action, window=window)


@dataclass(slots=True)
class _Batches:
    """The batches of one group in the graph.

    ``define`` returns the definition of a member.
    """

    builder: PlanBuilder
    name: str
    define: Callable[[str], Mapping[str, Any]]
    nested_plan: NestedPlan

    def lay_out(self, foreseen: Sequence[Batch]) -> None:
        wait, graph, actions = None, self.builder.graph, self.builder.actions
        kind = self.builder.new.definitions[self.name].type
        keys = [
            [*self.members(batch.changed), *(self.key(name, CLEAN) for name in batch.deleted)]
            for batch in foreseen
        ]
        self._stand_in([key for each in keys for key in each if key not in actions])
        for number, batch in enumerate(foreseen, 1):
            for key in keys[number - 1]:
                if wait is not None:
                    graph.add(key, wait)
                if not graph.requires(key) & {*keys[number - 1]}:  # else it began with the other
                    actions[key] = replace(actions[key], window=batch.window)
            wait = Key(self.name, BATCH, str(number))
            if number == len(foreseen) and not batch.wait_s:
                continue
            place = f"batch {number} of {len(foreseen)}"
            reason = f"{batch.wait_s:g} s after {place}" if batch.wait_s else f"for {place}"
            if batch.waits_for_signal:
                reason += ", and for a signal to go on"
            pause = Action(verb=Verb.WAIT, type=kind, reason=reason, pause_s=batch.wait_s)
            self.builder.put(wait, pause)
            for key in keys[number - 1]:
                graph.add(wait, key)
        if wait is not None and wait in actions:  # after the last batch
            graph.add(Key(self.name, MAKE), wait)

    def members(self, changed: Iterable[str]) -> Iterator[Key]:
        for name in changed:
            new, old = self.key(name, MAKE), self.key(name, CLEAN)
            yield new
            if new in self.builder.actions and old in self.builder.actions:
                yield old

    def key(self, member: str, phase: Phase) -> Key:
        return Key(f"{self.name}/{member}", phase)

    def _stand_in(self, keys: Sequence[Key]) -> None:
        """Add members that do not exist after the update; they may exist before."""
        names = {key: key.name.rpartition("/")[2] for key in keys}
        members: groups.Members = {name: self.define(name) for name in names.values()}
        if not members:
            return
        plan = nested.substituted(self.builder, self.name, self.nested_plan, members)
        for key, name in names.items():
            if key.phase == MAKE:
                stands_in = replace(plan.actions[Key(name, MAKE)], reason=STANDS_IN)
            else:
                kind = str(members[name]["type"])
                effect = effects.of_substitute(self.builder, members[name])
                stands_in = Action(verb=Verb.DELETE, type=kind, reason=STANDS_IN, effect=effect)
            self.builder.put(key, stands_in)
            self.builder.graph.add(Key(self.name, MAKE), key)
