"""Check rows, and turn them into machines.  A fault names the field and the way out, no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bloomery import errors
from bloomery.cli.enrol import formats, records
from bloomery.cli.enrol.records import Json, Row
from bloomery.cli.fleet import Machine

_PREFIXES: Final = {"redfish": "redfish", "idrac": "redfish", "ipmi": "ipmi"}  # of driver_info
_SHORT: Final = {"bmc": "address", "username": "username", "password": "password"}
_MAPS: Final = ("driver_info", "properties", "extra", "network_data", "instance_info")
_TEXTS: Final = (
    "uuid", "resource_class", "conductor_group", "description", "owner", "lessee", "shard",
    "chassis_uuid", "parent_node", "instance_uuid", "instance_name",
)  # fmt: skip
_FLAGS: Final = ("automated_clean", "maintenance", "disable_power_off")
_OWN: Final = ("name", "driver", "macs", "ports", "chassis", *_SHORT)
_LONGEST_CHASSIS: Final = 255
_INTERFACE: Final = re.compile(
    r"(bios|boot|console|deploy|firmware|inspect|management|network|power|raid|rescue|storage|vendor"
    r")_interface"
)
_SYNONYMS: Final = {
    "bmc": ("address", "bmc_address", "bmc_ip", "ip", "ip_address", "host", "ipmi_address",
            "redfish_address", "idrac", "ilo"),
    "macs": ("mac", "mac_address", "mac_addresses", "macaddress", "boot_mac"),
    "username": ("user", "login", "bmc_user", "bmc_username"),
    "password": ("pass", "bmc_password"),
    "name": ("hostname", "node", "server"),
}  # fmt: skip
_FIELDS_OF_SYNONYMS: Final = {s: key for key, synonyms in _SYNONYMS.items() for s in synonyms}
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row as a machine; with ``faults`` it may not be written.

    ``chassis``: the description of its chassis, which is created where there is none.
    """

    place: str
    machine: Machine
    chassis: str | None = None
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def macs(self) -> list[str]:
        return [str(port["address"]) for port in self.machine.ports]

    @property
    def bmc(self) -> str | None:
        return bmc_of(self.machine.driver, self.machine.driver_info)


def read(paths: Sequence[Path], driver: str) -> list[Entry]:
    """Return the machines of the files, with duplicates among them as faults.

    ``driver``: of rows without one.  Raises FileUnreadable.
    """
    rows = [row for path in paths for row in records.read(path)]
    manifests = [row for row in rows if formats.is_manifest(row.values)]
    others = [row for row in rows if not formats.is_manifest(row.values)]
    translated = [
        formats.from_instackenv(row) if formats.is_of_instackenv(row.values) else row
        for row in others
    ]
    entries, owners = [], dict[tuple[str, str], str]()
    for row in (*translated, *formats.from_manifests(manifests)):
        entry = _entry(row, driver)
        faults = list(entry.faults)
        keys = [("name", entry.machine.name), ("bmc", entry.bmc)]
        for kind, value in (*keys, *(("macs", mac) for mac in entry.macs)):
            if not value:
                continue
            if owner := owners.get((kind, value)):
                faults.append(f"{kind}: {value} is that of {owner}, too; remove one of them")
            owners[kind, value] = f"{entry.machine.name or 'the machine'} ({entry.place})"
        entries.append(replace(entry, faults=tuple(faults)))
    return entries


def bmc_of(driver: str, info: Json) -> str | None:
    """Return what names the machine at its BMC: address, port and system; None without a BMC."""
    prefix = _PREFIXES.get(driver)
    address = str(info.get(f"{prefix}_address") or "").strip().lower()
    if not address:
        return None
    url = urlsplit(address if "://" in address else f"https://{address}")
    port = info.get("ipmi_port")
    if prefix != "ipmi":
        try:
            port = url.port or (80 if url.scheme == "http" else 443)
        except ValueError:
            port = None  # the service refuses it
    system = str(info.get("redfish_system_id") or "").rstrip("/")
    return f"{url.hostname}:{port or 623}{system}"


