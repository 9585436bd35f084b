"""Operations on templates without a stack: validation, resource types, versions and functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import bloomery
from bloomery import errors, patterns
from bloomery.model.stack_views import Json, StackArguments
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.orders import inputs
from bloomery.orchestration.properties import resource_types
from bloomery.orchestration.properties.schema import Status
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources import composite, nested
from bloomery.orchestration.stack import Stack, ValidationLevel, children, validate, variants
from bloomery.orchestration.template import kinds, sections, versions
from bloomery.orchestration.template.dialect import Identity, Section
from bloomery.orchestration.template.environment import REGISTRY
from bloomery.orchestration.template.registry import is_template

IGNORABLE: Final = ("99001",)  # the service behind a type of resource is not there
NOT_SHOWN: Final = ("encrypted_param_names",)  # of the environment


# ------------------------------------------------------------------------------------- validation


def validate_template(
    ctx: StackContext,
    arguments: StackArguments,
    *,
    show_nested: bool = False,
    ignore_errors: Sequence[str] = (),
) -> Json:
    """Validate the shape of a template, but no values, and return its declarations."""
    _check_codes(ignore_errors)
    try:
        raw_inputs = inputs.of(ctx, arguments)
        with ctx.services.heavy_jobs.enter():
            stack = variants.relaxed(raw_inputs.stack(ctx, _identity(ctx)))
            with stack.definition.deadline.started():
                validate(stack, ValidationLevel.SHAPE)
                return _shown(stack, show_nested=show_nested)
    except errors.StackValidationFailed as exc:
        raise errors.TemplateRefused(**exc.facts) from exc


def _check_codes(codes: Sequence[str]) -> None:
    if unknown := [code for code in codes if code not in IGNORABLE]:
        raise errors.TemplateRefused(
            reason=f"Invalid codes in ignore_errors: {', '.join(unknown)[:100]}; "
            f"known are {', '.join(IGNORABLE)}"
        )


def _identity(ctx: StackContext) -> Identity:
    return Identity(name="dummy", project_id=ctx.request.project or "")


def _shown(stack: Stack, *, show_nested: bool) -> Json:
    document = _declared(stack)
    document["Environment"] = environment = {
        name: section
        for name, section in stack.definition.environment.shown().items()
        if name not in NOT_SHOWN
    }
    environment[REGISTRY] = _files_of_types(stack) | environment[REGISTRY]
    if show_nested and (nested_parameters := dict(_nested_parameters(stack))):
        document["NestedParameters"] = nested_parameters
    return document


def _files_of_types(stack: Stack) -> Json:
    types = (resource.type for resource in stack.definitions.values())
    return {name: name for name in types if is_template(name)}


def _declared(stack: Stack) -> Json:
    definition = stack.definition
    groups = definition.template.section(Section.PARAMETER_GROUPS)
    return {
        "Description": definition.template.description,
        "Parameters": definition.parameters.validated(),
    } | ({"ParameterGroups": groups} if groups else {})


def _nested_parameters(stack: Stack) -> Iterator[tuple[str, Json]]:
    """Yield the declarations of each child stack, by resource.

    Skip a child stack whose members depend on missing or invalid values.
    """
    for name in stack.order:
        stack.definition.deadline.tick()
        if stack.definitions[name].external_id is not None:
            continue
        try:
            document = _nested(stack, name)
        except errors.Failure:
            continue
        if document is not None:
            yield name, document


def _nested(stack: Stack, name: str) -> Json | None:
    child = _child(stack, name)
    if child is None:
        return None
    sections.check(child.definition.template)
    sections.check_resources(child.definition.template)
    document = {"Type": stack.definitions[name].type, **_declared(child)}
    deeper = dict(_nested_parameters(child))
    return document | ({"NestedParameters": deeper} if deeper else {})


def _child(stack: Stack, name: str) -> Stack | None:
    kind = stack.kind(name)
    if not issubclass(kind, composite.Composite):
        return None
    try:
        properties = stack.properties(name, stack.view)
    except errors.Failure:
        if not issubclass(kind, nested.NestedStack):
            return None
        properties = {}  # its template is known all the same
    resource = children.preview(stack, name, properties, {})
    assert isinstance(resource, composite.Composite)
    return variants.relaxed(children.child_stack(stack, resource))


# ---------------------------------------------------------------------------------- resource types


def list_resource_types(
    ctx: StackContext,
    *,
    support_status: str | None = None,
    name: str | None = None,
    version: str | None = None,
    with_description: bool = False,
) -> list[Any]:
    """Return the names of the types that the caller may use, or maps with a description each.

    ``name`` is a regular expression, matched from the start; a bad one matches nothing.
    ``version``: the Heat release that added them.  Raises Invalid for an unknown status.
    """
    if support_status is not None and support_status not in set(Status):
        raise errors.Invalid(
            reason=f"Invalid support status: it is one of {', '.join(Status)}, "
            f"not {support_status[:100]!r}"
        )
    types = {
        type_name: kind
        for type_name, kind in _usable(ctx, name)
        if support_status in (None, kind.support.status) and version in (None, kind.support.version)
    }
    if not with_description:
        return list(types)
    return [
        {"resource_type": type_name, "description": resource_types.described(kind)}
        for type_name, kind in types.items()
    ]


def _usable(ctx: StackContext, name: str | None) -> Iterator[tuple[str, Any]]:
    offered = _kinds(ctx)
    for type_name in _matching(name, offered):
        try:
            kind = offered.find(type_name)
        except errors.StackValidationFailed:
            continue  # its plug-in is broken
        hidden = kind is None or kind.support.status is Status.HIDDEN
        if not hidden and _may_use(ctx, type_name):
            yield type_name, kind


def _matching(pattern: str | None, names: kinds.Kinds) -> list[str]:
    if pattern is None:
        return list(names)
    try:
        return [name for name in names if _begins(pattern, name)]
    except errors.StackValidationFailed:
        return []


def _begins(pattern: str, name: str) -> bool:
    match = patterns.bounded(
        pattern, name, LIMITS, lambda compiled, s: compiled.match(name, timeout=s)
    )
    return match is not None


def resource_schema(ctx: StackContext, type_name: str, *, with_description: bool = False) -> Json:
    """Return the properties and attributes of a resource type."""
    kind = _kind(ctx, type_name)
    return resource_types.shown(type_name, kind, with_description=with_description)


def generate_template(ctx: StackContext, type_name: str, *, dialect: str = "cfn") -> Json:
    """Return a template of one resource of a type, as ``resource_types.template`` makes it."""
    if dialect not in set(resource_types.Dialect):
        raise errors.TemplateRefused(
            reason=f"Template type is not supported: {dialect[:100]!r}; write hot or cfn"
        )
    return resource_types.template(
        type_name, _kind(ctx, type_name), resource_types.Dialect(dialect)
    )


def _kind(ctx: StackContext, type_name: str) -> Any:
    access.authorize_types(ctx, [type_name])
    kind = _kinds(ctx).find(type_name)
    if kind is None:
        raise errors.EntityNotFound(entity="Resource Type", name=type_name[:100])
    if kind.support.status is Status.HIDDEN:
        raise errors.NotSupported(feature=type_name)
    return kind


def _may_use(ctx: StackContext, type_name: str) -> bool:
    policies, target = ctx.services.policies, {"project_id": ctx.request.project}
    return not policies.enforced or policies.allow_type(ctx.request, type_name, target)


def _kinds(ctx: StackContext) -> kinds.Kinds:
    return ctx.runtime.kinds or kinds.installed()


# --------------------------------------------------------------------------------------- languages


def list_template_versions(ctx: StackContext) -> list[Json]:
    return versions.listed()


def list_template_functions(
    ctx: StackContext, version: str, *, with_condition: bool = False
) -> list[Json]:
    return [*versions.functions(version, conditions=with_condition)]


def get_revision(ctx: StackContext) -> Json:
    """Return which release this is, as ``GET build_info`` shows it."""
    revision = {"revision": bloomery.__version__}
    return {"api": revision, "engine": revision}
