"""``bloomery dhcp``: what dnsmasq is told, and that dnsmasq understands it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bloomery.cli import main
from bloomery.cli.service import dhcp
from tests.kit.machines import programs

CHECKER = shutil.which("dnsmasq", path="/usr/sbin:/usr/local/sbin:/usr/bin")
PAGE = Path(__file__).parents[4] / "doc/guides/deploying.md"
OWN_API = "[api]\npublic_endpoint = http://192.0.2.10:6385\n"
RANGE = "--range=192.0.2.100,192.0.2.199"


def run(tmp_path: Path, *words: str, options: str = OWN_API) -> Result:
    file = tmp_path / "bloomery.conf"
    file.write_text(options)
    return CliRunner().invoke(
        main.main, ["dhcp", "print", "--config-file", str(file), *words], catch_exceptions=False
    )


def settings(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [line for line in result.stdout.splitlines() if not line.startswith("#")]


def handed_out(lines: list[str], tags: set[str]) -> list[str]:
    """Return the files of the lines that fit a machine with these tags."""
    boots = [line.removeprefix("dhcp-boot=").split(",") for line in lines if "dhcp-boot" in line]
    return [
        file
        for *wanted, file in boots
        if all((tag[5:] not in tags) if "!" in tag else (tag[4:] in tags) for tag in wanted)
    ]


@pytest.mark.parametrize("loader", ["ipxe", "grub"])
def test_the_lines_are_those_of_the_page(tmp_path: Path, loader: str) -> None:
    blocks = re.findall(r"```\n(\s+dhcp-range=.*?)```", PAGE.read_text(), re.DOTALL)
    written = [sorted(block.split()) for block in blocks]
    assert len(written) == 2
    printed = settings(run(tmp_path, "--loader", loader, RANGE))
    assert sorted(printed) == written[loader == "grub"]


@pytest.mark.parametrize(
    ("arch", "ipxe", "grub"),
    [
        pytest.param(0, "undionly.kpxe", None, id="x86-bios"),
        pytest.param(7, "snponly.efi", "bootx64.efi", id="x64-uefi"),
        pytest.param(9, "snponly.efi", "bootx64.efi", id="x64-uefi-as-ebc"),
        pytest.param(16, "snponly.efi", "bootx64.efi", id="x64-uefi-http"),
        pytest.param(11, "snponly-arm64.efi", "bootaa64.efi", id="arm64-uefi"),
        pytest.param(19, "snponly-arm64.efi", "bootaa64.efi", id="arm64-uefi-http"),
    ],
)
def test_each_firmware_gets_a_loader_of_its_kind(
    tmp_path: Path, arch: int, ipxe: str, grub: str | None
) -> None:
    for loader, file in (("ipxe", ipxe), ("grub", grub)):
        lines = settings(run(tmp_path, "--loader", loader, RANGE))
        match = re.compile(rf"dhcp-match=set:(\w+),option:client-arch,{arch}")
        tags = {found[1] for line in lines if (found := match.fullmatch(line))}
        files = handed_out(lines, tags)
        assert files == ([file] if file else [])


def test_a_web_server_hands_out_the_scripts_where_there_is_one(tmp_path: Path) -> None:
    options = f"{OWN_API}[deploy]\nhttp_url = https://web.test/bm/\n"
    printed = run(tmp_path, RANGE, options=options).stdout
    assert "dhcp-boot=tag:ipxe,https://web.test/bm/boot.ipxe\n" in printed
    grub = run(tmp_path, "--loader", "grub", options=options).stdout
    assert "# GRUB cannot fetch https://web.test/bm:" in grub
    grub = run(tmp_path, "--loader", "grub", options=options.replace("https", "http")).stdout
    assert "#   set root=(http,web.test)\n#   configfile /bm/grub.cfg\n" in grub


@pytest.mark.parametrize("loader", ["ipxe", "grub"])
def test_firmware_that_boots_by_http_gets_an_address_alone(tmp_path: Path, loader: str) -> None:
    blocks = re.findall(r"```\n(\s+dhcp-vendorclass.*?)```", PAGE.read_text(), re.DOTALL)
    words = ["--loader", loader, "--http-url", "http://192.0.2.1/"]
    printed = settings(run(tmp_path, RANGE, *words))
    assert set(blocks[loader == "grub"].split()) < {*printed}
    x86, arm = {
        "ipxe": ("snponly.efi", "snponly-arm64.efi"),
        "grub": ("bootx64.efi", "bootaa64.efi"),
    }[loader]
    for tags, file in (
        ({"efi", "http"}, f"http://192.0.2.1/{x86}"), ({"arm64", "http"}, f"http://192.0.2.1/{arm}"),
        ({"efi"}, x86), ({"arm64"}, arm),
    ):  # fmt: skip
        assert handed_out(printed, tags) == [file]


def test_the_options_name_the_files(tmp_path: Path) -> None:
    options = f"""{OWN_API}[pxe]
