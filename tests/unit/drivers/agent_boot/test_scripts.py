"""What iPXE is told, word by word."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.agent_boot import scripts


def test_a_machine_without_a_script_boots_its_disk_whatever_its_firmware() -> None:
    lines = scripts.ENTRY.splitlines()
    assert lines[0] == "#!ipxe"
    assert lines[1].endswith("pxelinux.cfg/${mac:hexhyp} || goto disk")
    at = lines.index(":disk")
    assert lines[at + 1 :] == [
        "iseq ${platform} efi && exit 1 ||", "sanboot --no-describe --drive 0x80 || exit 1",
    ]  # fmt: skip


@pytest.mark.parametrize(("timeout_s", "limit"), [(0, ""), (90, " --timeout 90000")])
def test_an_agent_is_fetched_and_started(timeout_s: int, limit: str) -> None:
    assert scripts.agent("http://a/k", "http://a/r", "initrd=ramdisk quiet", timeout_s) == (
        f"#!ipxe\nkernel{limit} http://a/k initrd=ramdisk quiet\n"
        f"initrd{limit} --name ramdisk http://a/r\nboot\n"
    )


@pytest.mark.parametrize("line", ["a || exit", "a && b", "a ; b", "; b", "a #b", "a ||"])
def test_a_word_that_ipxe_would_act_on_is_refused(line: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="kernel_append_params"):
        scripts.check(line)


@pytest.mark.parametrize("line", ["a=b;c", "x=1||2", "ip=${ip}", "a#b", 'quoted="a b"'])
def test_what_stands_within_a_word_is_handed_on(line: str) -> None:
    scripts.check(line)
