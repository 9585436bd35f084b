"""Software configurations and their deployments to servers."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.arguments import Arg
from bloomery.api.orchestration import arguments
from bloomery.api.orchestration.call import StackCall
from bloomery.api.orchestration.views import software as views

CONFIGS: Final = {
    "limit": Arg(arguments.count), "marker": Arg(arguments.text),
    "global_tenant": Arg(arguments.boolean),
}  # fmt: skip
DEPLOYMENTS: Final = {"server_id": Arg(arguments.text)}


def configs(
    call: StackCall,
    *,
    limit: int | None = None,
    marker: str | None = None,
    global_tenant: bool = False,
) -> dict[str, Any]:
    listed = call.operations.list_software_configs(
        call.request, limit=limit, marker=marker, everybody=global_tenant
    )
    shown = [views.summary(each, with_project=global_tenant) for each in listed]
    return {"software_configs": shown}


def create_config(call: StackCall) -> dict[str, Any]:
    values = call.optional_document or {}
    return _config(call.operations.create_software_config(call.request, values))


def show_config(call: StackCall, config_id: str) -> dict[str, Any]:
    return _config(call.operations.show_software_config(call.request, config_id))


def delete_config(call: StackCall, config_id: str) -> None:
    call.operations.delete_software_config(call.request, config_id)


def deployments(call: StackCall, *, server_id: str | None = None) -> dict[str, Any]:
    listed = call.operations.list_software_deployments(call.request, server_id=server_id)
    return {"software_deployments": [views.deployment(each) for each in listed]}


def metadata(call: StackCall, server_id: str) -> dict[str, Any]:
    listed = call.operations.metadata_software_deployments(call.request, server_id)
    return {"metadata": [views.config(each) for each in listed]}


def create_deployment(call: StackCall) -> dict[str, Any]:
    return _deployment(call.operations.create_software_deployment(call.request, call.document))


def show_deployment(call: StackCall, deployment_id: str) -> dict[str, Any]:
    return _deployment(call.operations.show_software_deployment(call.request, deployment_id))


def update_deployment(call: StackCall, deployment_id: str) -> dict[str, Any]:
    values = call.document
    return _deployment(
        call.operations.update_software_deployment(call.request, deployment_id, values)
    )


def delete_deployment(call: StackCall, deployment_id: str) -> None:
    call.operations.delete_software_deployment(call.request, deployment_id)


def _config(config: Any) -> dict[str, Any]:
    return {"software_config": views.config(config)}


def _deployment(deployment: Any) -> dict[str, Any]:
    return {"software_deployment": views.deployment(deployment)}
