"""PUT states/power, boot_mode and secure_boot: what the API can tell before the conductor."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import Power
from bloomery.model.rules import attributes, verbs
from bloomery.operations import lookup, policy, versions
from bloomery.operations.context import Context

SOFT_SINCE: Final = 27
SOFT: Final = (Power.SOFT_REBOOT, Power.SOFT_OFF)


def set_power_state(ctx: Context, ident: str, target: Any, timeout_s: int | None = None) -> None:
    """Ask for a power state; the conductor's worker drives the hardware there."""
    policy.authorize_node(ctx, ident, "baremetal:node:set_power_state")
    node = lookup.row(ctx, ident)
    if target is not None and not isinstance(target, str):
        raise errors.InvalidParameterValue(reason=f"Expected string for target: {target}")
    _check_version(ctx, target, timeout_s)
    verbs.check_power_target(node, target)
    conductor = lookup.conductor_of(ctx, node)
    conductor.change_node_power_state(ctx.request, node.uuid, str(target), timeout_s)


def _check_version(ctx: Context, target: str | None, timeout_s: int | None) -> None:
    if target in SOFT:
        versions.require(ctx.version, SOFT_SINCE, f"the target {target}")
    if timeout_s is not None:
        versions.require(ctx.version, SOFT_SINCE, "timeout")
        if timeout_s < 1:
            raise errors.Invalid(reason=f"timeout must be at least 1 second, not {timeout_s}")


def set_boot_mode(ctx: Context, ident: str, target: Any) -> None:
    """Ask for bios or uefi; a driver's refusal is told in last_error only."""
    policy.authorize_node(ctx, ident, "baremetal:node:set_boot_mode")
    node = lookup.row(ctx, ident)
    verbs.check_boot_mode(node, target)
    lookup.conductor_of(ctx, node).change_node_boot_mode(ctx.request, node.uuid, target)


def set_secure_boot(ctx: Context, ident: str, target: Any) -> None:
    policy.authorize_node(ctx, ident, "baremetal:node:set_secure_boot")
    node = lookup.row(ctx, ident)
    on = attributes.boolean("target", target)
    verbs.check_secure_boot(node, on)
    lookup.conductor_of(ctx, node).change_node_secure_boot(ctx.request, node.uuid, on)
