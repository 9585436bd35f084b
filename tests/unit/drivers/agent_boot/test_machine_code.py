"""For which machines boot files are built, and which of them a node may boot."""

from __future__ import annotations

import gzip
import io
import struct
from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.agent_boot import machine_code
from bloomery.drivers.agent_boot.sources import Sources
from tests.kit.machines.driver_task import FakeTask
from tests.kit.machines.programs import efi_disk, efi_program, mbr_disk

SECTOR = 512
NAMED = Sources(kernel="http://u:geheim@site/k", ramdisk="http://site/r", bootloader="file:///esp")


def elf(machine: int, order: str = "<") -> bytes:
    ident = b"\x7fELF\x02" + (b"\x02" if order == ">" else b"\x01") + bytes(10)
    return ident + struct.pack(f"{order}HH", 2, machine)


def at(offset: int, text: bytes) -> bytes:
    return bytes(offset) + text + bytes(64)


@pytest.mark.parametrize(
    ("head", "architecture"),
    [
        (efi_program("x86_64"), "x86_64"),
        (efi_program("aarch64"), "aarch64"),
        (efi_program("i686"), "x86_64"),
        (efi_program("aarch64", at=0x1000)[:0x1000], None),  # the header is not in the head
        (b"MZ" + bytes(58) + struct.pack("<I", 0xFFFFFFFF), None),
        (b"MZ", None),
        (elf(62), "x86_64"),
        (elf(183), "aarch64"),
        (elf(21, ">"), "ppc64le"),
        (elf(40), None),
        (b"\x7fELF", None),
        (at(56, b"ARM\x64"), "aarch64"),
        (at(0x202, b"HdrS"), "x86_64"),
        (gzip.compress(efi_program("aarch64") + bytes(9000), mtime=0), "aarch64"),
        (gzip.compress(efi_program("aarch64"), mtime=0)[:12], None),
        (b"\x1f\x8bbroken", None),
        (b"a kernel of a test" * 99, None),
        (b"", None),
    ],
)
def test_a_header_tells_the_architecture(head: bytes, architecture: str | None) -> None:
    assert machine_code.of_program(head) == architecture
    assert machine_code.of_kernel(io.BytesIO(head)) == architecture


@pytest.mark.parametrize("offset", [0, 3 * SECTOR, (1 << 20) - SECTOR, (1 << 20), 5 << 20])
def test_a_program_is_seen_wherever_it_lies_in_a_partition(offset: int) -> None:
    file = io.BytesIO(at(offset, efi_program("aarch64")))
    assert machine_code.of_system_partition(file) == {"aarch64"}
    assert file.tell() == 0


def test_what_begins_in_the_middle_of_a_sector_is_no_file() -> None:
    assert machine_code.of_system_partition(io.BytesIO(at(100, efi_program("aarch64")))) == set()


@pytest.mark.parametrize("make", [efi_disk, mbr_disk])
@pytest.mark.parametrize("built_for", [{"x86_64"}, {"aarch64"}, {"aarch64", "x86_64"}, set()])
def test_a_disk_shows_what_its_system_partition_boots(make: Any, built_for: set[str]) -> None:
    assert machine_code.of_disk(io.BytesIO(make(*built_for))) == built_for


@pytest.mark.parametrize(
    "disk",
    [
        b"", b"QFI\xfb" * 999, bytes(4096), efi_disk("aarch64")[:1100],
        bytes(SECTOR) + b"EFI PART" + b"\xff" * 504 + bytes(4096),
        bytes(510) + b"\x55\xaa" + bytes(600),
    ],
)  # fmt: skip
def test_a_disk_that_is_none_shows_nothing(disk: bytes) -> None:
    assert machine_code.of_disk(io.BytesIO(disk)) == set()


def booted(cpu_arch: str | None, kernel: str | None, *loaders: str) -> str | None:
    task: Any = FakeTask({}, properties={"cpu_arch": cpu_arch} if cpu_arch else {})
    program = efi_program(kernel) if kernel else b"unknown"
    esp = b"".join(efi_program(name).ljust(SECTOR, b"\0") for name in loaders)
    return machine_code.check(
        task, NAMED, io.BytesIO(program), io.BytesIO(esp) if loaders else None
    )


@pytest.mark.parametrize(
    ("cpu_arch", "kernel", "loaders", "boots"),
    [
        ("aarch64", "aarch64", ("aarch64",), "aarch64"),
        ("arm64", "aarch64", ("aarch64", "x86_64"), "aarch64"),
        ("x86_64", "x86_64", ("i686",), "x86_64"),
        ("amd64", "x86_64", (), "x86_64"),
        (None, "aarch64", ("aarch64",), "aarch64"),
        (None, None, ("aarch64",), None),
        ("aarch64", None, (), "aarch64"),
        (None, None, (), None),
    ],
)
def test_files_of_the_same_architecture_boot(
    cpu_arch: str | None, kernel: str | None, loaders: tuple[str, ...], boots: str | None
) -> None:
    assert booted(cpu_arch, kernel, *loaders) == boots


@pytest.mark.parametrize(
    ("cpu_arch", "kernel", "loaders", "reason"),
    [
        ("aarch64", "x86_64", (), r"kernel http://.*site/k is for x86_64, .*deploy_kernel_by_arch"),
        ("aarch64", "x86_64", (), "and properties/cpu_arch is aarch64; name one for the machine"),
        ("x86_64", "aarch64", ("x86_64",), "is for aarch64, and properties/cpu_arch is x86_64"),
        ("aarch64", "aarch64", ("x86_64",), r"bootloader file:///esp is for x86_64, and .*aarch"),
        ("aarch64", "aarch64", ("x86_64",), r"\[conductor\]bootloader_by_arch"),
        (None, "aarch64", ("x86_64",), "is for x86_64, and the kernel is for aarch64"),
    ],
)  # fmt: skip
def test_files_of_different_architectures_are_refused_by_name(
    cpu_arch: str | None, kernel: str, loaders: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(errors.StepFailure, match=reason) as refusal:
        booted(cpu_arch, kernel, *loaders)
    assert "geheim" not in str(refusal.value)


@pytest.mark.parametrize(
    ("cpu_arch", "built_for", "is_refused"),
    [
        ("aarch64", {"x86_64"}, True),
        ("aarch64", {"x86_64", "aarch64"}, False),
        ("aarch64", set(), False),
        (None, {"x86_64"}, False),
    ],
)
def test_an_image_of_other_machines_is_refused(
    cpu_arch: str | None, built_for: set[str], is_refused: bool
) -> None:
    task: Any = FakeTask({}, properties={"cpu_arch": cpu_arch})
    if not is_refused:
        return machine_code.check_disk(task, built_for)
    with pytest.raises(errors.StepFailure, match=r"for x86_64, and .* is aarch64; name an"):
        machine_code.check_disk(task, built_for)
    return None
