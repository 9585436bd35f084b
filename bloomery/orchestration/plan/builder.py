"""A plan under construction: the two templates, the existing resources, and the graph so far."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bloomery import errors
from bloomery.orchestration.graph import Cycle, Graph
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.plan.forecast import Forecast, Knowledge
from bloomery.orchestration.plan.plans import MAKE, Action, Key, NestedPlan, Plan, Verb
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.resources.base import Action as Doing
from bloomery.orchestration.resources.base import Resource, ResourceState, Status
from bloomery.orchestration.resources.machines import FindNode, find_no_node
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template.functions.base import Reference
from bloomery.orchestration.template.view import ResourceView


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The existing resources of a stack.

    ``records``    current rows by name; None: all resources of the old template, as defined there
    ``leftovers``  replaced resources that still exist, by name, oldest first
    ``live``       resources whose ID and attributes are known now, by name
    ``requires``   required resources by name, in addition to those in the old template
    ``resource``   returns a resource that can read its live state; None: the state is not read
    ``child``      returns that of a resource's child stack; None: as its template defines it
    ``template``   template of the stack's last update; None: the one that its parent defines
    ``find_node``  returns a node as it is now, created by a stack or not
    ``converges``  whether resources are compared with their live state, as in Heat's ``converge``
    """

    records: Mapping[str, ResourceState] | None = None
    leftovers: Mapping[str, Sequence[ResourceState]] = field(default_factory=dict)
    live: Mapping[str, ResourceView] = field(default_factory=dict)
    requires: Mapping[str, Sequence[str]] = field(default_factory=dict)
    resource: Callable[[str], Resource | None] = lambda name: None
    child: Callable[[str], Present | None] = lambda name: None
    template: TemplateSide | None = None
    find_node: FindNode = find_no_node
    converges: bool = False


def gone(record: ResourceState) -> bool:
    """Return whether a row has no physical resource."""
    return record.action is Doing.INIT or (
        record.action is Doing.DELETE and record.status is Status.COMPLETE
    )


@dataclass(slots=True)
class Budget:
    """Counts the resources of child stacks in one plan, old and new ones, against the limit."""

    limits: Limits
    taken: int = 0

    def take(self, more: int) -> None:
        """Raise RequestLimitExceeded for more than twice the limit; -1 means no limit."""
        self.taken += more
        if 0 <= self.limits.resources * 2 < self.taken:
            raise self.limits.exceeded("resources", "resources", "a plan")


@dataclass(kw_only=True)
class PlanBuilder:
    """``records``: the current row of each name; ``surplus``: rows that are not current.

    A name in ``records`` without a row (None) exists as the old template defines it.  Plans of
    child stacks are built by the same ``transforms``.
    """

    old: TemplateSide
    new: TemplateSide
    present: Present
    rollback: bool = False
    transforms: Sequence[Transform] = ()
    records: dict[str, ResourceState | None] = field(default_factory=dict)
    surplus: list[ResourceState] = field(default_factory=list)
    taken_back: set[str] = field(default_factory=set)
    nested_plan: dict[str, NestedPlan | None] = field(default_factory=dict)  # of child stacks
    parent: tuple[Secrecy, str] | None = None  # secrecy of the parent stack, resource name
    absence: Callable[[str], str] = lambda name: "no longer in the template"  # why it goes
    graph: Graph[Key] = field(default_factory=Graph)
    actions: dict[Key, Action] = field(default_factory=dict)

    def build(self) -> Plan:
        """Apply the transforms, once.  Raises CircularDependencyException."""
        try:
            for transform in self.transforms:
                transform(self)
            self.graph.order()
        except Cycle as exc:
            names = [key.name for key in exc.keys if isinstance(key, Key)]
            raise errors.CircularDependencyException(cycle=" -> ".join([*names, names[0]])) from exc
        return Plan(graph=self.graph, actions=self.actions)

    def put(self, key: Key, action: Action) -> None:
        self.graph.add(key)
        self.actions[key] = action

    # ----------------------------------------------------------------------------- known values

    @functools.cached_property
    def after(self) -> Forecast:
        """The forecast of the new side."""
        return Forecast(self.new.view, self.judge, self.present.live)

    @functools.cached_property
    def before(self) -> Forecast:
        """The forecast of the old side, for resources without a row."""
        return Forecast(self.old.view)

    @functools.cached_property
    def budget(self) -> Budget:
        return Budget(self.new.view.limits)

    @functools.cached_property
    def same_context(self) -> bool:
        """Whether equal trees of both sides have equal values."""
        return bool(self.old.context == self.new.context)

    @functools.cached_property
    def secrecy(self) -> Secrecy:
        """The secrets of both sides; read it after ``choose_rows``."""
        sealed = {name for name, row in self.records.items() if row and row.redacted}
        return Secrecy(self.old, self.new, parent=self.parent, sealed=sealed, is_plan=True)

    def judge(self, reference: Reference) -> Knowledge:
        """Return how well the value of a reference in the new template is known."""
        action = self.actions.get(Key(reference.resource, MAKE))
        if action is None:
            reason = f"no resource is called {reference.resource!r}; its template has none"
            raise errors.InvalidTemplateReference(reason=reason)
        by_id = reference.attribute is None
        in_place = action.verb is Verb.UPDATE and by_id
        if (action.verb in STAYS or in_place) and reference.resource not in self.taken_back:
            return self._stays(reference.resource)
        if action.verb is Verb.CREATE:
            return Knowledge.CHANGES
        if action.verb in MADE_ANEW and by_id and action.certain:
            return Knowledge.CHANGES
        return Knowledge.MAY_CHANGE

    def _stays(self, name: str) -> Knowledge:
        return Knowledge.KNOWN if name in self.present.live else Knowledge.STEADY


Transform: TypeAlias = Callable[[PlanBuilder], None]
STAYS = frozenset({Verb.UNCHANGED, Verb.REFUSE})
MADE_ANEW = frozenset({Verb.REPLACE, Verb.RECREATE, Verb.ADOPT})
