"""The check of a Redfish BMC: reads alone, at most ``MOST_REQUESTS`` of them.

Each function reads one feature from plain documents.  A document that the BMC links to and does not
show is a quirk of the report.  Source: DMTF DSP0268.
"""

from __future__ import annotations

import dataclasses
import socket
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

from cryptography import x509

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc.state import MOST_REQUESTS, Check, Report
from bloomery.drivers.redfish import boot_device, reading, reset, wire
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bios import find_registry
from bloomery.drivers.redfish.driver_info import Account

Json: TypeAlias = dict[str, Any]

_MOST_DOCUMENTS: Final = MOST_REQUESTS // 2 - 10  # one may take two tries; the rest: login
_MOST_MEMBERS: Final = 4  # documents of a collection that are read
_MOST_REGISTRIES: Final = 6  # files that are searched for the BIOS's own
_FORBIDDEN: Final = 403
_ALLOWED: Final = "@Redfish.AllowableValues"
_TLS_TIMEOUT_S: Final = 5.0
_HTTPS_PORT: Final = 443
_SENSORS: Final = ("Sensors", "Thermal", "ThermalSubsystem", "Power", "PowerSubsystem")


def examine(access: Access, task: DriverTask) -> Json:
    """Return the report of the node's BMC; its error where the BMC cannot be read."""
    account, info = access.account(task), task.driver_info
    own_keys = {key: value for key, value in info.items() if key.startswith("redfish_")}
    result = Report(protocol="redfish", address=account.address, driver_info=own_keys)
    documents = _Documents(result)
    try:
        access.read(task, lambda system: _examine(system, documents, account))
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        result.error = str(exc.facts["reason"])
    result.tls = _tls(account)
    return result.document(access.bmc(task))


def _tls(account: Account) -> dict[str, Any] | None:
    """Return the version, and the certificate with its end, whether or not it is verified.

    None for plain HTTP, or where the handshake fails.  No request is sent.  The check of the
    certificate is left to the requests.
    """
    parts = urllib.parse.urlsplit(account.address)
    if parts.scheme != "https":
        return None
    context = wire.tls_context(dataclasses.replace(account, verify=False))
    address = (parts.hostname, parts.port or _HTTPS_PORT)
    try:
        with (
            socket.create_connection(address, _TLS_TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=parts.hostname) as tls,
        ):
            certificate = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")
            return {
                "version": tls.version(),
                "verified": bool(account.verify),
                "subject": certificate.subject.rfc4514_string(),
                "issuer": certificate.issuer.rfc4514_string(),
                "expires_at": certificate.not_valid_after_utc.isoformat(),
            }
    except (OSError, ValueError):
        return None


class _Documents:
    """The documents of one check, each read once, and no more than the check may read."""

    def __init__(self, result: Report) -> None:
        self.report, self._read = result, dict[str, Json]()
        self.system: Any = None  # of this attempt

    @property
    def own(self) -> Json:
        """The system's document."""
        own: Json = self.system.json
        return own

    @property
    def root(self) -> Json:
        root: Json = self.system.root.json
        return root

    def follow(self, document: Json, name: str) -> Json:
        """Return the document that property ``name`` links to, or {}."""
        link = document.get(name)
        path = link.get("@odata.id") if isinstance(link, dict) else None
        return self.get(path) if isinstance(path, str) else {}

    def get(self, path: str) -> Json:
        """Return a document, or {} where it is missing, or not for this user."""
        import sushy

        if path not in self._read and len(self._read) < _MOST_DOCUMENTS:
            try:
                document = reading.optional(reading.fetch, self.system, path)
            except sushy.exceptions.AccessError as no:
                if no.status_code != _FORBIDDEN:
                    raise
                document = None
            self._read[path] = document or {}
            if not document:
                self.report.quirks.append(f"it links to {path} and does not show it")
        return self._read.get(path, {})

    def members(self, document: Json, name: str) -> Iterator[Json]:
        """Yield the first members of the collection that property ``name`` links to."""
        return self.links(self.follow(document, name).get("Members"))

    def links(self, links: Any) -> Iterator[Json]:
        for link in (links if isinstance(links, list) else [])[:_MOST_MEMBERS]:
            is_link = isinstance(link, dict) and set(link) == {"@odata.id"}
            document = self.get(link["@odata.id"]) if is_link else link
            if isinstance(document, dict) and document:
                yield document


