"""A plan: what is done to each resource, when, why, and what must be done before.

A plan's graph has two kinds of vertices for a resource, as Heat's convergence has::

    make   brings the resource to its new definition: creates, updates, replaces it or leaves it
    clean  takes away what is not wanted any more: the resource, or the old one of a replaced one

and two more where members of a group are walked in the same graph: ``begin`` stands before all
members, ``batch`` between two batches.  A vertex without an action, a no-op, only joins edges.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.differences import Difference
from bloomery.orchestration.resources.base import ResourceState
from bloomery.orchestration.resources.composite import Composite
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.template.definitions import ResourceDefinition

Phase = Literal["make", "clean", "begin", "batch"]
MAKE: Final = "make"
CLEAN: Final = "clean"
BEGIN: Final = "begin"
BATCH: Final = "batch"


class Key(NamedTuple):
    """A vertex.  ``name``: of the resource, below a group ``group/member``."""

    name: str
    phase: Phase
    part: str = ""  # which one, where a name has several: the row to clean, the batch

    def __str__(self) -> str:
        return " ".join(part for part in (self.phase, self.name, self.part) if part)


class Verb(enum.StrEnum):
    CREATE = "create"
    ADOPT = "adopt"  # external_id: the real thing is there and stays another's
    UPDATE = "update"  # in place
    REPLACE = "replace"  # the new one first; the old one goes in its own clean vertex
    RECREATE = "recreate"  # a rollback makes again what the failed update has deleted
    TAKE_BACK = "take_back"  # an old one that was kept takes its place again, with its id
    UNCHANGED = "unchanged"
    REFUSE = "refuse"  # the walk fails here
    DELETE = "delete"
    KEEP = "keep"  # forgotten, not deleted
    WAIT = "wait"  # between two batches

    @property
    def done(self) -> str:
        """The verb as a participle: ``known after web is <done>``."""
        return DONE[self]


DONE: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "created",
    Verb.ADOPT: "adopted",
    Verb.UPDATE: "updated",
    Verb.REPLACE: "replaced",
    Verb.RECREATE: "created again",
    Verb.TAKE_BACK: "taken back",
    Verb.UNCHANGED: "looked at",
    Verb.REFUSE: "looked at",
    Verb.DELETE: "deleted",
    Verb.KEEP: "let go",
    Verb.WAIT: "waited for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is done at one vertex.

    ``certain`` False: it depends on values that come while the plan is walked.  Who walks compares
    again at each vertex in any case; the plan is the forecast, the walk is the truth.
    """

    verb: Verb
    type: str
    reason: str = ""
    certain: bool = True
    differences: tuple[Difference, ...] = ()
    called: bool = False  # the kind wants its update called even if nothing has changed
    pause_s: float = 0
    effect: Effect = NO_EFFECT  # on a machine
    # For who walks; never shown, because they hold secrets.
    definition: ResourceDefinition | None = field(default=None, repr=False)
    record: ResourceState | None = field(
        default=None, repr=False
    )  # what exists; of CLEAN what goes
    properties: Mapping[str, Any] | None = field(default=None, repr=False)  # None: not resolved

    @property
    def forecast(self) -> Verb:
        """The verb, or REFUSE where the machine refuses what is ordered of it."""
        return Verb.REFUSE if self.effect.is_refused else self.verb

    @property
    def is_certain(self) -> bool:
        return self.certain and (self.effect.certain or not self.effect.is_refused)


CHANGES: Final = frozenset(Verb) - {Verb.UNCHANGED, Verb.WAIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``graph`` may hold keys without an action: no-op vertices, which are done when reached.

    ``outputs``  by name: those created, updated, deleted by the template itself
    ``differs``  whether anything differs, though no resource may change
    """

    graph: Graph[Key]
    actions: Mapping[Key, Action]
    outputs: Mapping[str, Verb] = field(default_factory=dict)
    differs: bool = False

    def __iter__(self) -> Iterator[tuple[Key, Action]]:
        """Yield what is done in an order that may be walked."""
        for key in self.graph.order():
            if key in self.actions:
                yield key, self.actions[key]

    def requires(self, key: Key) -> KeysView[Key]:
        return self.graph.requires(key)

    def own(self) -> Graph[Key]:
        """The graph without no-op vertices and members: what the stack does itself, in its order.

        Members are their group's business; whoever walks a stack begins a resource in the turn in
        which nothing stands before it, and not a turn later because of a no-op.
        """
        graph = self.graph.copy()
        for key in self.graph.order():  # leaves first, so that a no-op has few keys before it
            if key not in self.actions or "/" in key.name or key.phase == BATCH:
                graph.bypass(key)
        return graph

    def actions_of(self, name: str) -> list[Action]:
        """All that is done to one resource."""
        return [action for key, action in self if key.name == name]

    def verb(self, name: str) -> Verb:
        """What becomes of a resource of the new template."""
        return self.actions[Key(name, MAKE)].verb

    @property
    def changes(self) -> dict[Key, Action]:
        """All but what stays as it is; empty for a template that asks for nothing new."""
        return {key: action for key, action in self if action.verb in CHANGES}

    @property
    def refused(self) -> dict[Key, Action]:
        return {key: each for key, each in self.changes.items() if each.forecast is Verb.REFUSE}

    def counts(self) -> Counter[Verb]:
        return Counter(action.forecast for action in self.actions.values())


@dataclass(frozen=True, slots=True)
class NestedPlan:
    """What is planned below a resource that stands for a stack.

    ``before`` and ``after``: the resource as it was and as it will be, None where it is not.
    """

    plan: Plan
    before: Composite | None
    after: Composite | None
