"""Management of one node: power, boot, console, virtual interfaces, vendor methods.

Checks here need no hardware; the conductor calls it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bloomery import errors
from bloomery.model.request import VendorCall
from bloomery.model.rules import attributes, idents, verbs
from bloomery.operations import lookup, policy
from bloomery.operations.context import Admit, Context, admit_all

Json = dict[str, Any]


# --------------------------------------------------------------------------------- power and boot


def set_power_state(
    ctx: Context,
    ident: str,
    target: Any,
    timeout_s: int | None = None,
    admit: Admit = admit_all,
) -> None:
    """Set the power state in a worker of the conductor.

    ``admit`` is called for ("target", target) and for ("timeout",).
    """
    node = policy.get_node(ctx, ident, "baremetal:node:set_power_state")
    if target is not None and not isinstance(target, str):
        raise errors.InvalidParameterValue(reason=f"Expected string for target: {target}")
    admit("target", target)
    if timeout_s is not None:
        admit("timeout")
        if timeout_s < 1:
            raise errors.Invalid(reason=f"timeout must be at least 1 second, not {timeout_s}")
    verbs.check_power_target(node, target)
    conductor = lookup.conductor_of(ctx, node)
    conductor.change_node_power_state(ctx.request, node.uuid, str(target), timeout_s)


def set_boot_mode(ctx: Context, ident: str, target: Any) -> None:
    """Set bios or uefi; a driver's refusal appears in last_error only."""
    node = policy.get_node(ctx, ident, "baremetal:node:set_boot_mode")
    verbs.check_boot_mode(node, target)
    lookup.conductor_of(ctx, node).change_node_boot_mode(ctx.request, node.uuid, target)


def set_secure_boot(ctx: Context, ident: str, target: Any) -> None:
    node = policy.get_node(ctx, ident, "baremetal:node:set_secure_boot")
    on = attributes.boolean("target", target)
    verbs.check_secure_boot(node, on)
    lookup.conductor_of(ctx, node).change_node_secure_boot(ctx.request, node.uuid, on)


def get_boot_device(ctx: Context, ident: str) -> Json:
    """Return the current boot device."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_boot_device")
    return lookup.conductor_of(ctx, node).get_boot_device(ctx.request, node.uuid)


def list_boot_devices(ctx: Context, ident: str) -> list[str]:
    """Return the supported boot devices."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_boot_device")
    return lookup.conductor_of(ctx, node).get_supported_boot_devices(ctx.request, node.uuid)


def set_boot_device(ctx: Context, ident: str, device: str, *, persistent: bool) -> None:
    node = policy.get_node(ctx, ident, "baremetal:node:set_boot_device")
    lookup.conductor_of(ctx, node).set_boot_device(ctx.request, node.uuid, device, persistent)


# ---------------------------------------------------------------------------------------- console


def get_console(ctx: Context, ident: str) -> dict[str, Any]:
    """Return whether the console is enabled, and the driver's ``console_info``."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_console")
    info = lookup.conductor_of(ctx, node).get_console_information(ctx.request, node.uuid)
    return {"console_enabled": info is not None, "console_info": info}


def set_console(ctx: Context, ident: str, enabled: bool) -> None:
    """Enable or disable the console in a worker of the conductor."""
    node = policy.get_node(ctx, ident, "baremetal:node:set_console_state")
    lookup.conductor_of(ctx, node).set_console_mode(ctx.request, node.uuid, enabled)


# ----------------------------------------------------------------------------- virtual interfaces


def list_vifs(ctx: Context, ident: str) -> list[Json]:
    node = policy.get_node(ctx, ident, "baremetal:node:vif:list")
    return lookup.conductor_of(ctx, node).vif_list(ctx.request, node.uuid)


def attach_vif(ctx: Context, ident: str, vif: Json) -> None:
    """Attach a virtual interface; the network interface gets all keys beyond ``id`` unchanged."""
    node = policy.get_node(ctx, ident, "baremetal:node:vif:attach")
    attributes.refuse_sealed_in(vif)
    idents.check_ident("id", vif["id"])
    if vif.get("port_uuid") and vif.get("portgroup_uuid"):
        raise errors.Invalid(
            reason="Cannot specify both port_uuid and portgroup_uuid: give one of them",
        )
    lookup.conductor_of(ctx, node).vif_attach(ctx.request, node.uuid, vif)


def detach_vif(ctx: Context, ident: str, vif_id: str) -> None:
    node = policy.get_node(ctx, ident, "baremetal:node:vif:detach")
    lookup.conductor_of(ctx, node).vif_detach(ctx.request, node.uuid, vif_id)


# --------------------------------------------------------------------------------- vendor methods


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorResult:
    """The result of a method: JSON, or bytes where ``attach``; None where ``is_async``."""

    value: Any
    is_async: bool
    attach: bool


def list_vendor_methods_of_node(ctx: Context, ident: str) -> Json:
    """Return {method: facts}."""
    node = policy.get_node(ctx, ident, "baremetal:node:vendor_passthru")
    return lookup.conductor_of(ctx, node).get_node_vendor_passthru_methods(ctx.request, node.uuid)


def call_vendor_of_node(ctx: Context, ident: str, call: VendorCall) -> VendorResult:
    node = policy.get_node(ctx, ident, "baremetal:node:vendor_passthru")
    attributes.refuse_sealed_in(call.info)
    conductor = lookup.conductor_of(ctx, node)
    return _vendor_result(
        conductor.vendor_passthru(ctx.request, node.uuid, call.method, call.http_method, call.info)
    )


def list_vendor_methods_of_driver(ctx: Context, name: str) -> Json:
    """Return {method: facts}.  Raises DriverNotFound."""
    policy.authorize(ctx, "baremetal:driver:vendor_passthru")
    conductor = ctx.services.rpc.conductor_for_driver(name)
    return conductor.get_driver_vendor_passthru_methods(ctx.request, name)


def call_vendor_of_driver(ctx: Context, name: str, call: VendorCall) -> VendorResult:
    policy.authorize(ctx, "baremetal:driver:vendor_passthru")
    conductor = ctx.services.rpc.conductor_for_driver(name)
    attributes.refuse_sealed_in(call.info)
    return _vendor_result(
        conductor.driver_vendor_passthru(
            ctx.request, name, call.method, call.http_method, call.info
        )
    )


def _vendor_result(answer: Mapping[str, Any]) -> VendorResult:
    value = answer["return"]
    if answer["attach"] and value is not None:
        value = base64.b64decode(value)
    return VendorResult(value=value, is_async=answer["async"], attach=answer["attach"])
