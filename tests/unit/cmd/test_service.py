"""A start that fails leaves nothing behind: no thread, no port, no reservation of the state dir."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.cmd import foundation
from bloomery.cmd import service as service_module
from bloomery.cmd.conductor import ConductorProcess
from bloomery.cmd.engine import EngineProcess
from bloomery.cmd.service import Service
from bloomery.conductor.lifecycle import ConductorService
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Database as Settings
from bloomery.conf.default import Default
from bloomery.conf.engine import Orchestration
from bloomery.conf.notifications import Events
from bloomery.conf.web import Monitoring
from bloomery.db import conductors, schema
from bloomery.db.engine import Database
from bloomery.db.tables import SETTINGS
from bloomery.http_server import server
from bloomery.operations import status
from bloomery.rpc import transports
from bloomery.state_dir import StateDir
from tests.kit.clock import HandClock
from tests.kit.servers import disks
from tests.kit.waiting import wait_for
from tools.servers import free_port


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StateDir]:
    with StateDir(tmp_path / "state") as home:
        yield home


def fails(*_args: Any, **_more: Any) -> None:
    raise errors.CannotStart(reason="cannot do this in a test")


@pytest.mark.parametrize(
    ("part", "method"),
    [(server.Server, "start"), (ConductorService, "_beat"), (server.Server, "__init__")],
    ids=str,
)
def test_what_was_started_is_stopped(
    home: StateDir, monkeypatch: pytest.MonkeyPatch, part: Any, method: str
) -> None:
    before = set(threading.enumerate())
    port = free_port()
    settings = Conf(
        api=Api(port=port), events=Events(log=True), orchestration=Orchestration(port=0)
    )
    with monkeypatch.context() as patch:
        patch.setattr(part, method, fails)
        with pytest.raises(errors.CannotStart, match="in a test"), Service(settings, home):
            raise AssertionError("it has started")
    wait_for(lambda: set(threading.enumerate()) <= before, "its threads to end")
    with Service(settings, home) as again:  # its port is free, and so is the database
        assert again.url.endswith(f":{port}")


@pytest.mark.parametrize("most", [0, 1, 2, 4, 8, 16, 24])
def test_a_start_without_enough_threads_ends_with_one_sentence(
    home: StateDir, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    plain, started = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        plain(thread)

    settings = Conf(api=Api(port=0), orchestration=Orchestration(port=0))
    service = Service(settings, home)
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(errors.CannotStart, match="the system gives no more threads; raise"):
        service.start()


def test_calls_of_others_are_answered_until_the_conductor_is_off_line(
    home: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for a conductor finds another one before this one hangs up."""
    was_online: list[bool] = []
    settings = Conf(api=Api(port=0), orchestration=Orchestration(port=0))
    with Service(settings, home) as service:

        def stop(*_args: Any, **_more: Any) -> None:
            with service.db.read() as conn:
                was_online.extend(each.online for each in conductors.list_all(conn))

        monkeypatch.setattr(transports.NoServer, "stop", stop)
    assert was_online == [False]


def test_agents_have_threads_of_their_own(home: StateDir) -> None:
    with Service(Conf(api=Api(port=0), orchestration=Orchestration(port=0)), home):
        names = sorted(each.name for each in threading.enumerate() if "-agents-" in each.name)
    assert names == ["api-agents-0", "api-agents-1"]


def test_a_database_that_is_busy_is_told_as_what_keeps_us_from_starting(
    home: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_db: Database, _work: Any) -> None:
        raise errors.DatabaseBusy(reason="the disk is full")

    with Service(Conf(api=Api(port=0)), home):
        pass
    monkeypatch.setattr(Database, "transact", busy)
    with pytest.raises(errors.CannotStart, match="cannot start: the disk is full"):
        Service(Conf(api=Api(port=0)), home).start()


@pytest.mark.parametrize("is_of_home", [True, False])
def test_a_full_disk_of_the_state_dir_can_be_left_for_another_one(
    is_of_home: bool, home: StateDir, tmp_path: Path
) -> None:
    def large(conn: sa.Connection) -> None:
        row = {"name": "large", "value": "x" * 1_000_000}
        conn.execute(sa.insert(SETTINGS), row)

    elsewhere = f"sqlite:///{tmp_path / 'elsewhere'}"
    db = home.open_database(Settings(connection=None if is_of_home else elsewhere))
    schema.prepare(db)
    disks.fill(db)
    refusal = pytest.raises(errors.CannotStart, match="the disk is full")
    with refusal as refused, foundation.start_errors(home):
        db.transact(large)
    db.close()
    way_out = "see to that, or choose another --state-dir, and start again"
    assert (way_out in str(refused.value)) == is_of_home


