"""Plans of child stacks: of a nested template, a group or a chain.

Members are known only as far as the properties of their resource are.  A placeholder text stands
for each unknown value, and shows where it is used.  If the result is no valid stack, or has too
many resources, the resource stays one vertex, and the traversal finds its members.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.orchestration.plan import tree_diff
from bloomery.orchestration.plan.builder import ExistingStack, PlanBuilder
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.forecast import Forecast, Knowledge, NotKnown
from bloomery.orchestration.plan.plans import NestedPlan, Plan
from bloomery.orchestration.resources import composite, groups
from bloomery.orchestration.resources.base import ResourceState
from bloomery.orchestration.resources.resource_chain import ResourceChain
from bloomery.orchestration.resources.resource_group import Indexed
from bloomery.orchestration.stack import Stack, children
from bloomery.orchestration.stack.template_side import NOTHING, TemplateSide
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Reference
from bloomery.orchestration.template.view import ResourceView

# Properties that decide which members exist: while one is not known, no member is planned.
SHAPING: Final = frozenset(
    {
        "count",
        "index_var",
        "removal_policies",
        "resources",
        "min_size",
        "max_size",
        "desired_capacity",
    }
)


def is_composite(side: TemplateSide, name: str) -> bool:
    return isinstance(side, Stack) and issubclass(side.kind(name), composite.Composite)


def updated(builder: PlanBuilder, name: str, change: Change) -> NestedPlan | None:
    """Return the plan of the members of a resource that stays; None: it is not known."""
    record = builder.records.get(name)
    is_known = change.known_before and change.known_after
    if not (is_known and change.before and change.after):
        return _nested_plan(
            builder,
            name,
            record,
            lambda: _was(builder, name, record),
            lambda: _will_be(builder, name),
        )
    old, new = PlaceholderView(builder.old.view), PlaceholderView(builder.new.view)
    return _nested_plan(
        builder,
        name,
        record,
        lambda: _composite(_old_side(builder, name), name, change.before, old, record),
        lambda: _composite(builder.new, name, change.after, new, record),
    )


def substituted(
    builder: PlanBuilder, name: str, nested_plan: NestedPlan, members: groups.Members
) -> Plan:
    """Return the plan of members that a group has while others change."""
    record, group = builder.records.get(name), nested_plan.after
    assert isinstance(builder.new, Stack) and group is not None  # noqa: PT018
    return _inner(
        builder,
        name,
        None if record is None else builder.existing.child(record),
        nested_plan.before,
        children.child_stack(builder.new, group, groups.document(members)),
    ).build()


def created(builder: PlanBuilder, name: str) -> NestedPlan | None:
    return _nested_plan(builder, name, None, None, lambda: _will_be(builder, name))


def deleted(builder: PlanBuilder, name: str, record: ResourceState | None) -> NestedPlan | None:
    builder = builder.for_row(record)
    return _nested_plan(builder, name, record, lambda: _was(builder, name, record), None)


Maker: TypeAlias = Callable[[], composite.Composite]


def _nested_plan(
    builder: PlanBuilder,
    name: str,
    record: ResourceState | None,
    was: Maker | None,
    will_be: Maker | None,
) -> NestedPlan | None:
    definitions = (side.definitions.get(name) for side in (builder.old, builder.new))
    if any(each is not None and each.external_id is not None for each in definitions):
        return None  # the stack does not own the members
    try:
        builder.budget.take(0)
        before, after = was and was(), will_be and will_be()
        child = None if record is None else builder.existing.child(record)
        inner = _inner(builder, name, child, before, _child_side(builder, builder.new, after))
        inner.budget = builder.budget
        if isinstance(after, composite.Membered):
            inner.absence = functools.partial(_absence, after)
        return NestedPlan(inner.build(), before, after)
    except (errors.Failure, NotKnown):
        return None


def _inner(
    builder: PlanBuilder,
    name: str,
    child: ExistingStack | None,
    before: composite.Composite | None,
    new: TemplateSide,
) -> PlanBuilder:
    """Return the builder of a child stack's plan; ``child``: its rows, if they are known."""
    existing = ExistingStack(records={}, find_node=builder.existing.find_node)
    if before:
        existing = child or ExistingStack()
    old = existing.template or _child_side(builder, _old_side(builder, name), before)
    return PlanBuilder(
        old=old, new=new, existing=existing, transforms=builder.transforms,
        parent=(builder.secrecy, name),
    )  # fmt: skip


