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
from bloomery.orchestration.stack import Stack, ValidationLevel, children, validate
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
    if unknown := [code for code in ignore_errors if code not in IGNORABLE]:
        raise errors.TemplateRefused(
            reason=f"Invalid codes in ignore_errors: {', '.join(unknown)[:100]}; "
            f"known are {', '.join(IGNORABLE)}"
        )
    try:
        raw_inputs = inputs.of(ctx, arguments)
        identity = Identity(name="dummy", project_id=ctx.request.project or "")
        with ctx.services.heavy_jobs.enter():
            stack = raw_inputs.stack(ctx, identity).relaxed()
            with stack.definition.deadline.started():
                validate(stack, ValidationLevel.SHAPE)
                document = _declared(stack)
                document["Environment"] = sections_of_environment = {
                    name: section
                    for name, section in stack.definition.environment.document().items()
                    if name not in NOT_SHOWN
                }
                types = (resource.type for resource in stack.definitions.values())
                files = {name: name for name in types if is_template(name)}
                sections_of_environment[REGISTRY] = files | sections_of_environment[REGISTRY]
                if show_nested and (nested_parameters := dict(_nested_parameters(stack))):
                    document["NestedParameters"] = nested_parameters
                return document
    except errors.StackValidationFailed as exc:
        raise errors.TemplateRefused(**exc.facts) from exc


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
            child = _child(stack, name)
            if child is None:
                continue
            sections.check(child.definition.template)
            sections.check_resources(child.definition.template)
            document = {"Type": stack.definitions[name].type, **_declared(child)}
            if deeper := dict(_nested_parameters(child)):
                document["NestedParameters"] = deeper
        except errors.Failure:
            continue
        yield name, document


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
    return children.child_stack(stack, resource).relaxed()


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
    policies, target = ctx.services.policies, {"project_id": ctx.request.project}
    offered, types = _kinds(ctx), dict[str, Any]()
    for type_name in _matching(name, offered):
        try:
            kind = offered.find(type_name)
        except errors.StackValidationFailed:
            continue  # its plug-in is broken
        if kind is None or kind.support.status is Status.HIDDEN:
            continue
        if support_status not in (None, kind.support.status):
            continue
        if version not in (None, kind.support.version):
            continue
        if not policies.enforced or policies.allow_type(ctx.request, type_name, target):
            types[type_name] = kind
    if not with_description:
        return list(types)
    return [
        {"resource_type": type_name, "description": resource_types.described(kind)}
        for type_name, kind in types.items()
    ]


def _matching(pattern: str | None, names: kinds.Kinds) -> list[str]:
    if pattern is None:
        return list(names)

    def begins(name: str) -> bool:
        return None is not patterns.bounded(
            pattern, name, LIMITS, lambda compiled, s: compiled.match(name, timeout=s)
        )

    try:
        return [name for name in names if begins(name)]
    except errors.StackValidationFailed:
        return []


def resource_schema(ctx: StackContext, type_name: str, *, with_description: bool = False) -> Json:
    """Return the properties and attributes of a resource type."""
    kind = _kind(ctx, type_name)
    return resource_types.schema_document(type_name, kind, with_description=with_description)


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
