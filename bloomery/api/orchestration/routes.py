"""The table of endpoints: methods, path below /v1/{project}, function, status.

The first matching row answers, so words precede braces.  To add an endpoint: a function of the call
and of the path's braces, and a row.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.orchestration import (
    description,
    engines,
    lookup,
    resources,
    snapshots,
    software,
    stacks,
    templates,
)
from bloomery.api.orchestration.call import Call
from bloomery.api.orchestration.routing import Route

_ANY: Final = "GET,POST,PUT,PATCH,DELETE"
_S: Final = "stacks/{stack_name}/{stack_id}"
_BOTH: Final = "{part=resources|events|template|actions}"
_READ: Final = "{part=environment|files}"
_R: Final = f"{_S}/resources/{{resource_name}}"

ROUTES: Final = (
    Route("GET", "stacks", stacks.index),
    Route("POST", "stacks", stacks.create, 201),
    Route("GET", "stacks/detail", stacks.detail),
    Route("POST", "stacks/preview", stacks.preview, only_reads=True),
    # Redirects to the URL of a stack.
    Route(_ANY, "stacks/{arn}", lookup.find_arn, 302),
    Route(_ANY, "stacks/{stack}", lookup.find, 302),
    Route("GET,POST", f"stacks/{{stack}}/{_BOTH}", lookup.find_part, 302),
    Route("GET", f"stacks/{{stack}}/{_READ}", lookup.find_part, 302),
    Route("GET", _S, stacks.show),
    Route("PUT,PATCH", _S, stacks.update, 202),
    Route("DELETE", _S, stacks.delete, 204),
    Route("PUT,PATCH", f"{_S}/preview", stacks.preview_update, only_reads=True),
    Route("DELETE", f"{_S}/abandon", stacks.abandon),
    Route("GET", f"{_S}/export", stacks.export),
    Route("GET", f"{_S}/template", stacks.template),
    Route("GET", f"{_S}/environment", stacks.environment),
    Route("GET", f"{_S}/files", stacks.files),
    Route("GET", f"{_S}/outputs", stacks.outputs),
    Route("GET", f"{_S}/outputs/{{output_key}}", stacks.output),
    Route("POST", f"{_S}/actions", stacks.act),
    Route("GET", f"{_S}/snapshots", snapshots.index),
    Route("POST", f"{_S}/snapshots", snapshots.create),
    Route("GET", f"{_S}/snapshots/{{snapshot_id}}", snapshots.show),
    Route("DELETE", f"{_S}/snapshots/{{snapshot_id}}", snapshots.delete, 204),
    Route("POST", f"{_S}/snapshots/{{snapshot_id}}/restore", snapshots.restore, 202),
    Route("GET", f"{_S}/resources", resources.index),
    Route("GET", _R, resources.show),
    Route("PATCH", _R, resources.mark_unhealthy),
    Route("GET", f"{_R}/metadata", resources.metadata),
    Route("POST", f"{_R}/signal", resources.signal),
    Route("GET", f"{_R}/events", resources.resource_events),
    Route("GET", f"{_R}/events/{{event_id}}", resources.event),
    Route("GET", f"{_S}/events", resources.events),
    Route("POST", "validate", templates.validate, only_reads=True),
    Route("GET", "resource_types", templates.resource_types),
    Route("GET", "resource_types/{type_name}", templates.resource_schema),
    Route("GET", "resource_types/{type_name}/template", templates.generate_template),
    Route("GET", "template_versions", templates.versions),
    Route("GET", "template_versions/{version}/functions", templates.functions),
    Route("GET", "software_configs", software.configs),
    Route("POST", "software_configs", software.create_config),
    Route("GET", "software_configs/{config_id}", software.show_config),
    Route("DELETE", "software_configs/{config_id}", software.delete_config, 204),
    Route("GET", "software_deployments", software.deployments),
    Route("POST", "software_deployments", software.create_deployment),
    Route("GET", "software_deployments/metadata/{server_id}", software.metadata),
    Route("GET", "software_deployments/{deployment_id}", software.show_deployment),
    Route("PUT", "software_deployments/{deployment_id}", software.update_deployment),
    Route("DELETE", "software_deployments/{deployment_id}", software.delete_deployment, 204),
    Route("GET", "build_info", engines.build_info),
    Route("GET", "services", engines.index),
)


def openapi(call: Call) -> dict[str, Any]:
    """Describe this API for programs."""
    return description.document(ROUTES, EXTENSIONS, call.url)


# Below /ext/v1: extensions to Heat.
EXTENSIONS: Final = (
    Route("GET", "openapi.json", openapi),
    Route("GET", "stacks/{stack}/graph", stacks.graph),
    Route("GET", "stacks/{stack}/why", stacks.explain),
)
