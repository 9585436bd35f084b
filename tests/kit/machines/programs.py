"""EFI programs without code, and disks that have them in their EFI system partition.

efi_program("aarch64")            a header alone
efi_disk("aarch64", "x86_64")     a disk with a GPT; mbr_disk: with an MBR
"""

from __future__ import annotations

import struct
import uuid
from typing import Final

MACHINES: Final = {"i686": 0x14C, "x86_64": 0x8664, "aarch64": 0xAA64}
EFI_SYSTEM: Final = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
SECTOR: Final = 512
FIRST: Final = 64  # sector of the partition


def efi_program(architecture: str, *, at: int = 0x80) -> bytes:
    """Return an EFI program whose PE header is at this offset."""
    start = b"MZ" + bytes(58) + struct.pack("<I", at)
    return start.ljust(at, b"\0") + b"PE\0\0" + struct.pack("<H", MACHINES[architecture])


def efi_disk(*architectures: str) -> bytes:
    header = bytearray(SECTOR)
    header[:8] = b"EFI PART"
    struct.pack_into("<QII", header, 72, 2, 128, 128)
    data = uuid.uuid4().bytes_le + bytes(16) + struct.pack("<QQ", FIRST - 8, FIRST - 1)
    last = FIRST + len(architectures)
    system = EFI_SYSTEM.bytes_le + bytes(16) + struct.pack("<QQ", FIRST, last)
    table = data.ljust(128, b"\0") + system.ljust(128, b"\0")
    start = (bytes(SECTOR) + header + table).ljust((FIRST - 2) * SECTOR, b"\0")
    return start + _partition(architectures, before=2)


def mbr_disk(*architectures: str) -> bytes:
    entry = bytes(4) + b"\xef" + bytes(3) + struct.pack("<II", FIRST, len(architectures) + 1)
    start = (bytes(446) + entry).ljust(510, b"\0") + b"\x55\xaa"
    return start.ljust(FIRST * SECTOR, b"\0") + _partition(architectures)


def _partition(architectures: tuple[str, ...], before: int = 0) -> bytes:
    programs = b"".join(efi_program(name).ljust(SECTOR, b"\0") for name in architectures)
    return bytes(before * SECTOR) + bytes(SECTOR) + programs
