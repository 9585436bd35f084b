"""Digests of boot files: EFI programs without their signatures, and those in FAT images."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from bloomery.drivers.attestation import boot_files

CHECKSUM, TABLE = 0x40 + 24 + 64, 0x40 + 24 + 112 + 32  # of the program below
MAKERS = ("mkfs.vfat", "mmd", "mcopy", "mdel")


def program(*, text: bytes = b"code", signature: bytes = b"", magic: int = 0x20B) -> bytes:
    """Return an EFI program of two sections, stored in the reverse order of its table."""
    sections = (text.ljust(512, b"\0"), b"data".ljust(512, b"\0"))
    directories = 112 if magic == 0x20B else 96
    optional = bytearray(directories + 16 * 8)
    struct.pack_into("<H", optional, 0, magic)
    struct.pack_into("<I", optional, 60, 512)
    end = 512 + 1024 + 8
    if signature:
        struct.pack_into("<II", optional, directories + 32, end, len(signature))
    table = b"".join(
        struct.pack("<8sIIII16x", b".text", 512, 0, 512, start) for start in (1024, 512)
    )
    coff = struct.pack("<HHIIIHH", 0x8664, 2, 0, 0, 0, len(optional), 0)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0" + coff
    return (
        (head + optional + table).ljust(512, b"\0") + b"".join(sections) + b"overlay." + signature
    )


def test_the_digest_is_that_of_all_but_checksum_and_signature():
    plain = program()
    kept = plain[:CHECKSUM] + plain[CHECKSUM + 4 : TABLE] + plain[TABLE + 8 :]
    assert boot_files.authenticode(plain) == hashlib.sha256(kept).digest()


@pytest.mark.parametrize("magic", [0x20B, 0x10B], ids=["64 bits", "32 bits"])
def test_a_signature_and_a_checksum_change_nothing_and_code_does(magic):
    digest = boot_files.authenticode(program(magic=magic))
    assert boot_files.authenticode(program(magic=magic, signature=b"s" * 264)) == digest
    summed = bytearray(program(magic=magic))
    summed[CHECKSUM : CHECKSUM + 4] = b"\1\2\3\4"
    assert boot_files.authenticode(bytes(summed)) == digest
    assert boot_files.authenticode(program(magic=magic, text=b"evil")) != digest


@pytest.mark.parametrize(
    "data",
    [b"", b"MZ", b"MZ" + bytes(400), program()[:0x60], b"\x7fELF" + bytes(400)],
    ids=["empty", "two bytes", "DOS", "cut", "ELF"],
)
def test_what_is_no_program_has_no_digest(data):
    assert boot_files.authenticode(data) is None


def test_a_file_has_its_own_digest_and_that_of_its_program(tmp_path: Path):
    path = tmp_path / "kernel"
    path.write_bytes(program())
    with path.open("rb") as file:
        digests = boot_files.digests_of(file)
    assert digests.file == hashlib.sha256(program()).digest()
    assert digests.programs == (("", boot_files.authenticode(program())),)


def test_a_changed_file_is_read_again(tmp_path: Path):
    path = tmp_path / "ramdisk"
    for content in (b"one", b"another"):
        path.write_bytes(content)
        with path.open("rb") as file:
            assert boot_files.digests_of(file).file == hashlib.sha256(content).digest()


@pytest.mark.skipif(not all(map(shutil.which, MAKERS)), reason="mtools or dosfstools are missing")
@pytest.mark.parametrize(("bits", "kib"), [(12, 2000), (16, 8192), (32, 40_960)])
def test_programs_of_a_partition_image_are_found_at_any_depth(tmp_path: Path, bits: int, kib: int):
    image, large, small = (tmp_path / name for name in ("esp.img", "large", "small"))
    large.write_bytes(program(text=b"large", signature=b"s" * 200_000))
    small.write_bytes(program(text=b"small"))
    at = f"-i {image}"
    for command in (
        f"mkfs.vfat -F {bits} -s 1 -C {image} {kib}",
        f"mmd {at} ::/EFI ::/EFI/BOOT ::/a-long-name",
        f"mcopy {at} {small} ::/EFI/BOOT/GRUBX64.EFI",
        f"mcopy {at} {small} ::/note.txt",
        f"mdel {at} ::/EFI/BOOT/GRUBX64.EFI",
        f"mcopy {at} {large} ::/EFI/BOOT/BOOTX64.EFI",
        f"mcopy {at} {small} ::/a-long-name/mmx64.efi",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    with image.open("rb") as file:
        found = dict(boot_files.digests_of(file).programs)
    assert found == {
        "/EFI/BOOT/BOOTX64.EFI": boot_files.authenticode(large.read_bytes()),
        "/A-LONG~1/MMX64.EFI": boot_files.authenticode(small.read_bytes()),
    }


@pytest.mark.parametrize("size", [512, 4096])
def test_a_broken_image_has_no_programs(tmp_path: Path, size: int):
    path = tmp_path / "esp.img"
    path.write_bytes((bytes(510) + b"\x55\xaa").ljust(size, b"\xff"))
    with path.open("rb") as file:
        assert boot_files.digests_of(file).programs == ()
