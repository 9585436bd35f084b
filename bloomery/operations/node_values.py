"""What a node's attributes may be set to where other rows decide; on POST and on PATCH alike."""

from __future__ import annotations

from bloomery import errors
from bloomery.db import nodes as db
from bloomery.model.rules import nodes as rules
from bloomery.operations import lookup
from bloomery.operations.context import Context


def check_chassis(ctx: Context, uuid: str) -> None:
    with ctx.services.db.read() as conn:
        rules.require_chassis(uuid, exists=db.chassis_exists(conn, uuid))


def parent_uuid(ctx: Context, ident: str, owner: str | None) -> str:
    """Return the UUID of the node that is to be a parent; it must have the same owner."""
    uuid = lookup.uuid_in_body(ctx, ident, "parent_node")
    parent = lookup.row(ctx, uuid, ("owner",))
    if parent.owner != owner:
        raise errors.InvalidParameterValue(
            reason=f"cannot set parent_node to {ident}: it has another owner",
        )
    return uuid
