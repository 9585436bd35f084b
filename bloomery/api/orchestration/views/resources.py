"""Resources and events."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration import identity
from bloomery.api.orchestration.call import StackCall, quoted
from bloomery.api.orchestration.views import time
from bloomery.model.stack_views import EventDetails, ResourceDetails

Json = dict[str, Any]


def resource(call: StackCall, details: ResourceDetails) -> Json:
    """Return a resource; a resource without updates shows its creation time as updated_time."""
    resource = details.resource
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
        "links": _links(call, details),
    }
    if details.parent is not None:
        document["parent_resource"] = details.parent
    if details.description is not None:
        document["description"] = details.description
    if details.attributes is not None:
        document["attributes"] = dict(details.attributes)
    return document


def _links(call: StackCall, details: ResourceDetails) -> list[dict[str, str]]:
    stack = identity.url(call, details.stack)
    links = [
        {"href": f"{stack}/resources/{quoted(details.resource.name)}", "rel": "self"},
        {"href": stack, "rel": "stack"},
    ]
    if details.nested is not None:
        links.append(identity.link(call, "nested", details.nested))
    return links


def raw(details: ResourceDetails) -> Json:
    """Return a resource as previews show it: the engine's names, without links."""
    resource, path = details.resource, identity.resource_path(details.resource.name)
    document = {
        "attributes": dict(details.attributes or {}),
        "creation_time": time(resource.created_at),
        "description": details.description or "",
        "metadata": dict(resource.metadata),
        "physical_resource_id": resource.physical_id or "",
        "required_by": list(details.required_by),
        "resource_action": resource.action,
        "resource_identity": identity.as_document(details.stack, path),
        "resource_name": resource.name,
        "resource_status": resource.status,
        "resource_status_reason": resource.reason,
        "resource_type": resource.type,
        "stack_identity": identity.as_document(details.stack),
        "stack_name": details.stack.name,
        "updated_time": time(resource.updated_at or resource.created_at),
    }
    if details.properties is not None:
        document["properties"] = dict(details.properties)
    if details.nested is not None:
        document["nested_stack_id"] = identity.as_document(details.nested)
    if details.parent is not None:
        document["parent_resource"] = details.parent
    return document


def event(call: StackCall, details: EventDetails) -> Json:
    """Return an event; only a single event has a type and properties."""
    event, stack = details.event, identity.url(call, details.stack)
    resource = f"{stack}/resources/{quoted(event.name)}"
    links = [
        {"href": f"{resource}/events/{event.uuid}", "rel": "self"},
        {"href": resource, "rel": "resource"},
        {"href": stack, "rel": "stack"},
    ]
    if details.root is not None:
        links.append(identity.link(call, "root_stack", details.root))
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
