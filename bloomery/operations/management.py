"""What is asked of one machine's management: its boot device, its virtual interfaces."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.model.rules import attributes, idents
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]


def boot_device(ctx: Context, ident: str) -> Json:
    """Return the boot device as the driver reads it now."""
    policy.authorize_node(ctx, ident, "baremetal:node:get_boot_device")
    node = lookup.row(ctx, ident)
    return lookup.conductor_of(ctx, node).get_boot_device(ctx.request, node.uuid)


def supported_boot_devices(ctx: Context, ident: str) -> Json:
    policy.authorize_node(ctx, ident, "baremetal:node:get_boot_device")
    node = lookup.row(ctx, ident)
    found = lookup.conductor_of(ctx, node).get_supported_boot_devices(ctx.request, node.uuid)
    return {"supported_boot_devices": found}


def set_boot_device(ctx: Context, ident: str, device: str, *, persistent: bool) -> None:
    policy.authorize_node(ctx, ident, "baremetal:node:set_boot_device")
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).set_boot_device(ctx.request, node.uuid, device, persistent)


def vifs(ctx: Context, ident: str) -> Json:
    policy.authorize_node(ctx, ident, "baremetal:node:vif:list")
    node = lookup.row(ctx, ident)
    return {"vifs": lookup.conductor_of(ctx, node).vif_list(ctx.request, node.uuid)}


def attach_vif(ctx: Context, ident: str, vif: Json) -> None:
    """Attach a virtual interface; keys beyond ``id`` go to the network interface as they are."""
    policy.authorize_node(ctx, ident, "baremetal:node:vif:attach")
    node = lookup.row(ctx, ident)
    attributes.refuse_sealed_in(vif)
    vif_id = vif["id"]
    if not (idents.is_uuid(vif_id) or idents.is_logical_name(vif_id)):
        raise errors.InvalidParameterValue(
            reason=f"Schema error for vif: Expected UUID or name for id: {vif_id}",
        )
    if vif.get("port_uuid") and vif.get("portgroup_uuid"):
        raise errors.Invalid(
            reason="Cannot specify both port_uuid and portgroup_uuid: give one of them",
        )
    lookup.conductor_of(ctx, node).vif_attach(ctx.request, node.uuid, vif)


def detach_vif(ctx: Context, ident: str, vif_id: str) -> None:
    policy.authorize_node(ctx, ident, "baremetal:node:vif:detach")
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).vif_detach(ctx.request, node.uuid, vif_id)
