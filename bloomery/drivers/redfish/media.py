"""Virtual media: which device of a system takes a CD, and what is in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

LOG = logging.getLogger(__name__)

_KINDS: Final = ("CD", "DVD")  # a CD falls back to a DVD


def insert(system: Any, image: str) -> None:
    """Have ``image`` in one CD device; the device that has it already is left alone.

    The next device is tried when one refuses with a 4xx; the last one's refusal is raised.
    """
    import sushy

    devices = [device for kind in _KINDS for device in _of_kind(system, kind)]
    if not devices:
        raise sushy.exceptions.SushyError("the system offers no virtual CD or DVD")
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
    device.insert_media(image, inserted=True, write_protected=True)


def _take_out(device: Any) -> None:
    """Eject, and look: sushy keeps most refusals to itself.

    Raises TimeoutError for media that stay: asking again may help.
    """
    device.eject_media()
    device.refresh(force=True)
    if device.inserted:
        raise TimeoutError(f"virtual media {device.identity} was ejected and is still there")


def eject(system: Any, kinds: tuple[str, ...] = ()) -> list[str]:
    """Eject whatever is in devices of these kinds (none named: all); return the devices."""
    ejected = []
    for device in _devices(system):
        names = {kind.value for kind in device.media_types}
        if device.inserted and (not kinds or names & set(kinds)):
            _take_out(device)
            ejected.append(str(device.identity))
    return ejected


def _of_kind(system: Any, kind: str) -> Iterator[Any]:
    for device in _devices(system):
        names = [known.value for known in device.media_types]
        if kind in names and not (kind == "DVD" and "CD" in names):
            yield device


def _devices(system: Any) -> Iterator[Any]:
    """The devices of the system itself; where it has none, those of its managers."""
    if system.json.get("VirtualMedia"):
        yield from system.virtual_media.get_members()
        return
    for manager in system.managers:
        if manager.json.get("VirtualMedia"):
            yield from manager.virtual_media.get_members()
