"""The validation of a stack, in the order in which Heat finds faults (heat-hot.md, section 12).

The first fault ends ``validate``; ``list_faults`` goes on with the other resources.  ``POST
validate`` checks the shape alone (``ValidationLevel``).  Members
of a group that take a value from another resource are checked without values: the group finds
faults of these when it creates the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.properties import presence
from bloomery.orchestration.properties.presence import NOTHING, Pending
from bloomery.orchestration.resources import base, composite, nested
from bloomery.orchestration.stack import children
from bloomery.orchestration.stack.stacks import Stack, ValidationLevel
from bloomery.orchestration.template import sections
from bloomery.orchestration.template.dialect import DeletionPolicy, Key, Section
from bloomery.orchestration.template.entries import ResourceDefinition
from bloomery.orchestration.template.functions import base as functions

PROPERTY_ERROR: Final = "Property error"
GENERATED: Final = "nested_stack"  # how a path names the template that a group makes


def validate(stack: Stack, level: ValidationLevel = ValidationLevel.VALUES) -> None:
    """Raise the first fault of ``stack``, in Heat's order; what has passed is not checked again."""
    if level in stack.validated or ValidationLevel.VALUES in stack.validated:
        return
    with stack.definition.redacted(), stack.definition.deadline.started():
        _validate(stack, level, _raise)
    stack.validated.add(level)


def list_faults(stack: Stack, level: ValidationLevel) -> list[errors.Failure]:
    """Return the first fault of each resource, or the fault that hides those; none if sound."""
    faults: list[errors.Failure] = []
    with stack.definition.redacted(), stack.definition.deadline.started():
        try:
            _validate(stack, level, faults.append)
        except errors.Failure as exc:
            faults.append(exc)
    return list({str(fault): fault for fault in faults}.values())


def _raise(fault: errors.Failure) -> None:
    raise fault


def _validate(
    stack: Stack, level: ValidationLevel, on_fault: Callable[[errors.Failure], None]
) -> None:
    """Check the stack; ``on_fault`` takes the fault of a resource, and may let the check go on."""
    if level is not ValidationLevel.VALUES:
        stack = stack.relaxed()
    definition = stack.definition
    template = definition.template
    sections.check(template)
    sections.check_resources(template)
    definition.parameters.check()
    definition.check_groups()
    definition.conditions.check(lenient=definition.lenient)
    if stack.depth == 0:
        stack.tree.forget()  # a stack that was refused may be validated again
    if stack.is_counted:
        stack.tree.count(len(definition.resources))
    unknown = set()
    for name in stack.definitions:
        try:
            stack.kind(name)
        except errors.Failure as exc:
            on_fault(exc)
            unknown.add(name)
    known = [name for name in definition.resources if name not in unknown]
    for name in definition.resources:
        if name in definition.parameters:
            reason = f"Duplicate names {name!r}: a parameter is called so; rename one of them"
            raise sections.fault(reason, template.section_name(Section.RESOURCES), name)
    checker = _Checker(stack, level)
    for name in stack.order if not unknown else known:
        try:
            checker.check(name)
        except errors.Failure as exc:
            on_fault(exc)
    for name, output in definition.outputs.items():  # a disabled output has no fault
        try:
            functions.validate(output.value, stack.view)
        except errors.Misplaced as exc:
            key = template.features.output_keys[Key.VALUE]
            path = (template.section_name(Section.OUTPUTS), name, key, *exc.path)
            raise errors.StackValidationFailed(**exc.facts | {"path": path}) from exc


