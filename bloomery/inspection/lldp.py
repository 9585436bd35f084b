"""Parsing of LLDP data of a switch.

Agents send an interface's TLVs as pairs of type and hexadecimal value. Source: IEEE 802.1AB, clause
8 and annexes D and E; IEEE 802.3, annex 79.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

Json = dict[str, Any]

_TEXT, _MAC, _ADDRESS = "text", "MAC", "address"
_CHASSIS_FORMS: Final = {1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _MAC, 5: _ADDRESS, 6: _TEXT, 7: _TEXT}
_PORT_FORMS: Final = {1: _TEXT, 2: _TEXT, 3: _MAC, 4: _ADDRESS, 5: _TEXT, 6: _TEXT, 7: _TEXT}
_FAMILY_MAC: Final = 6  # of the address families, where IPv4 and IPv6 are 1 and 2
_DOT1, _DOT3 = b"\x00\x80\xc2", b"\x00\x12\x0f"
_MOST_TLVS: Final = 500
_MOST_DIGITS: Final = 2 * 511  # the length of a TLV has 9 bits

_CAPABILITIES: Final = {
    1: "Repeater", 2: "Bridge", 3: "WLAN", 4: "Router", 5: "Telephone", 6: "DOCSIS cable device",
    7: "Station only", 8: "C-Vlan", 9: "S-Vlan", 10: "TPMR",
}  # fmt: skip
_AUTONEGOTIATED: Final = {
    0: "1000BASE-T fdx", 1: "1000BASE-T hdx", 2: "1000BASE-X fdx", 3: "1000BASE-X hdx",
    4: "Asym and Sym PAUSE fdx", 5: "Sym PAUSE fdx", 6: "Asym PAUSE fdx", 7: "PAUSE fdx",
    8: "100BASE-T2 fdx", 9: "100BASE-T2 hdx", 10: "100BASE-TX fdx", 11: "100BASE-TX hdx",
    12: "10BASE-T4", 13: "10BASE-T fdx", 14: "10BASE-T hdx",
}  # fmt: skip
_MAU_TYPES: Final = (
    "Unknown", "AUI", "10BASE-5", "FOIRL", "10BASE-2", "10BASE-T duplex mode unknown", "10BASE-FP",
    "10BASE-FB", "10BASE-FL duplex mode unknown", "10BROAD36", "10BASE-T half duplex",
    "10BASE-T full duplex", "10BASE-FL half duplex", "10BASE-FL full duplex", "100 BASE-T4",
    "100BASE-TX half duplex", "100BASE-TX full duplex", "100BASE-FX half duplex",
    "100BASE-FX full duplex", "100BASE-T2 half duplex", "100BASE-T2 full duplex",
    "1000BASE-X half duplex", "1000BASE-X full duplex", "1000BASE-LX half duplex",
    "1000BASE-LX full duplex", "1000BASE-SX half duplex", "1000BASE-SX full duplex",
    "1000BASE-CX half duplex", "1000BASE-CX full duplex", "1000BASE-T half duplex",
    "1000BASE-T full duplex", "10GBASE-X", "10GBASE-LX4", "10GBASE-R", "10GBASE-ER", "10GBASE-LR",
    "10GBASE-SR", "10GBASE-W", "10GBASE-EW", "10GBASE-LW", "10GBASE-SW", "10GBASE-CX4", "2BASE-TL",
    "10PASS-TS", "100BASE-BX10D", "100BASE-BX10U", "100BASE-LX10", "1000BASE-BX10D",
    "1000BASE-BX10U", "1000BASE-LX10", "1000BASE-PX10D", "1000BASE-PX10U", "1000BASE-PX20D",
    "1000BASE-PX20U",
)  # fmt: skip


def parse(tlvs: Any) -> Json:
    """Return the readable values, under the names of Ironic's parse-lldp.

    Malformed TLVs are skipped.  Of a value that may come once, the first counts.
    """
    parsed: Json = {}
    for tlv in tlvs[:_MOST_TLVS] if isinstance(tlvs, list) else ():
        is_pair = isinstance(tlv, list | tuple) and len(tlv) == 2
        if not is_pair or not isinstance(tlv[1], str) or len(tlv[1]) > _MOST_DIGITS:
            continue
        try:
            reader, value = _READERS.get(int(tlv[0])), bytes.fromhex(tlv[1])
            if reader is not None:
                reader(parsed, value)
        except (TypeError, ValueError, IndexError, struct.error):
            continue
    return parsed


def _put(name: str, parse: Callable[[bytes], Any], parsed: Json, content: bytes) -> None:
    parsed.setdefault(name, parse(content))


def _put_ident(name: str, forms: Mapping[int, str], parsed: Json, value: bytes) -> None:
    """Parse a chassis ID or a port ID, whose first byte is its subtype."""
    form, content = forms.get(value[0]), value[1:]
    if form == _MAC and len(content) == 6:
        parsed.setdefault(name, content.hex(":"))
    elif form == _ADDRESS:
        parsed.setdefault(name, str(ipaddress.ip_address(content[1:])))
    elif form == _TEXT:
        parsed.setdefault(name, _text(content))


def _text(content: bytes) -> str:
    text = content.decode("utf-8").strip("\0 \r\n")
    line = text.replace("\n", " ").replace("\r", " ").replace("\t", " ")
    if not line.isprintable():
        raise ValueError(text)
    return text


def _number(content: bytes) -> int:
    """Return the number of two bytes.  Raises struct.error for fewer."""
    number: int = struct.unpack_from(">H", content)[0]
    return number


def _bits(names: Mapping[int, str], bits: int) -> list[str]:
    return [name for bit, name in names.items() if bits & 1 << bit]


def _capabilities(parsed: Json, value: bytes) -> None:
    support, enabled = struct.unpack(">HH", value)
    parsed.setdefault("switch_capabilities_support", _bits(_CAPABILITIES, support))
    parsed.setdefault("switch_capabilities_enabled", _bits(_CAPABILITIES, enabled))


def _management(parsed: Json, value: bytes) -> None:
    """Parse an address: the first byte is its length, the second its family."""
    content = value[2 : 1 + value[0]]
    is_mac = value[1] == _FAMILY_MAC and len(content) == 6
    address = content.hex(":") if is_mac else str(ipaddress.ip_address(content))
    parsed.setdefault("switch_mgmt_addresses", []).append(address)


def _organisation(parsed: Json, value: bytes) -> None:
    reader = _OF_ORGANISATIONS.get((value[:3], value[3]))
    if reader is not None:
        reader(parsed, value[4:])


def _protocol_vlan(parsed: Json, content: bytes) -> None:
    vlan = _number(content[1:])
    parsed.setdefault("switch_port_protocol_vlan_support", bool(content[0] & 2))
    parsed.setdefault("switch_port_protocol_vlan_enabled", bool(content[0] & 4))
    parsed.setdefault("switch_port_protocol_vlan_ids", []).append(vlan)


def _vlan(parsed: Json, content: bytes) -> None:
    length, name = content[2], content[3:]
    if len(name) >= length:
        vlan = {"id": _number(content), "name": _text(name[:length])}
        parsed.setdefault("switch_port_vlans", []).append(vlan)


def _protocol(parsed: Json, content: bytes) -> None:
    identity = content[1 : 1 + content[0]]
    parsed.setdefault("switch_protocol_identities", []).append(identity.hex())


def _link_aggregation(parsed: Json, content: bytes) -> None:
    bits, number = struct.unpack_from(">BI", content)
    parsed.setdefault("switch_port_link_aggregation_support", bool(bits & 1))
    parsed.setdefault("switch_port_link_aggregation_enabled", bool(bits & 2))
    parsed.setdefault("switch_port_link_aggregation_id", number)


def _physical(parsed: Json, content: bytes) -> None:
    bits, negotiated, mau = struct.unpack(">BHH", content)
    parsed.setdefault("switch_port_autonegotiation_support", bool(bits & 1))
    parsed.setdefault("switch_port_autonegotiation_enabled", bool(bits & 2))
    capabilities = sorted(_bits(_AUTONEGOTIATED, negotiated))
    parsed.setdefault("switch_port_physical_capabilities", capabilities)
    if mau < len(_MAU_TYPES):
        parsed.setdefault("switch_port_mau_type", _MAU_TYPES[mau])


_OF_ORGANISATIONS: Final[Mapping[tuple[bytes, int], Callable[[Json, bytes], None]]] = {
    (_DOT1, 1): partial(_put, "switch_port_untagged_vlan_id", _number),
    (_DOT1, 2): _protocol_vlan,
    (_DOT1, 3): _vlan,
    (_DOT1, 4): _protocol,
    (_DOT1, 6): partial(_put, "switch_port_management_vlan_id", _number),
    (_DOT1, 7): _link_aggregation,
    (_DOT3, 1): _physical,
    (_DOT3, 3): _link_aggregation,
    (_DOT3, 4): partial(_put, "switch_port_mtu", _number),
}
_READERS: Final[Mapping[int, Callable[[Json, bytes], None]]] = {
    1: partial(_put_ident, "switch_chassis_id", _CHASSIS_FORMS),
    2: partial(_put_ident, "switch_port_id", _PORT_FORMS),
    4: partial(_put, "switch_port_description", _text),
    5: partial(_put, "switch_system_name", _text),
    6: partial(_put, "switch_system_description", _text),
    7: _capabilities,
    8: _management,
    127: _organisation,
}
