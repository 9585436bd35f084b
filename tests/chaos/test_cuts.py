"""Connections to the database are cut at random, or the database is killed: nothing is lost, and
nothing happens twice.

What a node's life leaves in the rows is compared with the life of a node that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import uuid as uuids
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Database as Settings
from bloomery.db import schema, tables
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir
from tests.kit.servers.orchestration import QUIET
from tests.kit.servers.tcp_proxy import Cut, TcpProxy
from tests.kit.waiting import wait_for
from tools import servers

LIFE = (("manage", "manageable"), ("provide", "available"), ("active", "active"))
NODES = 6
CUTS_OF_COMMITS = 0.1  # the part of them that is cut
CUTS = 0.01  # the part of all other requests
VERSION = {"X-OpenStack-Ironic-API-Version": "1.90", "Content-Type": "application/json"}
SERVERS = {"postgresql": "BLOOMERY_TEST_POSTGRESQL", "mariadb": "BLOOMERY_TEST_MARIADB"}


class Site:
    """A whole service in this process, and a look into its rows past whatever is cut."""

    def __init__(self, state: Path, url: sa.URL, seen_at: sa.URL) -> None:
        self._home = StateDir(state)
        self._conf = Conf(
            api=Api(port=0), conductor=QUIET,
            database=Settings(connection=url.render_as_string(hide_password=False)),
        )  # fmt: skip
        self.db = Database(seen_at)

    def __enter__(self) -> Self:
        schema.upgrade(self.db)
        self._home.take()
        self.service = Service(self._conf, self._home)
        self.service.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.service.stop()
        self._home.leave()
        self.db.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = HTTPConnection(*self.service.api.address[:2], timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body), VERSION)
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text else None

    def insist(self, method: str, path: str, body: Any) -> None:
        """Ask again where the answer was that the database is away; nothing else may go wrong."""
        refused = threading.Event()

        def is_accepted() -> bool:
            status, document = self.ask(method, path, body)
            if status == 503:
                refused.set()
                return False
            # A refused call may have been carried out: whether it was could not be found out.
            assert status < 300 or (refused.is_set() and status in (400, 409)), document
            return True

        wait_for(is_accepted, f"{method} {path} to be taken", timeout_s=60)

    def node(self, uuid: str) -> Any:
        columns = tables.NODES.c
        with self.db.read() as conn:
            return conn.execute(sa.select(tables.NODES).where(columns.uuid == uuid)).one()

    def live(self, uuid: str) -> None:
        """Take a node from its birth to its deployment."""
        self.insist("POST", "/v1/nodes", {"uuid": uuid, "driver": "fake-hardware"})
        for verb, state in LIFE:
            self.insist("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": verb})
            wait_for(
                lambda state=state: self._rests_in(uuid, state),
                f"{uuid} to be {state} after {verb}", timeout_s=90,
            )  # fmt: skip

    def _rests_in(self, uuid: str, state: str) -> bool:
        try:
            node = self.node(uuid)
        except errors.DatabaseBusy:
            return False  # away for us, too
        assert node.last_error is None, node.last_error
        return node.provision_state == state and node.reservation is None

    def trace(self, uuid: str) -> dict[str, list[tuple[Any, ...]]]:
        """What its life left, without numbers and times that differ from node to node, and without
        the history's word that a step was begun again."""
        events, steps, history = tables.EVENTS.c, tables.STEP_RUNS.c, tables.NODE_HISTORY.c
        queries = {
            "events": sa.select(events.action, events.status).where(events.object_uuid == uuid),
            "steps": sa.select(steps.phase, steps.interface, steps.step, steps.state).where(
                steps.node_uuid == uuid
            ),
            "history": sa.select(history.event_type, history.state).where(
                history.node_uuid == uuid, history.event_type != "recovery"
            ),
        }
        with self.db.read() as conn:
            return {
                name: sorted(map(tuple, conn.execute(query))) for name, query in queries.items()
            }

    def live_all(self) -> list[str]:
        """Lives at the same time; raise what went wrong in any."""
        nodes = [str(uuids.uuid4()) for _ in range(NODES)]
        wrong: list[BaseException] = []

        def live(uuid: str) -> None:
            try:
                self.live(uuid)
            except AssertionError as exc:
                wrong.append(exc)

        callers = [threading.Thread(target=live, args=(uuid,)) for uuid in nodes]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert not wrong, wrong
        return nodes


@pytest.fixture(params=SERVERS)
def own_database(request: pytest.FixtureRequest) -> Iterator[sa.URL]:
    """An empty database of the test's own."""
    if not (named := os.environ.get(SERVERS[request.param])):
        pytest.skip(f"{SERVERS[request.param]} names no server")
    name = f"bloomery_test_{uuids.uuid4().hex}"
    admin = sa.create_engine(named, isolation_level="AUTOCOMMIT")
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    yield sa.make_url(named).set(database=name)
    with admin.connect() as conn:
        force = " WITH (FORCE)" if admin.dialect.name == "postgresql" else ""
        conn.exec_driver_sql(f"DROP DATABASE {name}{force}")
    admin.dispose()


def cutting(lots: random.Random, cuts: list[Cut]) -> Any:
    """Cut at random, before the server has got the request or before its answer has come."""

    def decide(data: bytes) -> Cut:
        rate = CUTS_OF_COMMITS if b"COMMIT" in data.upper() else CUTS
        if lots.random() >= rate:
            return Cut.NOT
        cuts.append(lots.choice((Cut.BEFORE, Cut.AFTER)))
        return cuts[-1]

    return decide


def test_lives_pass_through_cuts(own_database: sa.URL, tmp_path: Path, lots: random.Random):
    cuts: list[Cut] = []
    with TcpProxy((str(own_database.host), own_database.port or 0)) as proxy:
        url = own_database.set(host=proxy.host, port=proxy.port)
        with Site(tmp_path / "state", url, own_database) as site:
            undisturbed = str(uuids.uuid4())
            site.live(undisturbed)
            proxy.on_request = cutting(lots, cuts)
            nodes = site.live_all()
            proxy.on_request = lambda data: Cut.NOT
            expected = site.trace(undisturbed)
            assert {node: site.trace(node) for node in nodes} == dict.fromkeys(nodes, expected)
    assert len(cuts) > NODES, "hardly anything was cut"


def test_lives_pass_through_a_database_that_is_killed(tmp_path: Path):
    try:
        starting = servers.own_postgresql()
        server = starting.__enter__()
    except servers.ServerMissing as exc:
        pytest.skip(str(exc))
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.push(starting.__exit__)
        url = sa.make_url(f"postgresql+psycopg://postgres@127.0.0.1:{server.port}/test")
        with Site(tmp_path / "state", url, url) as site:
            undisturbed = str(uuids.uuid4())
            site.live(undisturbed)
            over = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                killer = pool.submit(_kill_now_and_then, server, site, over)
                try:
                    nodes = site.live_all()
                finally:
                    over.set()
                    killer.result()
            expected = site.trace(undisturbed)
            assert {node: site.trace(node) for node in nodes} == dict.fromkeys(nodes, expected)


def _kill_now_and_then(server: servers.OwnServer, site: Site, over: threading.Event) -> None:
    """Three times; in between the service must have said that it goes on."""
    for _ in range(3):
        server.stop(signal.SIGKILL)
        try:
            assert site.ask("GET", "/v1/nodes")[0] == 503
        finally:
            server.start()
        wait_for(lambda: site.ask("GET", "/v1/nodes")[0] == 200, "an answer", timeout_s=30)
        if over.is_set():
            return
