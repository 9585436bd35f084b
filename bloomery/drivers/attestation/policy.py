"""Whether a machine has booted what it was meant to boot.

    expected = policy.Expected(kernel=..., ramdisk=..., command_line=..., others=...)
    policy.check(events, {4: ..., 8: ..., 9: ...}, expected)

PCR 4 has the EFI programs; GRUB measures its commands and the kernel's command line into PCR 8, and
files into PCR 9, as Linux does with a ramdisk.  Each measurement of these three must be of a known
digest.  A log's types and texts are the machine's claims, so none is believed unless its digest is
that of the text, and the text is harmless.

Source: TCG PC Client Platform Firmware Profile 1.05, 3.3.4; GRUB manual, "Measured Boot".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bloomery import errors
from bloomery.drivers.attestation import event_log
from bloomery.drivers.attestation.event_log import Event

PCRS: Final = (4, 8, 9)
_PROGRAMS_PCR, _COMMANDS_PCR, _ = PCRS
_MOST_ACTION: Final = 128  # bytes, fewer than any EFI program has
_SEPARATORS: Final = (bytes(4), b"\xff" * 4)
_COMMAND: Final = b"grub_cmd: "
# What these load is measured by itself.  Not ``linux``: it names the kernel's command line.
_COMMANDS: Final = frozenset(
    (
        b"[ boot configfile echo export false initrd initrdefi insmod menuentry "
        b"normal search set setparams sleep source terminal_input "
        b"terminal_output test true unset"
    ).split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Digests: ``kernel`` as a file and as an EFI program, and ``ramdisk``.

    ``command_line``: that of the kernel, as GRUB measures it; None: this boot has none that is
    known.  ``others``: further digests that may be measured, with their names.
    """

    kernel: frozenset[bytes]
    ramdisk: bytes
    command_line: bytes | None
    others: Mapping[bytes, str]


def check(log: Iterable[Event], quoted: Mapping[int, bytes], expected: Expected) -> None:
    """Raise StepFailure, with PCR, digest and the way out, for the first thing that differs."""
    events = [event for event in log if event.kind != event_log.NO_ACTION and event.pcr in PCRS]
    for pcr in PCRS:
        if (value := event_log.replay(events, pcr)) != quoted[pcr]:
            raise errors.StepFailure(
                reason=f"the event log does not explain PCR {pcr}: its events give {value.hex()}, "
                f"and the TPM says {quoted[pcr].hex()}: the log was altered",
            )
    known = {*expected.kernel, expected.ramdisk, expected.command_line, *expected.others}
    for event in events:
        if event.digest not in known and not _is_harmless(event):
            raise errors.StepFailure(
                reason=f"PCR {event.pcr} has {event}, which is of none of the node's boot files "
                f"and not in [agent]attestation_digests: the machine has booted something else; if "
                "it is yours, add its digest there",
            )
    measured = {event.digest for event in events}
    for what, digests in (
        ("kernel", expected.kernel),
        ("ramdisk", {expected.ramdisk}),
        ("kernel's command line", {expected.command_line}),
    ):
        if None not in digests and not digests & measured:
            wanted = " or ".join(sorted(each.hex() for each in digests if each))
            raise errors.StepFailure(
                reason=f"nothing has measured the node's {what}: no event of PCRs 4, 8 and 9 has "
                f"SHA-256 {wanted}; take a boot loader that measures, such as GRUB with its module "
                "tpm, and UEFI mode",
            )


def _is_harmless(event: Event) -> bool:
    """Return whether an event is no code: a mark of the firmware, or a command of GRUB.

    Each is one in its own PCR alone: GRUB's commands would pass for short marks of the firmware.
    """
    if event.pcr == _COMMANDS_PCR and event.data.startswith(_COMMAND):
        text = event.data.removeprefix(_COMMAND).removesuffix(b"\0")
        is_command = text.partition(b" ")[0] in _COMMANDS
        return is_command and event.digest == hashlib.sha256(text).digest()
    is_mark = (event.kind == event_log.SEPARATOR and event.data in _SEPARATORS) or (
        event.kind == event_log.EFI_ACTION
        and event.pcr == _PROGRAMS_PCR
        and len(event.data) <= _MOST_ACTION
    )
    return is_mark and event.digest == hashlib.sha256(event.data).digest()
