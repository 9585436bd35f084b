"""Events of stacks and their resources."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import resources, stack_events, stacks, tables
from bloomery.model.stack_views import EVENT_SORT_KEYS, EventDetails, EventQuery, StackIdentity
from bloomery.model.stacks import Event
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack

_FIELDS: Final = tuple(
    each.name for each in dataclasses.fields(Event) if each.name in tables.STACK_EVENTS.c
)
_FILTERS: Final = frozenset({"action", "status", "name", "type"})
_SORTABLE: Final = frozenset(EVENT_SORT_KEYS.values())


def list_events(
    ctx: StackContext, identity: StackIdentity, query: EventQuery
) -> list[EventDetails]:
    stack = access.stack(ctx, identity)
    equal = {name: values for name, values in query.filters.items() if name in _FILTERS}
    if query.resource is not None:
        equal["name"] = [query.resource]
    keys = [key for key in dict.fromkeys(query.sort_keys) if key in _SORTABLE]
    with ctx.services.db.read() as conn:
        by_uuid = {stack.uuid: StackIdentity.of(stack)}
        if query.nested_depth:
            for each in stacks.list_of_tree(conn, stack.root_uuid, deleted=True):
                if each.owner_uuid in by_uuid and each.depth - stack.depth <= query.nested_depth:
                    by_uuid[each.uuid] = StackIdentity.of(each)
        page = stack_events.Query(
            stacks=list(by_uuid),
            equal=equal,
            order=[(key, bool(query.descending)) for key in keys],
            descending=query.descending is not False,
            marker=query.marker,
            limit=query.limit,
        )
        rows = [] if query.limit == 0 else stack_events.list_page(conn, page)
    if query.resource is not None and not rows and query.marker is None and query.limit != 0:
        raise errors.EventNotFound(
            reason=f"No events found for resource {query.resource} of stack {stack.name}"
        )
    root = None if query.nested_depth is None else StackIdentity.of(stack)
    return [_details(row, by_uuid[row.stack_uuid], root) for row in rows]


def show_event(
    ctx: StackContext, identity: StackIdentity, resource: str, uuid: str
) -> EventDetails:
    """Return one event with the resource's properties at that action, secrets masked."""
    stack = access.stack(ctx, identity)
    with ctx.services.db.read() as conn:
        row = stack_events.find(conn, stack.uuid, uuid)
        if row is None or row.name != resource:
            raise errors.EventNotFound(reason=f"No event {uuid} found")
        stored = None
        if row.properties_uuid is not None:
            by_uuid = resources.properties_of(conn, [row.properties_uuid], ctx.sealer)
            stored = by_uuid.get(row.properties_uuid)
    properties: Mapping[str, Any] = {}
    if stored is not None:
        properties = {name: value for name, value in stored.data.items() if value is not None}
        if stored.has_secret:
            properties = StoredStack(ctx, stack).secrecy.serialized(resource, properties)
    return _details(row, StackIdentity.of(stack), None, properties)


def _details(
    row: Any,
    stack: StackIdentity,
    root: StackIdentity | None,
    properties: Mapping[str, Any] | None = None,
) -> EventDetails:
    event = Event(**{name: getattr(row, name) for name in _FIELDS})
    return EventDetails(event=event, stack=stack, root=root, properties=properties)
