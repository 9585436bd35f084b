"""Redfish vendor methods: ejecting media, and subscriptions to a BMC's events."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.drivers import base, vendor_methods
from bloomery.drivers.redfish import media, reading
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import Outcome

Json = dict[str, Any]

_KINDS: Final = {"cd": ("CD",), "dvd": ("DVD",), "usb": ("USBStick",), "floppy": ("Floppy",)}
_FIELDS: Final = ("Id", "Context", "Protocol", "Destination", "EventTypes")
_HIDDEN: Final = ("@odata.context", "@odata.etag")
_IDENT: Final = re.compile(r"[\w.~-]{1,255}", re.ASCII)
_MOST_SHOWN: Final = 80  # characters of a client's value in an error


def _check_device(info: Mapping[str, Any]) -> None:
    device = info.get("boot_device")
    if device is not None and device not in list(_KINDS):
        raise _wrong("boot_device", device, f"one of {', '.join(_KINDS)}")


def _check_id(info: Mapping[str, Any]) -> None:
    ident = info["id"]
    if not isinstance(ident, str) or _IDENT.fullmatch(ident) is None or not ident.strip("."):
        raise _wrong("id", ident, "the Id of a subscription")


def _check_subscription(info: Mapping[str, Any]) -> None:
    """Check the form; the BMC checks event types and protocols."""
    destination = info["Destination"]
    if not isinstance(destination, str) or not re.match(r"https?://.", destination):
        raise _wrong("Destination", destination, "an http or https URL")
    for name in ("Protocol", "Context"):
        if not isinstance(info.get(name, ""), str):
            raise _wrong(name, info[name], "a text")
    types = info.get("EventTypes", ["Alert"])
    if not (isinstance(types, list) and types and all(isinstance(each, str) for each in types)):
        raise _wrong("EventTypes", types, 'a list of texts such as ["Alert"]')
    headers = info.get("HttpHeaders", [])
    if not isinstance(headers, list) or not all(isinstance(each, dict) for each in headers):
        raise errors.InvalidParameterValue(  # they may hold a token
            reason="Invalid HttpHeaders: it must be a list of objects with names and values",
        )


def _wrong(name: str, value: Any, allowed: str) -> errors.InvalidParameterValue:
    text = f"{str(value)[:_MOST_SHOWN]} ({type(value).__name__})"
    return errors.InvalidParameterValue(reason=f"Invalid {name}: {text} must be {allowed}")


class RedfishVendor(RedfishInterface, base.Vendor):
    @vendor_methods.passthru(
        ("POST",),
        description="Eject virtual media: of one boot_device (cd, dvd, usb, floppy), or all.",
        resumable=True,
        check=_check_device,
    )
    def eject_vmedia(self, task: base.DriverTask, boot_device: str | None = None) -> Outcome:
        kinds = _KINDS[boot_device] if boot_device else ()
        return media.write_eject(self.access, task, kinds).apply()

    @vendor_methods.passthru(
        ("POST",),
        async_call=False,
        description="Subscribe a Destination (a URL) to events of the BMC. Optional: EventTypes, "
        "Protocol, Context, HttpHeaders.",
        check=_check_subscription,
    )
    def create_subscription(
        self,
        task: base.DriverTask,
        Destination: str,  # noqa: N803  Redfish's names
        EventTypes: list[str] | None = None,  # noqa: N803
        Protocol: str = "Redfish",  # noqa: N803
        Context: str = "",  # noqa: N803
        HttpHeaders: list[Json] | None = None,  # noqa: N803
    ) -> Json:
        document: Json = {
            "Destination": Destination, "EventTypes": EventTypes or ["Alert"],
            "Protocol": Protocol, "Context": Context,
        }  # fmt: skip
        if HttpHeaders:
            document["HttpHeaders"] = HttpHeaders
        values = (value for header in HttpHeaders or () for value in header.values())

        def create(system: Any) -> Json:
            answer = system.root._conn.post(_path(system), data=document)  # noqa: SLF001
            location = answer.headers.get("Location")
            if location:  # only the path is used, so that the request stays at this BMC
                return _document(reading.fetch(system, urllib.parse.urlsplit(location).path))
            return _document(document | answer.json())

        return self.access.change(
            task,
            create,
            secrets=(*secrets.in_address(Destination), *(str(value) for value in values)),
        )

    @vendor_methods.passthru(
        ("DELETE",),
        async_call=False,
        description="End the subscription with an id.",
        check=_check_id,
    )
    def delete_subscription(self, task: base.DriverTask, id: str) -> None:  # noqa: A002
        def delete(system: Any) -> None:
            connection = system.root._conn  # noqa: SLF001
            _existing(id, lambda: connection.delete(f"{_path(system)}/{id}"))

        self.access.change(task, delete)

    @vendor_methods.passthru(
        ("GET",),
        async_call=False,
        require_exclusive_lock=False,
        description="List subscriptions: the collection as the BMC has it.",
    )
    def get_all_subscriptions(self, task: base.DriverTask) -> Json:
        return self.access.read(task, _collection)

    @vendor_methods.passthru(
        ("GET",),
        async_call=False,
        require_exclusive_lock=False,
        description="Show the subscription with an id.",
        check=_check_id,
    )
    def get_subscription(self, task: base.DriverTask, id: str) -> Json:  # noqa: A002
        def fetch(system: Any) -> Json:
            path = f"{_path(system)}/{id}"
            return _document(_existing(id, lambda: reading.fetch(system, path)))

        return self.access.read(task, fetch)


def _path(system: Any) -> str:
    """Return the path of the subscriptions.  Raises InvalidParameterValue where there are none."""
    service = reading.follow(system, system.root.json, "EventService")
    path = (service.get("Subscriptions") or {}).get("@odata.id")
    if not path:
        raise errors.InvalidParameterValue(reason="the BMC offers no subscriptions to its events")
    return str(path).rstrip("/")


def _collection(system: Any) -> Json:
    document = reading.fetch(system, _path(system))
    collection = {name: value for name, value in document.items() if name not in _HIDDEN}
    if isinstance(members := collection.get("Members"), list):  # some BMCs embed whole members
        collection["Members"] = [_masked(member) for member in members]
    return collection


def _existing(ident: str, ask: Any) -> Any:
    """Return what ``ask`` returns.  Raises NotFound where the BMC has no such subscription."""
    import sushy

    try:
        return ask()
    except sushy.exceptions.ResourceNotFoundError:
        raise errors.NotFound(reason=f"the BMC has no subscription {ident}") from None


def _document(document: Json) -> Json:
    masked = _masked(document)
    return {name: masked.get(name) for name in _FIELDS}


def _masked(subscription: Any) -> Any:
    """Return a subscription without the login of its Destination and its headers' values."""
    if not isinstance(subscription, dict):
        return subscription
    masked = dict(subscription)
    if isinstance(address := masked.get("Destination"), str):
        masked["Destination"] = secrets.mask_address(address)
    if masked.get("HttpHeaders"):
        masked["HttpHeaders"] = secrets.MASK
    return masked