def _examine(system: Any, documents: _Documents, account: Account) -> None:
    """Fill the report; a repeated attempt starts anew, with the documents of the first."""
    documents.system = system
    result, own, root = documents.report, documents.own, documents.root
    managers = list(documents.links(_links(own, "ManagedBy")))
    result.driver_info = {"redfish_address": account.address} | dict(result.driver_info)
    result.driver_info |= {"redfish_system_id": system.path.rstrip("/")}
    manager = managers[0] if managers else {}
    result.identity = {
        "manufacturer": _text(own.get("Manufacturer")) or _text(root.get("Vendor")),
        "model": _text(own.get("Model")) or _text(root.get("Product")),
        "serial": _text(own.get("SerialNumber")),
        "bios": _text(own.get("BiosVersion")),
        "bmc": _text(manager.get("Model")),
        "bmc_firmware": _text(manager.get("FirmwareVersion")),
        "version": _text(root.get("RedfishVersion")),
    }
    result.checks.clear()
    result.checks += [feature(documents) for feature in _FEATURES]
    sessions = documents.follow(root.get("Links") or {}, "Sessions")
    members = sessions.get("Members")
    count = sessions.get("Members@odata.count", len(members) if members else None)
    result.sessions_in_use = count if isinstance(count, int) else None
    for manager in managers:
        try:
            time = datetime.fromisoformat(str(manager.get("DateTime")))
        except ValueError:
            continue
        result.read_clock(time if time.tzinfo else None)
        break
    lists_resets = bool(result.checks[0].allowed)
    result.quirks += [
        quirk for quirk in _quirks(system, lists_resets) if quirk not in result.quirks
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _links(document: Json, name: str) -> Any:
    return (document.get("Links") or {}).get(name)


# ---------------------------------------------------------------------------------- features


def _power(documents: _Documents) -> Check:
    system = documents.system
    allowed = reading.optional(reset.allowed_types, system)
    state = system.json.get("PowerState")
    works = isinstance(state, str) and bool((system.json.get("Actions") or {}).get(reset.ACTION))
    return Check(name="power", works=works, detail=str(state or ""), allowed=allowed or ())


def _boot_device(documents: _Documents) -> Check:
    system = documents.system
    boot = system.json.get("Boot") or {}
    target = boot.get("BootSourceOverrideTarget")
    enabled = boot.get("BootSourceOverrideEnabled")
    return Check(
        name="boot device",
        works=bool(boot) and bool(boot_device.supported(system)),
        detail=f"{target}, {enabled}" if target else "",
        allowed=_texts(boot.get(f"BootSourceOverrideTarget{_ALLOWED}")),
    )


def _boot_mode(documents: _Documents) -> Check:
    modes, mode = boot_device.modes(documents.system), boot_device.mode_of(documents.system)
    return Check(name="boot mode", works=bool(modes), detail=mode or "", allowed=modes)


def _virtual_media(documents: _Documents) -> Check:
    """Check the drives, with the transfer protocols that they list; most BMCs list none."""
    own = documents.own
    owners = [own] if own.get("VirtualMedia") else documents.links(_links(own, "ManagedBy"))
    devices = [each for owner in owners for each in documents.members(owner, "VirtualMedia")]
    discs = [device for device in devices if {"CD", "DVD"} & set(device.get("MediaTypes") or ())]
    kinds = sorted({kind for device in devices for kind in _texts(device.get("MediaTypes"))})
    detail, is_by_action, protocols = ", ".join(kinds), False, set[str]()
    for disc in discs:
        actions = disc.get("Actions") or {}
        is_by_action = is_by_action or "#VirtualMedia.InsertMedia" in actions
        action = actions.get("#VirtualMedia.InsertMedia") or {}
        name = f"TransferProtocolType{_ALLOWED}"
        protocols.update(_texts(action.get(name)) or _texts(disc.get(name)))
    if discs and not is_by_action:
        detail += "; inserted by PATCH"
    return Check(name="virtual media", works=bool(discs), detail=detail, allowed=sorted(protocols))


def _bios(documents: _Documents) -> Check:
    bios = documents.follow(documents.own, "Bios")
    count, registry = len(bios.get("Attributes") or {}), _text(bios.get("AttributeRegistry"))
    if count and not find_registry(documents.system, registry, most=_MOST_REGISTRIES):
        name = f" {registry}" if registry else ""
        documents.report.quirks.append(
            f"it shows no attribute registry{name}: BIOS settings have no types and limits, and "
            "values are sent unchecked"
        )
    detail = f"{count} settings" + (f", registry {registry}" if registry else ", no registry")
    return Check(name="BIOS", works=count > 0, detail=detail if bios else "")


def _raid(documents: _Documents) -> Check:
    storages = list(documents.members(documents.own, "Storage"))
    controllers = [part for each in storages for part in each.get("StorageControllers") or ()]
    levels = {level for part in controllers for level in _texts(part.get("SupportedRAIDTypes"))}
    drives = sum(len(each.get("Drives") or ()) for each in storages)
    return Check(
        name="RAID",
        works=any("Volumes" in each for each in storages) and bool(levels),
        detail=f"{len(storages)} controllers, {drives} drives" if storages else "",
        allowed=sorted(levels),
    )


def _firmware(documents: _Documents) -> Check:
    service = documents.follow(documents.root, "UpdateService")
    action = (service.get("Actions") or {}).get("#UpdateService.SimpleUpdate")
    return Check(
        name="firmware update",
        works=action is not None and service.get("ServiceEnabled") is not False,
        allowed=_texts((action or {}).get(f"TransferProtocol{_ALLOWED}")),
    )


def _secure_boot(documents: _Documents) -> Check:
    enabled = documents.follow(documents.own, "SecureBoot").get("SecureBootEnable")
    works = isinstance(enabled, bool)
    return Check(
        name="secure boot", works=works, detail=("on" if enabled else "off") if works else ""
    )


def _events(documents: _Documents) -> Check:
    service = documents.follow(documents.root, "EventService")
    works = bool(service.get("Subscriptions")) and service.get("ServiceEnabled") is not False
    kinds = _texts(service.get("EventTypesForSubscription")) or _texts(service.get("ResourceTypes"))
    return Check(name="event service", works=works, allowed=kinds)


def _sensors(documents: _Documents) -> Check:
    chassis = list(documents.links(_links(documents.own, "Chassis")))
    offered = sorted({name for each in chassis for name in _SENSORS if each.get(name)})
    return Check(name="sensors", works=bool(offered), detail=", ".join(offered))


def _texts(values: Any) -> list[str]:
    return [value for value in values or () if isinstance(value, str)]


_FEATURES: Final[tuple[Callable[[_Documents], Check], ...]] = (
    _power, _boot_device, _boot_mode, _virtual_media, _bios, _raid, _firmware, _secure_boot,
    _events, _sensors,
)  # fmt: skip


def _quirks(system: Any, lists_resets: bool) -> Iterator[str]:
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
    if not lists_resets:
        yield "it does not list its resets: any is sent"
    if not boot_device.mode_of(system):
        yield "it shows no boot mode: set capabilities boot_mode in properties"
    if boot_device.target_for(system, "cdrom") not in ("Cd", None):
        yield f"its virtual CD boots as {boot_device.target_for(system, 'cdrom')}"
    if system._conn._session.basic is not None:  # noqa: SLF001  our own Wire
        yield "it opens no session: each request sends the password"
