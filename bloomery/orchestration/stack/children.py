"""Previews of resources and of their child stacks, without the actions of an engine.

group = children.preview(stack, "group", properties, policy)
children.child_stack(stack, group)  # the Stack of its members
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery.model.stacks import StoredResource
from bloomery.orchestration.resources import base, composite, groups, nested
from bloomery.orchestration.stack.stacks import Stack
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.entries import ResourceDefinition
from bloomery.orchestration.template.functions import base as functions

_NIL: Final = "00000000-0000-0000-0000-000000000000"


def preview(
    stack: Stack,
    name: str,
    properties: Mapping[str, Any],
    policy: Mapping[str, Any],
    record: base.ResourceState | None = None,
) -> base.Resource:
    """Return a resource with these values, without services and with a clock that stands still."""
    context = base.ResourceContext(
        stack_name=stack.definition.identity.name,
        stack_id=str(stack.definition.identity.id),
        utc=lambda: 0.0,
        random=lambda: 0.0,
        timeout_s=stack.timeout_s,
        limits=stack.definition.limits,
    )
    record = record or StoredResource(name=name, type=stack.definitions[name].type, uuid=_NIL)
    return stack.kind(name)(record, properties, context, update_policy=policy)


def child_stack(
    stack: Stack, resource: composite.Composite, document: Mapping[str, Any] | None = None
) -> Stack:
    """Return the stack that ``resource`` would own, not validated yet.

    ``document``: its template, if not that of the resource.

    Raises RequestLimitExceeded if it is too deep, and the errors of its template.
    """
    owner = stack.definitions[resource.record.name]
    depth = stack.tree.deepen(stack.depth, [*_sources(stack, type(resource))][::-1])
    if isinstance(resource, nested.NestedStack):
        template = resource.template
    else:
        document = document or resource.child_document()
        if isinstance(resource, composite.Membered):  # skip members whose type is not known yet
            members = groups.members_of(document).items()
            typed = {name: body for name, body in members if body.get("type")}
            document = {**document, **groups.document(typed)}
        template = stack.tree.template_of(document)
    parent_definition = stack.definition
    definition = parent_definition.child(
        template,
        parent_definition.environment.child(
            owner.name, resource.child_parameters(), stack.definition.resolved_type(owner.name)
        ),
        identity=Identity(
            name=resource.physical_resource_name(), project_id=parent_definition.identity.project_id
        ),
        facade=ParentFacade(owner, stack),
    )
    return Stack(
        definition,
        tree=stack.tree,
        depth=depth,
        timeout_s=stack.timeout_s,
        is_counted=stack.is_counted and resource.counts_children,
    )


def _sources(stack: Stack, kind: type[base.Resource]) -> Iterator[str]:
    """Yield the template of ``kind``, and those of its parent resources from the inside out."""
    parent: Any = stack.definition.facade
    if issubclass(kind, nested.NestedStack):
        yield kind.source
    if isinstance(parent, ParentFacade):
        yield from _sources(parent.stack, parent.stack.kind(parent.definition.name))


class ParentFacade:
    """The parent's resource of a nested stack, for its ``resource_facade`` (a ``Facade``)."""

    __slots__ = ("definition", "stack")

    def __init__(self, definition: ResourceDefinition, stack: Stack) -> None:
        self.definition = definition
        self.stack = stack

    def metadata(self) -> Any:
        return functions.resolve(self.definition.metadata, self.stack.view)

    def deletion_policy(self) -> str:
        return self.definition.deletion_policy.value

    def update_policy(self) -> Any:
        return functions.resolve(self.definition.update_policy, self.stack.view)
