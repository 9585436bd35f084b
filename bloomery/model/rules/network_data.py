"""Network data of nodes: links, networks and services, in the form of OpenStack's metadata.

A ramdisk without DHCP uses them, so invalid data is refused at once.  Unknown keys are ignored.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.model.rules import attributes

Json = dict[str, Any]

_DEVICES: Final = (
    "bridge", "dvs", "hw_veb", "hyperv", "ovs", "phy", "tap", "vhostuser", "vif",
)  # fmt: skip
_BOND_MODES: Final = (
    "802.1ad", "802.3ad", "active-backup", "balance-alb", "balance-rr", "balance-tlb",
    "balance-xor", "broadcast",
)  # fmt: skip
_VERSIONS: Final = {
    4: ("ipv4", "ipv4_dhcp"),
    6: ("ipv6", "ipv6_dhcp", "ipv6_slaac"),
}
_MAC: Final = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_TEXT: Final = {"type": "string"}


# ----------------------------------------------------------------------------- forms of values


def _is_address(version: int | None, text: str) -> bool:
    """Is it an address of this version (None: any)?  That of v6 may have its length."""
    try:
        address = ipaddress.ip_interface(text).ip
    except ValueError:
        return False
    return version in (None, address.version) and ("/" not in text or address.version == 6)


def _is_netmask(version: int, text: str) -> bool:
    """Is it a netmask in the form of an address?"""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.version == version and "01" not in f"{int(address):0{address.max_prefixlen}b}"


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "MAC address": lambda text: _MAC.fullmatch(text) is not None,
    "IP address": functools.partial(_is_address, None),
    "IPv4 address": functools.partial(_is_address, 4),
    "IPv6 address": functools.partial(_is_address, 6),
    "IPv4 netmask": functools.partial(_is_netmask, 4),
    "IPv6 netmask": functools.partial(_is_netmask, 6),
}


def _formed(name: str) -> Json:
    return {"type": "string", "format": name}


# ------------------------------------------------------------------------------ parts by type


def _part(required: list[str], **properties: Json) -> Any:
    schema = {
        "type": "object",
        "required": required,
        "properties": dict.fromkeys(required, _TEXT) | properties,
    }
    return jsonschema_rs.validator_for(schema, validate_formats=True, formats=_FORMATS)


_SHARED: Final[Json] = {
    "vif_id": _TEXT,
    "mtu": {"type": ["number", "null"], "minimum": 1, "maximum": 65535},
}
_OWN_MAC: Final[Json] = {"ethernet_mac_address": _formed("MAC address"), **_SHARED}


@functools.cache
def _parts() -> dict[str, dict[str, Any]]:
    """Return the validators of links, networks and services by type, built on first use."""
    networks: dict[str, Any] = {}
    for version, types in _VERSIONS.items():
        address, netmask = _formed(f"IPv{version} address"), _formed(f"IPv{version} netmask")
        service = {
            "type": "object",
            "required": ["type", "address"],
            "properties": {"type": {"enum": ["dns"]}, "address": address},
        }
        route = {
            "type": "object",
            "required": ["network", "netmask", "gateway"],
            "properties": {
                "network": address, "netmask": netmask, "gateway": address,
                "services": {"type": "array", "items": service},
            },
        }  # fmt: skip
        validator = _part(
            ["id", "link", "network_id"],
            ip_address=address, netmask=netmask, routes={"type": "array", "items": route},
        )  # fmt: skip
        networks |= dict.fromkeys(types, validator)
    bond = _part(
        ["id", "ethernet_mac_address", "bond_mode", "bond_links"],
        bond_mode={"enum": list(_BOND_MODES)}, bond_links={"type": "array", "items": _TEXT},
        **_OWN_MAC,
    )  # fmt: skip
    vlan = _part(
        ["id", "vlan_mac_address", "vlan_link", "vlan_id"],
        vlan_mac_address=_formed("MAC address"), vlan_id={"type": "integer"}, **_SHARED,
    )  # fmt: skip
    device = _part(["id", "ethernet_mac_address"], **_OWN_MAC)
    return {
        "links": dict.fromkeys(_DEVICES, device) | {"bond": bond, "vlan": vlan},
        "networks": networks,
        "services": {"dns": _part(["address"], address=_formed("IP address"))},
    }


@functools.cache
def _whole() -> Any:
    """Return the validator of any part: a list of objects with a known type."""
    lists = {
        name: {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": list(by_type)}},
            },
        }
        for name, by_type in _parts().items()
    }
    schema = {"type": "object", "required": list(lists), "properties": lists}
    return jsonschema_rs.validator_for(schema)


def check(value: Any) -> None:
    """Raise InvalidParameterValue, which names the place, for unusable network data."""
    _validate(_whole(), value, "network_data")
    for name, by_type in _parts().items():
        for number, part in enumerate(value[name]):
            _validate(by_type[part["type"]], part, f"network_data/{name}/{number}")


def _validate(validator: Any, value: Any, place: str) -> None:
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as exc:
        where = "/".join(str(part) for part in (place, *exc.instance_path))
        raise errors.InvalidParameterValue(
            reason=f"Schema error for node: {where}: "
            f"{attributes.shortened(attributes.explained(exc))}",
        ) from None
