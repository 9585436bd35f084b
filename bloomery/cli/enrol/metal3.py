"""Translate Metal3's ``BareMetalHost`` manifests and their Secrets to rows."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from bloomery.cli.enrol.records import Json, Row

_MEDIA: Final = "redfish-virtual-media"
_TYPES: Final = {  # of an address: driver and boot interface, None: the driver's
    "ipmi": ("ipmi", None), "libvirt": ("ipmi", None), "redfish": ("redfish", "ipxe"),
    "redfish-virtualmedia": ("redfish", _MEDIA), "redfish-uefihttp": ("redfish", "redfish-https"),
    "ilo5-redfish": ("redfish", "ipxe"), "ilo5-virtualmedia": ("redfish", _MEDIA),
    "idrac-redfish": ("idrac", "ipxe"), "idrac-virtualmedia": ("idrac", f"idrac-{_MEDIA}"),
}  # fmt: skip
_HINTS: Final = {
    "deviceName": "name", "hctl": "hctl", "model": "model", "vendor": "vendor",
    "serialNumber": "serial", "wwn": "wwn", "wwnWithExtension": "wwn_with_extension",
    "wwnVendorExtension": "wwn_vendor_extension", "rotational": "rotational",
}  # fmt: skip
_BOOT_MODES: Final = {
    "UEFI": "boot_mode:uefi", "legacy": "boot_mode:bios",
    "UEFISecureBoot": "boot_mode:uefi,secure_boot:true",
}  # fmt: skip
_READ: Final = ("bmc", "bootMACAddress", "rootDeviceHints", "bootMode", "architecture",
                "description")  # fmt: skip

Logins = Mapping[tuple[str, str], Json]  # by namespace and name


def is_manifest(values: Json) -> bool:
    return "kind" in values


def translate(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a row for each BareMetalHost; Secrets may be in any of the files."""
    rows = list(rows)
    secrets = {_ident(row.values): _login(row.values) for row in rows if _kind(row) == "Secret"}
    for row in rows:
        if _kind(row) == "BareMetalHost":
            yield _host(row, secrets)
        elif _kind(row) != "Secret":
            yield Row(place=row.place, values={}, faults=(
                f"kind: {_kind(row)} is no machine; leave the document out",))  # fmt: skip


def _kind(row: Row) -> str:
    return str(row.values.get("kind"))


def _ident(manifest: Json) -> tuple[str, str]:
    metadata = _map(manifest, "metadata")
    return str(metadata.get("namespace", "default")), str(metadata.get("name", ""))


def _map(values: Json, key: str) -> Json:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _login(secret: Json) -> Json:
    """Return username and password, None where the Secret has no readable value."""
    plain, encoded = _map(secret, "stringData"), _map(secret, "data")
    return {key: plain.get(key) or _decoded(encoded.get(key)) for key in ("username", "password")}


def _decoded(value: Any) -> str | None:
    try:
        return base64.b64decode(str(value), validate=True).decode() if value else None
    except ValueError:
        return None


def _host(row: Row, secrets: Logins) -> Row:
    spec, (namespace, name) = _map(row.values, "spec"), _ident(row.values)
    bmc, faults = _map(spec, "bmc"), list(row.faults)
    values = _address(str(bmc.get("address", "")), faults)
    values |= {"name": name, "macs": spec.get("bootMACAddress") or []}
    values |= {"description": spec["description"]} if "description" in spec else {}
    if bmc.get("disableCertificateVerification") is True and values.get("driver") != "ipmi":
        values["driver_info"]["redfish_verify_ca"] = False
    values |= _read_login(secrets, namespace, str(bmc.get("credentialsName", "")), faults)
    values["properties"] = _properties(spec, faults)
    left_out = tuple(f"spec.{key}" for key in spec if key not in _READ)
    return Row(place=row.place, values=values, faults=tuple(faults), left_out=left_out)


def _address(text: str, faults: list[str]) -> Json:
    """Return driver, boot interface and driver_info of an address such as redfish://HOST/PATH."""
    url = urlsplit(text if "://" in text else f"ipmi://{text}")
    kind, _, scheme = url.scheme.partition("+")
    if not text or kind not in _TYPES or scheme not in ("", "http", "https"):
        types = ", ".join(_TYPES)
        faults.append(f"spec.bmc.address: no driver for its type; the types are {types}")
        return {"driver_info": {}}
    driver, boot = _TYPES[kind]
    host = url.netloc
    info: Json = {}
    if driver == "ipmi":
        host, colon, port = url.netloc.rpartition(":") if url.netloc[-1:] != "]" else ("", "", "")
        info |= {"ipmi_port": port} if colon else {}
        host = host or url.netloc
    elif url.path.strip("/"):
        info["redfish_system_id"] = url.path
    address = host if driver == "ipmi" else f"{scheme or 'https'}://{host}"
    values: Json = {"driver": driver, "bmc": address, "driver_info": info}
    return values | ({"boot_interface": boot} if boot else {})


def _read_login(secrets: Logins, namespace: str, name: str, faults: list[str]) -> Json:
    login = secrets.get((namespace, name))
    if login is None:
        faults.append(
            f"spec.bmc.credentialsName: no Secret {name or '(none)'} in namespace {namespace}; "
            "name its file, too"
        )
        return {}
    faults += [f"Secret {name}: {key} is missing or unreadable" for key in login if not login[key]]
    return login


def _properties(spec: Json, faults: list[str]) -> Json:
    hints = _map(spec, "rootDeviceHints")
    device = {_HINTS[key]: value for key, value in hints.items() if key in _HINTS}
    if "minSizeGigabytes" in hints:
        device["size"] = f">= {hints['minSizeGigabytes']}"
    faults += [
        f"spec.rootDeviceHints.{key}: no such hint; leave it out"
        for key in hints if key not in (*_HINTS, "minSizeGigabytes")
    ]  # fmt: skip
    mode = spec.get("bootMode")
    if mode is not None and mode not in _BOOT_MODES:
        faults.append(f"spec.bootMode: one of {', '.join(_BOOT_MODES)}")
    return {
        **({"root_device": device} if device else {}),
        **({"capabilities": _BOOT_MODES[mode]} if mode in _BOOT_MODES else {}),
        **({"cpu_arch": spec["architecture"]} if "architecture" in spec else {}),
    }
