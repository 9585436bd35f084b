"""Orders for single machines of a stack, in the body of an update, until they are accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import resources as db
from bloomery.model.stacks import Status
from bloomery.operations import policy
from bloomery.orchestration.orders import planning
from bloomery.orchestration.queries import access, resources
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources import instance_info
from bloomery.orchestration.resources.machine_orders import REBUILD, REPLACE, ResourceOrder

RETIRES: Final = "baremetal:node:update:retired"
SEPARATOR: Final = "/"
_REASONS: Final = {REPLACE: "another machine was ordered", REBUILD: "a rebuild was ordered"}


def read(stored: StoredStack, orders: Mapping[str, Mapping[str, Any]]) -> list[ResourceOrder]:
    """Return the orders for the resources of a tree, by UUID; ``orders``: by path.

    A path is the name of an Instance, or GROUP/MEMBER.  Raises ResourceNotFound, NotSupported,
    ActionInProgress, Forbidden.
    """
    return [_read(stored, path, order) for path, order in orders.items()]


def _read(stored: StoredStack, path: str, order: Mapping[str, Any]) -> ResourceOrder:
    ctx, member = stored.ctx, _find(stored, path)
    action, row = order["action"], member.row
    if row.status == Status.IN_PROGRESS:
        raise errors.ActionInProgress(stack_name=stored.row.name, action=row.action)
    if not (member.kind.replaces_marked and row.physical_id):
        raise errors.NotSupported(
            feature=f"{action} of {path}, a {row.type} without a machine of its own,"
        )
    quarantine = action == REPLACE and order.get("quarantine", True)
    if action == REPLACE:
        pinned = next((each for each in instance_info.PINNED if row.properties.get(each)), None)
        if pinned is not None:
            raise errors.NotSupported(
                feature=f"replace of {path}, whose template names its {pinned}; choose its machine "
                "by a selector, or name another one. This"
            )
    if quarantine and ctx.runtime.machines is not None:
        policy.authorize_node(ctx, str(row.physical_id), RETIRES)
    access.authorize(ctx, "resource:mark_unhealthy")
    reason = stored.redaction.masked(order.get("reason") or _REASONS[action])
    return ResourceOrder(
        resource=row.uuid, action=action, reason=reason, quarantine=bool(quarantine)
    )


def _find(stored: StoredStack, path: str) -> StackMember:
    owner: StoredStack | None = stored
    *parents, name = path.split(SEPARATOR)
    for parent in parents:
        above = None if owner is None else owner.member(parent)
        owner = None if above is None else planning.child_of(above)
    member = None if owner is None else owner.member(name)
    if member is None:
        raise resources.missing(stored.row, path)
    return member


def marking(stored: StoredStack, orders: list[ResourceOrder]) -> Callable[[sa.Connection], None]:
    """Return what writes the marks with the order, for clients; the engine sets them again."""

    def write(conn: sa.Connection) -> None:
        for order in orders:
            state = {"action": "CHECK", "status": Status.FAILED, "reason": order.reason}
            if not db.set_state(conn, order.resource, **state):
                raise errors.ActionInProgress(stack_name=stored.row.name, action="UPDATE")
            for key, value in order.flags():
                db.set_data(conn, order.resource, key, value)

    return write
