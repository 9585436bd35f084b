"""A start that fails leaves nothing behind: no thread, no port, no reservation of the state dir."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.api import server
from bloomery.cmd.serving import Service
from bloomery.conductor.service import ConductorService
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.notifications import Events
from bloomery.db import conductors, schema
from bloomery.db.engine import Database
from bloomery.home import Home
from bloomery.operations import health
from tests.kit.waiting import wait_for


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path / "state") as home:
        yield home


def fails(*_args: Any, **_more: Any) -> None:
    raise errors.CannotStart(reason="cannot do this in a test")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    ("part", "method"),
    [(server.Server, "start"), (ConductorService, "_beat"), (server.Server, "__init__")],
    ids=str,
)
def test_what_was_started_is_stopped(
    home: Home, monkeypatch: pytest.MonkeyPatch, part: Any, method: str
) -> None:
    before = set(threading.enumerate())
    port = free_port()
    settings = Conf(api=Api(port=port), events=Events(log=True))
    with monkeypatch.context() as patch:
        patch.setattr(part, method, fails)
        with pytest.raises(errors.CannotStart, match="in a test"), Service(settings, home):
            raise AssertionError("it has started")
    wait_for(lambda: set(threading.enumerate()) <= before, "its threads to end")
    with Service(settings, home) as again:  # its port is free, and so is the database
        assert again.url.endswith(f":{port}")


def test_a_database_that_is_busy_is_told_as_what_keeps_us_from_starting(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_db: Database, _work: Any) -> None:
        raise errors.DatabaseBusy(reason="the disk is full")

    with Service(Conf(api=Api(port=0)), home):
        pass
    monkeypatch.setattr(Database, "transact", busy)
    with pytest.raises(errors.CannotStart, match="cannot start: the disk is full"):
        Service(Conf(api=Api(port=0)), home).start()


def test_a_state_dir_keeps_its_conductor_whatever_the_machine_is_called(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has a new host name at each start; nobody waits for the one that is no more."""

    def served_by(machine: str, configured: str | None = None) -> list[str]:
        monkeypatch.setattr(socket, "gethostname", lambda: machine)
        settings = Conf(api=Api(port=0), default=Default(host=configured))
        with Service(settings, home) as service:
            assert health.missing(service.site) == []
            with service.db.read() as conn:
                found = [peer.hostname for peer in conductors.list_all(conn)]
            assert found == [service.conductor.house.host]
            return found

    assert served_by("container-1") == ["container-1"]
    assert served_by("container-2") == ["container-1"]
    assert served_by("container-3", "rack-a") == ["rack-a"]
    assert served_by("container-4") == ["rack-a"]


def test_a_former_name_is_no_conductor_any_more(home: Home) -> None:
    """One that was killed stayed on line in the rows; a release before this one left it there."""
    db = home.open_database(Conf().database)
    schema.prepare(db)
    row = {"hostname": "gone", "group": "", "drivers": ["fake-hardware"], "interfaces": []}
    db.transact(lambda conn: conductors.register(conn, **row))
    with Service(Conf(api=Api(port=0)), home) as service:
        host = service.conductor.house.host
        assert service.site.rpc.ring.hosts_of_driver("fake-hardware") == (host,)


def test_a_start_refuses_a_lease_that_is_too_short(home: Home) -> None:
    settings = Conf(api=Api(port=0), conductor=Conductor(heartbeat_timeout=21))
    with pytest.raises(errors.CannotStart, match="heartbeat_timeout = 21"):
        Service(settings, home)
