"""Traits of nodes: standard ones, or CUSTOM_ and whatever a site likes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from bloomery import errors
from bloomery.db import nodes as db
from bloomery.operations import lookup
from bloomery.operations.context import Context

CUSTOM: Final = re.compile(r"CUSTOM_[A-Z0-9_]+")
MAX_LENGTH: Final = 255


def show(ctx: Context, ident: str) -> dict[str, Any]:
    uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        return {"traits": sorted(db.traits_of(conn, uuid))}


def replace(ctx: Context, ident: str, traits: list[Any]) -> None:
    """Give the node exactly these traits."""
    for trait in traits:
        check(trait)
    node = lookup.row(ctx, ident)
    conductor = lookup.conductor_of(ctx, node)
    conductor.add_node_traits(ctx.request, node.uuid, list(dict.fromkeys(traits)), replace=True)


def add(ctx: Context, ident: str, trait: str) -> None:
    check(trait)
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).add_node_traits(ctx.request, node.uuid, [trait], replace=False)


def remove(ctx: Context, ident: str, trait: str | None = None) -> None:
    """Take one trait, or all, away.  One that is not there is not found, however it is spelt."""
    node = lookup.row(ctx, ident)
    gone = None if trait is None else [trait]
    lookup.conductor_of(ctx, node).remove_node_traits(ctx.request, node.uuid, gone)


def check(trait: Any) -> None:
    """Raise Invalid unless it is a standard trait or a custom one."""
    if (
        isinstance(trait, str)
        and 0 < len(trait) <= MAX_LENGTH
        and (CUSTOM.fullmatch(trait) or trait in _standard())
    ):
        return
    raise errors.Invalid(
        reason=f"Schema error for trait: {trait!r} must be a standard trait of os-traits, or "
        "CUSTOM_ followed by A-Z, 0-9 and _ (255 characters at most)",
    )


@lru_cache(maxsize=1)
def _standard() -> frozenset[str]:
    import os_traits  # a second of work that most sites never need

    return frozenset(os_traits.get_traits())
