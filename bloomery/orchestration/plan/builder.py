"""A plan under construction: the two templates, the existing resources, and the graph so far."""

from __future__ import annotations

import functools
import itertools
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.graph import Cycle, Graph
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.plan.forecast import Forecast, Knowledge
from bloomery.orchestration.plan.plans import MAKE, Action, Key, NestedPlan, Plan, Verb
from bloomery.orchestration.resources.base import Resource, ResourceState
from bloomery.orchestration.resources.machines import FindNode, find_no_node
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.functions.base import Reference
from bloomery.orchestration.template.view import ResourceView


class Row(ResourceView, Protocol):
    """A stored resource, with the template that last created or updated it."""

    @property
    def stored(self) -> StoredResource: ...

    @property
    def definitions(self) -> TemplateSide: ...

    def resource(self) -> Resource: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingStack:
    """The existing resources of a stack.

    ``records``    current rows by name; None: all resources of the old template, as defined there
    ``leftovers``  replaced resources that still exist, by name, oldest first
    ``live``       resources whose ID and attributes are known now, by name
    ``requires``   required resources by name, in addition to those in the old template
    ``side``       returns the template that a row belongs to; None: the old template
    ``resource``   returns a resource that can read its live state; None: the state is not read
    ``child``      returns that of a row's child stack; None: as its template defines it
    ``template``   template of the stack's last update; None: the one that its parent defines
    ``find_node``  returns a node as it is now, created by a stack or not
    ``list_free``  returns the free nodes of a class; None: nodes are not counted
    ``look_up``    reads the values of a lookup now, by its name, kind and properties; None: they
                   are not read (foresight/lookups.py)
    ``converges``  whether resources are compared with their live state, as in Heat's ``converge``
    """

    records: Mapping[str, ResourceState] | None = None
    leftovers: Mapping[str, Sequence[ResourceState]] = field(default_factory=dict)
    live: Mapping[str, ResourceView] = field(default_factory=dict)
    requires: Mapping[str, Sequence[str]] = field(default_factory=dict)
    side: Callable[[ResourceState], TemplateSide | None] = lambda record: None
    resource: Callable[[ResourceState], Resource | None] = lambda record: None
    child: Callable[[ResourceState], ExistingStack | None] = lambda record: None
    template: TemplateSide | None = None
    find_node: FindNode = find_no_node
    list_free: Callable[[str], Sequence[dict[str, Any]]] | None = None
    look_up: Callable[[str, Any, Mapping[str, Any]], tuple[Any, Sequence[str]]] | None = None
    converges: bool = False
    under_way: Sequence[str] = ()  # resources with an action of an earlier order

    @classmethod
    def of_rows(
        cls,
        old: TemplateSide,
        current: Mapping[str, Row],
        leftovers: Mapping[str, Sequence[Row]],
        child: Callable[[Any], ExistingStack | None] = lambda row: None,
        **more: Any,
    ) -> ExistingStack:
        """Return the rows of a stack for the plan of the engine, and for its preview."""
        stored = {name: row.stored for name, row in current.items()}
        rows = {stored[name].uuid: row for name, row in current.items()}
        rows |= {row.stored.uuid: row for each in leftovers.values() for row in each}
        return cls(
            records={name: value.before_action() for name, value in stored.items()},
            leftovers={
                name: [row.stored.before_action() for row in each]
                for name, each in leftovers.items()
            },
            live={name: row for name, row in current.items() if row.ready},
            requires={
                name: value.requires
                for name, value in stored.items()
                if value.pending_action is not None or name not in old.definitions
            },
            side=lambda record: rows[record.uuid].definitions,
            resource=lambda record: rows[record.uuid].resource(),
            child=lambda record: child(rows[record.uuid]),
            under_way=[name for name, each in stored.items() if each.pending_action is not None],
            **more,
        )


@dataclass(slots=True)
class Budget:
    """Counts the resources of child stacks in one plan, old and new ones, against the limit."""

    limits: Limits
    used: int = 0

    def take(self, more: int) -> None:
        """Raise RequestLimitExceeded for more than twice the limit; -1 means no limit."""
        self.used += more
        if 0 <= self.limits.resources * 2 < self.used:
            raise self.limits.exceeded("resources", "resources", "a plan")


