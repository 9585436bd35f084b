"""The driver_info of a node with a Redfish BMC, parsed; each error names the key."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery import errors, parsing
from bloomery.conf.drivers import Redfish
from bloomery.drivers.base import BmcSystem

PROPERTIES: Final = {
    "redfish_address": "URL or host of the BMC; https unless it says otherwise. Required.",
    "redfish_system_id": "path of the system, such as /redfish/v1/Systems/1. Required when the "
    "BMC has more than one host; a board of GPUs is none.",
    "redfish_username": "user of the BMC. Optional.",
    "redfish_password": "password of the user. Optional.",
    "redfish_verify_ca": "true, false, or path of a file or directory of CAs. Optional.",
    "redfish_auth_type": "basic, session or auto. Optional.",
    "redfish_tls_minimum_version": "1.1, 1.2 or 1.3. Optional.",
    "redfish_tls_ciphers": "OpenSSL's list of ciphers. Optional.",
}
_AUTH_TYPES: Final = ("basic", "session", "auto")
_TLS_VERSIONS: Final = ("1.1", "1.2", "1.3")
_USUAL_PORTS: Final = {"http": 80, "https": 443}
_ROOT: Final = "/redfish/v1/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A system and the login at its BMC."""

    address: str
    root: str
    system: str | None
    username: str | None
    password: str | None = field(repr=False)
    verify: bool | str
    auth_type: str
    tls_minimum_version: str | None
    tls_ciphers: str | None

    @property
    def key(self) -> str:
        """The address, which identifies the BMC."""
        return self.address


def parse(info: Mapping[str, Any], conf: Redfish) -> Account:
    """Raises MissingParameterValue and InvalidParameterValue."""
    address, root = _address(info)
    return Account(
        address=address,
        root=root,
        system=_system(info),
        username=_text(info, "redfish_username"),
        password=_text(info, "redfish_password"),
        verify=_verify(info, conf),
        auth_type=_choice(info, "redfish_auth_type", _AUTH_TYPES) or conf.auth_type,
        tls_minimum_version=_choice(info, "redfish_tls_minimum_version", _TLS_VERSIONS)
        or conf.tls_minimum_version,
        tls_ciphers=_text(info, "redfish_tls_ciphers"),
    )


def _wrong(key: str, why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"driver_info/{key} {why}")


def _text(info: Mapping[str, Any], key: str) -> str | None:
    value = info.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong(key, "must be a string")
    return value


def _choice(info: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str | None:
    value = info.get(key)
    if value is not None and str(value) not in choices:
        raise _wrong(key, f"must be one of {', '.join(choices)}, not {value!r}")
    return None if value is None else str(value)


def _address(info: Mapping[str, Any]) -> tuple[str, str]:
    """Return the URL of the BMC, and the path of the service root."""
    value = _text(info, "redfish_address")
    if not value:
        raise errors.MissingParameterValue(
            reason="driver_info/redfish_address is missing: the URL or host of the BMC",
        )
    try:
        parts = urllib.parse.urlsplit(value if "://" in value else f"https://{value}")
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        is_usable = False
    if not is_usable or parts.username is not None or parts.query or parts.fragment:
        raise _wrong(
            "redfish_address",
            "must be a host, or a URL such as https://bmc-1.example.org:8443, "
            "without user, password and query",
        )
    root = f"{parts.path.rstrip('/')}/" if parts.path.strip("/") else _ROOT
    return f"{parts.scheme}://{parts.netloc}", root


def bmc_system(info: Mapping[str, Any]) -> BmcSystem | None:
    """Return the BMC and its system; None for an invalid driver_info."""
    try:
        (address, _), system = _address(info), _system(info)
    except errors.Invalid:
        return None
    parts = urllib.parse.urlsplit(address)
    port = None if parts.port == _USUAL_PORTS[parts.scheme] else parts.port
    host = str(parts.hostname)
    return BmcSystem(
        host=host,
        port=port,
        system=system and system.rstrip("/").lower(),
        text=parts.netloc.lower() if port else host,
    )


def _system(info: Mapping[str, Any]) -> str | None:
    value = _text(info, "redfish_system_id")
    if value is None:
        return None
    if not value.startswith("/") or value.startswith("//") or any(c in value for c in "?#\r\n"):
        raise _wrong("redfish_system_id", "must be a path such as /redfish/v1/Systems/1")
    return urllib.parse.quote(value, safe="/%:@+,=~")


def _verify(info: Mapping[str, Any], conf: Redfish) -> bool | str:
    try:
        return parsing.trust(info.get("redfish_verify_ca", conf.verify_ca))
    except ValueError as exc:
        raise _wrong("redfish_verify_ca", str(exc)) from None
