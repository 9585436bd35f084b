"""Units of systemd: hardened, with commands that exist."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from bloomery.cli.main import main

CONTRIB = Path(__file__).parents[4] / "contrib"
UNITS = sorted((CONTRIB / "systemd").glob("*.service"))
YES = (
    "LockPersonality", "MemoryDenyWriteExecute", "NoNewPrivileges", "PrivateDevices", "PrivateTmp",
    "PrivateUsers", "ProtectClock", "ProtectControlGroups", "ProtectHome", "ProtectHostname",
    "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "RemoveIPC",
    "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
)  # fmt: skip
OTHERS = {
    "User": "bloomery", "StateDirectory": "bloomery", "StateDirectoryMode": "0700",
    "UMask": "0077", "CapabilityBoundingSet": "", "AmbientCapabilities": "",
    "ProtectSystem": "strict", "ProtectProc": "invisible", "ProcSubset": "pid",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "SystemCallArchitectures": "native",
}  # fmt: skip
every_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)


def service(unit: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit, encoding="utf-8")
    return parser["Service"]


def test_there_is_a_unit_for_each_role() -> None:
    roles = {service(unit)["ExecStart"].split()[1] for unit in UNITS}
    assert roles == {"serve", "api", "conductor", "engine"}


@every_unit
def test_each_unit_is_hardened(unit: Path) -> None:
    options = service(unit)
    assert [name for name in YES if options.get(name) != "yes"] == []
    assert {name: options.get(name) for name in OTHERS} == OTHERS
    filters = [line for line in unit.read_text().splitlines() if line.startswith("SystemCallF")]
    assert filters == ["SystemCallFilter=@system-service", "SystemCallFilter=~@privileged"]


@every_unit
def test_each_unit_starts_a_command_that_exists(unit: Path) -> None:
    program, name, *words = service(unit)["ExecStart"].split()
    assert Path(program).name == "bloomery"
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    assert {"--state-dir", "/var/lib/bloomery"} <= set(words)


@every_unit
def test_systemd_rates_each_unit_below_3(unit: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed; the options are tested above")
    line = [program, "security", "--offline=true", "--threshold=30", "--no-pager", str(unit)]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-300:]


def test_the_user_and_the_folders_of_the_units_are_declared() -> None:
    users = (CONTRIB / "sysusers.d/bloomery.conf").read_text()
    folders = (CONTRIB / "tmpfiles.d/bloomery.conf").read_text()
    assert users.startswith("u bloomery ")
    for folder in ("/etc/bloomery 0750 root bloomery", "/var/lib/bloomery 0700 bloomery bloomery"):
        assert f"d {folder} " in folders
