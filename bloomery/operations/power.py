"""PUT states/power, boot_mode and secure_boot: what the API can tell before the conductor."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import Power, State
from bloomery.model.rules import attributes
from bloomery.operations import lookup, versions
from bloomery.operations.context import Context

SOFT_SINCE: Final = 27
SOFT: Final = (Power.SOFT_REBOOT, Power.SOFT_OFF)
BOOT_MODES: Final = ("bios", "uefi")


def set_power_state(ctx: Context, ident: str, target: Any, timeout_s: int | None = None) -> None:
    """Ask for a power state; the conductor's worker drives the hardware there."""
    node = lookup.row(ctx, ident)
    if target is not None and not isinstance(target, str):
        raise errors.InvalidParameterValue(reason=f"Expected string for target: {target}")
    _check_version(ctx, target, timeout_s)
    wanted = _target(node, target)
    lookup.conductor_of(ctx, node).change_node_power_state(
        ctx.request,
        node.uuid,
        wanted,
        timeout_s,
    )


def _check_version(ctx: Context, target: str | None, timeout_s: int | None) -> None:
    if target in SOFT:
        versions.require(ctx.version, SOFT_SINCE, f"the target {target}")
    if timeout_s is not None:
        versions.require(ctx.version, SOFT_SINCE, "timeout")
        if timeout_s < 1:
            raise errors.Invalid(reason=f"timeout must be at least 1 second, not {timeout_s}")


def _target(node: Any, target: str | None) -> str:
    """Return the target if the node may be asked for it now."""
    if target not in states.POWER_TARGETS:
        raise errors.InvalidStateRequested(
            action=target,
            node=node.uuid,
            state=node.power_state,
            advice=f" Possible: {', '.join(states.POWER_TARGETS)}.",
        )
    if node.provision_state in (State.CLEANING, State.CLEANWAIT):
        raise errors.InvalidStateRequested(
            action=target,
            node=node.uuid,
            state=node.provision_state,
            advice=" Wait until cleaning has ended.",
        )
    if target in (Power.OFF, Power.SOFT_OFF) and node.disable_power_off:
        raise errors.PowerStateFailure(
            state=target,
            reason="the node has disable_power_off set; rebooting is allowed",
        )
    return Power(target).value


def set_boot_mode(ctx: Context, ident: str, target: Any) -> None:
    """Ask for bios or uefi; a driver's refusal is told in last_error only."""
    node = lookup.row(ctx, ident)
    if target not in BOOT_MODES:
        raise errors.InvalidParameterValue(
            reason=f"Invalid boot mode {target!r}: allowed are {', '.join(BOOT_MODES)}",
        )
    _check_stable(node, f"boot mode {target}")
    lookup.conductor_of(ctx, node).change_node_boot_mode(ctx.request, node.uuid, target)


def set_secure_boot(ctx: Context, ident: str, target: Any) -> None:
    node = lookup.row(ctx, ident)
    on = attributes.boolean("target", target)
    _check_stable(node, f"secure boot {on}")
    lookup.conductor_of(ctx, node).change_node_secure_boot(ctx.request, node.uuid, on)


def _check_stable(node: Any, action: str) -> None:
    if node.provision_state in states.UNSTABLE_STATES:
        raise errors.Conflict(
            reason=f"cannot change to {action} on node {node.uuid} while it is in state "
            f'"{node.provision_state}": wait for a stable state',
        )
