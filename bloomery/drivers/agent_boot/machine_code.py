"""The architecture that boot files are built for, read from their headers.

A machine that gets a kernel of another architecture stays silent: its firmware or its boot loader
refuses the file on a screen that nobody sees.  So the files are read before the machine boots.

Source: Microsoft's PE format, 3.3.1; ELF gABI, chapter 4; Documentation/arch/arm64/booting and
Documentation/arch/x86/boot of Linux; UEFI 2.10, 5.3.1 and 5.3.3 for partitions.
"""

from __future__ import annotations

import io
import struct
import uuid
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from bloomery import errors, secrets
from bloomery.drivers.agent_boot.sources import Sources
from bloomery.drivers.base import DriverTask
from bloomery.model import architectures
from bloomery.model.architectures import AARCH64, X86_64

_PE: Final = {  # 32 bits of x86 run on machines of 64
    0x14C: X86_64, 0x8664: X86_64, 0xAA64: AARCH64, 0x5064: "riscv64", 0x6264: "loongarch64",
}  # fmt: skip
_ELF: Final = {
    3: X86_64, 62: X86_64, 183: AARCH64, 21: "ppc64le", 22: "s390x", 243: "riscv64",
    258: "loongarch64",
}  # fmt: skip
_HEAD: Final = 1 << 12  # bytes that hold any of the headers
_SECTOR: Final = 512
_PIECE: Final = 1 << 20
_MOST_SCANNED: Final = 64 << 20  # bytes of an EFI system partition
_GZIP: Final = b"\x1f\x8b"
_EFI_SYSTEM: Final = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b").bytes_le
_MBR_EFI_SYSTEM: Final = 0xEF
_MOST_ENTRIES: Final = 128
_ENTRY_SIZES: Final = range(128, 4097)


def of_program(head: bytes) -> str | None:
    """Return the architecture of an EFI program, an ELF file or a kernel by its first 4 KiB.

    None: the bytes are none of these, or of an architecture without a name here.
    """
    if head.startswith(_GZIP):  # kernels of arm64, which GRUB unpacks
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return None
    if head.startswith(b"\x7fELF") and len(head) >= 20:
        order = ">" if head[5] == 2 else "<"
        return _ELF.get(struct.unpack_from(f"{order}H", head, 18)[0])
    if head.startswith(b"MZ") and len(head) >= 64:
        at = struct.unpack_from("<I", head, 60)[0]
        if head[at : at + 4] == b"PE\0\0" and len(head) >= at + 6:
            return _PE.get(struct.unpack_from("<H", head, at + 4)[0])
    if head[56:60] == b"ARM\x64":
        return AARCH64
    return X86_64 if head[0x202:0x206] == b"HdrS" else None


def of_kernel(file: BinaryIO) -> str | None:
    """Return the architecture of a kernel, or None where its header does not tell it."""
    file.seek(0)
    head = file.read(_HEAD)
    file.seek(0)
    return of_program(head)


def of_system_partition(file: BinaryIO, start: int = 0, size: int = _MOST_SCANNED) -> set[str]:
    """Return the architectures of the EFI programs in an EFI system partition.

    Each file of a FAT file system begins at a sector, so no directory is read.  Removed files
    count as well.  Reads ``size`` bytes from ``start`` on, 64 MiB at most.
    """
    found: set[str] = set()
    for piece in _pieces(file, start, min(size, _MOST_SCANNED)):
        at = piece.find(b"MZ")
        while at != -1:
            if at % _SECTOR == 0 and (name := of_program(piece[at : at + _HEAD])):
                found.add(name)
            at = piece.find(b"MZ", at + 1)
    file.seek(0)
    return found


def of_disk(file: BinaryIO) -> set[str]:
    """Return the architectures that a raw image of a disk boots with UEFI, or an empty set.

    They are those of the EFI programs in its EFI system partitions.
    """
    found: set[str] = set()
    for start, size in _system_partitions(file):
        found |= of_system_partition(file, start, size)
    file.seek(0)
    return found


def check(
    task: DriverTask, named: Sources, kernel: BinaryIO, bootloader: BinaryIO | None = None
) -> str | None:
    """Return the architecture that these files boot; None: neither they nor the node tell it.

    ``bootloader``: an image of an EFI system partition.  Raises StepFailure for files of another
    architecture than the node's, or than each other's.
    """
    wanted, built_for = architectures.of(task.node.properties), of_kernel(kernel)
    if wanted and built_for and built_for != wanted:
        raise _refused(task, "kernel", named.kernel, built_for, f"properties/cpu_arch is {wanted}")
    programs = of_system_partition(bootloader) if bootloader is not None else set[str]()
    reason = f"properties/cpu_arch is {wanted}" if wanted else f"the kernel is for {built_for}"
    wanted = wanted or built_for
    if wanted and programs and wanted not in programs:
        names = " and ".join(sorted(programs))
        raise _refused(task, "bootloader", str(named.bootloader), names, reason)
    return wanted


def check_disk(task: DriverTask, built_for: set[str]) -> None:
    """Raise StepFailure for an image of a disk that boots other architectures than the node's."""
    wanted = architectures.of(task.node.properties)
    if wanted and built_for and wanted not in built_for:
        raise errors.StepFailure(
            reason=f"cannot use the image for node {errors.name_of(task.node)}: its EFI system "
            f"partition has programs for {' and '.join(sorted(built_for))}, and "
            f"properties/cpu_arch is {wanted}; name an image for {wanted} as "
            "instance_info/image_source",
        )


def _refused(
    task: DriverTask, file: str, url: str, built_for: str, reason: str
) -> errors.StepFailure:
    option = "bootloader" if file == "bootloader" else f"deploy_{file}"
    return errors.StepFailure(
        reason=f"cannot boot node {errors.name_of(task.node)}: its {file} "
        f"{secrets.mask_address(url)} is for {built_for}, and {reason}; name one for the machine "
        f"in [conductor]{option}_by_arch or as driver_info/{option}, or correct "
        "properties/cpu_arch",
    )


def _pieces(file: BinaryIO, start: int, size: int) -> Iterator[bytes]:
    """Yield a part of a file, with the head of a program at the end of each piece in it whole."""
    for offset in range(0, size, _PIECE):
        file.seek(start + offset)
        piece = file.read(min(_PIECE + _HEAD, size - offset))
        yield piece
        if len(piece) <= _PIECE:
            return


def _system_partitions(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield start and size in bytes of each EFI system partition of a GPT, else of an MBR."""
    file.seek(0)
    head = file.read(2 * _SECTOR)
    if head[_SECTOR : _SECTOR + 8] == b"EFI PART":
        first, count, size = struct.unpack_from("<QII", head, _SECTOR + 72)
        if size not in _ENTRY_SIZES:
            return
        file.seek(min(first, 1 << 31) * _SECTOR)
        table = io.BytesIO(file.read(min(count, _MOST_ENTRIES) * size))
        while len(entry := table.read(size)) == size:
            if entry.startswith(_EFI_SYSTEM):
                begin, end = struct.unpack_from("<QQ", entry, 32)
                if begin <= end < 1 << 54:
                    yield begin * _SECTOR, (end + 1 - begin) * _SECTOR
    elif head[510:512] == b"\x55\xaa":
        for at in range(446, 510, 16):
            if head[at + 4] == _MBR_EFI_SYSTEM:
                begin, sectors = struct.unpack_from("<II", head, at + 8)
                yield begin * _SECTOR, sectors * _SECTOR
