"""The logs of ramdisks: fetched from the agent of a flow, before it is removed."""

from __future__ import annotations

import dataclasses
import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Agent as AgentOptions
from bloomery.drivers.agent import logs

BURNIN = [{"interface": "deploy", "step": "burnin_cpu"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def collects(stage, monkeypatch, folder):
    """Set the options of logs, for the driver of the site."""
    deploy = stage.site.runtime.registry.interfaces["deploy"]["direct"]

    def configure(when: str, **more: Any) -> None:
        plain = deploy.conf
        agent = dataclasses.replace(
            plain.agent, deploy_logs_collect=when, deploy_logs_local_path=str(folder), **more
        )
        changed = dataclasses.replace(plain, agent=agent)
        monkeypatch.setattr(deploy, "_logs", logs.RamdiskLogs(changed))

    return configure


def stored(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def fail(stage, node: str, ramdisk, when: str = "deploy failed") -> dict[str, Any]:
    ramdisk.server.fails["prepare_image"] = "no such disk"
    stage.ask(node, "active")
    shown: dict[str, Any] = ramdisk.live_until(node, "active", "deploy failed")
    assert shown["provision_state"] == when
    return shown


def test_a_failed_deployment_leaves_the_logs_of_its_agent(
    stage, available, ramdisk, collects, folder
):
    collects("on_failure")
    fail(stage, available, ramdisk)
    (path,) = stored(folder)
    assert gzip.decompress(path.read_bytes()) == b"journal"
    assert path.name.startswith(f"{available}_deploy_")
    assert path.stat().st_mode & 0o077 == 0
    why = stage.api.get(f"/ext/v1/nodes/{available}/why").json
    assert str(path) in why["next_action"]
    timeline = stage.api.get(f"/ext/v1/nodes/{available}/timeline").json["timeline"]
    assert any(str(path) in str(entry) for entry in timeline)


def test_a_failed_cleaning_leaves_them_too(stage, node, ramdisk, collects, folder):
    collects("on_failure")
    ramdisk.server.fails["execute_clean_step"] = "no such disk"
    stage.ask(node, "provide")
    ramdisk.live_until(node, "clean failed", "available")
    (path,) = stored(folder)
    assert "_cleaning_" in path.name
    assert str(path) in stage.api.get(f"/ext/v1/nodes/{node}/why").json["next_action"]


def test_an_aborted_flow_leaves_them_too(stage, available, ramdisk, collects, folder):
    collects("on_failure")
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    ramdisk.server.endless.clear()
    ramdisk.server.finish()
    stage.ask(available, "abort")
    stage.wait_for(available, "deploy failed")
    assert len(stored(folder)) == 1


@pytest.mark.parametrize(("when", "count"), [("always", 3), ("on_failure", 0), ("never", 0)])
def test_flows_that_succeed_leave_logs_where_all_are_asked_for(
    stage, node, ramdisk, collects, folder, when, count
):
    collects(when)
    stage.ask(node, "provide")
    ramdisk.live_until(node, "available", "clean failed")
    stage.ask(node, "active")
    ramdisk.live_until(node, "active", "deploy failed")
    ramdisk.begin()
    stage.ask(node, "service", service_steps=BURNIN)
    shown = ramdisk.live_until(node, "active", "service failed")
    assert shown["last_error"] is None
    flows = [path.name.split("_")[1] for path in stored(folder)]
    assert sorted(flows) == ["cleaning", "deploy", "service"][:count]


def test_nothing_is_asked_for_where_no_logs_are_wanted(stage, available, ramdisk, collects):
    collects("never")
    fail(stage, available, ramdisk)
    assert "log.collect_system_logs" not in ramdisk.server.told


@pytest.mark.parametrize("logs_of_agent", [b"no gzip", b""])
def test_an_agent_without_logs_changes_nothing(
    stage, available, ramdisk, collects, folder, logs_of_agent
):
    collects("on_failure")
    ramdisk.server.logs = logs_of_agent
    shown = fail(stage, available, ramdisk)
    assert "no such disk" in shown["last_error"]
    assert stored(folder) == []
    assert "agent_logs" not in shown["driver_internal_info"]


def test_a_folder_that_cannot_be_written_changes_nothing(
    stage, available, ramdisk, collects, folder
):
    folder.write_text("a file")
    collects("on_failure")
    assert "no such disk" in fail(stage, available, ramdisk)["last_error"]


def test_a_full_disk_keeps_no_part_of_the_logs(
    stage, available, ramdisk, collects, folder, monkeypatch
):
    def write_a_part(path: Path, content: bytes) -> int:
        path.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_a_part)
    collects("on_failure")
    assert "no such disk" in fail(stage, available, ramdisk)["last_error"]
    assert stored(folder) == []


def test_the_oldest_logs_make_room_and_no_other_file_does(
    stage, available, ramdisk, collects, folder
):
    folder.mkdir()
    for number in range(3):
        ending = "gz" if number else "part"  # which a crash has left
        path = folder / f"{available}_deploy_{number}.tar.{ending}"
        path.write_bytes(b"\0" * (400 << 10))
        os.utime(path, (number, number))
    other = folder / "other.tar.gz"
    other.write_bytes(b"\0" * (2 << 20))
    os.utime(other, (0, 0))
    collects("on_failure", deploy_logs_local_size=1)
    fail(stage, available, ramdisk)
    names = [path.name for path in stored(folder)]
    assert f"{available}_deploy_0.tar.part" not in names
    assert {f"{available}_deploy_1.tar.gz", "other.tar.gz"} < set(names)
    assert len(names) == 4


def test_swift_is_refused_in_words():
    conf = dataclasses.replace(Conf(), agent=AgentOptions(deploy_logs_storage_backend="swift"))
    with pytest.raises(errors.CannotStart, match="deploy_logs_storage_backend = local"):
        logs.RamdiskLogs(conf)
