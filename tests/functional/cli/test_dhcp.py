"""``bloomery dhcp hosts``: files for dnsmasq follow the ports of a running service."""

from __future__ import annotations

from pathlib import Path

from bloomery.cli.client import Client
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration

FIRST, SECOND, SILENT = ("52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:0c")


def test_files_follow_the_ports(run: Run, site: Orchestration, tmp_path: Path) -> None:
    api = Client(site.service.url)
    node = api.post("/v1/nodes", {"driver": "fake-hardware", "name": "dhcp-1"})["uuid"]
    ports = [
        api.post("/v1/ports", {"node_uuid": node, "address": mac, "pxe_enabled": mac != SILENT})
        for mac in (FIRST, SECOND, SILENT)
    ]
    (tmp_path / "of-the-operator").write_text("52:54:00:00:00:ff\n")
    written = run(f"dhcp hosts --dir {tmp_path}")
    assert (written.exit_code, "2 written, 0 removed" in written.stderr) == (0, True)
    first, second = tmp_path / "52-54-00-00-00-0a", tmp_path / "52-54-00-00-00-0b"
    assert first.read_text() == f"{FIRST},set:bloomery\n"
    unchanged = first.stat().st_ino
    second.write_text("a former line\n")
    assert "1 written, 0 removed" in run(f"dhcp hosts --dir {tmp_path}").stderr
    assert (first.stat().st_ino, second.read_text()) == (unchanged, f"{SECOND},set:bloomery\n")
    api.delete(f"/v1/ports/{ports[0]['uuid']}")
    assert "0 written, 1 removed" in run(f"dhcp hosts --dir {tmp_path}").stderr
    assert {path.name for path in tmp_path.iterdir()} == {second.name, "of-the-operator"}
    api.delete(f"/v1/nodes/{node}")


def test_a_folder_that_is_missing_is_named(run: Run, tmp_path: Path) -> None:
    result = run(f"dhcp hosts --dir {tmp_path}/missing")
    assert (result.exit_code, f"{tmp_path}/missing" in result.stderr) == (2, True)