ipxe_bootfile_name = ipxe.pxe
uefi_ipxe_bootfile_name = usual.efi
ipxe_bootfile_name_by_arch = arm64:any.efi,aarch64-uefi:arm.efi,x86_64-bios:other.efi
uefi_pxe_bootfile_name = shim.efi
pxe_bootfile_name_by_arch = x86_64:shim64.efi
"""
    ipxe = settings(run(tmp_path, options=options))
    assert {"dhcp-boot=tag:!ipxe,tag:!efi,tag:!arm64,ipxe.pxe",
            "dhcp-boot=tag:!ipxe,tag:efi,usual.efi",
            "dhcp-boot=tag:!ipxe,tag:arm64,arm.efi"} < {*ipxe}  # fmt: skip
    grub = settings(run(tmp_path, "--loader", "grub", options=options))
    assert {"dhcp-boot=tag:efi,shim64.efi", "dhcp-boot=tag:arm64,bootaa64.efi"} < {*grub}
    odd = run(tmp_path, options=options.replace("usual.efi", "a b"))
    assert (odd.exit_code, "'a b' that [pxe] names" in odd.stderr) == (1, True)


def test_a_file_in_the_folder_that_its_machines_cannot_run_is_named(tmp_path: Path) -> None:
    for name, architecture in (("snponly.efi", "x86_64"), ("snponly-arm64.efi", "x86_64")):
        (tmp_path / name).write_bytes(programs.efi_program(architecture))
    warned = run(tmp_path, "--tftp-root", str(tmp_path)).stderr
    path = tmp_path / "snponly-arm64.efi"
    assert warned == f"warning: {path} is for x86_64, and machines of aarch64 get it\n"
    path.write_bytes(programs.efi_program("aarch64"))
    assert run(tmp_path, "--tftp-root", str(tmp_path)).stderr == ""


def test_addresses_are_left_to_fill_in(tmp_path: Path) -> None:
    printed = run(tmp_path).stdout.splitlines()
    assert printed[0].startswith("# Replace FIRST and LAST")
    assert printed[1] == "#dhcp-range=FIRST,LAST"


def test_machines_that_are_not_enrolled_get_no_answer(tmp_path: Path) -> None:
    printed = settings(run(tmp_path, "--hosts-dir", "/srv/hosts", "--tftp-root", "/srv/boot"))
    assert {"dhcp-hostsdir=/srv/hosts", "dhcp-ignore=tag:!known", "tftp-root=/srv/boot"} < {
        *printed
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--range", "192.0.2.9"], "write two IPv4 addresses"),
        (["--range", "192.0.2.9,192.0.2.8"], "write two IPv4 addresses"),
        (["--range", "fd00::1,fd00::2"], "write two IPv4 addresses"),
        (["--tftp-root", "srv/tftp"], "absolute path"),
        (["--tftp-root", "/srv/a b"], "absolute path"),
        (["--hosts-dir", "/srv\nuser=root"], "absolute path"),
        (["--hosts-dir", "/srv/a,b"], "absolute path"),
        (["--http-url", "ftp://192.0.2.1"], "http or https URL"),
        (["--http-url", "http://192.0.2.1/a,b"], "http or https URL"),
        (["--http-url", "http://192.0.2.1/ b"], "http or https URL"),
    ],
)
def test_what_dnsmasq_would_misread_is_refused(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    result = run(tmp_path, *words)
    assert (result.exit_code, reason in result.stderr) == (2, True), result.output


def test_a_site_without_an_address_is_told_which_options_to_set(tmp_path: Path) -> None:
    missing = run(tmp_path, options="")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "[api]public_endpoint" in missing.stderr
    odd = run(tmp_path, options="[deploy]\nhttp_url = http://web.test/a,b\n")
    assert (odd.exit_code, "http://web.test/a,b" in odd.stderr) == (1, True)


@pytest.mark.skipif(CHECKER is None, reason="dnsmasq is not installed")
@pytest.mark.parametrize("loader", ["ipxe", "grub"])
@pytest.mark.parametrize("has_hosts", [False, True])
def test_dnsmasq_understands_the_lines(tmp_path: Path, loader: str, has_hosts: bool) -> None:
    hosts = ["--hosts-dir", str(tmp_path), "--http-url", "http://web.test"] if has_hosts else []
    printed = run(tmp_path, "--loader", loader, RANGE, *hosts).stdout
    for text, understood in ((printed, True), (printed.replace("dhcp-boot", "dhcp-root"), False)):
        file = tmp_path / "dnsmasq.conf"
        file.write_text(text)
        checked = subprocess.run(
            [str(CHECKER), "--test", f"--conf-file={file}"], check=False, capture_output=True
        )
        assert (checked.returncode == 0) is understood, checked.stderr


def test_machines_are_read_from_all_pages() -> None:
    def port(mac: str, pxe_enabled: bool = True) -> dict[str, Any]:
        return {"uuid": "x", "address": mac, "pxe_enabled": pxe_enabled}

    class Api:
        def get(self, path: str) -> Any:
            if "marker" not in path:
                following = "http://192.0.2.10:6385/v1/ports?fields=address&marker=2"
                return {"ports": [port("a"), port("b", pxe_enabled=False)], "next": following}
            assert path == "/v1/ports?fields=address&marker=2"
            return {"ports": [port("c")]}

    api: Any = Api()
    assert list(dhcp._list_macs(api)) == ["a", "c"]
