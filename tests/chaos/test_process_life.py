"""How a process starts and ends: whoever has the state dir is alone at the BMCs."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.conf.default import Database
from bloomery.db import schema
from bloomery.lab.rack import Rack
from bloomery.state_dir import StateDir
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

SLOW_S = 12.0  # what a BMC takes for one answer; nobody waits for it


@pytest.fixture
def rack() -> Iterator[Rack]:
    rack = Rack(1, power_s=0.1).start()
    yield rack
    rack.stop()


def a_node(served: Served, **values: object) -> str:
    return str(served.api("POST", "/v1/nodes", values)["uuid"])


def is_free(path: Path) -> bool:
    """Whether the state dir may be taken; it is let go again."""
    with contextlib.suppress(errors.StateDirInUse), StateDir(path):
        return True
    return False


def test_whoever_takes_the_state_dir_is_alone_at_the_bmcs(tmp_path: Path, rack: Rack) -> None:
    """The grace is over while a worker waits for a slow BMC; its order never comes."""
    machine = rack.machines[0]
    with Served(tmp_path / "state", conductor={"graceful_shutdown_timeout": 1}) as served:
        served.wait_until_it_answers()
        node = a_node(served, driver="redfish", driver_info=machine.driver_info)
        machine.bmc.faults.add(kind="delay", seconds=SLOW_S, times=-1)
        served.api("PUT", f"/v1/nodes/{node}/states/power", {"target": "power on"})
        wait_for(lambda: machine.bmc.faults.shown()[0]["hits"], "the worker to ask the BMC")
        served.send(signal.SIGTERM)
        wait_for(lambda: is_free(tmp_path / "state"), "the state dir", timeout_s=SLOW_S)
        machine.bmc.faults.clear()
        before = machine.bmc.requests
        assert served.code(within_s=SLOW_S) == 0
        assert machine.bmc.requests == before
        assert machine.system.happened == []


@contextlib.contextmanager
def foreign_lock(database: Path) -> Iterator[None]:
    """Another program that holds the database for writing."""
    other = sqlite3.connect(database, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A state dir that was served from before."""
    path = tmp_path / "state"
    with StateDir(path) as home:
        db = home.open_database(Database())
        schema.prepare(db)
        home.sealer(db)
        db.close()
    return path


def test_a_start_that_fails_ends_the_process_with_a_sentence(state_dir: Path) -> None:
    with foreign_lock(state_dir / "bloomery.sqlite"), Served(state_dir) as served:
        assert served.code() == 1
        assert served.url is None
    said = "".join(served.complaints)
    assert f"another program holds a lock on it ({state_dir}/bloomery.sqlite)" in said
    assert "cannot start" in said
    assert "Traceback" not in said


def test_a_signal_during_the_start_ends_it_at_once(state_dir: Path) -> None:
    """SQLite waits for another program; the lock tells that the start has begun."""
    with foreign_lock(state_dir / "bloomery.sqlite"), Served(state_dir) as served:
        wait_for((state_dir / "lock").read_text, "it to take the state dir")
        served.send(signal.SIGTERM)
        assert served.code() == 128 + signal.SIGTERM
        assert served.complaints == []


def test_any_second_signal_ends_a_process_that_stops(tmp_path: Path) -> None:
    with Served(tmp_path / "state", conductor={"automated_clean": False}) as served:
        served.wait_until_it_answers()
        slow = {"fake": {"delay": {"power.set_power_state": 600}}}
        node = a_node(served, driver="fake-hardware", driver_info=slow)
        served.api("PUT", f"/v1/nodes/{node}/states/power", {"target": "power on"})
        served.send(signal.SIGTERM)
        served.wait_until_it_prints("stopping")
        served.send(signal.SIGINT)
        assert served.code() == 128 + signal.SIGINT
        assert is_free(tmp_path / "state")


def test_without_clouds_yaml_it_serves_says_so_and_keeps_the_state_dir(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    (state_dir / "clouds.yaml").mkdir(parents=True)
    with Served(state_dir) as served:
        served.wait_until_it_answers()
        named = f"{state_dir}/clouds.yaml"
        wait_for(lambda: named in "".join(served.complaints), "the complaint to be read")
        assert served.api("GET", "/v1/nodes") == {"nodes": []}
        with pytest.raises(errors.StateDirInUse, match=f"process {served.pid}"):
            StateDir(state_dir).take()
        served.send(signal.SIGINT)
        assert served.code() == 0
