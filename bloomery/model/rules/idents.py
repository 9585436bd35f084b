"""Identifiers in a path or a body: UUIDs, names, MAC addresses."""

from __future__ import annotations

import re
from typing import Any, Final

from oslo_utils import uuidutils

from bloomery import errors
from bloomery.model.fields import RESERVED_NODE_NAMES

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_LOGICAL_NAME: Final = re.compile(r"[A-Za-z0-9\-._~]{1,255}")
_HOST_NAME: Final = re.compile(
    r"(?=.{1,255}\Z)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*",
)
_MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9a-f]{12}")
_NOBODYS: Final = ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")  # stand for a missing address


def is_uuid(text: Any) -> bool:
    """Accept any spelling of a UUID; it is stored, and looked up, as it was sent."""
    if not isinstance(text, str) or len(text) > 36:
        return False
    # the usual spelling, which oslo.utils takes six times as long to accept
    return _UUID.fullmatch(text) is not None or bool(uuidutils.is_uuid_like(text))


def is_logical_name(text: Any) -> bool:
    """Accept letters, digits and ``-._~``, the unreserved characters of RFC 3986."""
    return isinstance(text, str) and _LOGICAL_NAME.fullmatch(text) is not None


def is_host_name(text: Any) -> bool:
    return isinstance(text, str) and _HOST_NAME.fullmatch(text) is not None


def check_uuid(argument: str, value: Any) -> str:
    """Return the value of an argument that must be a UUID.  Raises InvalidUUID."""
    if not is_uuid(value):
        raise errors.InvalidUUID(argument=argument, value=value)
    return str(value)


def check_ident(argument: str, value: Any) -> str:
    """Return the value of an argument that must be a UUID or a name."""
    if not is_uuid(value) and not is_logical_name(value):
        raise errors.InvalidParameterValue(reason=f"Expected UUID or name for {argument}: {value}")
    return str(value)


def is_mac(text: Any) -> bool:
    return isinstance(text, str) and _MAC.fullmatch(text) is not None


def mac(text: str) -> str:
    """Return a MAC address as it is stored.  Raises InvalidMAC, also for one of no interface."""
    if not is_mac(text) or text.lower() in _NOBODYS:
        raise errors.InvalidMAC(value=text)
    return text.lower()


def folded_mac(text: Any) -> str | None:
    """Return a MAC address of hardware, in any spelling, as it is stored.

    Return None for other texts, among them addresses of InfiniBand, and for addresses that stand
    for a missing one.
    """
    groups = re.split("[-:]", text.strip().lower()) if isinstance(text, str) else []
    digits = "".join(group.zfill(2) for group in groups) if len(groups) == 6 else "".join(groups)
    address = ":".join(re.findall("..", digits))
    return address if _DIGITS.fullmatch(digits) and address not in _NOBODYS else None


def check_node_name(name: Any, *, host_name: bool = False) -> None:
    """Raise InvalidName unless a node may have this name; ``host_name``: unless it is one, too."""
    if not isinstance(name, str) or not name:
        raise errors.InvalidName(
            reason=f"cannot name a node {name!r}: give 1 to 255 characters, or remove /name",
        )
    pattern = _HOST_NAME if host_name else _LOGICAL_NAME
    if pattern.fullmatch(name) is None or is_uuid(name):
        raise errors.InvalidName(
            reason=f"cannot name a node {name!r}: a name has 1 to 255 letters, digits or "
            "-._~ (before 1.10: a host name) and is no UUID",
        )
    if name in RESERVED_NODE_NAMES:
        raise errors.InvalidName(
            reason=f"cannot name a node {name!r}: reserved are "
            f"{', '.join(sorted(RESERVED_NODE_NAMES))}",
        )
