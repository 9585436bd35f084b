"""Views of the engine's values: names, links and times of Heat's API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bloomery.api.orchestration.call import StackCall, quoted
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment
from bloomery.model.stack_views import (
    EventDetails,
    Output,
    PreviewedStack,
    ResourceDetails,
    RevisionDetails,
    StackDetails,
    StackIdentity,
    UpdatePreview,
)
from bloomery.model.stacks import Snapshot, Stack

Json = dict[str, Any]


def time(at: datetime | None) -> str | None:
    """Format a time: UTC, whole seconds, with a Z; None stays None."""
    return None if at is None else f"{at.isoformat(timespec='seconds')[:19]}Z"


# ------------------------------------------------------------------------------------------- stacks


def stack_in_list(call: StackCall, stack: Stack, *, with_project: bool = False) -> Json:
    """Return a stack as lists show it, without the description, which is in the template.

    An untagged stack has null here and an empty list in ``stack``, as in Heat.
    """
    project = {"project": stack.project} if with_project else {}
    return _common(call, stack) | {"description": "", "tags": list(stack.tags) or None} | project


def _common(call: StackCall, stack: Stack) -> Json:
    return {
        "id": stack.uuid,
        "links": [call.stack_link("self", StackIdentity.of(stack))],
        "stack_name": stack.name,
        "stack_status": stack.state,
        "stack_status_reason": stack.reason,
        "creation_time": time(stack.created_at),
        "updated_time": time(stack.updated_at),
        "deletion_time": time(stack.deleted_at),
        "stack_owner": stack.user,
        "parent": stack.owner_uuid,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
    }


def stack(call: StackCall, details: StackDetails) -> Json:
    """Return one stack; the key ``outputs`` is absent where they were not requested."""
    document = _common(call, details.stack) | {
        "description": details.description,
        "template_description": details.description,
        "parameters": dict(details.parameters),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": details.stack.disable_rollback,
        "timeout_mins": details.stack.timeout_mins,
    }
    if details.outputs is not None:
        document["outputs"] = [output(each) for each in details.outputs]
    return document


def output(output: Output) -> Json:
    error = {} if output.error is None else {"output_error": output.error}
    return output_in_list(output) | {"output_value": output.value} | error


def output_in_list(output: Output) -> Json:
    return {"output_key": output.key, "description": output.description}


def stack_in_preview(call: StackCall, stack: PreviewedStack) -> Json:
    """Return a previewed stack, which has no state and no times."""
    return {
        "id": stack.identity.uuid,
        "links": [call.stack_link("self", stack.identity)],
        "stack_name": stack.identity.name,
        "description": stack.description,
        "template_description": stack.description,
        "parameters": dict(stack.parameters),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "stack_owner": stack.user,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
        "outputs": [output(each) for each in stack.outputs],
        "resources": _previewed_resources(stack.resources),
    }


def _previewed_resources(resources: Sequence[Any]) -> list[Any]:
    """Return the previewed resources; a nested stack is a list in place of its resource."""
    return [
        _previewed_resources(each) if isinstance(each, Sequence) else resource_in_preview(each)
        for each in resources
    ]


def update_preview(preview: UpdatePreview) -> Json:
    parts = {
        "unchanged": preview.unchanged,
        "updated": preview.updated,
        "replaced": preview.replaced,
        "added": preview.added,
        "deleted": preview.deleted,
    }
    return {key: [resource_in_preview(each) for each in part] for key, part in parts.items()}


def revision(details: RevisionDetails) -> Json:
    revision = details.revision
    return {
        "revision": revision.number,
        "state": revision.state,
        "state_reason": revision.reason,
        "user": revision.user,
        "request_id": revision.request_id,
        "began_at": time(revision.created_at),
        "ended_at": time(revision.ended_at),
        "counts": dict(revision.counts),
        "is_current": details.is_current,
        "has_template": revision.has_template,
        **details.documents,
    }


def snapshot(snapshot: Snapshot) -> Json:
    return {
        "id": snapshot.uuid,
        "name": snapshot.name,
        "action": snapshot.action,
        "status": snapshot.status,
        "status_reason": snapshot.reason or None,
        "data": snapshot.data,
        "creation_time": time(snapshot.created_at),
    }


# ----------------------------------------------------------------------------- resources and events


def resource(call: StackCall, details: ResourceDetails) -> Json:
    """Return a resource; a resource without updates shows its creation time as updated_time."""
    resource, stack = details.resource, call.stack_url(details.stack)
    links = [
        {"href": f"{stack}/resources/{quoted(resource.name)}", "rel": "self"},
        {"href": stack, "rel": "stack"},
    ]
    if details.nested is not None:
        links.append(call.stack_link("nested", details.nested))
    document: Json = {
        "resource_name": resource.name,
        "logical_resource_id": resource.name,
        "resource_type": resource.type,
        "resource_status": resource.state,
        "resource_status_reason": resource.reason,
        "physical_resource_id": resource.physical_id or "",
        "creation_time": time(resource.created_at),
        "updated_time": time(resource.updated_at or resource.created_at),
        "required_by": list(details.required_by),
        "links": links,
    }
    if details.parent is not None:
        document["parent_resource"] = details.parent
    if details.description is not None:
        document["description"] = details.description
    if details.attributes is not None:
        document["attributes"] = dict(details.attributes)
    return document


def resource_in_preview(details: ResourceDetails) -> Json:
    """Return a resource as previews show it: the engine's names, without links."""
    resource = details.resource
    document = {
        "attributes": dict(details.attributes or {}),
        "creation_time": time(resource.created_at),
        "description": details.description or "",
        "metadata": dict(resource.metadata),
        "physical_resource_id": resource.physical_id or "",
        "required_by": list(details.required_by),
        "resource_action": resource.action,
        "resource_identity": _identity(details.stack, f"/resources/{resource.name}"),
        "resource_name": resource.name,
        "resource_status": resource.status,
        "resource_status_reason": resource.reason,
        "resource_type": resource.type,
        "stack_identity": _identity(details.stack),
        "stack_name": details.stack.name,
        "updated_time": time(resource.updated_at or resource.created_at),
    }
    if details.properties is not None:
        document["properties"] = dict(details.properties)
    if details.nested is not None:
        document["nested_stack_id"] = _identity(details.nested)
    if details.parent is not None:
        document["parent_resource"] = details.parent
    return document


