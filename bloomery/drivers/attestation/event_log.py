"""The log of what a machine measured while it booted, and the PCR values that it explains.

The log itself is not trusted: its types and texts are what the machine says.  What counts are the
digests, once their replay gives the value that a TPM has signed.
Source: TCG PC Client Platform Firmware Profile 1.05, sections 10.2 (TCG_PCR_EVENT2), 10.4 (events).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bloomery import errors

NO_ACTION, SEPARATOR, IPL = 0x03, 0x04, 0x0D
EFI_APPLICATION, EFI_ACTION = 0x80000003, 0x80000007
_NAMES: Final = {
    0x01: "EV_POST_CODE", SEPARATOR: "EV_SEPARATOR", 0x05: "EV_ACTION", 0x06: "EV_EVENT_TAG",
    IPL: "EV_IPL", EFI_APPLICATION: "EV_EFI_BOOT_SERVICES_APPLICATION",
    0x80000004: "EV_EFI_BOOT_SERVICES_DRIVER", 0x80000006: "EV_EFI_GPT_EVENT",
    EFI_ACTION: "EV_EFI_ACTION",
}  # fmt: skip
_SHA256: Final = 0x000B
_SIGNATURE: Final = b"Spec ID Event03\0"
_MOST_TEXT: Final = 100  # characters of an event's text in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One measurement; ``digest``: SHA-256.  ``data``: what the machine says that it measured."""

    pcr: int
    kind: int
    digest: bytes
    data: bytes

    @property
    def text(self) -> str:
        """The printable text of the data, or ""."""
        text = self.data.rstrip(b"\0").decode("ascii", "replace")
        return text if text.isprintable() and "\ufffd" not in text else ""

    def __str__(self) -> str:
        name = _NAMES.get(self.kind, f"event type {self.kind:#x}")
        text = f" {self.text[:_MOST_TEXT]!r}" if self.text else ""
        return f"{name}{text} with SHA-256 {self.digest.hex()}"


def read(log: bytes) -> list[Event]:
    """Return the events of a log with SHA-256 digests, in order.  Raises StepFailure."""
    try:
        return _read(log)
    except (struct.error, IndexError, KeyError) as exc:
        raise errors.StepFailure(
            reason="the agent's event log cannot be read: it is cut off, or no log of a TPM 2.0 "
            "with SHA-256",
        ) from exc


def _read(log: bytes) -> list[Event]:
    """Raise struct.error, IndexError or KeyError for a log that is none."""
    (size,) = struct.unpack_from("<I", log, 28)
    header, at = log[32 : 32 + size], 32 + size
    if len(header) < size or not header.startswith(_SIGNATURE):
        raise KeyError("signature")
    (count,) = struct.unpack_from("<I", header, 24)
    sizes = dict(struct.iter_unpack("<HH", header[28 : 28 + 4 * count]))
    events = []
    while at < len(log):
        pcr, kind, count = struct.unpack_from("<III", log, at)
        at += 12
        digests = {}
        for _ in range(count):
            (alg,) = struct.unpack_from("<H", log, at)
            digests[alg] = log[at + 2 : at + 2 + sizes[alg]]
            at += 2 + sizes[alg]
        (size,) = struct.unpack_from("<I", log, at)
        data, at = log[at + 4 : at + 4 + size], at + 4 + size
        if at > len(log):
            raise IndexError(at)
        events.append(Event(pcr=pcr, kind=kind, digest=digests[_SHA256], data=data))
    return events


def replay(events: Iterable[Event], pcr: int) -> bytes:
    """Return the value of a PCR that begins as zeros, after its events."""
    value = bytes(32)
    for event in events:
        if event.pcr == pcr and event.kind != NO_ACTION:
            value = hashlib.sha256(value + event.digest).digest()
    return value
