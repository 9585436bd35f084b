"""Translate ``instackenv.json``, TripleO's file of machines, and Metal3's manifests to rows."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from bloomery.cli.enrol.records import Json, Row

# ---------------------------------------------------------------------------------- instackenv.json

_DRIVERS: Final = {
    "ipmi": "ipmi", "pxe_ipmitool": "ipmi", "agent_ipmitool": "ipmi", "redfish": "redfish",
    "idrac": "idrac", "pxe_drac": "idrac", "fake-hardware": "fake-hardware",
    "manual-management": "manual-management", "fake_pxe": "manual-management",
}  # fmt: skip
_SHORT: Final = {"pm_addr": "bmc", "pm_user": "username", "pm_password": "password"}
_PROPERTIES: Final = {
    "cpu": "cpus", "memory": "memory_mb", "disk": "local_gb", "arch": "cpu_arch",
    "capabilities": "capabilities", "root_device": "root_device",
}  # fmt: skip
_AGENT: Final = {"kernel_id": "deploy_kernel", "ramdisk_id": "deploy_ramdisk"}
_SAME: Final = ("name", "ports", "resource_class", "conductor_group", "owner", "description")


def is_of_instackenv(values: Json) -> bool:
    return "pm_type" in values


def from_instackenv(row: Row) -> Row:
    """Return the row with fields of nodes; what has no place in a node is in ``left_out``."""
    source = dict(row.values)
    kind = str(source.pop("pm_type"))
    faults = [] if kind in _DRIVERS else [f"pm_type: no driver for {kind}; use ipmi or redfish"]
    values: Json = {"driver": _DRIVERS.get(kind, "redfish"), "driver_info": {}, "properties": {}}
    left_out = []
    for key, value in source.items():
        if key in _SAME or key.endswith("_interface"):
            values[key] = value
        elif key == "mac":
            values["macs"] = value
        elif key in _SHORT:
            values[_SHORT[key]] = value
        elif key in _PROPERTIES:
            values["properties"][_PROPERTIES[key]] = value
        elif key in _AGENT:
            values["driver_info"][_AGENT[key]] = value
        elif key.startswith("pm_"):
            prefix = "ipmi" if values["driver"] == "ipmi" else "redfish"
            values["driver_info"][f"{prefix}_{key.removeprefix('pm_')}"] = value
        elif not key.startswith("_"):
            left_out.append(key)
    return Row(
        place=row.place, values=values, faults=(*row.faults, *faults), left_out=tuple(left_out)
    )


# ----------------------------------------------------------------------------------- BareMetalHosts

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

Secrets = Mapping[tuple[str, str], Json]  # by namespace and name


def is_manifest(values: Json) -> bool:
    return "kind" in values


def from_manifests(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a row for each BareMetalHost; Secrets may be in any of the files."""
    rows = list(rows)
    secrets = {_ident(row.values): row.values for row in rows if row.values["kind"] == "Secret"}
    for row in rows:
        kind = str(row.values["kind"])
        if kind == "BareMetalHost":
            yield _from_host(row, secrets)
        elif kind != "Secret":
            fault = f"kind: {kind} is no machine; leave the document out"
            yield Row(place=row.place, values={}, faults=(fault,))


def _ident(manifest: Json) -> tuple[str, str]:
    metadata = _map(manifest, "metadata")
    return str(metadata.get("namespace", "default")), str(metadata.get("name", ""))


def _map(values: Json, key: str) -> Json:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _from_host(row: Row, secrets: Secrets) -> Row:
    spec, (namespace, name) = _map(row.values, "spec"), _ident(row.values)
    bmc, faults = _map(spec, "bmc"), list(row.faults)
    values = _address(str(bmc.get("address", "")), faults)
    values |= {"name": name, "macs": spec.get("bootMACAddress") or []}
    values |= {"description": spec["description"]} if "description" in spec else {}
    if bmc.get("disableCertificateVerification") is True and values.get("driver") != "ipmi":
        values["driver_info"]["redfish_verify_ca"] = False
    secret_name = str(bmc.get("credentialsName", ""))
    secret = secrets.get((namespace, secret_name))
    if secret is None:
        faults.append(
            f"spec.bmc.credentialsName: no Secret {secret_name or '(none)'} in namespace "
            f"{namespace}; name its file, too"
        )
    else:
        for key in ("username", "password"):
            values[key] = _map(secret, "stringData").get(key)
            encoded = _map(secret, "data").get(key)
            if not values[key] and encoded:
                with contextlib.suppress(ValueError):
                    values[key] = base64.b64decode(str(encoded), validate=True).decode()
            if not values[key]:
                faults.append(f"Secret {secret_name}: {key} is missing or unreadable")
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
