"""Look up the row of a node, and its conductor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from bloomery import errors
from bloomery.db import nodes as db
from bloomery.model.fields import Column
from bloomery.model.rules import nodes as rules
from bloomery.operations.context import Context
from bloomery.rpc.contract import Conductor

BRIEF: Final = (
    "uuid",
    "name",
    "driver",
    "conductor_group",
    "provision_state",
    "target_provision_state",
    "power_state",
    "maintenance",
    "reservation",
    "reserved_for",
    "disable_power_off",
    "instance_uuid",
    "owner",
    "lessee",
)  # for checks
OWNED: Final = ("uuid", "owner", "lessee")  # for policies


def row(ctx: Context, ident: str, columns: tuple[Column, ...] = BRIEF) -> Any:
    """Return columns of one node by UUID or name.  Raises NodeNotFound."""
    with ctx.services.db.read() as conn:
        node = db.find_row(conn, ident, columns)
    if node is None:
        raise errors.NodeNotFound(node=ident)
    return node


def uuid_of(ctx: Context, ident: str) -> str:
    """Return the UUID of a node.  Raises NodeNotFound."""
    return str(row(ctx, ident, ("uuid",)).uuid)


def uuid_in_body(ctx: Context, ident: str, argument: str) -> str:
    """Return the UUID of a body's node; an unknown one is a fault of the body."""
    with ctx.services.db.read() as conn:
        uuid = db.find_uuid(conn, ident)
    if uuid is None:
        raise rules.no_such_node(argument, ident)
    return uuid


def conductor_of(ctx: Context, node: Any) -> Conductor:
    """Return a proxy of the conductor that serves a node's row."""
    return ctx.services.rpc.conductor_for_node(
        driver=node.driver, group=node.conductor_group, uuid=node.uuid
    )


@contextmanager
def no_host_is_a_bad_request() -> Iterator[None]:
    """Turn NoValidHost into 400: the request's own values lead to no conductor."""
    try:
        yield
    except errors.NoValidHost as exc:
        raise errors.InvalidParameterValue(reason=str(exc)) from exc
