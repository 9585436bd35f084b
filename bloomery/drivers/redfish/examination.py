"""The check of a Redfish BMC: reads alone, at most ``report.MOST_REQUESTS`` of them.

Each function reads one feature from plain documents.  A document that the BMC links to and does not
show is a quirk of the report.  Source: DMTF DSP0268.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc import report
from bloomery.drivers.bmc.report import Check, Report
from bloomery.drivers.redfish import boot_device, certificate, reading, reset
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bios import find_registry
from bloomery.drivers.redfish.driver_info import Account

Json: TypeAlias = dict[str, Any]

_MOST_DOCUMENTS: Final = report.MOST_REQUESTS // 2 - 10  # one may take two tries; the rest: login
_MOST_MEMBERS: Final = 4  # documents of a collection that are read
_MOST_REGISTRIES: Final = 6  # files that are searched for the BIOS's own
_FORBIDDEN: Final = 403
_ALLOWED: Final = "@Redfish.AllowableValues"
_SENSORS: Final = ("Sensors", "Thermal", "ThermalSubsystem", "Power", "PowerSubsystem")


def examine(access: Access, task: DriverTask) -> Json:
    """Return the report of the node's BMC; its error where the BMC cannot be read."""
    account = access.account(task)
    result = Report(
        protocol="redfish", address=account.address, driver_info=_driver_info(task.driver_info)
    )
    documents = _Documents(result)
    try:
        access.read(task, lambda system: _examine(system, documents.of(system), account, result))
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        result.error = str(exc.facts["reason"])
    result.tls = certificate.describe(account)
    return result.document(access.bmc(task))


def _driver_info(info: Mapping[str, Any]) -> Json:
    return {key: value for key, value in info.items() if key.startswith("redfish_")}


class _Documents:
    """The documents of one check, each read once, and no more than the check may read."""

    def __init__(self, result: Report) -> None:
        self._report, self._read = result, dict[str, Json]()
        self._system: Any = None

    def of(self, system: Any) -> _Documents:
        self._system = system
        return self

    def follow(self, document: Json, name: str) -> Json:
        """Return the document that property ``name`` links to, or {}."""
        link = document.get(name)
        path = link.get("@odata.id") if isinstance(link, dict) else None
        return self.get(path) if isinstance(path, str) else {}

    def get(self, path: str) -> Json:
        if path not in self._read and len(self._read) < _MOST_DOCUMENTS:
            self._read[path] = self._fetch(path) or {}
            if not self._read[path]:
                self._report.quirks.append(f"it links to {path} and does not show it")
        return self._read.get(path, {})

    def _fetch(self, path: str) -> Json | None:
        """Return a document; None where it is missing, or not for this user."""
        import sushy

        try:
            return reading.optional(reading.fetch, self._system, path)
        except sushy.exceptions.AccessError as no:
            if no.status_code != _FORBIDDEN:
                raise
            return None

    def members(self, document: Json, name: str) -> Iterator[Json]:
        """Yield the first members of the collection that property ``name`` links to."""
        return self.links(self.follow(document, name).get("Members"))

    def links(self, links: Any) -> Iterator[Json]:
        for link in (links if isinstance(links, list) else [])[:_MOST_MEMBERS]:
            is_link = isinstance(link, dict) and set(link) == {"@odata.id"}
            document = self.get(link["@odata.id"]) if is_link else link
            if isinstance(document, dict) and document:
                yield document


