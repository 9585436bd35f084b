"""Capabilities of nodes and instances, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bloomery.model.node import Node

_MODES: Final = ("uefi", "bios")


def of(holder: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the capabilities in properties or instance_info.

    The stored value is an object, the text "name:value,name:value", or null, which is empty.  In
    the text, the last value of a name counts.
    """
    stored = (holder or {}).get("capabilities")
    if isinstance(stored, Mapping):
        return {str(name): str(value) for name, value in stored.items() if value is not None}
    pairs = (pair.partition(":") for pair in str(stored or "").split(","))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def list_ignored(holder: Mapping[str, Any] | None) -> list[str]:
    """Return what is stored and has no meaning: "boot_mode", "boot_mode:uefy"."""
    stored = (holder or {}).get("capabilities")
    text = "" if isinstance(stored, Mapping) else str(stored or "")
    pieces = [piece.strip() for piece in text.split(",")]
    ignored = [piece for piece in pieces if piece and ":" not in piece]
    mode = of(holder).get("boot_mode")
    return ignored if mode is None or mode in _MODES else [*ignored, f"boot_mode:{mode}"]


def boot_mode(
    instance_info: Mapping[str, Any] | None, properties: Mapping[str, Any] | None
) -> str | None:
    """Return the boot mode of an instance, or else of its node."""
    modes = (of(holder).get("boot_mode") for holder in (instance_info, properties))
    return next((mode for mode in modes if mode in _MODES), None)


def mode_of(node: Node) -> str | None:
    """Return the requested boot mode of a node, or else the one that its BMC reported."""
    return boot_mode(node.instance_info, node.properties) or node.boot_mode


def secure_boot(instance_info: Mapping[str, Any] | None) -> str | None:
    """Return the instance's secure_boot, or None."""
    answer = of(instance_info).get("secure_boot")
    return answer.lower() if answer else None


def written(pairs: Mapping[str, str]) -> str:
    """Return capabilities in Ironic's format: "name:value,name:value"."""
    return ",".join(f"{name}:{value}" for name, value in pairs.items())
