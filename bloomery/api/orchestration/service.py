"""What needs no stack: templates, their types and functions, software configurations, engines."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from bloomery.api.arguments import Arg
from bloomery.api.orchestration import arguments, replies, stack_arguments, views
from bloomery.api.orchestration.call import StackCall
from bloomery.orchestration.properties.schema import Status

DIALECTS: Final = ("cfn", "hot")
VALIDATE: Final = {
    "show_nested": Arg(arguments.boolean), "ignore_errors": Arg(arguments.comma_list)
}  # fmt: skip
TYPES: Final = {
    "support_status": Arg(arguments.text, form={"enum": list(Status)}),
    **arguments.all_of(arguments.text, "name", "version"),
    "with_description": Arg(arguments.boolean),
}
TYPE: Final = {"with_description": Arg(arguments.boolean)}
TEMPLATE: Final = {"template_type": Arg(arguments.text, form={"enum": ["", *DIALECTS]})}
FUNCTIONS: Final = {"with_condition_func": Arg(arguments.boolean)}
CONFIGS: Final = {
    "limit": Arg(arguments.count), "marker": Arg(arguments.text),
    "global_tenant": Arg(arguments.boolean),
}  # fmt: skip
DEPLOYMENTS: Final = {"server_id": Arg(arguments.text)}


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
        raise replies.BadRequest(
            reason=f"Template type is not supported: {arguments.quoted(dialect)}; "
            f"template_type is {' or '.join(DIALECTS)}"
        )
    return call.operations.generate_template(call.request, type_name, dialect=dialect)


def versions(call: StackCall) -> dict[str, Any]:
    return {"template_versions": call.operations.list_template_versions(call.request)}


def functions(
    call: StackCall, version: str, *, with_condition_func: bool = False
) -> dict[str, Any]:
    functions = call.operations.list_template_functions(
        call.request, version, with_condition=with_condition_func
    )
    return {"template_functions": functions}


# ----------------------------------------------------------------------------------------- software


def configs(
    call: StackCall,
    *,
    limit: int | None = None,
    marker: str | None = None,
    global_tenant: bool = False,
) -> dict[str, Any]:
    configs = call.operations.list_software_configs(
        call.request, limit=limit, marker=marker, everybody=global_tenant
    )
    return {
        "software_configs": [
            views.software_config_in_list(each, with_project=global_tenant) for each in configs
        ]
    }


def create_config(call: StackCall) -> dict[str, Any]:
    values = call.optional_document or {}
    config = call.operations.create_software_config(call.request, values)
    return {"software_config": views.software_config(config)}


def show_config(call: StackCall, config_id: str) -> dict[str, Any]:
    config = call.operations.show_software_config(call.request, config_id)
    return {"software_config": views.software_config(config)}


def delete_config(call: StackCall, config_id: str) -> None:
    call.operations.delete_software_config(call.request, config_id)


def deployments(call: StackCall, *, server_id: str | None = None) -> dict[str, Any]:
    deployments = call.operations.list_software_deployments(call.request, server_id=server_id)
    return {"software_deployments": [views.software_deployment(each) for each in deployments]}


def metadata(call: StackCall, server_id: str) -> dict[str, Any]:
    configs = call.operations.metadata_software_deployments(call.request, server_id)
    return {"metadata": [views.software_config(each) for each in configs]}


def create_deployment(call: StackCall) -> dict[str, Any]:
    deployment = call.operations.create_software_deployment(call.request, call.document)
    return {"software_deployment": views.software_deployment(deployment)}


def show_deployment(call: StackCall, deployment_id: str) -> dict[str, Any]:
    deployment = call.operations.show_software_deployment(call.request, deployment_id)
    return {"software_deployment": views.software_deployment(deployment)}


def update_deployment(call: StackCall, deployment_id: str) -> dict[str, Any]:
    deployment = call.operations.update_software_deployment(
        call.request, deployment_id, call.document
    )
    return {"software_deployment": views.software_deployment(deployment)}


def delete_deployment(call: StackCall, deployment_id: str) -> None:
    call.operations.delete_software_deployment(call.request, deployment_id)


# -------------------------------------------------------------------------------------- the service


def list_engines(call: StackCall) -> dict[str, Any]:
    def time(at: datetime | None) -> str | None:
        # as in Heat, this list alone has microseconds and no zone
        return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%f}"

    documents = [
        {
            "id": each.engine.engine_id,
            "binary": each.engine.binary,
            "host": each.engine.host,
            "hostname": each.engine.hostname,
            "topic": each.engine.topic,
            "engine_id": each.engine.engine_id,
            "report_interval": each.engine.report_interval,
            "status": "up" if each.up else "down",
            "created_at": time(each.engine.created_at),
            "updated_at": time(each.engine.updated_at),
            "deleted_at": time(each.engine.deleted_at),
        }
        for each in call.operations.list_services(call.request)
    ]
    return {"services": documents}


def build_info(call: StackCall) -> dict[str, Any]:
    return call.operations.get_revision(call.request)