@dataclass(kw_only=True)
class PlanBuilder:
    """``records``: the row of each name that is kept or updated.

    A name in ``records`` without a row (None) exists as the old template defines it.  Plans of
    child stacks are built by the same ``transforms``.
    """

    old: TemplateSide
    new: TemplateSide
    existing: ExistingStack
    rollback: bool = False
    transforms: Sequence[Transform] = ()
    records: dict[str, ResourceState | None] = field(default_factory=dict)
    taken_back: set[str] = field(default_factory=set)
    nested_plan: dict[str, NestedPlan | None] = field(default_factory=dict)  # of child stacks
    lookups: dict[str, ResourceView] = field(default_factory=dict)  # with values as they are now
    lookup_faults: dict[str, str] = field(default_factory=dict)  # why a lookup will fail
    parent: tuple[Secrecy, str] | None = None  # secrecy of the parent stack, resource name
    absence: Callable[[str], str] = lambda name: "no longer in the template"  # why it goes
    graph: Graph[Key] = field(default_factory=Graph)
    actions: dict[Key, Action] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    of_sides: dict[int, PlanBuilder] = field(default_factory=dict)  # by the ID of the old side

    def build(self) -> Plan:
        """Apply the transforms, once.  Raises CircularDependencyException."""
        try:
            for transform in self.transforms:
                transform(self)
            self.graph.order()
        except Cycle as exc:
            names = [key.name for key in exc.keys if isinstance(key, Key)]
            raise errors.CircularDependencyException(cycle=" -> ".join([*names, names[0]])) from exc
        return Plan(graph=self.graph, actions=self.actions, warnings=tuple(self.warnings))

    def put(self, key: Key, action: Action) -> None:
        self.graph.add(key)
        self.actions[key] = action

    def for_row(self, record: ResourceState | None) -> PlanBuilder:
        """Return this builder, with the row's own template as its old side where needed.

        The old template does not define leftovers, nor resources of a template before it.
        """
        is_current = record is None or (self.existing.records or {}).get(record.name) is record
        if record is None or (is_current and record.name in self.old.definitions):
            return self
        side = self.existing.side(record)
        if side is None or side is self.old or record.name not in side.definitions:
            return self
        if id(side) not in self.of_sides:
            other = self.of_sides[id(side)] = replace(self, old=side)
            other.budget = self.budget
        return self.of_sides[id(side)]

    # ----------------------------------------------------------------------------- known values

    @functools.cached_property
    def after(self) -> Forecast:
        """The forecast of the new side."""
        live = self.existing.live  # an engine adds to it
        if self.existing.look_up is not None:
            live = ChainMap(self.lookups, dict(live))
        return Forecast(self.new.view, self.judge, live)

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
        """The secrets of both sides; read it after ``take_rows``."""
        rows = [*self.records.values(), *itertools.chain(*self.existing.leftovers.values())]
        sealed = {row.name for row in rows if row and row.redacted}
        return Secrecy(self.old, self.new, parent=self.parent, sealed=sealed, is_plan=True)

    def judge(self, reference: Reference) -> Knowledge:
        """Return how well the value of a reference in the new template is known."""
        action = self.actions.get(Key(reference.resource, MAKE))
        if action is None:
            reason = f"no resource is called {reference.resource!r}; its template has none"
            raise errors.InvalidTemplateReference(reason=reason)
        by_id = reference.attribute is None
        if not by_id and reference.resource in self.lookups:
            return Knowledge.KNOWN
        in_place = action.verb is Verb.UPDATE and by_id
        if (action.verb in STAYS or in_place) and reference.resource not in self.taken_back:
            return Knowledge.KNOWN if reference.resource in self.existing.live else Knowledge.STEADY
        if action.verb is Verb.CREATE:
            return Knowledge.CHANGES
        if action.verb in MADE_ANEW and by_id and action.certain:
            return Knowledge.CHANGES
        return Knowledge.MAY_CHANGE


Transform: TypeAlias = Callable[[PlanBuilder], None]
STAYS = frozenset({Verb.UNCHANGED, Verb.REFUSE})
MADE_ANEW = frozenset({Verb.REPLACE, Verb.RECREATE, Verb.ADOPT})