def test_a_state_dir_keeps_its_conductor_whatever_the_machine_is_called(
    home: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has a new host name at each start; nobody waits for the one that is no more."""

    def served_by(machine: str, configured: str | None = None) -> list[str]:
        monkeypatch.setattr(socket, "gethostname", lambda: machine)
        settings = Conf(api=Api(port=0), default=Default(host=configured))
        with Service(settings, home) as service:
            assert status.list_missing(service.services) == []
            with service.db.read() as conn:
                found = [peer.hostname for peer in conductors.list_all(conn)]
            assert found == [service.conductor.runtime.host]
            return found

    assert served_by("container-1") == ["container-1"]
    assert served_by("container-2") == ["container-1"]
    assert served_by("container-3", "rack-a") == ["rack-a"]
    assert served_by("container-4") == ["rack-a"]


def test_a_former_name_is_no_conductor_any_more(home: StateDir) -> None:
    """One that was killed stayed on line in the rows; a release before this one left it there."""
    db = home.open_database(Conf().database)
    schema.prepare(db)
    row = {"hostname": "gone", "group": "", "drivers": ["fake-hardware"], "interfaces": []}
    db.transact(lambda conn: conductors.register(conn, **row))
    with Service(Conf(api=Api(port=0)), home) as service:
        host = service.conductor.runtime.host
        assert service.services.rpc.ring.hosts_of_driver("fake-hardware") == (host,)


class SlowCaller:
    """A request that is under way until ``go_on``, as one that waits for a slow BMC."""

    def __init__(self, service: Service) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        service.api._app = self._answer
        self._address = service.api.address

    def _answer(self, _environ: Any, start: Any) -> list[bytes]:
        self.begun.set()
        assert self.go_on.wait(60)
        start("200 OK", [])
        return [b"done"]

    def ask(self) -> int:
        with contextlib.closing(http.client.HTTPConnection(*self._address, timeout=60)) as caller:
            caller.request("GET", "/v1/nodes")
            return caller.getresponse().status


@pytest.fixture
def begin(home: StateDir) -> Iterator[Callable[[int], tuple[Service, SlowCaller]]]:
    """Start a service of so many seconds' grace, with a request that is under way."""
    callers: list[SlowCaller] = []

    def made(grace_s: int) -> tuple[Service, SlowCaller]:
        ours = Conductor(graceful_shutdown_timeout=grace_s)
        service = Service(Conf(api=Api(port=0), conductor=ours), home)
        callers.append(SlowCaller(service))
        service.start()
        return service, callers[0]

    yield made
    for caller in callers:
        caller.go_on.set()


def is_revoked(service: Service) -> bool:
    try:
        service.conductor.runtime.lease.require("a node", "a conductor")
    except errors.LockLost:
        return True
    return False


def test_a_request_that_outlasts_the_grace_keeps_nobody_from_stopping(begin: Any) -> None:
    service, caller = begin(0)
    with ThreadPoolExecutor(2) as others:
        try:
            asked = others.submit(caller.ask)
            assert caller.begun.wait(10)
            others.submit(service.stop).result(30)
            assert is_revoked(service)
            assert not asked.done()
        finally:
            caller.go_on.set()


def test_a_request_within_the_grace_is_answered_while_nothing_else_begins(begin: Any) -> None:
    service, caller = begin(60)
    with ThreadPoolExecutor(2) as others:
        try:
            asked = others.submit(caller.ask)
            assert caller.begun.wait(10)
            stopped = others.submit(service.stop)
            wait_for(lambda: service.conductor.periodics._stopped, "the end of the periodics")
            assert not stopped.done()
            assert not is_revoked(service)
        finally:
            caller.go_on.set()
        assert asked.result(30) == 200
        stopped.result(30)
    assert is_revoked(service)


def test_requests_and_flows_have_one_grace_between_them(
    begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a request took of it is gone."""
    clock, waited = HandClock(), []
    monkeypatch.setattr(service_module, "monotonic", clock)
    service, _ = begin(60)
    api_stop, conductor_stop = service.api.stop, service.conductor.stop

    def slowly(within_s: float) -> None:
        waited.append(within_s)
        api_stop(within_s)
        clock.turn(45)

    def then(grace_s: float, **more: Any) -> None:
        waited.append(grace_s)
        conductor_stop(grace_s, **more)

    monkeypatch.setattr(service.api, "stop", slowly)
    monkeypatch.setattr(service.conductor, "stop", then)
    service.stop()
    assert waited == [60, 15]


def test_a_start_refuses_a_lease_that_is_too_short(home: StateDir) -> None:
    settings = Conf(api=Api(port=0), conductor=Conductor(heartbeat_timeout=21))
    with pytest.raises(errors.CannotStart, match="heartbeat_timeout = 21"):
        Service(settings, home)


def test_what_is_kept_in_files_is_in_the_state_dir_unless_a_folder_is_named(
    home: StateDir, tmp_path: Path
) -> None:
    settings = Conf(
        api=Api(port=0),
        orchestration=Orchestration(port=0),
        deploy=Deploy(http_root=str(tmp_path / "www")),
    )
    with Service(settings, home) as service:
        conf = service.conductor.runtime.conf
    folders = (
        conf.agent.certificates_path, conf.deploy.http_root, conf.deploy.ramdisk_cache_path,
        conf.pxe.instance_master_path,
    )  # fmt: skip
    assert folders == (
        str(home.path / "certificates"), str(tmp_path / "www"), str(home.path / "cache"),
        str(home.path / "images"),
    )  # fmt: skip


@pytest.mark.parametrize("process", [Service, ConductorProcess, EngineProcess])
def test_signals_are_heard_before_a_probe_finds_the_process_ready(
    home: StateDir, monkeypatch: pytest.MonkeyPatch, process: Any
) -> None:
    """A load balancer's first good probe, and the SIGTERM of a roll-out behind it, come at once."""
    order: list[str] = []
    plain = server.Server.start

    def start(serving: server.Server) -> None:
        order.append("serves")
        plain(serving)

    monkeypatch.setattr(server.Server, "start", start)
    monkeypatch.setattr(foundation, "require_several", lambda *_args: None)  # SQLite will do
    monitored = Monitoring(conductor_port=free_port(), engine_port=free_port())
    conf = Conf(api=Api(port=0), orchestration=Orchestration(port=0), monitoring=monitored)
    running = process(conf, home)
    running.start(lambda: order.append("hears"))
    running.stop(0)
    assert order[0] == "hears"
    assert order.count("hears") == 1
    assert "serves" in order
