"""Templates without a stack: validation, and the types and functions that they may use."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.arguments import Arg
from bloomery.api.orchestration import arguments, faults, stack_arguments
from bloomery.api.orchestration.call import StackCall
from bloomery.orchestration.properties.schema import Status

DIALECTS: Final = ("cfn", "hot")
VALIDATE: Final = {
    "show_nested": Arg(arguments.boolean), "ignore_errors": Arg(arguments.words)
}  # fmt: skip
TYPES: Final = {
    "support_status": Arg(arguments.text, form={"enum": list(Status)}),
    **arguments.all_of(arguments.text, "name", "version"),
    "with_description": Arg(arguments.boolean),
}
TYPE: Final = {"with_description": Arg(arguments.boolean)}
TEMPLATE: Final = {"template_type": Arg(arguments.text, form={"enum": ["", *DIALECTS]})}
FUNCTIONS: Final = {"with_condition_func": Arg(arguments.boolean)}


def validate(
    call: StackCall, *, show_nested: bool = False, ignore_errors: tuple[str, ...] = ()
) -> dict[str, Any]:
    return call.operations.validate_template(
        call.request,
        stack_arguments.read(stack_arguments.body_of(call)),
        show_nested=show_nested,
        ignore_errors=ignore_errors,
    )


def resource_types(call: StackCall, **query: Any) -> dict[str, Any]:
    types = call.operations.list_resource_types(
        call.request,
        support_status=query.get("support_status"),
        name=query.get("name"),
        version=query.get("version"),
        with_description=query.get("with_description", False),
    )
    return {"resource_types": types}


def resource_schema(
    call: StackCall, type_name: str, *, with_description: bool = False
) -> dict[str, Any]:
    return call.operations.resource_schema(
        call.request, type_name, with_description=with_description
    )


def generate_template(
    call: StackCall, type_name: str, *, template_type: str = ""
) -> dict[str, Any]:
    dialect = template_type or DIALECTS[0]
    if dialect not in DIALECTS:
        raise faults.BadRequest(
            reason=f"Template type is not supported: {arguments.shown(dialect)}; "
            f"template_type is {' or '.join(DIALECTS)}"
        )
    return call.operations.generate_template(call.request, type_name, dialect=dialect)


def versions(call: StackCall) -> dict[str, Any]:
    return {"template_versions": call.operations.list_template_versions(call.request)}


def functions(
    call: StackCall, version: str, *, with_condition_func: bool = False
) -> dict[str, Any]:
    listed = call.operations.list_template_functions(
        call.request, version, with_condition=with_condition_func
    )
    return {"template_functions": listed}
