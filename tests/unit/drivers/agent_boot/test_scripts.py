"""What iPXE and GRUB are told, word by word."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy, Pxe
from bloomery.drivers.agent_boot import scripts

CHECKER = shutil.which("grub-script-check")
GRUB_ENTRY = scripts.GRUB.entry_script("http://a:80/bm", None)
GRUB_AGENT = scripts.GRUB.agent_script(
    "http://a:80/bm/boot-files/k", "http://a:80/bm/boot-files/r", 'quiet a="b c" d=$x;e', 90
)


def test_a_machine_without_a_script_boots_its_disk_whatever_its_firmware() -> None:
    lines = scripts.IPXE.entry_script("http://a", None).splitlines()
    assert lines[0] == "#!ipxe"
    assert lines[1].endswith("pxelinux.cfg/${mac:hexhyp} || goto disk")
    at = lines.index(":disk")
    assert lines[at + 1 :] == [
        "iseq ${platform} efi && exit 1 ||", "sanboot --no-describe --drive 0x80 || exit 1",
    ]  # fmt: skip


def test_a_machine_without_a_script_runs_the_fallback_before_its_disk() -> None:
    lines = scripts.IPXE.entry_script("http://a", "discover.ipxe").splitlines()
    plain = scripts.IPXE.entry_script("http://a", None).splitlines()
    assert lines[1:4] == [
        plain[1].replace("disk", "fallback"), ":fallback",
        "chain --timeout 60000 discover.ipxe || goto disk",
    ]  # fmt: skip
    assert lines[4:] == plain[2:]
    assert scripts.GRUB.entry_script("http://a:80/bm", "discover.ipxe") == GRUB_ENTRY


def with_fallback(script: str, http_url: str | None = None) -> Conf:
    return Conf(pxe=Pxe(ipxe_fallback_script=script), deploy=Deploy(http_url=http_url))


@pytest.mark.parametrize(
    "script", ["https://web.test/a/discover.ipxe?mac=${mac}", "http://[fd00::1]:80/x&&y"]
)
def test_a_fallback_may_have_a_url_anywhere(script: str) -> None:
    scripts.check_fallback(with_fallback(script))


@pytest.mark.parametrize(
    "script",
    ["boot.ipxe", "../x", "a/b", "--name", "||", "&&", ";", "#x", "a b", "http://", "http:///x",
     "http://web.test/a b", "http://web.test/x\ngoto disk", "ftp://web.test/x", "http://web.test/ä"],
)  # fmt: skip
def test_a_fallback_that_ipxe_would_misread_is_refused(script: str) -> None:
    with pytest.raises(errors.CannotStart, match=r"\[pxe\]ipxe_fallback_script: it takes an http"):
        scripts.check_fallback(with_fallback(script, "http://web.test"))


def test_a_fallback_beside_the_entry_needs_a_web_server_of_the_operator() -> None:
    scripts.check_fallback(with_fallback("discover.ipxe", "http://web.test"))
    with pytest.raises(
        errors.CannotStart, match=r"write the script's URL, or set \[deploy\]http_url"
    ):
        scripts.check_fallback(with_fallback("discover.ipxe"))


@pytest.mark.parametrize(("timeout_s", "limit"), [(0, ""), (90, " --timeout 90000")])
def test_an_agent_is_fetched_and_started(timeout_s: int, limit: str) -> None:
    assert scripts.IPXE.agent_script(
        "http://a/k", "http://a/r", "initrd=ramdisk quiet", timeout_s
    ) == (
        f"#!ipxe\nkernel{limit} http://a/k initrd=ramdisk quiet\n"
        f"initrd{limit} --name ramdisk http://a/r\nboot\n"
    )


@pytest.mark.parametrize("line", ["a || exit", "a && b", "a ; b", "; b", "a #b", "a ||"])
def test_a_word_that_ipxe_would_act_on_is_refused(line: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="kernel_append_params"):
        scripts.IPXE.check(line)
    scripts.GRUB.check(line)  # it is quoted


@pytest.mark.parametrize("line", ["a=b;c", "x=1||2", "ip=${ip}", "a#b", 'quoted="a b"'])
def test_what_stands_within_a_word_is_handed_on(line: str) -> None:
    scripts.IPXE.check(line)


def test_grub_asks_for_the_script_of_its_address_then_boots_the_disk() -> None:
    lines = GRUB_ENTRY.splitlines()
    assert lines[0] == "source /bm/pxelinux.cfg/$net_default_mac"
    assert "  if search --no-floppy --file --set=root $loader; then" in lines
    assert lines[-1] == "exit 1", "firmware then tries the next boot entry"


def test_grub_starts_an_agent_that_it_has_wholly() -> None:
    """Paths are relative to GRUB's root; what its shell would act on is quoted."""
    assert [line.strip() for line in GRUB_AGENT.splitlines()] == [
        "if linux /bm/boot-files/k 'quiet' 'a=b c' 'd=$x;e'; then",
        "if initrd /bm/boot-files/r; then", "boot", "fi", "fi",
    ]  # fmt: skip


@pytest.mark.skipif(CHECKER is None, reason="grub-script-check is not installed")
@pytest.mark.parametrize("script", [GRUB_ENTRY, GRUB_AGENT])
def test_grub_understands_its_scripts(script: str) -> None:
    for text, understood in ((script, True), (script.replace("fi\n", "", 1), False)):
        checked = subprocess.run([str(CHECKER)], check=False, input=text, text=True)
        assert (checked.returncode == 0) is understood
