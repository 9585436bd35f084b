"""Traits of nodes: standard ones, or CUSTOM_ names."""

from __future__ import annotations

from typing import Any

from bloomery.db import nodes as db
from bloomery.model.rules import nodes as rules
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context


def list_traits(ctx: Context, ident: str) -> list[str]:
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:traits:list")
    with ctx.services.db.read() as conn:
        return sorted(db.traits_of(conn, uuid))


def replace(ctx: Context, ident: str, traits: list[Any]) -> None:
    """Replace the node's traits."""
    policy.authorize_node(ctx, ident, "baremetal:node:traits:set")
    for trait in traits:
        rules.check_trait(trait)
    node = lookup.row(ctx, ident)
    conductor = lookup.conductor_of(ctx, node)
    conductor.add_node_traits(ctx.request, node.uuid, list(dict.fromkeys(traits)), replace=True)


def add(ctx: Context, ident: str, trait: str) -> None:
    policy.authorize_node(ctx, ident, "baremetal:node:traits:set")
    rules.check_trait(trait)
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).add_node_traits(ctx.request, node.uuid, [trait], replace=False)


def remove(ctx: Context, ident: str, trait: str | None = None) -> None:
    """Remove one trait, or all.  A missing trait is not found, even a malformed one."""
    node = policy.get_node(ctx, ident, "baremetal:node:traits:delete")
    gone = None if trait is None else [trait]
    lookup.conductor_of(ctx, node).remove_node_traits(ctx.request, node.uuid, gone)
