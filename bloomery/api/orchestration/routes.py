"""The table of endpoints of the orchestration API, /v1/{project}, and of its extensions, /ext/v1.

To add an endpoint: a function of the call and of the path's idents, and a row.  ``{project}`` is
left out.  Where a path is that of several rows, words precede idents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from bloomery.api.declare import Endpoint
from bloomery.api.orchestration import description, resources, service, stacks
from bloomery.api.orchestration import schemas as bodies
from bloomery.api.orchestration.call import StackCall

_ANY: Final = "GET,POST,PUT,PATCH,DELETE"
_S: Final = "stacks/{stack_name}/{stack_id}"
_R: Final = f"{_S}/resources/{{resource_name}}"
PREFIX: Final = "/v1/{project}/"


def _row(
    methods: str,
    path: str,
    function: Callable[..., Any],
    rule: str,
    status: int = 200,
    **more: Any,
) -> Iterator[Endpoint]:
    """Yield an endpoint for each of several methods, as in "GET,POST"."""
    for method in methods.split(","):
        yield Endpoint(method, PREFIX + path, function, rule, status, **more)


def openapi(call: StackCall) -> dict[str, Any]:
    """Describe this API for programs."""
    return description.document(ENDPOINTS, call.url)


ENDPOINTS: Final = (
    *_row("GET", "stacks", stacks.index, "stacks:index", query=stacks.LIST),
    *_row("POST", "stacks", stacks.create, "stacks:create", 201, body=bodies.CREATE),
    *_row("GET", "stacks/detail", stacks.detail, "stacks:detail"),
    *_row(
        "POST", "stacks/preview", stacks.preview, "stacks:preview",
        query=stacks.FREE, body=bodies.CREATE, only_reads=True,
    ),
    # Redirects to the URL of a stack.
    *_row(_ANY, "stacks/{stack}", stacks.find, "stacks:lookup", 302),
    *(
        endpoint
        for part in ("resources", "events", "template", "actions", "environment", "files")
        for endpoint in _row(
            "GET" if part in ("environment", "files") else "GET,POST", f"stacks/{{stack}}/{part}",
            stacks.find_part(part), "stacks:lookup", 302,
        )
    ),
    *_row("GET", _S, stacks.show, "stacks:show", query=stacks.SHOW),
    *_row("PUT", _S, stacks.update, "stacks:update", 202, body=bodies.UPDATE),
    *_row("PATCH", _S, stacks.update, "stacks:update_patch", 202, body=bodies.PATCH),
    *_row("DELETE", _S, stacks.delete, "stacks:delete", 204),
    *_row(
        "PUT", f"{_S}/preview", stacks.preview_update, "stacks:preview_update",
        query=stacks.NESTED, body=bodies.UPDATE, only_reads=True,
    ),
    *_row(
        "PATCH", f"{_S}/preview", stacks.preview_update, "stacks:preview_update_patch",
        query=stacks.NESTED, body=bodies.PATCH, only_reads=True,
    ),
    *_row("DELETE", f"{_S}/abandon", stacks.abandon, "stacks:abandon"),
    *_row("GET", f"{_S}/export", stacks.export, "stacks:export"),
    *_row("GET", f"{_S}/template", stacks.template, "stacks:template"),
    *_row("GET", f"{_S}/environment", stacks.environment, "stacks:environment"),
    *_row("GET", f"{_S}/files", stacks.files, "stacks:files"),
    *_row("GET", f"{_S}/outputs", stacks.outputs, "stacks:list_outputs"),
    *_row("GET", f"{_S}/outputs/{{output_key}}", stacks.output, "stacks:show_output"),
    *_row("POST", f"{_S}/actions", stacks.act, "actions:*", body=bodies.ACTION),
    *_row("GET", f"{_S}/snapshots", stacks.list_snapshots, "stacks:list_snapshots"),
    *_row(
        "POST", f"{_S}/snapshots", stacks.create_snapshot, "stacks:snapshot",
        body=bodies.SNAPSHOT,
    ),
    *_row("GET", f"{_S}/snapshots/{{snapshot_id}}", stacks.show_snapshot, "stacks:show_snapshot"),
    *_row(
        "DELETE", f"{_S}/snapshots/{{snapshot_id}}", stacks.delete_snapshot,
        "stacks:delete_snapshot", 204,
    ),
    *_row(
        "POST", f"{_S}/snapshots/{{snapshot_id}}/restore", stacks.restore_snapshot,
        "stacks:restore_snapshot", 202,
    ),
    *_row("GET", f"{_S}/resources", resources.index, "resource:index", query=resources.LIST),
    *_row("GET", _R, resources.show, "resource:show", query=resources.SHOW),
    *_row("PATCH", _R, resources.mark_unhealthy, "resource:mark_unhealthy", body=bodies.HEALTH),
    *_row("GET", f"{_R}/metadata", resources.metadata, "resource:metadata", has_head=True),
    *_row("POST", f"{_R}/signal", resources.signal, "resource:signal", body=bodies.SIGNAL),
    *_row("GET", f"{_R}/events", resources.list_events, "events:index", query=resources.EVENTS),
    *_row("GET", f"{_R}/events/{{event_id}}", resources.event, "events:show"),
    *_row("GET", f"{_S}/events", resources.list_events, "events:index", query=resources.EVENTS),
    *_row(
        "POST", "validate", service.validate, "stacks:validate_template",
        query=service.VALIDATE, body=bodies.TEMPLATE, only_reads=True,
    ),
    *_row(
        "GET", "resource_types", service.resource_types, "stacks:list_resource_types",
        query=service.TYPES,
    ),
    *_row(
        "GET", "resource_types/{type_name}", service.resource_schema, "stacks:resource_schema",
        query=service.TYPE,
    ),
    *_row(
        "GET", "resource_types/{type_name}/template", service.generate_template,
        "stacks:generate_template", query=service.TEMPLATE,
    ),
    *_row("GET", "template_versions", service.versions, "stacks:list_template_versions"),
    *_row(
        "GET", "template_versions/{version}/functions", service.functions,
        "stacks:list_template_functions", query=service.FUNCTIONS,
    ),
    *_row(
        "GET", "software_configs", service.configs, "software_configs:index",
        query=service.CONFIGS,
    ),
    *_row(
        "POST", "software_configs", service.create_config, "software_configs:create",
        body=bodies.CONFIG,
    ),
    *_row("GET", "software_configs/{config_id}", service.show_config, "software_configs:show"),
    *_row(
        "DELETE", "software_configs/{config_id}", service.delete_config,
        "software_configs:delete", 204,
    ),
    *_row(
        "GET", "software_deployments", service.deployments, "software_deployments:index",
        query=service.DEPLOYMENTS,
    ),
    *_row(
        "POST", "software_deployments", service.create_deployment,
        "software_deployments:create", body=bodies.DEPLOYMENT,
    ),
    *_row(
        "GET", "software_deployments/metadata/{server_id}", service.metadata,
        "software_deployments:metadata",
    ),
    *_row(
        "GET", "software_deployments/{deployment_id}", service.show_deployment,
        "software_deployments:show",
    ),
    *_row(
        "PUT", "software_deployments/{deployment_id}", service.update_deployment,
        "software_deployments:update", body=bodies.DEPLOYMENT_UPDATE,
    ),
    *_row(
        "DELETE", "software_deployments/{deployment_id}", service.delete_deployment,
        "software_deployments:delete", 204,
    ),
    *_row("GET", "build_info", service.build_info, "build_info:build_info"),
    *_row("GET", "services", service.list_engines, "service:index"),
    # Extensions to Heat.
    Endpoint("GET", "/ext/v1/openapi.json", openapi, "public"),
    Endpoint("GET", "/ext/v1/stacks/{stack}/graph", stacks.graph, "resource:index"),
    Endpoint(
        "GET", "/ext/v1/stacks/{stack}/template_text", stacks.template_text, "stacks:template"
    ),
    Endpoint("GET", "/ext/v1/stacks/{stack}/why", stacks.explain, "stacks:show"),
    Endpoint(
        "GET", "/ext/v1/stacks/{stack}/revisions", stacks.list_revisions, "stacks:list_revisions"
    ),
    Endpoint(
        "GET", "/ext/v1/stacks/{stack}/revisions/{revision}", stacks.show_revision,
        "stacks:show_revision",
    ),
    Endpoint(
        "GET", "/ext/v1/stacks/{stack}/revisions/{revision}/diff/{other}",
        stacks.compare_revisions, "stacks:show_revision",
    ),
)  # fmt: skip
