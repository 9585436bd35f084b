"""The driver_info of a node with an IPMI BMC, parsed.

Each error names the key and the allowed values.  Sources: spec of driver_info; IPMI 2.0, section
22, for the limits of user name and password.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery import errors, parsing
from bloomery.drivers.base import BmcSystem

USUAL_PORT: Final = 623
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?\.?")
_HEX: Final = re.compile(r"([0-9A-Fa-f]{2})+")
_LEVELS: Final = ("ADMINISTRATOR", "CALLBACK", "OPERATOR", "USER")
_INTERFACES: Final = {"2.0": "lanplus", "1.5": "lan"}
_MOST_USERNAME_BYTES: Final = 16
_MOST_KG_BYTES: Final = 20
_MOST_PASSWORD_BYTES: Final = {"2.0": 20, "1.5": 16}
_BRIDGE_KEYS: Final = {
    "no": (),
    "single": ("ipmi_target_channel", "ipmi_target_address"),
    "dual": (
        "ipmi_target_channel", "ipmi_target_address",
        "ipmi_transit_channel", "ipmi_transit_address",
    ),
}  # fmt: skip

PROPERTIES: Final = {
    "ipmi_address": "Required. IP address or host name of the BMC.",
    "ipmi_username": "User name; none when not given.",
    "ipmi_password": "Password; empty when not given.",
    "ipmi_port": "UDP port of the BMC; 623 when not given.",
    "ipmi_priv_level": f"Privilege level: {', '.join(_LEVELS)}; the first when not given.",
    "ipmi_protocol_version": "Version of the protocol: 2.0 (when not given) or 1.5.",
    "ipmi_cipher_suite": "Number of the cipher suite; only with protocol version 2.0.",
    "ipmi_hex_kg_key": "Kg key of the BMC: up to 20 bytes, as hexadecimal digits; none is 00.",
    "ipmi_bridging": "Bridging: no (when not given), single or dual.",
    "ipmi_target_channel": "Destination channel; needed for single and dual bridging.",
    "ipmi_target_address": "Destination address; needed for single and dual bridging.",
    "ipmi_transit_channel": "Transit channel; needed for dual bridging.",
    "ipmi_transit_address": "Transit address; needed for dual bridging.",
    "ipmi_local_address": "Local IPMB address for bridged requests.",
    "ipmi_terminal_port": "TCP port of the serial console on the conductor.",
    "ipmi_force_boot_device": "Set a persistent boot device anew before each power on.",
    "ipmi_disable_boot_timeout": "Tell the BMC not to forget a boot device after a minute.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The connection to one BMC; its repr shows no secrets."""

    address: str
    username: str | None = None
    password: str = field(default="", repr=False)
    port: int | None = None
    priv_level: str = _LEVELS[0]
    interface: str = "lanplus"
    cipher_suite: int | None = None
    kg_key: bytes = field(default=b"", repr=False)
    target_channel: str | None = None
    target_address: str | None = None
    transit_channel: str | None = None
    transit_address: str | None = None
    local_address: str | None = None
    terminal_port: int | None = None
    force_boot_device: bool = False
    disable_boot_timeout: bool | None = None

    @property
    def key(self) -> str:
        """Host and port, which identify the BMC."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port or USUAL_PORT}"

    @property
    def account(self) -> tuple[str | None, ...]:
        """The login with its secrets, for ``gateway.account_key``."""
        return self.key, self.username, self.password, self.kg_key.hex()


def parse(driver_info: Mapping[str, Any]) -> Info:
    """Parse driver_info.  Raises MissingParameterValue, InvalidParameterValue."""
    version = _choice(driver_info, "ipmi_protocol_version", tuple(_INTERFACES))
    bridge = _bridge(driver_info)
    address = _address(driver_info)
    username = _text(driver_info, "ipmi_username")
    if username is not None and len(username.encode()) > _MOST_USERNAME_BYTES:
        raise _wrong("ipmi_username", f"at most {_MOST_USERNAME_BYTES} bytes long")
    password, most = _text(driver_info, "ipmi_password") or "", _MOST_PASSWORD_BYTES[version]
    if len(password.encode()) > most:
        raise _wrong("ipmi_password", f"at most {most} bytes long for IPMI {version}")
    port = _number(driver_info, "ipmi_port", 1, 65535)
    level = _choice(driver_info, "ipmi_priv_level", _LEVELS)
    suite = _number(driver_info, "ipmi_cipher_suite", 0, 255)
    if suite is not None and version == "1.5":
        raise _wrong("ipmi_cipher_suite", "left out with ipmi_protocol_version 1.5")
    return Info(
        address=address,
        username=username,
        password=password,
        port=port,
        priv_level=level,
        interface=_INTERFACES[version],
        cipher_suite=suite,
        kg_key=_kg_key(driver_info),
        target_channel=bridge.get("ipmi_target_channel"),
        target_address=bridge.get("ipmi_target_address"),
        transit_channel=bridge.get("ipmi_transit_channel"),
        transit_address=bridge.get("ipmi_transit_address"),
        local_address=_byte(driver_info, "ipmi_local_address"),
        terminal_port=_number(driver_info, "ipmi_terminal_port", 1, 65535),
        force_boot_device=_yes(driver_info, "ipmi_force_boot_device") or False,
        disable_boot_timeout=_yes(driver_info, "ipmi_disable_boot_timeout"),
    )


def bmc_system(driver_info: Mapping[str, Any]) -> BmcSystem | None:
    """Return the BMC and its bridge target, or None for an invalid driver_info."""
    try:
        address, port = _address(driver_info), _number(driver_info, "ipmi_port", 1, 65535)
        bridge = _bridge(driver_info)
    except errors.Invalid:
        return None
    return BmcSystem(
        host=address.lower(),
        text=address.lower(),
        port=None if port == USUAL_PORT else port,
        system="/".join(str(part) for part in bridge.values()),
    )


def _wrong(key: str, allowed: str) -> errors.InvalidParameterValue:
    """Return the error for a value, without the value, which may be a secret."""
    return errors.InvalidParameterValue(reason=f"driver_info/{key} must be {allowed}")


def _missing(keys: list[str], why: str) -> errors.MissingParameterValue:
    named = ", ".join(f"driver_info/{key}" for key in keys)
    return errors.MissingParameterValue(reason=f"cannot reach the BMC without {named}: {why}")


def _text(driver_info: Mapping[str, Any], key: str) -> str | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or any(char in value for char in "\0\r\n"):
        raise _wrong(key, "text on one line")
    return value


def _address(driver_info: Mapping[str, Any]) -> str:
    address = _text(driver_info, "ipmi_address")
    if address is None:
        raise _missing(["ipmi_address"], "give its IP address or host name")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        if not _HOST_NAME.fullmatch(address):
            raise _wrong("ipmi_address", "an IP address or a host name") from None
    return address


def _choice(driver_info: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    """Return one of ``allowed``; the first where the key is unset."""
    value = driver_info.get(key)
    if value is None or value == "":
        return allowed[0]
    choice = next((each for each in allowed if str(value).upper() == each.upper()), None)
    if choice is None:
        raise _wrong(key, f"one of {', '.join(allowed)}")
    return choice


def _number(driver_info: Mapping[str, Any], key: str, least: int, most: int) -> int | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    number = _as_int(value, 10)
    if number is None or not least <= number <= most:
        raise _wrong(key, f"a number from {least} to {most}")
    return number


def _byte(driver_info: Mapping[str, Any], key: str) -> str | None:
    """Return a channel or an address: a number below 256, as a number or text such as ``0x20``."""
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    number = _as_int(value, 0)
    if number is None or not 0 <= number <= 0xFF:
        raise _wrong(key, "a number from 0 to 255, such as 7 or 0x20")
    return str(value)


def _as_int(value: Any, base: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return value if isinstance(value, int) else int(value, base)
    except ValueError:
        return None


def _kg_key(driver_info: Mapping[str, Any]) -> bytes:
    """Return the key without trailing zeros.

    Zeros inside are refused: ipmitool takes such a key only on its command line, which other users
    can read.
    """
    text = _text(driver_info, "ipmi_hex_kg_key") or ""
    if text and not _HEX.fullmatch(text):
        raise _wrong("ipmi_hex_kg_key", "an even number of hexadecimal digits")
    key = bytes.fromhex(text)
    if len(key) > _MOST_KG_BYTES:
        raise _wrong("ipmi_hex_kg_key", f"at most {_MOST_KG_BYTES} bytes long")
    key = key.rstrip(b"\0")
    if b"\0" in key:
        raise _wrong(
            "ipmi_hex_kg_key",
            "a key without the byte 00 before others, which ipmitool takes on its command line "
            "only: set another key in the BMC",
        )
    return key


def _bridge(driver_info: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the channels and addresses that this kind of bridging needs."""
    kind = _choice(driver_info, "ipmi_bridging", tuple(_BRIDGE_KEYS))
    addresses = {key: _byte(driver_info, key) for key in _BRIDGE_KEYS[kind]}
    if missing := [key for key, value in addresses.items() if value is None]:
        raise _missing(missing, f"ipmi_bridging is {kind}")
    return addresses


def _yes(driver_info: Mapping[str, Any], key: str) -> bool | None:
    value = driver_info.get(key)
    if value is None or value == "":
        return None
    try:
        return parsing.boolean(value, strict=True)
    except ValueError:
        raise _wrong(key, "true or false") from None
