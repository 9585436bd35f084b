"""Members of groups, chains and nested templates in the graph of the stack above them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import effects, nested
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
from bloomery.orchestration.resources.resource_group import Indexed, ResourceGroup
from bloomery.orchestration.resources.rollouts import Deed, Step
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.stack import Stack

MADE: Final = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def add_members(builder: PlanBuilder) -> None:
    """Put the members of groups, chains and nested templates into the graph, below their resource.

    They begin when all is there that the resource requires; the resource is done when they are.
    """
    for key, action in list(builder.actions.items()):
        nested_plan = _nested_plan(builder, key, action)
        if nested_plan is not None and nested_plan.plan.changes:
            _merge(builder, key, nested_plan)


def _nested_plan(builder: PlanBuilder, key: Key, action: Action) -> NestedPlan | None:
    if key.phase == CLEAN:
        ends = action.verb is Verb.DELETE and key.name in builder.old.definitions
        return nested.deleted(builder, key.name) if ends and _is_stack(builder, key) else None
    if action.verb in MADE and nested.is_composite(builder.new, key.name):
        builder.nested_plan[key.name] = nested.created(builder, key.name)
    return builder.nested_plan.get(key.name)


def _is_stack(builder: PlanBuilder, key: Key) -> bool:
    """Whether a row that goes is a stack; one that was left over may be of another template."""
    return not key.part and nested.is_composite(builder.old, key.name)


def _merge(builder: PlanBuilder, owner: Key, nested_plan: NestedPlan) -> None:
    plan, begin = nested_plan.plan, _begin(builder.graph, owner)
    for key in plan.graph.keys():  # noqa: SIM118  # asks no order; iterating the graph would
        member = _below(owner, key)
        builder.graph.add(owner, member)
        for need in plan.requires(key):
            builder.graph.add(member, _below(owner, need))
        if begin is not None and not plan.requires(key):
            builder.graph.add(member, begin)
        if key in plan.actions:
            builder.actions[member] = _doubted(plan.actions[key], builder.actions[owner])


def _below(owner: Key, key: Key) -> Key:
    return Key(f"{owner.name}/{key.name}", key.phase, key.part)


def _begin(graph: Graph[Key], owner: Key) -> Key | None:
    """Return the no-op at which members begin; None where nothing is to be waited for."""
    needs = list(graph.requires(owner))
    begin = Key(owner.name, BEGIN, "" if owner.phase == MAKE else owner.phase)
    for need in needs:
        graph.add(begin, need)
    return begin if needs else None


def _doubted(action: Action, owner: Action) -> Action:
    return action if owner.certain else replace(action, certain=False)


# ------------------------------------------------------------------------------------- batches

STANDS_IN: Final = "stands in while others change"


def batch_members(builder: PlanBuilder) -> None:
    """Let members of a group change batch by batch, as its update policy says, with pauses between.

    A batch waits for the one before it.  Where more must stay in service than the group could
    spare, members stand in: made in an early batch, gone with the last.
    """
    for name, nested_plan in builder.nested_plan.items():
        if nested_plan is None or not nested_plan.plan.changes:
            continue
        group = nested_plan.after
        if not isinstance(group, Indexed):
            continue
        present = _present(nested_plan)
        steps = group.steps_from(present, _states(builder, name))
        if steps is not None:
            batches = _Batches(builder, name, group.member, present)
            batches.lay_out(_of_rollout(batches, steps))
        elif isinstance(group, ResourceGroup) and (pace := _pace(nested_plan, group)):
            batches = _Batches(builder, name, group.member, present)
            try:
                batches.lay_out(_of_resources(batches, group, pace))
            except errors.Misplaced as exc:
                raise exc.under("resources", name) from exc


def _pace(nested_plan: NestedPlan, group: ResourceGroup) -> Mapping[str, Any] | None:
    """Return the policy that counts: rolling updates are for a changed definition only."""
    if nested_plan.before is None:
        return group.update_policy.get("batch_create")
    changed = nested_plan.before.properties["resource_def"] != group.properties["resource_def"]
    return group.update_policy.get("rolling_update") if changed else None


def _present(nested_plan: NestedPlan) -> groups.Members:
    return (
        {} if nested_plan.before is None else groups.members_of(nested_plan.before.child_document())
    )


def _states(builder: PlanBuilder, name: str) -> Mapping[str, Status] | None:
    """Return how the members of a group that exists are, where that is known."""
    below = builder.present.below(name)
    if below is None or below.records is None:
        return None
    return {member: record.status for member, record in below.records.items()}


class _Batch(NamedTuple):
    """What is done together, and how long is waited after it."""

    keys: list[Key]
    pause_s: float
    needs_signal: bool = False


def _of_rollout(batches: _Batches, steps: Iterable[Step]) -> Iterator[_Batch]:
    """Yield the batches of a roll-out in which nothing fails."""
    for step in steps:
        if step.deed is Deed.DELETE:
            keys = [batches.key(name, CLEAN) for name in step.members]
        else:
            keys = list(batches.members(step.members))
        yield _Batch(keys, step.wait_s, step.waits_for_signal)


def _of_resources(
    batches: _Batches, group: ResourceGroup, pace: Mapping[str, Any]
) -> Iterator[_Batch]:
    """Yield what is done in each batch.  Raises where the pauses take longer than the stack may."""
    present = batches.present
    steps = list(
        groups.batches(
            target=group.count(),
            current=len(present.keys() - set(group.skip_list())),
            most=pace["max_batch_size"],
            floor=pace.get("min_in_service") or 0,
        )
    )
    assert isinstance(batches.builder.new, Stack)
    pause_s, timeout_s = pace["pause_time"], batches.builder.new.timeout_s
    groups.time_of_each(len(steps), pause_s=pause_s, timeout_s=timeout_s)  # refuses too long
    define = functools.cache(group.member)
    skipped = set(group.skip_list())
    for number, step in enumerate(steps, 1):
        names = groups.names(step.size, skipped)
        after = groups.after_batch(present, step, names, group.count(), define)
        changed = [name for name in after if after[name] != present.get(name)]
        gone = [name for name in present if name not in after]
        ends = (batches.key(name, CLEAN) for name in gone)
        later = number < len(steps)
        yield _Batch([*batches.members(changed), *ends], float(pause_s) if later else 0.0)
        present = after


@dataclass(slots=True)
class _Batches:
    """The batches of one group in the graph.

    ``define`` gives the definition of a member; ``present``: those that are there before.
    """

    builder: PlanBuilder
    name: str
    define: Callable[[str], Mapping[str, Any]]
    present: groups.Members

    def lay_out(self, batches: Iterable[_Batch]) -> None:
        """Let each batch wait for the one before it."""
        wait, laid_out = None, list(batches)
        for number, batch in enumerate(laid_out, 1):
            self._put(batch.keys, wait)
            wait = Key(self.name, BATCH, str(number))
            if number < len(laid_out) or batch.pause_s:
                self._wait(wait, batch, f"batch {number} of {len(laid_out)}")
        if wait is not None and wait in self.builder.actions:  # the last ones are looked at, too
            self.builder.graph.add(Key(self.name, MAKE), wait)

    def members(self, changed: Iterable[str]) -> Iterator[Key]:
        """Yield what is done to members that change; a replaced one goes in the same batch."""
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
        """Put a member that is not there afterwards; it may have been there before."""
        name = key.name.rpartition("/")[2]
        before, after = self.present.get(name), self.define(name)
        verb = Verb.DELETE
        if key.phase == MAKE:
            verb = Verb.CREATE if before is None else Verb.UPDATE
        effect = effects.of_stand_in(self.builder, verb, before or {}, after)
        stands_in = Action(verb=verb, type=after["type"], reason=STANDS_IN, effect=effect)
        self.builder.put(key, stands_in)
        self.builder.graph.add(Key(self.name, MAKE), key)

    def _wait(self, wait: Key, batch: _Batch, place: str) -> None:
        reason = f"{batch.pause_s:g} s after {place}" if batch.pause_s else f"for {place}"
        if batch.needs_signal:
            reason += ", and for a signal to go on"
        kind = self.builder.new.definitions[self.name].type
        pause = Action(verb=Verb.WAIT, type=kind, reason=reason, pause_s=batch.pause_s)
        self.builder.put(wait, pause)
        for key in batch.keys:
            self.builder.graph.add(wait, key)
