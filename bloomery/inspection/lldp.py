"""Parsing of LLDP data of a switch.

Agents send an interface's TLVs as pairs of type and hexadecimal value. Source: IEEE 802.1AB, clause
8 and annexes D and E; IEEE 802.3, annex 79.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]

_MAC_SUBTYPES: Final = {1: 4, 2: 3}  # of chassis ID and port ID
_ADDRESS_SUBTYPES: Final = {1: 5, 2: 4}
_DOT1, _DOT3 = b"\x00\x80\xc2", b"\x00\x12\x0f"
_MOST_TLVS: Final = 500


def parse(tlvs: Any) -> Json:
    """Return the readable values, under the names of Ironic's parse-lldp.

    Malformed TLVs are skipped.
    """
    parsed: Json = {}
    for kind, value in _decoded(tlvs):
        reader = _READERS.get(kind)
        if reader is not None:
            try:
                reader(parsed, value)
            except (ValueError, IndexError):
                continue
    return parsed


def _decoded(tlvs: Any) -> Iterator[tuple[int, bytes]]:
    for tlv in tlvs[:_MOST_TLVS] if isinstance(tlvs, list) else ():
        if isinstance(tlv, list | tuple) and len(tlv) == 2 and isinstance(tlv[1], str):
            try:
                yield int(tlv[0]), bytes.fromhex(tlv[1])
            except (TypeError, ValueError):
                continue


def _ident(kind: int, name: str) -> Callable[[Json, bytes], None]:
    """Return the reader of a chassis ID or a port ID, whose first byte is its subtype."""

    def read(parsed: Json, value: bytes) -> None:
        subtype, content = value[0], value[1:]
        if subtype == _MAC_SUBTYPES[kind]:
            if len(content) == 6:
                parsed[name] = content.hex(":")
        elif subtype == _ADDRESS_SUBTYPES[kind]:
            parsed[name] = str(ipaddress.ip_address(content[1:]))
        else:
            parsed[name] = _text(content)

    return read


def _plain(name: str) -> Callable[[Json, bytes], None]:
    def read(parsed: Json, value: bytes) -> None:
        parsed[name] = _text(value)

    return read


def _text(content: bytes) -> str:
    text = content.decode("utf-8").strip("\0 \r\n")
    if not text or not text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable():
        raise ValueError(text)
    return text


def _management(parsed: Json, value: bytes) -> None:
    """Parse an address: the first byte is its length, the second its family."""
    address = ipaddress.ip_address(value[2 : 1 + value[0]])
    parsed.setdefault("switch_mgmt_addresses", []).append(str(address))


def _organisation(parsed: Json, value: bytes) -> None:
    owner, subtype, content = value[:3], value[3], value[4:]
    if owner == _DOT1 and subtype == 1:
        parsed["switch_port_untagged_vlan_id"] = int.from_bytes(content[:2], "big")
    elif owner == _DOT1 and subtype == 3:
        vlan = {"id": int.from_bytes(content[:2], "big"), "name": _text(content[3:])}
        parsed.setdefault("switch_port_vlans", []).append(vlan)
    elif owner == _DOT3 and subtype == 3:
        parsed["switch_port_link_aggregation_support"] = bool(content[0] & 1)
        parsed["switch_port_link_aggregation_enabled"] = bool(content[0] & 2)
        parsed["switch_port_link_aggregation_id"] = int.from_bytes(content[1:5], "big")
    elif owner == _DOT3 and subtype == 4:
        parsed["switch_port_mtu"] = int.from_bytes(content[:2], "big")


_READERS: Final[Mapping[int, Callable[[Json, bytes], None]]] = {
    1: _ident(1, "switch_chassis_id"),
    2: _ident(2, "switch_port_id"),
    4: _plain("switch_port_description"),
    5: _plain("switch_system_name"),
    6: _plain("switch_system_description"),
    8: _management,
    127: _organisation,
}
