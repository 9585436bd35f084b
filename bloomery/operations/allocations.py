"""Allocations: create and delete."""

from __future__ import annotations

import uuid as uuids
from typing import Any

from bloomery import errors
from bloomery.db import allocations as db
from bloomery.db import records as rows
from bloomery.model.noun import checked
from bloomery.model.nouns import ALLOCATION
from bloomery.model.rules import attributes
from bloomery.model.rules import nodes as node_rules
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]
_MISSING = frozenset({"uuid", "owner"})  # "" is treated as null
_NODE = (
    "uuid", "name", "driver", "conductor_group", "instance_uuid", "resource_class", "owner",
    "lessee",
)  # fmt: skip


# ------------------------------------------------------------------------------------- create


def create(ctx: Context, body: Json) -> str:
    """Create an allocation; return its UUID.  A conductor searches for the node.

    With ``node`` in the body the allocation is backfilled for that active node. ``body`` has passed
    the schema.
    """
    policy.authorize(ctx, "baremetal:allocation:create")
    attributes.refuse_sealed_in(body)
    body = {name: value for name, value in body.items() if value or name not in _MISSING}
    own = ctx.request.project  # the owner, if the token has one
    if ctx.services.policies.enforced and ctx.request.system_scope != "all":
        if body.get("owner") in (None, own):
            body = body | {"owner": own}
        else:
            policy.authorize(ctx, "baremetal:allocation:create_restricted")
    values = {name: value for name, value in body.items() if value is not None}
    node = None
    if ident := values.pop("node", None):
        uuid = lookup.uuid_in_body(ctx, ident, "node")
        policy.authorize_named(ctx, uuid, node_rules.no_such_node("node", ident))
        node = lookup.row(ctx, uuid, _NODE)
    values = {name: checked(ALLOCATION, name, value) for name, value in values.items()}
    if not values.get("resource_class"):
        if node is None:
            raise errors.MissingParameterValue(
                reason="Missing mandatory parameter: resource_class, the class of the node to look "
                "for; only an allocation for a given node goes without",
            )
        values["resource_class"] = node.resource_class or None
    if "candidate_nodes" in values:
        idents = values["candidate_nodes"]
        with ctx.services.db.read() as conn:
            uuid_of = db.find_uuids(conn, idents)
        for ident in idents:
            hidden = node_rules.no_such_node("candidate_nodes", ident)
            if ident not in uuid_of:
                raise hidden
            policy.authorize_named(ctx, uuid_of[ident], hidden)
        values["candidate_nodes"] = [uuid_of[ident] for ident in idents]
    if node is None:
        values = {"uuid": str(uuids.uuid4())} | values
        ctx.services.rpc.any_conductor().create_allocation(ctx.request, values, None)
        return str(values["uuid"])
    values.setdefault("uuid", node.instance_uuid or str(uuids.uuid4()))
    if node.instance_uuid not in (None, values["uuid"]):
        raise errors.NodeAssociated(node=errors.name_of(node), instance=node.instance_uuid)
    with lookup.no_host_is_a_bad_request():
        conductor = lookup.conductor_of(ctx, node)
    conductor.create_allocation(ctx.request, values, node.uuid)
    return str(values["uuid"])


# ------------------------------------------------------------------------------------- delete


def destroy(ctx: Context, ident: str) -> None:
    """Delete an allocation; the conductor checks its node's state."""
    policy.authorize_record(ctx, ALLOCATION, ident, "delete")
    with ctx.services.db.read() as conn:
        allocation = rows.find_row(conn, ALLOCATION, ident, ("uuid", "node_uuid"))
    if allocation is None:
        raise errors.AllocationNotFound(allocation=ident)
    if allocation.node_uuid is None:
        conductor = ctx.services.rpc.any_conductor()
    else:
        conductor = lookup.conductor_of(ctx, lookup.row(ctx, allocation.node_uuid))
    conductor.destroy_allocation(ctx.request, allocation.uuid)


# ------------------------------------------------------------------------------- that of a node


def uuid_of_node(ctx: Context, ident: str) -> str:
    """Return the UUID of a node's allocation.

    Raises NodeNotFound, and NodeHasNoAllocation also where the caller may not read it.
    """
    node = policy.get_uuid(ctx, ident)
    with ctx.services.db.read() as conn:
        uuid = db.find_of_node(conn, node)
    if uuid is None:
        raise errors.NodeHasNoAllocation(node=ident)
    return uuid
