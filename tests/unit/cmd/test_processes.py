"""Roles as processes of their own: refused on SQLite, told by signals what is to come."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery import errors
from bloomery.cli.main import main
from bloomery.cmd.api import ApiProcess
from bloomery.cmd.conductor import ConductorProcess
from bloomery.cmd.engine import EngineProcess
from bloomery.cmd.process import Shutdown
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.db import conductors
from bloomery.state_dir import StateDir
from tests.kit.servers import peers
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

TERM, USR1, USR2 = 15, 10, 12


@pytest.mark.parametrize("role", [ApiProcess, ConductorProcess])
def test_sqlite_is_for_one_process(tmp_path: Path, role: Any) -> None:
    with StateDir(tmp_path) as home, pytest.raises(errors.CannotStart) as refused:
        role(Conf(), home)
    assert f"bloomery db copy --from sqlite:///{tmp_path}/bloomery.sqlite" in str(refused.value)


@pytest.mark.parametrize(("transport", "times"), [("none", 1), ("json-rpc", 0)])
def test_an_engine_that_reaches_no_conductor_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, transport: str, times: int
) -> None:
    with StateDir(tmp_path) as home:
        engine = EngineProcess(Conf(default=Default(rpc_transport=transport)), home)
        engine.start()
        engine.stop()
    assert caplog.text.count("[DEFAULT]rpc_transport is none") == times


def test_roles_share_a_state_dir_with_a_lock_each(tmp_path: Path) -> None:
    with StateDir(tmp_path, role="api"), StateDir(tmp_path, role="conductor"):
        with pytest.raises(errors.StateDirInUse):
            StateDir(tmp_path, role="api").take()
        with StateDir(tmp_path):
            """A whole service has a third one; its conductor's name is what tells them apart."""


@pytest.fixture
def served(site: Site, tmp_path: Path) -> list[str]:
    """The arguments that lead a command to the site's database."""
    config = tmp_path / "conf"
    config.write_text(f"[database]\nconnection = sqlite:///{site.path}\n")
    with site.db.read() as conn:  # the tables are there, made past the migrations
        conn.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        conn.exec_driver_sql("INSERT INTO alembic_version SELECT ?", (head(),))
    return ["--state-dir", str(tmp_path), "--config-file", str(config)]


def head() -> str:
    from bloomery.db import schema

    return schema.HEAD


def test_conductors_are_listed(site: Site, served: list[str]) -> None:
    site.enrol()
    peers.join(site.db, "drains")
    peers.beat(site.db, "drains", online=False)
    peers.join(site.db, "died")
    peers.fence_out(site.db, "died")
    peers.join(site.db, "left")
    peers.leave(site.db, "left")
    peers.join(site.db, "mute", drivers=("ipmi",))  # it owns none of our nodes
    site.db.transact(lambda conn: conn.exec_driver_sql(
        "UPDATE conductors SET updated_at = '2026-01-01 00:00:00.000000' WHERE hostname = 'mute'"
    ))  # fmt: skip
    shown = CliRunner().invoke(main, ["conductor", "list", *served], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    lines = {words[0]: words for line in shown.output.splitlines() if (words := line.split())}
    assert lines["drains"][2] == "draining"
    assert lines["died"][2] == "dead"
    assert lines["left"][2] == "offline"
    assert lines["mute"][2:4] == ["no", "heartbeat"]
    ours = lines[site.runtime.host]
    assert ours[2:7] == ["online", ours[3], "s", "ago", "1"]


def test_one_that_is_about_to_come_back_is_restarting(site: Site) -> None:
    incarnation = peers.join(site.db, "warm")
    site.db.transact(lambda conn: conductors.sign_off(conn, "warm", incarnation, online=True))
    assert peers.look(site.db, "warm").state == "restarting"


def test_a_drain_is_ordered_and_watched_to_its_end(site: Site, served: list[str]) -> None:
    peers.join(site.db, "host-b")
    ordered = threading.Thread(target=_leave_when_told, args=(site,))
    ordered.start()
    shown = CliRunner().invoke(main, ["conductor", "drain", "host-b", *served])
    ordered.join()
    assert shown.output.splitlines() == [
        "conductor host-b was told to drain", "online: works on 0 nodes",
        "offline: works on 0 nodes",
    ]  # fmt: skip
    again = CliRunner().invoke(main, ["conductor", "drain", "host-b", *served])
    assert (again.exit_code, again.output) == (
        1, "Error: cannot drain conductor host-b: it is offline\n",
    )  # fmt: skip


def _leave_when_told(site: Site) -> None:
    wait_for(lambda: peers.look(site.db, "host-b").drain_ordered_at, "the order")
    threading.Event().wait(0.1)
    peers.leave(site.db, "host-b")


def test_signals_of_a_conductor() -> None:
    codes: list[int] = []
    shutdown = Shutdown(codes.append)
    shutdown.allow_grace(60, 0.05)
    shutdown.heard(USR1)
    assert (shutdown.restarts, shutdown.requested.is_set()) == (True, False)
    shutdown.drain()
    assert (shutdown.drains, shutdown.requested.is_set(), codes) == (True, True, [])
    shutdown.drain()
    assert codes == [], "a second order to drain is none to end"
    wait_for(lambda: codes == [0], "the end by force")


def test_a_drain_has_a_time_of_its_own() -> None:
    conf = Conf()
    shutdown = Shutdown(lambda code: None)
    shutdown.allow_grace_of(conf)
    assert shutdown.grace_s(conf) == conf.conductor.graceful_shutdown_timeout
    shutdown.drain()
    assert shutdown.grace_s(conf) == conf.default.drain_shutdown_timeout == 1800
    shutdown.heard(TERM)
