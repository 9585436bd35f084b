"""A plan: the actions on each resource, their reasons, differences and order.

A plan's graph has two kinds of vertices for a resource, as Heat's convergence has::

    make   brings the resource to its new definition: creates, updates, replaces it or leaves it
    clean  deletes a resource that is no longer wanted, or the old one after a replacement

and two more where members of a group are in the same graph: ``begin`` before all members,
``batch`` between two rolling update batches.  A vertex without an action is a no-op.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from bloomery import errors
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.resources.base import ResourceState
from bloomery.orchestration.resources.composite import Composite
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.windows import Window
from bloomery.orchestration.template.entries import ResourceDefinition

Phase = Literal["make", "clean", "begin", "batch"]
MAKE: Final = "make"
CLEAN: Final = "clean"
BEGIN: Final = "begin"
BATCH: Final = "batch"


# ------------------------------------------------------------------------------------- differences

MASK: Final = "******"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value known only during the traversal; ``after`` says when."""

    after: str = ""

    def __str__(self) -> str:
        return f"(known after {self.after})" if self.after else "(not known)"


class NotSet(enum.Enum):
    """Marks an absent value, as distinct from an explicit null."""

    NOT_SET = "(not set)"

    def __str__(self) -> str:
        return self.value


NOT_SET: Final = NotSet.NOT_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A leaf that differs.  ``path`` begins with a property, or with a part such as metadata."""

    path: tuple[str | int, ...]
    before: Any
    after: Any
    certain: bool = True
    hidden: str = ""  # why the values are not shown

    @property
    def where(self) -> str:
        return errors.spelled(self.path)

    def masked(self, path: tuple[str | int, ...], why: str) -> Difference:
        """Return a copy at ``path`` with masked values, because deeper keys may reveal a secret."""
        after = self.after if isinstance(self.after, Unknown) else MASK
        return replace(self, path=path, before=MASK, after=after, hidden=why)


def between(
    before: Any, after: Any, path: tuple[str | int, ...], *, certain: bool = True
) -> Iterator[Difference]:
    """Yield each differing leaf; lists of unequal length and unequal types differ as a whole."""
    todo = [(before, after, path)]
    while todo:
        old, new, where = todo.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [*old, *(key for key in new if key not in old)]
            leaves = ((key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in reversed(keys))
            todo += [(left, right, (*where, key)) for key, left, right in leaves]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = list(enumerate(zip(old, new, strict=True)))
            todo += [(left, right, (*where, index)) for index, (left, right) in reversed(pairs)]
        elif old != new:
            yield Difference(path=where, before=old, after=new, certain=certain)


# ----------------------------------------------------------------------------------------- actions


class Key(NamedTuple):
    """A vertex.  ``name``: the resource's, or ``group/member`` for a member of a group."""

    name: str
    phase: Phase
    part: str = ""  # tells vertices of one name apart: the row to clean, the batch

    def __str__(self) -> str:
        return " ".join(part for part in (self.phase, self.name, self.part) if part)


class Verb(enum.StrEnum):
    CREATE = "create"
    ADOPT = "adopt"  # external_id: the physical resource exists and is not managed here
    UPDATE = "update"  # in place
    REPLACE = "replace"  # create the new one first; a clean vertex deletes the old one
    RECREATE = "recreate"  # a rollback creates again a resource that the update has deleted
    TAKE_BACK = "take_back"  # a replaced resource that still exists becomes current again
    UNCHANGED = "unchanged"
    REFUSE = "refuse"  # the traversal fails here
    DELETE = "delete"
    KEEP = "keep"  # leaves the stack, but is not deleted
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
    """The action of one vertex.

    ``certain`` is False if the action depends on values known only during the traversal.  A preview
    is only a forecast: the engine decides at each vertex, and plans all of them as uncertain.
    """

    verb: Verb
    type: str
    reason: str = ""
    certain: bool = True
    differences: tuple[Difference, ...] = ()
    called: bool = False  # the kind wants its update called even if nothing has changed
    pause_s: float = 0
    window: Window | None = None  # when it may begin; None: at any time
    effect: Effect = NO_EFFECT  # on a machine
    # For the engine; never shown, because they hold secrets.
    definition: ResourceDefinition | None = field(default=None, repr=False)
    record: ResourceState | None = field(
        default=None, repr=False
    )  # the existing row; for CLEAN the row to delete
    properties: Mapping[str, Any] | None = field(default=None, repr=False)  # None: not resolved

    @property
    def forecast(self) -> Verb:
        """The verb, or REFUSE if the effect on the machine is refused."""
        return Verb.REFUSE if self.effect.is_refused else self.verb

    @property
    def is_certain(self) -> bool:
        return self.certain and (self.effect.certain or not self.effect.is_refused)


CHANGES: Final = frozenset(Verb) - {Verb.UNCHANGED, Verb.WAIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``graph`` may hold keys without an action: no-op vertices, which are done when reached.

    ``outputs``  verbs by name, for outputs whose definition changes
    ``warnings`` sentences about the plan as a whole
    ``differs``  whether templates or parameters differ, even if no resource changes
    """

    graph: Graph[Key]
    actions: Mapping[Key, Action]
    outputs: Mapping[str, Verb] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    differs: bool = False

    def __iter__(self) -> Iterator[tuple[Key, Action]]:
        """Yield keys and actions, each after the keys that it requires."""
        for key in self.graph.order():
            if key in self.actions:
                yield key, self.actions[key]

    def requires(self, key: Key) -> KeysView[Key]:
        return self.graph.requires(key)

    def own(self) -> Graph[Key]:
        """Return the graph without no-op vertices and without members of groups.

        The child stack of a group has its own graph.  A no-op would only delay the resources
        that require it.
        """
        graph = self.graph.copy()
        for key in self.graph.order():  # leaves first, so that a no-op has few keys before it
            if key not in self.actions or "/" in key.name or key.phase == BATCH:
                graph.bypass(key)
        return graph

    def actions_of(self, name: str) -> list[Action]:
        """Return all actions on one resource."""
        return [action for key, action in self if key.name == name]

    def verb(self, name: str) -> Verb:
        """Return the verb for a resource of the new template."""
        return self.actions[Key(name, MAKE)].verb

    @property
    def changes(self) -> dict[Key, Action]:
        """Return the actions that change something; empty if an update changes no resource."""
        return {key: action for key, action in self if action.verb in CHANGES}

    @property
    def refused(self) -> dict[Key, Action]:
        return {key: each for key, each in self.changes.items() if each.forecast is Verb.REFUSE}

    def counts(self) -> Counter[Verb]:
        return Counter(action.forecast for action in self.actions.values())


@dataclass(frozen=True, slots=True)
class NestedPlan:
    """The plan of a resource's child stack.

    ``before`` and ``after``: the resource before and after the update, None if it does not exist.
    """

    plan: Plan
    before: Composite | None
    after: Composite | None
