"""Virtual media: insert, eject, list, and check that a BMC fetches them.

A 2xx is no CD in the drive: each insertion and eject is read back (``bmc_write``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.drivers.base import DriverTask
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bmc_write import MEMORY, BmcWrite, NotYet

NO_DRIVE: Final = (
    "its BMC offers no virtual CD or DVD: virtual media may need a licence, or a newer firmware"
)


# The media types for each device type; the first is preferred.
DISC: Final = ("CD", "DVD")
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cdrom": DISC, "disk": ("USBStick",), "floppy": ("Floppy",),
}  # fmt: skip


# Refusals of an insertion because of media that the device has, or that its BMC believes it has.
_OCCUPIED: Final = re.compile(r"VRM0012|VRM0021|ResourceInUse|already|in use", re.IGNORECASE)


def has_drive(system: Any) -> bool:
    """Return whether the BMC has a virtual CD or DVD."""
    return next(_takers(system, DISC), None) is not None


def write_insert(
    access: Access, task: DriverTask, image: str, kinds: tuple[str, ...] = DISC
) -> BmcWrite:
    """Return the write that inserts ``image`` into a device of these kinds."""
    conf, file_name = access.conf.redfish, image.rpartition("/")[2].partition("?")[0]

    def change(system: Any) -> bool:
        was_ejected = "until" in task.node.driver_internal_info.get(MEMORY, {})
        is_in = insert(system, image, kinds, may_eject=not was_ejected)
        return is_in or not conf.enable_vmedia_insert_polling

    def is_so(system: Any) -> bool:
        """Return whether a device shows the image; a BMC may show another form of its URL."""
        devices = list(_takers(system, kinds))
        return any(
            _has_media(device) is not False
            and (len(devices) == 1 or not device.image or file_name in str(device.image))
            for device in devices
        )

    return BmcWrite(
        access=access, task=task, what="insert virtual media", change=change, is_so=is_so,
        limit_s=conf.vmedia_insert_timeout, pause_s=conf.vmedia_insert_poll_interval,
        hidden=secrets.in_address(image),
    )  # fmt: skip


def write_eject(
    access: Access, task: DriverTask, kinds: tuple[str, ...] = (), image: str | None = None
) -> BmcWrite:
    """Return the write that ejects the media in devices of these kinds, () for all.

    ``image``: media that show another one stay.
    """
    conf = access.conf.redfish
    return BmcWrite(
        access=access, task=task, what="eject virtual media",
        change=lambda system: eject(system, kinds, image),
        is_so=lambda system: not any(map(_has_media, _list_ejected(system, kinds, image))),
        limit_s=conf.vmedia_insert_timeout, pause_s=conf.vmedia_insert_poll_interval,
    )  # fmt: skip


def insert(
    system: Any, image: str, kinds: tuple[str, ...] = DISC, *, may_eject: bool = True
) -> bool:
    """Insert ``image`` into one device of these kinds, unless a device has it already.

    Return whether the BMC shows it.  A device that may have other media is emptied before, and one
    that refuses because of them is emptied and tried once more.  The next device is tried after a
    4xx; the last refusal is raised.  Raises NotYet while other media stay in the device, and
    InvalidParameterValue where there is no such device.  ``may_eject``: False after an eject, which
    may still be going on and must not meet the new media.
    """
    import sushy

    devices = sorted(_takers(system, kinds), key=_is_last_choice)
    if not devices:
        lacks = f"its BMC offers no virtual {' or '.join(kinds)}"
        raise errors.InvalidParameterValue(reason=NO_DRIVE if kinds == DISC else lacks)
    if any(device.inserted and device.image == image for device in devices):
        return True
    refusal: Any = None
    for device in devices:
        if _has_media(device) and not may_eject:
            raise _still_there(device)
        try:
            if may_eject and (_has_media(device) is not False or device.image):
                _make_empty(device)
            try:
                _send_insert(device, image)
            except sushy.exceptions.HTTPError as no:
                if not _OCCUPIED.search(f"{no.code} {no.detail} {no.extended_info}"):
                    raise
                _make_empty(device)
                _send_insert(device, image)
            device.refresh(force=True)
            return _has_media(device) is not False
        except sushy.exceptions.ServerSideError:
            raise
        except sushy.exceptions.HTTPError as no:
            refusal = no
    raise refusal


def _is_last_choice(device: Any) -> bool:
    """Return whether a device is for small files that are uploaded, and not for URLs.

    Source: Lenovo XCC, whose RDOC devices take 50 MB.
    """
    upload = device.json.get("TransferMethod") == "Upload"
    return upload or str(device.identity).upper().startswith("RDOC")


def _send_insert(device: Any, image: str) -> None:
    if "#VirtualMedia.InsertMedia" in (device.json.get("Actions") or {}):
        device.insert_media(image, inserted=True, write_protected=True)
    else:
        _write(device, {"Image": image, "Inserted": True, "WriteProtected": True})


def eject(system: Any, kinds: tuple[str, ...] = (), image: str | None = None) -> bool:
    """Eject, and return whether all media are gone; a device that may be empty is ejected, too."""
    devices = [
        device
        for device in _list_ejected(system, kinds, image)
        if _has_media(device) is not False or device.image
    ]
    gone = [_take_out(device) for device in devices]
    return all(gone)


def _list_ejected(system: Any, kinds: tuple[str, ...], image: str | None) -> Iterator[Any]:
    """Yield the devices of these kinds, () for all, but those with media of another image."""
    for device in _devices(system):
        is_other = image is not None and device.image not in (image, None, "")
        if not is_other and (not kinds or _kinds(device) & {*kinds}):
            yield device


def _make_empty(device: Any) -> None:
    if not _take_out(device):
        raise _still_there(device)


def _still_there(device: Any) -> NotYet:
    return NotYet(f"virtual media {device.identity} was ejected and is still there")


def _take_out(device: Any) -> bool:
    """Eject, and return whether the media are gone; raise a refusal of media that are there.

    Some BMCs want no body, others an empty one.  sushy's method drops most refusals.
    """
    import sushy

    action, refusal = (device.json.get("Actions") or {}).get("#VirtualMedia.EjectMedia"), None
    try:
        if not action:
            _write(device, {"Image": None, "Inserted": False})
        else:
            try:
                device._conn.post(action["target"])  # noqa: SLF001
            except sushy.exceptions.HTTPError as no:
                if no.status_code not in (400, 415):
                    raise
                device._conn.post(action["target"], data={})  # noqa: SLF001
    except sushy.exceptions.HTTPError as no:
        refusal = no
    if reading.optional(lambda: device.refresh(force=True) or device, missing=reading.ABSENT):
        if not _has_media(device):
            return True
        if refusal is not None:
            raise refusal
        return False
    return True


def _write(device: Any, values: dict[str, Any]) -> None:
    """Write to a device without actions; sushy does so only where Allow has PATCH.

    Source: DSP0268, VirtualMedia before 1.2; DMTF's mock-ups send no Allow.
    """
    device._conn.patch(device.path, data=values, etag=device._get_etag())  # noqa: SLF001
    device.invalidate()


def _has_media(device: Any) -> bool | None:
    """Return whether a device shows media, or None where it shows neither Inserted nor Image.

    Both are optional in DSP0268.
    """
    inserted = device.json.get("Inserted")
    if isinstance(inserted, bool):
        return inserted
    return bool(device.json["Image"]) if "Image" in device.json else None


def list_inserted(system: Any) -> list[str]:
    """Return the image of each CD or DVD that is inserted, or the device where it shows none."""
    return [
        secrets.mask_address(device.image or f"of device {device.identity}")
        for device in _takers(system, DISC)
        if _has_media(device)
    ]


def show(system: Any) -> list[dict[str, Any]]:
    """Return the devices with their media types and images."""
    return [
        {
            "media_types": sorted(_kinds(device)),
            "inserted": bool(_has_media(device)),
            "image": secrets.mask_address(device.image or ""),
        }
        for device in _devices(system)
    ]


def _kinds(device: Any) -> set[str]:
    return {kind.value for kind in device.media_types or ()}


def _takers(system: Any, kinds: tuple[str, ...]) -> Iterator[Any]:
    """Yield the devices that take one of ``kinds``, those for the first kind first."""
    devices = [(device, _kinds(device)) for device in _devices(system)]
    for at, kind in enumerate(kinds):
        yield from (d for d, taken in devices if kind in taken and not taken & {*kinds[:at]})


def _devices(system: Any) -> Iterator[Any]:
    """Yield the devices of the system, or those of its managers where it has none.

    Missing devices are skipped; other errors are raised for the caller's retry.
    """
    absent = reading.ABSENT
    has_own = system.json.get("VirtualMedia")
    for owner in [system] if has_own else reading.managers(system, absent):
        collection = reading.optional(lambda owner=owner: owner.virtual_media, missing=absent)
        yield from reading.each(collection, absent) if collection is not None else ()


def check(
    access: Access,
    task: DriverTask,
    image: str,
    *,
    begin: Callable[[], None],
    wait: Callable[[], bool],
) -> dict[str, str | None]:
    """Insert a CD, wait until the BMC fetches it, and eject it whatever happens.

    Return the result, the reason of a failure, and why the CD may be left in the drive.  ``begin``
    is called just before the BMC is told.  ``wait`` returns whether the BMC has fetched; Ctrl-C
    ends it.  The power of the machine stays as it is, and so does a medium that was inserted.
    """
    failures = (errors.BmcUnreachable, errors.BmcRefused, errors.InvalidParameterValue)

    def report(result: str, reason: str = "") -> dict[str, str | None]:
        return {"result": result, "reason": reason, "left": None}

    try:
        inserted = access.read(task, list_inserted)
    except failures as exc:
        return report("not tried", _reason(exc))
    if inserted:
        reason = f"a medium is inserted already, and stays: {', '.join(inserted)}"
        return report("not tried", reason)
    begin()
    outcome = report("interrupted")
    try:
        write_insert(access, task, image).apply_now()
        outcome = report("fetched" if wait() else "not fetched")
    except failures as exc:
        outcome = report("failed", _reason(exc))
    except KeyboardInterrupt:
        pass
    finally:
        try:
            write_eject(access, task, DISC, image).apply_now()
            inserted = access.read(task, list_inserted)
            outcome["left"] = f"the BMC still shows {', '.join(inserted)}" if inserted else None
        except failures as exc:
            outcome["left"] = _reason(exc)
    return outcome


def _reason(exc: errors.Failure) -> str:
    return str(exc.facts.get("reason", exc))
