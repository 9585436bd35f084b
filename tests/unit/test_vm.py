"""The command of ``make vm`` reads its arguments before it starts anything."""

from __future__ import annotations

import pytest

from tests.vm import life


@pytest.mark.parametrize(
    ("arguments", "firmwares"),
    [([], ["uefi", "bios"]), (["bios"], ["bios"]), (["uefi"], ["uefi"])],
)
def test_make_vm_reads_no_argument_and_each_firmware(
    arguments: list[str], firmwares: list[str]
) -> None:
    assert life.firmwares(arguments) == firmwares


def test_make_vm_refuses_other_firmware() -> None:
    with pytest.raises(SystemExit):
        life.firmwares(["coreboot"])
