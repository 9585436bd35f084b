"""Check rows, and turn them into machines.  A fault names the field and the way out, no secret."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bloomery import errors
from bloomery.cli.enrol import instackenv, metal3, records
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
_OWN: Final = ("name", "driver", "macs", "ports", *_SHORT)
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
_FIELDS_OF_SYNONYMS: Final = {word: key for key, words in _SYNONYMS.items() for word in words}
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row as a machine; with ``faults`` it may not be written."""

    place: str
    machine: Machine
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
    manifests = [row for row in rows if metal3.is_manifest(row.values)]
    others = [row for row in rows if not metal3.is_manifest(row.values)]
    translated = [
        instackenv.translate(row) if instackenv.is_entry(row.values) else row for row in others
    ]
    return _with_duplicates(
        [_entry(row, driver) for row in (*translated, *metal3.translate(manifests))]
    )


def bmc_of(driver: str, info: Json) -> str | None:
    """Return what names the machine at its BMC: address, port and system; None without a BMC."""
    prefix = _PREFIXES.get(driver)
    address = str(info.get(f"{prefix}_address") or "").strip().lower()
    if not address:
        return None
    url = urlsplit(address if "://" in address else f"https://{address}")
    port = info.get("ipmi_port") if prefix == "ipmi" else _port(url)
    system = str(info.get("redfish_system_id") or "").rstrip("/")
    return f"{url.hostname}:{port or 623}{system}"


def _port(url: Any) -> int | None:
    try:
        return url.port or (80 if url.scheme == "http" else 443)
    except ValueError:
        return None  # the service refuses it


def _entry(row: Row, driver: str) -> Entry:
    faults, (values, hints) = list(row.faults), _with_fields(row.values)
    kind = str(values.get("driver") or driver)
    ports = _ports(values, faults)
    info = _driver_info(values, kind, faults)
    name = str(values.get("name") or "") or _name(ports)
    if not name:
        faults.append("name: it is missing, and there is no MAC to make one of; write a name")
    more = _more(values, faults)
    machine = Machine(
        name=name, driver=kind, driver_info=info, ports=ports,
        properties=_map(values, "properties", faults), more=more,
    )  # fmt: skip
    return Entry(
        place=row.place, machine=machine, faults=tuple(faults), left_out=row.left_out, hints=hints
    )


def _with_fields(values: Json) -> tuple[Json, tuple[str, ...]]:
    """Return the row with usual words for a field replaced by the field, and what was replaced.

    A column ``address`` of MACs is that of the ports.
    """
    fields, hints = dict(values), []
    for key in values:
        word = re.sub(r"[\s-]+", "_", key.strip().lower())
        field = word if word in _OWN else _FIELDS_OF_SYNONYMS.get(word)
        if field == "bmc" and _mac(str(values[key])):
            field = "macs"
        if field is not None and field not in fields:
            fields[field] = fields.pop(key)
            hints.append(f"{key} is read as {field}")
    return fields, tuple(hints)


def _name(ports: Sequence[Json]) -> str:
    return f"node-{ports[0]['address'].replace(':', '')}" if ports else ""


def _map(values: Json, key: str, faults: list[str]) -> Json:
    value = values.get(key, {})
    if isinstance(value, dict):
        return value
    faults.append(f"{key}: it must be a map; in CSV, write headings such as {key}.KEY")
    return {}


def _driver_info(values: Json, driver: str, faults: list[str]) -> Json:
    info = dict(_map(values, "driver_info", faults))
    prefix = _PREFIXES.get(driver)
    for key, ending in _SHORT.items():
        if values.get(key) is None:
            continue
        if prefix is None:
            faults.append(f"{key}: the driver {driver} has no BMC here; write driver_info instead")
        else:
            info[f"{prefix}_{ending}"] = str(values[key])
    address = info.get(f"{prefix}_address")
    if prefix is not None and not address:
        faults.append(f"bmc: the address of the BMC, which the driver {driver} needs, is missing")
    if "@" in str(address or ""):
        faults.append("bmc: it has a login; move it to username and password")
    return info


def _ports(values: Json, faults: list[str]) -> list[Json]:
    """Return the ports of ``ports`` and ``macs``, each with a MAC in the usual form."""
    macs = values.get("macs") or []
    macs = re.split(r"[\s;,]+", macs.strip()) if isinstance(macs, str) else macs
    listed = values.get("ports") or []
    if not isinstance(macs, list) or not isinstance(listed, list):
        faults.append("macs and ports: each must be a list")
        return []
    ports = [each if isinstance(each, dict) else {"address": each} for each in (*macs, *listed)]
    read = []
    for port in ports:
        if mac := _mac(str(port.get("address"))):
            read.append(port | {"address": mac})
        else:
            faults.append(f"macs: {port.get('address')!r} is no MAC such as 52:54:00:12:34:56")
    return read


def _mac(text: str) -> str | None:
    """Return a MAC in the form of the API, None for another text and for 00:00:00:00:00:00."""
    digits = re.sub(r"[:.-]", "", text.strip().lower())
    is_mac = re.fullmatch("[0-9a-f]{12}", digits) and digits.strip("0") and digits.strip("f")
    return ":".join(re.findall("..", digits)) if is_mac else None


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


def _with_duplicates(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries, each with a fault for what an earlier one has, too."""
    owners = dict[tuple[str, str], str]()
    faults = defaultdict[int, list[str]](list)
    for index, entry in enumerate(entries):
        for kind, value in _keys(entry):
            if owner := owners.get((kind, value)):
                faults[index].append(f"{kind}: {value} is that of {owner}, too; remove one of them")
            owners[kind, value] = f"{entry.machine.name or 'the machine'} ({entry.place})"
    return [
        replace(entry, faults=(*entry.faults, *faults[index]))
        for index, entry in enumerate(entries)
    ]


def _keys(entry: Entry) -> Iterable[tuple[str, str]]:
    if entry.machine.name:
        yield "name", entry.machine.name
    if entry.bmc:
        yield "bmc", entry.bmc
    for mac in entry.macs:
        yield "macs", mac