def _entry(row: Row, driver: str) -> Entry:
    """Return the machine of a row; a field that no node has is a fault."""
    faults, (values, hints) = list(row.faults), _with_fields(row.values)
    kind = str(values.get("driver") or driver)
    ports = _ports(values, faults)
    info = dict(_map(values, "driver_info", faults))
    prefix = _PREFIXES.get(kind)
    for key, ending in _SHORT.items():
        if values.get(key) is None:
            continue
        if prefix is None:
            faults.append(f"{key}: the driver {kind} has no BMC here; write driver_info instead")
        else:
            info[f"{prefix}_{ending}"] = str(values[key])
    address = info.get(f"{prefix}_address")
    if prefix is not None and not address:
        faults.append(f"bmc: the address of the BMC, which the driver {kind} needs, is missing")
    if "@" in str(address or ""):
        faults.append("bmc: it has a login; move it to username and password")
    name = str(values.get("name") or "")
    if not name and ports:
        name = f"node-{ports[0]['address'].replace(':', '')}"
    if not name:
        faults.append("name: it is missing, and there is no MAC to make one of; write a name")
    chassis = values.get("chassis")
    if chassis is not None and values.get("chassis_uuid") is not None:
        faults.append("chassis: it is beside chassis_uuid; leave one of them out")
    if chassis is not None and not (isinstance(chassis, str) and len(chassis) <= _LONGEST_CHASSIS):
        faults.append(f"chassis: it must be a text of at most {_LONGEST_CHASSIS} characters")
    machine = Machine(
        name=name, driver=kind, driver_info=info, ports=ports, more=_more(values, faults),
        properties=_map(values, "properties", faults),
    )  # fmt: skip
    return Entry(
        place=row.place, machine=machine, chassis=chassis, faults=tuple(faults),
        left_out=row.left_out, hints=hints,
    )  # fmt: skip


def _more(values: Json, faults: list[str]) -> Json:
    """Return the other fields of the node; a field that no node has is a fault."""
    more: Json = {}
    for key, value in values.items():
        if key in _TEXTS or _INTERFACE.fullmatch(key):
            more[key] = None if value is None else str(value)
        elif key in _FLAGS:
            more[key] = _BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value
        elif key in ("extra", "network_data", "instance_info"):
            more[key] = _map(values, key, faults)
        elif key not in (*_OWN, *_MAPS):
            guess = errors.nearest(key, (*_OWN, *_MAPS, *_TEXTS, *_FLAGS))
            faults.append(f"{key}: no field of a node.{guess} Leave it out, or write extra.{key}")
    return more


def _with_fields(values: Json) -> tuple[Json, tuple[str, ...]]:
    """Return the row with usual words for a field replaced by the field, and what was replaced.

    A column ``address`` of MACs is that of the ports.
    """
    fields, hints = dict(values), []
    for key in values:
        heading = re.sub(r"[\s-]+", "_", key.strip().lower())
        field = heading if heading in _OWN else _FIELDS_OF_SYNONYMS.get(heading)
        if field == "bmc" and _mac(str(values[key])):
            field = "macs"
        if field is not None and field not in fields:
            fields[field] = fields.pop(key)
            hints.append(f"{key} is read as {field}")
    return fields, tuple(hints)


def _map(values: Json, key: str, faults: list[str]) -> Json:
    value = values.get(key, {})
    if isinstance(value, dict):
        return value
    faults.append(f"{key}: it must be a map; in CSV, write headings such as {key}.KEY")
    return {}


def _ports(values: Json, faults: list[str]) -> list[Json]:
    """Return the ports of ``ports`` and ``macs``, each with a MAC in the usual form."""
    macs = values.get("macs") or []
    macs = re.split(r"[\s;,]+", macs.strip()) if isinstance(macs, str) else macs
    documents = values.get("ports") or []
    if not isinstance(macs, list) or not isinstance(documents, list):
        faults.append("macs and ports: each must be a list")
        return []
    ports = [each if isinstance(each, dict) else {"address": each} for each in (*macs, *documents)]
    valid = []
    for port in ports:
        if mac := _mac(str(port.get("address"))):
            valid.append(port | {"address": mac})
        else:
            faults.append(f"macs: {port.get('address')!r} is no MAC such as 52:54:00:12:34:56")
    return valid


def _mac(text: str) -> str | None:
    """Return a MAC in the form of the API, None for another text and for 00:00:00:00:00:00."""
    digits = re.sub(r"[:.-]", "", text.strip().lower())
    is_mac = re.fullmatch("[0-9a-f]{12}", digits) and digits.strip("0") and digits.strip("f")
    return ":".join(re.findall("..", digits)) if is_mac else None