def _absence(resource: composite.Membered, name: str) -> str:
    if isinstance(resource, ResourceChain):
        return "beyond the end of the new chain"
    if not isinstance(resource, Indexed):
        return "the oldest of too many"
    if name in resource.skip_list():
        return "named by the removal policies"
    return f"beyond the new count of {resource.count()}"


def _child_side(
    builder: PlanBuilder, parent: TemplateSide, resource: composite.Composite | None
) -> TemplateSide:
    if resource is None:
        return NOTHING
    assert isinstance(parent, Stack)
    resource.check_properties()  # refuses a group of too many members before they are named
    child = children.child_stack(parent, resource)
    if child.is_counted:
        builder.budget.take(len(child.definitions))
    return child


# ------------------------------------------------------------------- the resource, as it would be


def _was(builder: PlanBuilder, name: str, record: ResourceState | None) -> composite.Composite:
    def judge(reference: Reference) -> Knowledge:
        stays = reference.resource in builder.new.definitions
        is_known = stays and builder.judge(reference) is Knowledge.KNOWN
        return Knowledge.KNOWN if is_known else Knowledge.STEADY

    view = PlaceholderView(builder.old.view, judge, builder.existing.live)
    side = _old_side(builder, name)
    return _composite(side, name, _properties(side, name, view), view, record)


def _old_side(builder: PlanBuilder, name: str) -> TemplateSide:
    """Return the old template if it defines the resource, else the new template.

    The kind of a resource from a still older template is the same, or it would be replaced.
    """
    return builder.old if name in builder.old.definitions else builder.new


def _will_be(builder: PlanBuilder, name: str) -> composite.Composite:
    view = PlaceholderView(builder.new.view, builder.judge, builder.existing.live)
    view.placeholder = lambda reference: str(tree_diff.known_after(builder, [reference]))
    record = builder.records.get(name)
    return _composite(builder.new, name, _properties(builder.new, name, view), view, record)


def _properties(side: TemplateSide, name: str, view: PlaceholderView) -> Mapping[str, Any]:
    tree = side.definitions[name].properties
    shaping = [tree[key] for key in SHAPING.intersection(tree)] if isinstance(tree, dict) else tree
    for reference in base.references(shaping, view):
        if view.judge(reference) is not Knowledge.KNOWN:
            raise NotKnown(reference)
    return side.properties(name, view)


def _composite(
    side: TemplateSide,
    name: str,
    values: Mapping[str, Any],
    view: PlaceholderView,
    record: ResourceState | None,
) -> composite.Composite:
    assert isinstance(side, Stack)
    schema, tree = side.kind(name).update_policy_schema, side.definitions[name].update_policy
    policy = side.reading(name, schema, tree, view).resolved() if schema else {}
    resource = children.preview(side, name, values, policy, record)
    assert isinstance(resource, composite.Composite)
    return resource


# ------------------------------------------------------------------------- views with placeholders


@dataclass(slots=True)
class PlaceholderView(Forecast):
    """A view with placeholders for unknown values; ``(web.address)``: the value will not change."""

    placeholder: Callable[[Reference], str] = str

    def resource(self, name: str) -> ResourceView:
        return PlaceholderResource(name, self)


@dataclass(slots=True, frozen=True)
class PlaceholderResource:
    """A resource with its known values, and placeholders for the others."""

    name: str
    view: PlaceholderView
    ready = True

    def _placeholder(self, attribute: str | None) -> str:
        reference = Reference(self.name, attribute)
        if self.view.judge(reference) is Knowledge.STEADY:
            return f"({self.name}.{attribute})" if attribute else f"({self.name})"
        return self.view.placeholder(reference)

    def _live(self, attribute: str | None) -> ResourceView | None:
        is_known = self.view.judge(Reference(self.name, attribute)) is Knowledge.KNOWN
        return self.view.live[self.name] if is_known else None

    def reference_id(self) -> Any:
        live = self._live(None)
        return live.reference_id() if live else self._placeholder(None)

    def has_attribute(self, name: str) -> bool:
        return True

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        live = self._live(name)
        return live.attribute(name, path) if live else self._placeholder(name)

    def attributes(self) -> Mapping[str, Any]:
        live = self._live("")
        return live.attributes() if live else {}
