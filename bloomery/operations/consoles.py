"""The serial console of a node, read and typed into through the API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.audit import Trail
from bloomery.model.rules import nodes as rules
from bloomery.operations import lookup, policy
from bloomery.operations.console_relays import Client, Place, Relay
from bloomery.operations.context import Context

Json = dict[str, Any]

READ: Final = "baremetal:node:console:read"
WRITE: Final = "baremetal:node:console:write"
_COLUMNS: Final = (*lookup.BRIEF, "console_enabled", "console_interface")


def describe(ctx: Context, ident: str, *, read_only: bool) -> Json:
    """Return whether the console is enabled, whether the caller may type, and what to do."""
    node = policy.get_node(ctx, ident, READ, columns=_COLUMNS)
    may_type = not read_only and policy.may(ctx, WRITE, policy.node_target(node))
    advice = None if node.console_enabled else rules.console_advice(node)
    return {"console_enabled": node.console_enabled, "may_type": may_type, "advice": advice}


def open_(ctx: Context, ident: str, *, read_only: bool, address: str) -> Callable[[Client], None]:
    """Return a function that relays the console to a client; ``address``: the client's.

    The audit has the begin before the client reads a byte.  Raises NodeNotFound, Forbidden,
    ConsoleNotEnabled, TooManyConsoles, AuditUnwritable.
    """
    node = policy.get_node(ctx, ident, READ, columns=_COLUMNS)
    may_type = not read_only and policy.may(ctx, WRITE, policy.node_target(node))
    if not node.console_enabled:
        raise errors.ConsoleNotEnabled(node=errors.name_of(node), advice=rules.console_advice(node))
    services, request = ctx.services, ctx.request
    services.consoles.check_room()
    file = services.conf.audit.file
    trail = Trail(Path(file)) if file else None
    who = {"request_id": request.request_id, "user": request.user, "user_name": request.user_name,
           "project": request.project}  # fmt: skip
    facts = {"node": node.uuid, "address": address, "may_type": may_type} | who
    if trail is not None:
        trail.add("console_opened", facts, is_durable=True)

    def record_end() -> None:
        if trail is not None:
            trail.add("console_closed", facts)

    def begin(client: Client) -> None:
        relay = Relay(
            client, lambda: _locate(ctx, node.uuid), may_type=may_type,
            idle_s=services.conf.console.terminal_timeout, on_end=record_end,
        )  # fmt: skip
        services.consoles.start(relay, node.uuid)

    return begin


def _locate(ctx: Context, uuid: str) -> Place:
    """Return where the console of a node listens now, for a caller who still may read it.

    Raises NodeNotFound, Forbidden, ConsoleNotEnabled, ConsoleNotSerial, and what calls to a
    conductor raise.
    """
    node = policy.get_node(ctx, uuid, READ, columns=_COLUMNS)
    info = lookup.conductor_of(ctx, node).get_console_information(ctx.request, uuid)
    if info is None:
        raise errors.ConsoleNotEnabled(node=errors.name_of(node), advice=rules.console_advice(node))
    place = rules.console_place(info)
    if place is None:
        raise errors.ConsoleNotSerial(node=errors.name_of(node), interface=node.console_interface)
    host, port = place
    if host in ("0.0.0.0", "::"):  # noqa: S104  the conductor listens at all of its addresses
        key = {"driver": node.driver, "group": node.conductor_group, "uuid": uuid}
        host = ctx.services.rpc.ring.find_host(**key) or host
    return host, port
