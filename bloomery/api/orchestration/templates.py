"""Templates without a stack: validation, and the types and functions that they may use."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration import arguments, faults, stack_arguments
from bloomery.api.orchestration.call import Call

DIALECTS = ("cfn", "hot")


def validate(call: Call) -> dict[str, Any]:
    body = stack_arguments.body_of(call)
    return call.operations.validate_template(
        call.request,
        stack_arguments.read(body),
        show_nested=arguments.boolean(call, "show_nested"),
        ignore_errors=arguments.comma_list(call, "ignore_errors"),
    )


def resource_types(call: Call) -> dict[str, Any]:
    types = call.operations.list_resource_types(
        call.request,
        support_status=arguments.value(call, "support_status"),
        name=arguments.value(call, "name"),
        version=arguments.value(call, "version"),
        with_description=arguments.boolean(call, "with_description"),
    )
    return {"resource_types": types}


def resource_schema(call: Call, type_name: str) -> dict[str, Any]:
    return call.operations.resource_schema(
        call.request, type_name, with_description=arguments.boolean(call, "with_description")
    )


def generate_template(call: Call, type_name: str) -> dict[str, Any]:
    dialect = arguments.value(call, "template_type") or DIALECTS[0]
    if dialect not in DIALECTS:
        raise faults.BadRequest(
            reason=f"Template type is not supported: {arguments.shown(dialect)}; "
            f"template_type is {' or '.join(DIALECTS)}"
        )
    return call.operations.generate_template(call.request, type_name, dialect=dialect)


def versions(call: Call) -> dict[str, Any]:
    return {"template_versions": call.operations.list_template_versions(call.request)}


def functions(call: Call, version: str) -> dict[str, Any]:
    listed = call.operations.list_template_functions(
        call.request, version, with_condition=arguments.boolean(call, "with_condition_func")
    )
    return {"template_functions": listed}
