"""Software configurations and their deployments to servers."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration import arguments
from bloomery.api.orchestration.call import Call
from bloomery.api.orchestration.views import software as views


def configs(call: Call) -> dict[str, Any]:
    everybody = arguments.boolean(call, "global_tenant")
    listed = call.operations.list_software_configs(
        call.request,
        limit=arguments.count(call, "limit"),
        marker=arguments.value(call, "marker"),
        everybody=everybody,
    )
    return {"software_configs": [views.summary(each, with_project=everybody) for each in listed]}


def create_config(call: Call) -> dict[str, Any]:
    values = call.optional_document or {}
    return _config(call.operations.create_software_config(call.request, values))


def show_config(call: Call, config_id: str) -> dict[str, Any]:
    return _config(call.operations.show_software_config(call.request, config_id))


def delete_config(call: Call, config_id: str) -> None:
    call.operations.delete_software_config(call.request, config_id)


def deployments(call: Call) -> dict[str, Any]:
    server_id = arguments.value(call, "server_id")
    listed = call.operations.list_software_deployments(call.request, server_id=server_id)
    return {"software_deployments": [views.deployment(each) for each in listed]}


def metadata(call: Call, server_id: str) -> dict[str, Any]:
    listed = call.operations.metadata_software_deployments(call.request, server_id)
    return {"metadata": [views.config(each) for each in listed]}


def create_deployment(call: Call) -> dict[str, Any]:
    return _deployment(call.operations.create_software_deployment(call.request, call.document))


def show_deployment(call: Call, deployment_id: str) -> dict[str, Any]:
    return _deployment(call.operations.show_software_deployment(call.request, deployment_id))


def update_deployment(call: Call, deployment_id: str) -> dict[str, Any]:
    values = call.document
    return _deployment(
        call.operations.update_software_deployment(call.request, deployment_id, values)
    )


def delete_deployment(call: Call, deployment_id: str) -> None:
    call.operations.delete_software_deployment(call.request, deployment_id)


def _config(config: Any) -> dict[str, Any]:
    return {"software_config": views.config(config)}


def _deployment(deployment: Any) -> dict[str, Any]:
    return {"software_deployment": views.deployment(deployment)}