def event(call: StackCall, details: EventDetails) -> Json:
    """Return an event; only a single event has a type and properties."""
    event, stack = details.event, call.stack_url(details.stack)
    resource = f"{stack}/resources/{quoted(event.name)}"
    links = [
        {"href": f"{resource}/events/{event.uuid}", "rel": "self"},
        {"href": resource, "rel": "resource"},
        {"href": stack, "rel": "stack"},
    ]
    if details.root is not None:
        links.append(call.stack_link("root_stack", details.root))
    document: Json = {
        "id": event.uuid,
        "event_time": time(event.created_at),
        "resource_name": event.name,
        "logical_resource_id": event.name,
        "resource_status": event.state,
        "resource_status_reason": event.reason,
        "physical_resource_id": event.physical_id,
        "links": links,
    }
    if details.properties is not None:
        document |= {
            "resource_type": event.type,
            "resource_properties": dict(details.properties),
        }
    return document


def _identity(stack: StackIdentity, path: str = "") -> Json:
    """Return an identity as previews show it, which does not quote names."""
    return {
        "tenant": stack.project,
        "stack_name": stack.name,
        "stack_id": stack.uuid,
        "path": path,
    }


# ----------------------------------------------------------------------------------------- software


def software_config(config: SoftwareConfig) -> Json:
    return config.document() | {"creation_time": time(config.created_at)}


def software_config_in_list(config: ConfigSummary, *, with_project: bool = False) -> Json:
    document: Json = {
        "id": config.uuid,
        "name": config.name,
        "group": config.group,
        "creation_time": time(config.created_at),
    }
    return document | ({"project": config.project} if with_project else {})


def software_deployment(deployment: SoftwareDeployment) -> Json:
    return deployment.document() | {
        "creation_time": time(deployment.created_at),
        "updated_time": time(deployment.updated_at),
    }
