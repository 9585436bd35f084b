"""Resources of a stack, and events of stacks and resources."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.arguments import Arg
from bloomery.api.orchestration import arguments, replies, views
from bloomery.api.orchestration.call import StackCall
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
LIST: Final = {
    **arguments.all_of(arguments.texts, *RESOURCE_FILTERS),
    "nested_depth": Arg(arguments.count),
    "with_detail": Arg(arguments.boolean),
}
SHOW: Final = {"with_attr": Arg(arguments.texts)}
EVENTS: Final = {
    **arguments.PAGING,
    **arguments.all_of(arguments.texts, *EVENT_FILTERS),
    "nested_depth": Arg(arguments.count),
}
_UNHEALTHY: Final = "mark_unhealthy"
_REASON: Final = "resource_status_reason"


# ----------------------------------------------------------------------------------- resources


def index(call: StackCall, stack_name: str, stack_id: str, **query: Any) -> Json:
    """List resources; as in Heat, only this list refuses unknown arguments."""
    unknown = [name for name in call.query if name not in LIST]
    if unknown:
        raise replies.BadRequest(
            reason=f"cannot filter by {', '.join(unknown)[:200]}: "
            f"a list of resources knows {', '.join(LIST)}"
        )
    scope = ResourceQuery(
        filters=arguments.filters(query, RESOURCE_FILTERS),
        nested_depth=query.get("nested_depth") or 0,
        with_detail=query.get("with_detail", False),
    )
    stack = call.stack(stack_name, stack_id)
    resources = call.operations.list_stack_resources(call.request, stack, scope)
    return {"resources": [views.resource(call, each) for each in resources]}


def show(
    call: StackCall,
    stack_name: str,
    stack_id: str,
    resource_name: str,
    *,
    with_attr: tuple[str, ...] = (),
) -> Json:
    stack = call.stack(stack_name, stack_id)
    resource = call.operations.describe_stack_resource(
        call.request, stack, resource_name, with_attr
    )
    return {"resource": views.resource(call, resource)}


def metadata(call: StackCall, stack_name: str, stack_id: str, resource_name: str) -> Json:
    """Show metadata; with a token in the address, as the collector "request" of agents reads it."""
    stack = call.stack(stack_name, stack_id)
    document = call.operations.get_resource_metadata(
        call.request, stack, resource_name, token=call.token
    )
    return dict(document) if call.token in call.query.values() else {"metadata": document}


def signal(call: StackCall, stack_name: str, stack_id: str, resource_name: str) -> None:
    """Signal a resource with the body; a body that is no object counts as empty."""
    stack = call.stack(stack_name, stack_id)
    call.operations.resource_signal(
        call.request, stack, resource_name, call.optional_document, token=call.token
    )


def mark_unhealthy(call: StackCall, stack_name: str, stack_id: str, resource_name: str) -> None:
    """Mark a resource unhealthy; ``resource_name`` may also be the physical resource id."""
    body = call.document
    unknown = [name for name in body if name not in (_UNHEALTHY, _REASON)]
    if unknown or _UNHEALTHY not in body:
        raise replies.BadRequest(
            reason=f"the body must have {_UNHEALTHY}, and may have {_REASON}, nothing else"
        )
    reason = body.get(_REASON)
    if not (reason is None or isinstance(reason, str)):
        raise replies.BadRequest(reason=f"{_REASON} must be a text")
    call.operations.resource_mark_unhealthy(
        call.request,
        call.stack(stack_name, stack_id),
        resource_name,
        mark_unhealthy=arguments.truth(_UNHEALTHY, body[_UNHEALTHY], replies.BadRequest),
        reason=reason,
    )


# -------------------------------------------------------------------------------------- events


def list_events(
    call: StackCall,
    stack_name: str,
    stack_id: str,
    resource_name: str | None = None,
    /,
    **query: Any,
) -> Json:
    """List the events of a stack, or of the resource that the path names."""
    scope = EventQuery(
        resource=resource_name,
        filters=arguments.filters(query, EVENT_FILTERS),
        nested_depth=query.get("nested_depth"),
        sort_keys=arguments.columns(EVENT_SORT_KEYS, query.get("sort_keys", ())),
        descending=query.get("sort_dir"),
        marker=query.get("marker"),
        limit=query.get("limit"),
    )
    stack = call.stack(stack_name, stack_id)
    events = call.operations.list_events(call.request, stack, scope)
    return {"events": [views.event(call, each) for each in events]}


def event(
    call: StackCall, stack_name: str, stack_id: str, resource_name: str, event_id: str
) -> Json:
    stack = call.stack(stack_name, stack_id)
    details = call.operations.show_event(call.request, stack, resource_name, event_id)
    return {"event": views.event(call, details)}
