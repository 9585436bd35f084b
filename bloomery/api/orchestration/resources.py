"""Resources of a stack, and events of stacks and resources."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.orchestration import arguments, faults, identity
from bloomery.api.orchestration.call import Call
from bloomery.api.orchestration.views import resources as views
from bloomery.model.stack_views import EVENT_SORT_KEYS, EventQuery, ResourceQuery

Json = dict[str, Any]

RESOURCE_FILTERS: Final = {
    "type": "type",
    "status": "status",
    "name": "name",
    "action": "action",
    "id": "uuid",
    "physical_resource_id": "physical_id",
}
EVENT_FILTERS: Final = {
    "resource_action": "action",
    "resource_status": "status",
    "resource_name": "name",
    "resource_type": "type",
}
_DEPTH: Final = "nested_depth"
_DETAIL: Final = "with_detail"
_UNHEALTHY: Final = "mark_unhealthy"
_REASON: Final = "resource_status_reason"


# ----------------------------------------------------------------------------------- resources


def index(call: Call, stack_name: str, stack_id: str) -> Json:
    """List resources; as in Heat, only this list refuses unknown arguments."""
    accepted = (*RESOURCE_FILTERS, _DEPTH, _DETAIL)
    unknown = [name for name in call.query if name not in accepted]
    if unknown:
        raise faults.BadRequest(
            reason=f"cannot filter by {', '.join(unknown)[:200]}: "
            f"a list of resources knows {', '.join(accepted)}"
        )
    query = ResourceQuery(
        filters=arguments.filters(call, RESOURCE_FILTERS),
        nested_depth=arguments.count(call, _DEPTH) or 0,
        with_detail=arguments.boolean(call, _DETAIL),
    )
    stack = identity.of(call, stack_name, stack_id)
    resources = call.operations.list_stack_resources(call.request, stack, query)
    return {"resources": [views.resource(call, each) for each in resources]}


def show(call: Call, stack_name: str, stack_id: str, resource_name: str) -> Json:
    resource = call.operations.describe_stack_resource(
        call.request,
        identity.of(call, stack_name, stack_id),
        resource_name,
        arguments.values(call, "with_attr"),
    )
    return {"resource": views.resource(call, resource)}


def metadata(call: Call, stack_name: str, stack_id: str, resource_name: str) -> Json:
    stack = identity.of(call, stack_name, stack_id)
    return {"metadata": call.operations.get_resource_metadata(call.request, stack, resource_name)}


def signal(call: Call, stack_name: str, stack_id: str, resource_name: str) -> None:
    """Signal a resource with the body; a body that is no object counts as empty."""
    stack = identity.of(call, stack_name, stack_id)
    call.operations.resource_signal(
        call.request, stack, resource_name, call.optional_document, token=call.token
    )


def mark_unhealthy(call: Call, stack_name: str, stack_id: str, resource_name: str) -> None:
    """Mark a resource unhealthy; ``resource_name`` may also be the physical resource id."""
    body = call.document
    unknown = [name for name in body if name not in (_UNHEALTHY, _REASON)]
    if unknown or _UNHEALTHY not in body:
        raise faults.BadRequest(
            reason=f"the body must have {_UNHEALTHY}, and may have {_REASON}, nothing else"
        )
    reason = body.get(_REASON)
    if not (reason is None or isinstance(reason, str)):
        raise faults.BadRequest(reason=f"{_REASON} must be a text")
    call.operations.resource_mark_unhealthy(
        call.request,
        identity.of(call, stack_name, stack_id),
        resource_name,
        mark_unhealthy=arguments.truth(_UNHEALTHY, body[_UNHEALTHY], faults.BadRequest),
        reason=reason,
    )


# -------------------------------------------------------------------------------------- events


def events(call: Call, stack_name: str, stack_id: str) -> Json:
    return _events(call, stack_name, stack_id, None)


def resource_events(call: Call, stack_name: str, stack_id: str, resource_name: str) -> Json:
    return _events(call, stack_name, stack_id, resource_name)


def _events(call: Call, stack_name: str, stack_id: str, resource: str | None) -> Json:
    query = EventQuery(
        resource=resource,
        filters=arguments.filters(call, EVENT_FILTERS),
        nested_depth=arguments.count(call, _DEPTH),
        sort_keys=arguments.sort_keys(call, EVENT_SORT_KEYS),
        descending=arguments.descending(call),
        marker=arguments.value(call, "marker"),
        limit=arguments.count(call, "limit"),
    )
    stack = identity.of(call, stack_name, stack_id)
    listed = call.operations.list_events(call.request, stack, query)
    return {"events": [views.event(call, each) for each in listed]}


def event(call: Call, stack_name: str, stack_id: str, resource_name: str, event_id: str) -> Json:
    stack = identity.of(call, stack_name, stack_id)
    shown_event = call.operations.show_event(call.request, stack, resource_name, event_id)
    return {"event": views.event(call, shown_event)}
