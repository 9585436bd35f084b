"""The command of ``make vm`` reads its arguments before it starts anything."""

from __future__ import annotations

import pytest

from tests.vm import life

ALL = list(life.LIVES)


@pytest.mark.parametrize(
    ("arguments", "firmwares", "lives"),
    [
        ([], ["uefi", "bios"], ALL),
        (["bios"], ["bios"], ALL),
        (["uefi", "mirror", "disk"], ["uefi"], ["mirror", "disk"]),
        (["bios", "short"], ["bios"], ["short"]),
    ],
)
def test_make_vm_reads_no_argument_a_firmware_and_its_lives(
    arguments: list[str], firmwares: list[str], lives: list[str]
) -> None:
    assert life.parse(arguments) == (firmwares, lives)


@pytest.mark.parametrize(
    "arguments",
    [
        ["coreboot"],
        ["uefi", "floppy"],
        ["bios", "mirror"],
        ["bios", "url"],
        ["bios", "grub"],
        ["uefi", "short", "disk"],
    ],
)
def test_make_vm_refuses_what_it_does_not_have(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        life.parse(arguments)
