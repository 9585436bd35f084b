"""Resources and events."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration import identity
from bloomery.api.orchestration.call import Call, quoted
from bloomery.api.orchestration.views import time
from bloomery.model.stack_views import EventDetails, ResourceDetails

Json = dict[str, Any]


def resource(call: Call, resource: ResourceDetails) -> Json:
    """Return a resource; one that was never updated shows the time of its creation."""
    document: Json = {
        "resource_name": resource.name,
        "logical_resource_id": resource.name,
        "resource_type": resource.type,
        "resource_status": resource.state,
        "resource_status_reason": resource.reason,
        "physical_resource_id": resource.physical_id or "",
        "creation_time": time(resource.created_at),
        "updated_time": time(resource.updated_at or resource.created_at),
        "required_by": list(resource.required_by),
        "links": _links(call, resource),
    }
    if resource.parent is not None:
        document["parent_resource"] = resource.parent
    if resource.description is not None:
        document["description"] = resource.description
    if resource.attributes is not None:
        document["attributes"] = dict(resource.attributes)
    return document


def _links(call: Call, resource: ResourceDetails) -> list[dict[str, str]]:
    stack = identity.url(call, resource.stack)
    links = [
        {"href": f"{stack}/resources/{quoted(resource.name)}", "rel": "self"},
        {"href": stack, "rel": "stack"},
    ]
    if resource.nested is not None:
        links.append(identity.link(call, "nested", resource.nested))
    return links


def raw(resource: ResourceDetails) -> Json:
    """Return a resource as previews show it: as Heat's engine names things, without links."""
    path = identity.resource_path(resource.name)
    document = {
        "attributes": dict(resource.attributes or {}),
        "creation_time": time(resource.created_at),
        "description": resource.description or "",
        "metadata": dict(resource.metadata or {}),
        "physical_resource_id": resource.physical_id or "",
        "required_by": list(resource.required_by),
        "resource_action": resource.action,
        "resource_identity": identity.as_document(resource.stack, path),
        "resource_name": resource.name,
        "resource_status": resource.status,
        "resource_status_reason": resource.reason,
        "resource_type": resource.type,
        "stack_identity": identity.as_document(resource.stack),
        "stack_name": resource.stack.name,
        "updated_time": time(resource.updated_at or resource.created_at),
    }
    if resource.properties is not None:
        document["properties"] = dict(resource.properties)
    if resource.nested is not None:
        document["nested_stack_id"] = identity.as_document(resource.nested)
    if resource.parent is not None:
        document["parent_resource"] = resource.parent
    return document


def event(call: Call, event: EventDetails) -> Json:
    """Return an event; only one that is shown by itself has a type and properties."""
    stack = identity.url(call, event.stack)
    resource = f"{stack}/resources/{quoted(event.name)}"
    links = [
        {"href": f"{resource}/events/{event.uuid}", "rel": "self"},
        {"href": resource, "rel": "resource"},
        {"href": stack, "rel": "stack"},
    ]
    if event.root is not None:
        links.append(identity.link(call, "root_stack", event.root))
    document: Json = {
        "id": event.uuid,
        "event_time": time(event.at),
        "resource_name": event.name,
        "logical_resource_id": event.name,
        "resource_status": event.state,
        "resource_status_reason": event.reason,
        "physical_resource_id": event.physical_id,
        "links": links,
    }
    if event.properties is not None:
        document |= {
            "resource_type": event.type,
            "resource_properties": dict(event.properties),
        }
    return document
