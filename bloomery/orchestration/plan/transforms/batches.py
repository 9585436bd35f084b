"""Let members of a group change batch by batch, as its update policy says, with pauses between.

A batch waits for the one before it.  Where more must stay in service than the group could spare,
members stand in: made in an early batch, gone with the last.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bloomery import errors
from bloomery.orchestration.plan.actions import BATCH, CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.nested import NestedPlan
from bloomery.orchestration.resources import batches, groups
from bloomery.orchestration.resources.resource_group import ResourceGroup
from bloomery.orchestration.stack import Stack

STANDS_IN = "stands in while others change"


def apply(builder: PlanBuilder) -> None:
    for name, nested_plan in builder.nested_plan.items():
        if nested_plan is not None and isinstance(nested_plan.made, ResourceGroup):
            pace = _pace(nested_plan, nested_plan.made)
            if pace and nested_plan.plan.changes:
                _apply(_Batches(builder, name, nested_plan.made, pace), _present(nested_plan))


def _apply(paced: _Batches, present: groups.Members) -> None:
    try:
        paced.apply(present)
    except errors.Misplaced as exc:
        raise exc.under("resources", paced.name) from exc


def _pace(nested_plan: NestedPlan, made: ResourceGroup) -> Mapping[str, Any] | None:
    """Return the policy that counts: rolling updates are for a changed definition only."""
    if nested_plan.was is None:
        return made.update_policy.get("batch_create")
    changed = nested_plan.was.properties["resource_def"] != made.properties["resource_def"]
    return made.update_policy.get("rolling_update") if changed else None


def _present(nested_plan: NestedPlan) -> groups.Members:
    return {} if nested_plan.was is None else groups.members_of(nested_plan.was.child_document())


@dataclass(slots=True)
class _Batches:
    builder: PlanBuilder
    name: str
    made: ResourceGroup
    pace: Mapping[str, Any]

    def apply(self, present: groups.Members) -> None:
        steps = list(
            batches.batches(
                target=self.made.count(),
                current=len(present.keys() - set(self.made.skip_list())),
                most=self.pace["max_batch_size"],
                floor=self.pace.get("min_in_service") or 0,
            )
        )
        assert isinstance(self.builder.new, Stack)
        pause_s, timeout_s = self.pace["pause_time"], self.builder.new.timeout_s
        batches.time_of_each(len(steps), pause_s=pause_s, timeout_s=timeout_s)  # refuses too long
        wait = None
        for number, keys in enumerate(self._keys(steps, present), 1):
            self._put(keys, wait)
            wait = Key(self.name, BATCH, str(number))
            if number < len(steps):
                self._wait(wait, keys, f"batch {number} of {len(steps)}")

    def _keys(self, steps: list[batches.Batch], present: groups.Members) -> Iterator[list[Key]]:
        """Yield what is done in each batch."""
        define = functools.cache(self.made.member)
        skipped = set(self.made.skip_list())
        for step in steps:
            names = groups.names(step.size, skipped)
            after = groups.grown(present, step, names, self.made.count(), define)
            changed = [name for name in after if after[name] != present.get(name)]
            gone = [name for name in present if name not in after]
            yield [*self._made(changed), *(self._key(name, CLEAN) for name in gone)]
            present = after

    def _made(self, changed: list[str]) -> Iterator[Key]:
        """Yield what is done to members that change; a replaced one goes in the same batch."""
        for name in changed:
            made, old = self._key(name, MAKE), self._key(name, CLEAN)
            yield made
            if made in self.builder.actions and old in self.builder.actions:
                yield old

    def _key(self, member: str, phase: Any) -> Key:
        return Key(f"{self.name}/{member}", phase)

    # --------------------------------------------------------------------------- into the graph

    def _put(self, keys: list[Key], wait: Key | None) -> None:
        for key in keys:
            if key not in self.builder.actions:
                self._stand_in(key)
            if wait is not None:
                self.builder.graph.add(key, wait)

    def _stand_in(self, key: Key) -> None:
        """Put a member that is not there before nor after."""
        verb = Verb.CREATE if key.phase == MAKE else Verb.DELETE
        kind = str(self.made.properties["resource_def"]["type"])
        self.builder.put(key, Action(verb=verb, type=kind, reason=STANDS_IN))
        self.builder.graph.add(Key(self.name, MAKE), key)

    def _wait(self, wait: Key, keys: list[Key], batch: str) -> None:
        pause_s = float(self.pace["pause_time"])
        reason = f"{pause_s:g} s after {batch}" if pause_s else f"for {batch}"
        kind = self.builder.new.definitions[self.name].type
        self.builder.put(wait, Action(verb=Verb.WAIT, type=kind, reason=reason, pause_s=pause_s))
        for key in keys:
            self.builder.graph.add(wait, key)
