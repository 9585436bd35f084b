"""A stack as a graph for pages: resources in columns, members of groups folded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.db import events, resources, stacks
from bloomery.model.stack_views import Json, StackIdentity
from bloomery.model.stacks import Stack, StoredResource
from bloomery.orchestration.drawing import layers
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources.states import Action, Status

_LEAST_ROWS: Final = 16  # of a column; a stack of n resources has columns of 1.5 * sqrt(n) rows
_MOST_CHILDREN: Final = 50  # members of a group that are named
_FAILED_FIRST: Final = (Status.FAILED, Status.IN_PROGRESS)


def describe_graph(ctx: StackContext, identity: StackIdentity) -> Json:
    """Return the resources of a stack with their places, and the edges between them.

    A place is a column (``layer``) and a ``row``.  An edge leads from the required resource to the
    resource that requires it.  A resource with a nested stack has the ``counts`` of its members.
    A resource that is not created yet has the action INIT and no status.  A leftover, which was
    replaced and still exists, has its UUID as ``id``; the ``id`` of others is their name.
    """
    stack = access.stack(ctx, identity)
    with ctx.services.db.read() as conn:
        last_event_id = events.last_id(conn)
        nested = {each.uuid for each in stacks.list_children(conn, stack.uuid)}
        rows = resources.list_shown(conn, [stack.uuid, *nested], leftovers=True)
    own = {_id(each): each for each in rows if each.stack_uuid == stack.uuid}
    members: dict[str | None, list[StoredResource]] = {uuid: [] for uuid in nested}
    for each in rows:
        if each.stack_uuid in nested:
            members[each.stack_uuid].append(each)
    nodes = {ident: _node(each, members.get(each.physical_id)) for ident, each in own.items()}
    requires = {ident: each.requires for ident, each in own.items()}
    _add_later(ctx, stack, nodes, requires)
    pairs = [(each, name) for name in nodes for each in requires[name] if each in nodes]
    _place(nodes, pairs)
    return {
        "stack": {
            "id": stack.uuid,
            "stack_name": stack.name,
            "stack_status": f"{stack.action}_{stack.status}",
            "stack_status_reason": stack.reason,
        },
        "nodes": list(nodes.values()),
        "edges": [{"from": required, "to": requirer} for required, requirer in pairs],
        "counts": Counter(str(each["status"] or Action.INIT) for each in nodes.values()),
        "last_event_id": last_event_id,
    }


def _id(resource: StoredResource) -> str:
    return resource.name if resource.is_current else resource.uuid


def _node(resource: StoredResource, members: Sequence[StoredResource] | None) -> Json:
    is_later = resource.action == Action.INIT
    node = {
        "id": _id(resource),
        "name": resource.name,
        "type": resource.type,
        "action": resource.action,
        "status": None if is_later else resource.status,
        "reason": resource.reason,
        "physical_resource_id": resource.physical_id,
        "leftover": not resource.is_current,
    }
    if members is None:
        return node
    order = sorted(members, key=_urgency)
    return node | {
        "count": sum(each.is_current for each in members),
        "counts": Counter(str(each.status) for each in members),
        "children": [_node(each, None) for each in order[:_MOST_CHILDREN]],
    }


def _urgency(resource: StoredResource) -> int:
    """Return the sort key of a member: leftovers and failed members first, then those at work."""
    if not resource.is_current:
        return -1
    if resource.status in _FAILED_FIRST:
        return _FAILED_FIRST.index(Status(resource.status))
    return len(_FAILED_FIRST)


def _add_later(
    ctx: StackContext, stack: Stack, nodes: dict[str, Json], requires: dict[str, Any]
) -> None:
    """Add the resources of the template without a row, unless the stack is COMPLETE or deleting."""
    if stack.status == Status.COMPLETE or stack.action == Action.DELETE:
        return
    definition = StoredStack(ctx, stack).definition
    for name, each in definition.definitions.items():
        if name not in nodes:
            nodes[name] = _node(StoredResource(uuid="", name=name, type=each.type), None)
            requires[name] = definition.graph.requires(name)


def _place(nodes: Mapping[str, Json], pairs: Sequence[tuple[str, str]]) -> None:
    """Give each node its column and its row."""
    number = {name: at for at, name in enumerate(nodes)}
    edges = [(number[required], number[requirer]) for required, requirer in pairs]
    limit = max(_LEAST_ROWS, math.ceil(1.5 * math.sqrt(len(nodes))))
    columns, _ = layers.arranged([1] * len(nodes), edges, limit)
    boxes = list(nodes.values())
    for at, column in enumerate(columns):
        for row, cell in enumerate(cell for cell in column if cell < len(boxes)):
            boxes[cell] |= {"layer": at, "row": row}
