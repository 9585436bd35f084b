"""Words of a plan: what is done to one resource, when, and why.

A plan's graph has two kinds of vertices for a resource, as Heat's convergence has::

    make   brings the resource to its new definition: creates, updates, replaces it or leaves it
    clean  takes away what is not wanted any more: the resource, or the old one of a replaced one

and two more where members of a group are walked in the same graph: ``begin`` stands before all
members, ``batch`` between two batches.  A vertex without an action only joins edges.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from bloomery.orchestration.plan.differences import Difference
from bloomery.orchestration.resources.base import Record
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
    template_diff: tuple[str, ...] = ()  # properties, metadata, update_policy, deletion_policy
    called: bool = False  # the kind wants its update called even if nothing has changed
    pause_s: float = 0
    # For who walks; never shown, because they hold secrets.
    definition: ResourceDefinition | None = field(default=None, repr=False)
    record: Record | None = field(default=None, repr=False)  # what exists; of CLEAN what goes
    properties: Mapping[str, Any] | None = field(default=None, repr=False)  # None: not resolved


CHANGES: Final = frozenset(Verb) - {Verb.UNCHANGED, Verb.WAIT}
