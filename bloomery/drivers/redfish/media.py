"""Virtual media: insert, eject and list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.drivers.redfish import reading

NO_DRIVE: Final = (
    "its BMC offers no virtual CD or DVD: virtual media may need a licence, or a newer firmware"
)


# The media types for each device type; the first is preferred.
DISC: Final = ("CD", "DVD")
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cdrom": DISC, "disk": ("USBStick",), "floppy": ("Floppy",),
}  # fmt: skip


class MediaStays(Exception):
    """The BMC accepted an eject and still shows the media as inserted."""


def has_drive(system: Any) -> bool:
    """Return whether the BMC has a virtual CD or DVD."""
    return next(_takers(system, DISC), None) is not None


def insert(system: Any, image: str, kinds: tuple[str, ...] = DISC) -> None:
    """Insert ``image`` into one device of these kinds, unless a device has it already.

    The next device is tried after a 4xx; the last refusal is raised.  Raises InvalidParameterValue
    where there is no such device.
    """
    import sushy

    devices = list(_takers(system, kinds))
    if not devices:
        raise errors.InvalidParameterValue(reason=NO_DRIVE if kinds == DISC else _lacks(kinds))
    if any(device.inserted and device.image == image for device in devices):
        return
    refusal: Any = None
    for device in devices:
        try:
            _put_in(device, image)
        except sushy.exceptions.ServerSideError:
            raise
        except sushy.exceptions.HTTPError as no:
            refusal = no
        else:
            return
    raise refusal


def _put_in(device: Any, image: str) -> None:
    if device.inserted:
        _take_out(device)
    if _has_action(device, "InsertMedia"):
        device.insert_media(image, inserted=True, write_protected=True)
    else:
        _write(device, {"Image": image, "Inserted": True, "WriteProtected": True})


def _take_out(device: Any) -> None:
    """Eject and verify, because sushy ignores most refusals.

    Raises MediaStays where the media is still inserted: a retry may help.
    """
    if _has_action(device, "EjectMedia"):
        device.eject_media()
    else:
        _write(device, {"Image": None, "Inserted": False})
    device.refresh(force=True)
    if device.inserted:
        raise MediaStays(f"virtual media {device.identity} was ejected and is still there")


def _has_action(device: Any, name: str) -> bool:
    return f"#VirtualMedia.{name}" in (device.json.get("Actions") or {})


def _write(device: Any, values: dict[str, Any]) -> None:
    """Write to a device without actions; sushy does so only where Allow has PATCH.

    Source: DSP0268, VirtualMedia before 1.2; DMTF's mock-ups send no Allow.
    """
    device._conn.patch(device.path, data=values, etag=device._get_etag())  # noqa: SLF001
    device.invalidate()


def eject(system: Any, kinds: tuple[str, ...] = (), image: str | None = None) -> list[str]:
    """Eject the media in devices of these kinds, () for all; return the devices.

    ``image``: media that show another one stay.
    """
    ejected = []
    for device in _devices(system):
        is_other = image is not None and device.image not in (image, None, "")
        if device.inserted and not is_other and (not kinds or _kinds(device) & set(kinds)):
            _take_out(device)
            ejected.append(str(device.identity))
    return ejected


def list_inserted(system: Any) -> list[str]:
    """Return the image of each CD or DVD that is inserted, or the device where it shows none."""
    return [
        secrets.mask_address(device.image or f"of device {device.identity}")
        for device in _takers(system, DISC)
        if device.inserted
    ]


def show(system: Any) -> list[dict[str, Any]]:
    """Return the devices with their media types and images."""
    return [
        {
            "media_types": sorted(_kinds(device)),
            "inserted": bool(device.inserted),
            "image": secrets.mask_address(device.image or ""),
        }
        for device in _devices(system)
    ]


def _lacks(kinds: tuple[str, ...]) -> str:
    return f"its BMC offers no virtual {' or '.join(kinds)}"


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
        collection = reading.optional(_collection, owner, missing=absent)
        yield from reading.each(collection, absent) if collection is not None else ()


def _collection(owner: Any) -> Any:
    return owner.virtual_media
