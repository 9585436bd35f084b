"""Allocations as records: create with or without a node, and delete.

``allocator`` looks for nodes.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocator, row_updates
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import allocations, records
from bloomery.model import allocation as rules
from bloomery.model.allocation import Allocation, AllocationState
from bloomery.model.node import Node
from bloomery.model.nouns import ALLOCATION

Json = dict[str, Any]


# ------------------------------------------------------------------------------------- create


def create(context: Context, values: Json, node_uuid: str | None) -> None:
    """Store an allocation in one commit.

    The allocator chooses a node later, unless one is named.
    """
    allocation = Allocation(**values, conductor_affinity=context.runtime.host)
    event = CrudEvent(
        context, ALLOCATION.name, allocation.uuid, "create", {"name": allocation.name}
    )
    event.snapshot_request(values)

    def work(conn: sa.Connection) -> None:
        records.insert(conn, ALLOCATION, allocation)
        event.snapshot_stored(allocation)(conn)

    with event.publishing():
        if node_uuid is not None:
            _backfill(context, allocation, node_uuid, event)
            return
        context.runtime.db.transact(work)
    allocator.enqueue(context, allocation.uuid)


def _backfill(context: Context, allocation: Allocation, node_uuid: str, event: CrudEvent) -> None:
    """Store an allocation for an active node.

    Raises NodeAssociated.  Raises AllocationFailed where the node does not match the allocation; as
    in Ironic, the allocation is stored in state error.
    """

    def work(conn: sa.Connection, node: Node) -> errors.Failure | None:
        if node.instance_uuid not in (None, allocation.uuid):
            raise errors.NodeAssociated(node=errors.name_of(node), instance=node.instance_uuid)
        obstacles = rules.backfill_obstacles(allocation, node)
        if obstacles:
            failure = errors.AllocationFailed(uuid=allocation.uuid, reason=obstacles)
            allocation.state, allocation.last_error = AllocationState.ERROR, str(failure)
            records.insert(conn, ALLOCATION, allocation)
            return failure
        records.insert(conn, ALLOCATION, allocation)
        allocations.bind(conn, allocation, node)
        allocation.state, allocation.node_uuid = AllocationState.ACTIVE, node.uuid
        event.snapshot_stored(allocation).show_to_projects_of(node)(conn)
        return None

    failure = row_updates.change(context, node_uuid, work)
    if failure is not None:
        raise failure


# ------------------------------------------------------------------------------------- delete


class _Bound(Exception):
    """The allocation got a node between the read and the lock."""


def destroy(context: Context, uuid: str) -> None:
    """Delete an allocation and free its node, in one commit.

    Raises AllocationNotFound, NodeLocked, InvalidState where the node is in use.
    """
    event = CrudEvent(context, ALLOCATION.name, uuid, "delete")

    def work(conn: sa.Connection, node: Node | None) -> None:
        allocation = records.get(conn, ALLOCATION, uuid, for_update=True)
        if node is None and allocation.node_uuid is not None:
            raise _Bound
        event.snapshot_deletion(allocation).show_to_projects_of(node)
        if node is not None:
            rules.check_removable(node, uuid)
            allocations.unbind(conn, node.uuid)
        records.delete(conn, ALLOCATION, uuid)
        event(conn)

    with event.publishing():
        try:
            _destroy(context, uuid, work)
        except _Bound:
            _destroy(context, uuid, work)  # an allocation never changes its node


def _destroy(context: Context, uuid: str, work: Any) -> None:
    db = context.runtime.db
    with db.read() as conn:
        node_uuid = records.get(conn, ALLOCATION, uuid).node_uuid
    if node_uuid is None:
        db.transact(lambda conn: work(conn, None))
    else:
        row_updates.change(context, node_uuid, work)


# ----------------------------------------------------------------------- what its node goes through


def follow(context: Context, conn: sa.Connection, node: Node, changed: Json) -> None:
    """Apply to a node's allocation what a patch of the node's row implies.

    Removing the instance deletes its allocation.  Raises InvalidState where the node's state or the
    allocation's owner forbids the patch.
    """
    if node.allocation_uuid is None:
        return
    if "owner" in changed and allocations.owner_of(conn, node.allocation_uuid) is not None:
        raise errors.InvalidState(
            reason=f"cannot change the owner of node {errors.name_of(node)}: its allocation "
            f"{node.allocation_uuid} has an owner; delete that first",
        )
    if "allocation_uuid" in changed:
        rules.check_instance_removable(node)
        release(context, node)(conn)


def release(context: Context, node: Node) -> EncodedWrite:
    """Return the write that deletes the allocation, if any, of a node whose instance is removed.

    Its event rows have no snapshot: Ironic sends no notification.
    """
    uuid = node.allocation_uuid
    if uuid is None:
        return lambda _conn: None
    event = CrudEvent(context, ALLOCATION.name, uuid, "delete", {"node": node.uuid})
    event.show_to_projects_of(node)

    def write(conn: sa.Connection) -> None:
        if records.delete(conn, ALLOCATION, uuid):
            event(conn)

    return write
