"""Events of stacks and their resources."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import resources, stack_events, stacks, tables
from bloomery.model.stack_views import EVENT_SORT_KEYS, EventDetails, EventQuery, StackIdentity
from bloomery.model.stacks import Event, Properties, Stack
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
    with ctx.services.db.read() as conn:
        listed = [stack] if not query.nested_depth else _levels(conn, stack, query.nested_depth)
        by_uuid = {each.uuid: StackIdentity.of(each) for each in listed}
        page = stack_events.Query(
            stacks=list(by_uuid),
            equal=equal,
            order=_order(query),
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


def _order(query: EventQuery) -> list[tuple[str, bool]]:
    keys = [key for key in dict.fromkeys(query.sort_keys) if key in _SORTABLE]
    return [(key, bool(query.descending)) for key in keys]


def _levels(conn: Any, stack: Stack, depth: int) -> list[Stack]:
    within = {stack.uuid: stack}
    for each in stacks.list_of_tree(conn, stack.root_uuid, deleted=True):
        if each.owner_uuid in within and each.depth - stack.depth <= depth:
            within[each.uuid] = each
    return list(within.values())


def show_event(
    ctx: StackContext, identity: StackIdentity, resource: str, uuid: str
) -> EventDetails:
    """Return one event with the resource's properties at that action, secrets masked."""
    stack = access.stack(ctx, identity)
    with ctx.services.db.read() as conn:
        row = stack_events.find(conn, stack.uuid, uuid)
        if row is None or row.name != resource:
            raise errors.EventNotFound(reason=f"No event {uuid} found")
        stored = _stored(ctx, conn, row.properties_uuid)
    return _details(row, StackIdentity.of(stack), None, _shown(ctx, stack, resource, stored))


def _stored(ctx: StackContext, conn: Any, uuid: str | None) -> Properties | None:
    if uuid is None:
        return None
    return resources.properties_of(conn, [uuid], ctx.sealer).get(uuid)


def _shown(
    ctx: StackContext, stack: Stack, resource: str, stored: Properties | None
) -> Mapping[str, Any]:
    if stored is None:
        return {}
    resolved = {name: value for name, value in stored.data.items() if value is not None}
    if not stored.has_secret:
        return resolved
    return StoredStack(ctx, stack).secrecy.serialized(resource, resolved)


def _details(
    row: Any,
    stack: StackIdentity,
    root: StackIdentity | None,
    properties: Mapping[str, Any] | None = None,
) -> EventDetails:
    event = Event(**{name: getattr(row, name) for name in _FIELDS})
    return EventDetails(event=event, stack=stack, root=root, properties=properties)
