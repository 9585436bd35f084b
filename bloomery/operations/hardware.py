"""Hardware of one node beyond power: RAID, NMI, check and log of the BMC, sensors, lights, media.

Checks here need no hardware; the conductor calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.model.rules import attributes
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]

DEVICE_TYPES: Final = ("cdrom", "disk", "floppy")
MEDIA_SCHEMES: Final = ("http", "https", "nfs", "cifs")  # BMCs fetch the image themselves


def set_target_raid_config(ctx: Context, ident: str, config: Json) -> None:
    """Set the RAID configuration for the next steps; {} clears it.

    Raises NotFound where the node has no RAID.
    """
    node = policy.get_node(ctx, ident, "baremetal:node:set_raid_state")
    attributes.refuse_sealed_in(config)
    try:
        lookup.conductor_of(ctx, node).set_target_raid_config(ctx.request, node.uuid, config)
    except errors.UnsupportedDriverExtension as exc:  # as in Ironic
        raise errors.NotFound(reason=str(exc)) from exc


def inject_nmi(ctx: Context, ident: str) -> None:
    node = policy.get_node(ctx, ident, "baremetal:node:inject_nmi")
    lookup.conductor_of(ctx, node).inject_nmi(ctx.request, node.uuid)


def examine_bmc(ctx: Context, ident: str) -> Json:
    """Return the report of the node's BMC: what works, what is missing, how it is reached."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_boot_device")
    return lookup.conductor_of(ctx, node).examine_bmc(ctx.request, node.uuid)


def read_bmc_log(ctx: Context, ident: str) -> Json:
    """Return the newest entries of the BMC's own log."""
    node = policy.get_node(ctx, ident, "baremetal:node:history:get")
    return lookup.conductor_of(ctx, node).read_bmc_log(ctx.request, node.uuid)


def get_sensors(ctx: Context, ident: str) -> Json:
    """Return what the node's sensors measured in the last hours, as its conductor remembers."""
    node = policy.get_node(ctx, ident, "baremetal:node:history:get")
    answer = lookup.conductor_of(ctx, node).get_sensors(ctx.request, node.uuid)
    return {"node": node.uuid, **answer}


# ----------------------------------------------------------------------------------- indicators


def list_indicators(ctx: Context, ident: str) -> list[Json]:
    """Return the indicators: name, component, readonly, and states in alphabetical order."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_indicator_state")
    conductor = lookup.conductor_of(ctx, node)
    components = conductor.get_supported_indicators(ctx.request, node.uuid, None)
    return [
        {
            "name": f"{name}@{component}",
            "component": component,
            "readonly": facts["readonly"],
            "states": sorted(facts["states"]),
        }
        for component, indicators in components.items()
        for name, facts in indicators.items()
    ]


def get_indicator(ctx: Context, ident: str, indicator: str) -> str:
    """Return the state of an indicator, such as ``led@chassis``."""
    node = policy.get_node(ctx, ident, "baremetal:node:get_indicator_state")
    name, component = _parts(indicator)
    conductor = lookup.conductor_of(ctx, node)
    return conductor.get_indicator_state(ctx.request, node.uuid, component, name)


def set_indicator(ctx: Context, ident: str, indicator: str, state: str) -> None:
    node = policy.get_node(ctx, ident, "baremetal:node:set_indicator_state")
    name, component = _parts(indicator)
    conductor = lookup.conductor_of(ctx, node)
    conductor.set_indicator_state(ctx.request, node.uuid, component, name, state)


def _parts(indicator: str) -> tuple[str, str]:
    name, at, component = indicator.rpartition("@")
    if not (name and at and component):
        raise errors.InvalidParameterValue(
            reason=f"Invalid indicator {attributes.shortened(indicator)}: "
            "name it as NAME@COMPONENT, such as led@chassis",
        )
    return name, component


# -------------------------------------------------------------------------------- virtual media


def list_virtual_media(ctx: Context, ident: str) -> list[Json]:
    """Return the devices as the driver reports them: media_types, inserted, image."""
    node = policy.get_node(ctx, ident, "baremetal:node:vmedia:get")
    return lookup.conductor_of(ctx, node).get_virtual_media(ctx.request, node.uuid)


def attach_virtual_media(ctx: Context, ident: str, media: Json) -> None:
    """Insert an image in a worker of the conductor; last_error has a failure."""
    node = policy.get_node(ctx, ident, "baremetal:node:vmedia:attach")
    attributes.check_text("image_url", media["image_url"])
    attributes.check_url("image_url", media["image_url"], MEDIA_SCHEMES)
    lookup.conductor_of(ctx, node).attach_virtual_media(
        ctx.request,
        node.uuid,
        media["device_type"],
        media["image_url"],
        media.get("image_download_source"),
    )


def detach_virtual_media(ctx: Context, ident: str, device_types: Sequence[str] | None) -> None:
    """Eject images from devices of these types; without types, from all."""
    node = policy.get_node(ctx, ident, "baremetal:node:vmedia:detach")
    unknown = [each for each in device_types or () if each not in DEVICE_TYPES]
    if unknown:
        raise errors.InvalidParameterValue(
            reason=f"Invalid device_types: {attributes.shortened(unknown[0])} is none of "
            f"{', '.join(DEVICE_TYPES)}",
        )
    named = list(device_types) if device_types else None
    lookup.conductor_of(ctx, node).detach_virtual_media(ctx.request, node.uuid, named)