class _Checker:
    """Checks resources one by one; of equal resources only the first."""

    __slots__ = ("_bodies", "_level", "_sound", "_stack")

    def __init__(self, stack: Stack, level: ValidationLevel) -> None:
        self._stack = stack
        self._level = level
        self._bodies = stack.definition.template.section(Section.RESOURCES)
        self._sound: set[tuple[type[base.Resource], str]] = set()

    def check(self, name: str) -> None:
        self._stack.definition.deadline.tick()
        kind, definition = self._stack.kind(name), self._stack.definitions[name]
        if issubclass(kind, composite.Composite):
            self._check(definition, kind)  # the child stack may depend on the name
            return
        alike = (kind, repr(self._bodies[name]))
        if alike not in self._sound:
            self._check(definition, kind)
            self._sound.add(alike)

    def _check(self, definition: ResourceDefinition, kind: type[base.Resource]) -> None:
        if definition.external_id is not None:
            self._check_external(definition)
            return
        stack, name = self._stack, definition.name
        for key, tree in (
            (Key.PROPERTIES, definition.properties),
            (Key.METADATA, definition.metadata),
            (Key.UPDATE_POLICY, definition.update_policy),
        ):
            if tree:
                try:
                    functions.validate(tree, stack.view)
                except errors.Misplaced as exc:
                    raise exc.under(*stack.path(name, key)) from exc
        snapshots = kind.ignores_properties or hasattr(kind, "handle_snapshot_delete")
        if definition.deletion_policy is DeletionPolicy.SNAPSHOT and not snapshots:
            raise sections.fault(
                f'"Snapshot" deletion policy not supported by {definition.type}: write Delete or'
                " Retain",
                *stack.path(name, Key.DELETION_POLICY),
            )
        if kind.ignores_properties:
            return
        policy: Mapping[str, Any] = {}
        schema, tree = kind.update_policy_schema, definition.update_policy
        if tree or schema:
            try:
                policy = stack.reading(name, schema, tree, stack.view).resolved(check=True)
            except errors.Misplaced as exc:
                path = stack.path(name, Key.UPDATE_POLICY)
                raise exc.under(*path, error=PROPERTY_ERROR) from exc
        try:
            values, pending = self._values(definition, kind)
        except errors.Misplaced as exc:
            raise exc.under(*stack.path(name, Key.PROPERTIES), error=PROPERTY_ERROR) from exc
        if values is None:
            return
        resource = children.preview(stack, name, values, policy)
        try:
            resource.check_properties(pending)
        except errors.Misplaced as exc:
            raise exc.under(*stack.path(name, Key.PROPERTIES)) from exc
        if isinstance(resource, composite.Composite):
            self._check_child(definition, resource, pending)

    def _check_external(self, definition: ResourceDefinition) -> None:
        path = self._stack.path(definition.name, Key.EXTERNAL_ID)
        try:
            external_id = functions.resolve(definition.external_id, self._stack.view)
        except errors.Misplaced as exc:
            raise exc.under(*path) from exc
        if not isinstance(external_id, str) or not external_id:
            raise sections.fault("must be the id of what is there already, as text", *path)
        self._stack.tree.external_ids[external_id] = definition.name

    def _values(
        self, definition: ResourceDefinition, kind: type[base.Resource]
    ) -> tuple[Mapping[str, Any] | None, Pending]:
        """Check properties; return them, or None if values are unknown."""
        stack = self._stack
        properties = stack.reading(
            definition.name, kind.properties_schema, definition.properties, stack.view
        )
        if self._level is ValidationLevel.VALUES:
            return properties.resolved(check=True), properties.pending()
        properties.validate(with_values=False)
        if self._level is ValidationLevel.SHAPE:
            return None, NOTHING
        try:
            values = properties.resolved(check=True)
        except errors.StackValidationFailed:
            return None, NOTHING  # the group finds it when it makes the member
        possible = frozenset(presence.empty_paths(values))
        return values, Pending(properties.pending().written, possible)

    def _check_child(
        self, definition: ResourceDefinition, resource: composite.Composite, pending: Pending
    ) -> None:
        source = resource.source if isinstance(resource, nested.NestedStack) else GENERATED
        try:
            child = children.child_stack(self._stack, resource)
            is_known = resource.is_known(pending) or _are_members_known(resource, child)
            level = self._level if is_known else ValidationLevel.MEMBERS
            relaxed = child if level is ValidationLevel.VALUES else child.relaxed()
            _validate(relaxed, level, _raise)
        except errors.Failure as exc:
            section, name = self._stack.path(definition.name)
            path = section, f"{name}<{source}>"
            if isinstance(exc, errors.StackValidationFailed):
                raise exc.under(*path) from exc
            inner = exc.path if isinstance(exc, errors.Misplaced) else ()
            reason = exc.facts["reason"] if isinstance(exc, errors.Misplaced) else str(exc)
            raise errors.StackValidationFailed(
                reason=reason, path=(*path, *inner), error=type(exc).__name__
            ) from exc


def _are_members_known(resource: composite.Composite, child: Stack) -> bool:
    """Tell whether a group knows all values of its members: none comes from another resource."""
    if not isinstance(resource, composite.Membered):
        return False
    stack = child
    while isinstance(facade := stack.definition.facade, children.ParentFacade):
        stack = facade.stack
        if [*functions.references(facade.definition.properties, stack.view)]:
            return False
    return True