def _examine(system: Any, documents: _Documents, account: Account, result: Report) -> None:
    """Fill the report; a repeated attempt starts anew, with the documents of the first."""
    root, own = system.root.json, system.json
    managers = list(documents.links(_links(own, "ManagedBy")))
    result.checks.clear()
    result.driver_info = {"redfish_address": account.address} | dict(result.driver_info)
    result.driver_info |= {"redfish_system_id": system.path.rstrip("/")}
    result.identity = _identity(root, own, managers[0] if managers else {})
    result.checks += [
        _power(system),
        _boot_device(system),
        _boot_mode(system),
        _virtual_media(documents, own, managers),
        _bios(system, documents, result),
        _raid(documents, own),
        _firmware(documents, root),
        _secure_boot(documents, own),
        _events(documents, root),
        _sensors(documents, own),
    ]
    result.sessions_in_use = _sessions(documents, root)
    result.read_clock(_time(managers))
    result.quirks += [
        quirk for quirk in _quirks(system, result.checks[0]) if quirk not in result.quirks
    ]


def _identity(root: Json, own: Json, manager: Json) -> dict[str, str | None]:
    return {
        "manufacturer": _text(own.get("Manufacturer")) or _text(root.get("Vendor")),
        "model": _text(own.get("Model")) or _text(root.get("Product")),
        "serial": _text(own.get("SerialNumber")),
        "bios": _text(own.get("BiosVersion")),
        "bmc": _text(manager.get("Model")),
        "bmc_firmware": _text(manager.get("FirmwareVersion")),
        "version": _text(root.get("RedfishVersion")),
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _links(document: Json, name: str) -> Any:
    return (document.get("Links") or {}).get(name)


# ---------------------------------------------------------------------------------- features


def _power(system: Any) -> Check:
    allowed = reading.optional(reset.allowed_types, system)
    state = system.json.get("PowerState")
    works = isinstance(state, str) and bool((system.json.get("Actions") or {}).get(reset.ACTION))
    return Check(name="power", works=works, detail=str(state or ""), allowed=allowed or ())


def _boot_device(system: Any) -> Check:
    boot = system.json.get("Boot") or {}
    target = boot.get("BootSourceOverrideTarget")
    enabled = boot.get("BootSourceOverrideEnabled")
    return Check(
        name="boot device",
        works=bool(boot) and bool(boot_device.supported(system)),
        detail=f"{target}, {enabled}" if target else "",
        allowed=_texts(boot.get(f"BootSourceOverrideTarget{_ALLOWED}")),
    )


def _boot_mode(system: Any) -> Check:
    modes = boot_device.modes(system)
    return Check(
        name="boot mode", works=bool(modes), detail=boot_device.mode_of(system) or "", allowed=modes
    )


def _virtual_media(documents: _Documents, own: Json, managers: list[Json]) -> Check:
    owners = [own] if own.get("VirtualMedia") else managers
    devices = [each for owner in owners for each in documents.members(owner, "VirtualMedia")]
    discs = [device for device in devices if {"CD", "DVD"} & set(device.get("MediaTypes") or ())]
    kinds = sorted({kind for device in devices for kind in _texts(device.get("MediaTypes"))})
    return Check(
        name="virtual media",
        works=bool(discs),
        detail=", ".join(kinds) + _insertion(discs),
        allowed=sorted({protocol for device in discs for protocol in _protocols(device)}),
    )


def _insertion(discs: list[Json]) -> str:
    by_action = any("#VirtualMedia.InsertMedia" in (disc.get("Actions") or {}) for disc in discs)
    return "; inserted by PATCH" if discs and not by_action else ""


def _protocols(device: Json) -> list[str]:
    """Return the transfer protocols that a device lists; most BMCs list none."""
    action = (device.get("Actions") or {}).get("#VirtualMedia.InsertMedia") or {}
    name = f"TransferProtocolType{_ALLOWED}"
    return _texts(action.get(name)) or _texts(device.get(name))


def _bios(system: Any, documents: _Documents, result: Report) -> Check:
    bios = documents.follow(system.json, "Bios")
    count, registry = len(bios.get("Attributes") or {}), _text(bios.get("AttributeRegistry"))
    if count and not find_registry(system, registry, most=_MOST_REGISTRIES):
        name = f" {registry}" if registry else ""
        result.quirks.append(
            f"it shows no attribute registry{name}: BIOS settings have no types and limits, and "
            "values are sent unchecked"
        )
    detail = f"{count} settings" + (f", registry {registry}" if registry else ", no registry")
    return Check(name="BIOS", works=count > 0, detail=detail if bios else "")


def _raid(documents: _Documents, own: Json) -> Check:
    controllers = list(documents.members(own, "Storage"))
    levels = [level for each in controllers for level in _levels(each)]
    drives = sum(len(each.get("Drives") or ()) for each in controllers)
    return Check(
        name="RAID",
        works=any("Volumes" in each for each in controllers) and bool(levels),
        detail=f"{len(controllers)} controllers, {drives} drives" if controllers else "",
        allowed=sorted(set(levels)),
    )


def _levels(storage: Json) -> list[str]:
    controllers = storage.get("StorageControllers") or ()
    return [level for each in controllers for level in _texts(each.get("SupportedRAIDTypes"))]


def _firmware(documents: _Documents, root: Json) -> Check:
    service = documents.follow(root, "UpdateService")
    action = (service.get("Actions") or {}).get("#UpdateService.SimpleUpdate")
    return Check(
        name="firmware update",
        works=action is not None and service.get("ServiceEnabled") is not False,
        allowed=_texts((action or {}).get(f"TransferProtocol{_ALLOWED}")),
    )


def _secure_boot(documents: _Documents, own: Json) -> Check:
    enabled = documents.follow(own, "SecureBoot").get("SecureBootEnable")
    works = isinstance(enabled, bool)
    return Check(
        name="secure boot", works=works, detail=("on" if enabled else "off") if works else ""
    )


def _events(documents: _Documents, root: Json) -> Check:
    service = documents.follow(root, "EventService")
    works = bool(service.get("Subscriptions")) and service.get("ServiceEnabled") is not False
    kinds = _texts(service.get("EventTypesForSubscription")) or _texts(service.get("ResourceTypes"))
    return Check(name="event service", works=works, allowed=kinds)


def _sensors(documents: _Documents, own: Json) -> Check:
    chassis = list(documents.links(_links(own, "Chassis")))
    offered = sorted({name for each in chassis for name in _SENSORS if each.get(name)})
    return Check(name="sensors", works=bool(offered), detail=", ".join(offered))


def _texts(values: Any) -> list[str]:
    return [value for value in values or () if isinstance(value, str)]


# ----------------------------------------------------------------------------- the BMC itself


def _sessions(documents: _Documents, root: Json) -> int | None:
    sessions = documents.follow(root.get("Links") or {}, "Sessions")
    members = sessions.get("Members")
    count = sessions.get("Members@odata.count", len(members) if members else None)
    return count if isinstance(count, int) else None


def _time(managers: Iterable[Json]) -> datetime | None:
    for manager in managers:
        try:
            time = datetime.fromisoformat(str(manager.get("DateTime")))
        except ValueError:
            continue
        return time if time.tzinfo else None
    return None


def _quirks(system: Any, power: Check) -> Iterator[str]:
    boot = system.json.get("Boot") or {}
    enables = _texts(boot.get(f"BootSourceOverrideEnabled{_ALLOWED}"))
    if enables and "Continuous" not in enables:
        yield "it keeps no boot device: the device is set anew before each power on"
    if not boot_device.has_override(system) and boot_device.supported(system):
        how = "the first of the order of boot options"
        if "BootNext" in boot:
            how = "set by BootNext" + (
                "" if boot.get("BootOrder") else " anew before each power on"
            )
        yield f"it has no boot override: a boot device is {how}"
    if not power.allowed:
        yield "it does not list its resets: any is sent"
    if not boot_device.mode_of(system):
        yield "it shows no boot mode: set capabilities boot_mode in properties"
    if boot_device.target_for(system, "cdrom") not in ("Cd", None):
        yield f"its virtual CD boots as {boot_device.target_for(system, 'cdrom')}"
    if system._conn._session.basic is not None:  # noqa: SLF001  our own Wire
        yield "it opens no session: each request sends the password"
