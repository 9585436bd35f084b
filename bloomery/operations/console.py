"""The console of one machine: where it is reached, and switching it on and off."""

from __future__ import annotations

from typing import Any

from bloomery.operations import lookup, policy
from bloomery.operations.context import Context


def show(ctx: Context, ident: str) -> dict[str, Any]:
    """Return whether the console is on, and where; ``console_info`` is as the driver has it."""
    policy.authorize_node(ctx, ident, "baremetal:node:get_console")
    node = lookup.row(ctx, ident)
    info = lookup.conductor_of(ctx, node).get_console_information(ctx.request, node.uuid)
    return {"console_enabled": info is not None, "console_info": info}


def switch(ctx: Context, ident: str, enabled: bool) -> None:
    """Ask for the console to be on or off; the conductor's worker does it."""
    policy.authorize_node(ctx, ident, "baremetal:node:set_console_state")
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).set_console_mode(ctx.request, node.uuid, enabled)
