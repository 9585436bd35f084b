"""Three conductors and two APIs on PostgreSQL; now one is killed, now one stands still.

Callers deploy, clean, inspect and undeploy meanwhile.  In the end every node is at rest, every
order that was acknowledged has left its trace, failures say why, and no order reached a machine
under a lock that had been lost.  BLOOMERY_TEST_POSTGRESQL names the server.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from bloomery.conductor import states
from bloomery.conf.database import Database as Settings
from bloomery.db import schema
from bloomery.db.engine import Database
from bloomery.db.tables import NODE_HISTORY, NODES, STEP_RUNS
from bloomery.model.step import OPEN_RUNS
from tests.chaos.members import Member
from tests.chaos.witness import Witness
from tests.kit.waiting import wait_for

SERVER: Final = "BLOOMERY_TEST_POSTGRESQL"
TIMEOUT_S: Final = 22  # the least that heartbeat_timeout may be
RESTS_WITHIN_S: Final = 2 * TIMEOUT_S + 90
CALLERS: Final = 6
_VERBS: Final = {
    "available": ("active", "manage"), "manageable": ("provide", "inspect"),
    "active": ("rebuild", "deleted"), "deploy failed": ("active", "deleted"),
    "clean failed": ("manage",), "inspect failed": ("manage",), "error": ("deleted",),
}  # fmt: skip


@dataclass(slots=True)
class Site:
    """The processes, the database that they share, and who was asked for what."""

    folder: Path
    url: sa.URL
    witness: Witness
    members: list[Member] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    acknowledged: dict[str, str] = field(default_factory=dict)
    is_over: threading.Event = field(default_factory=threading.Event)

    def options(self, **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
        shown = self.url.render_as_string(hide_password=False)
        key = self.folder / "sealing.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(Fernet.generate_key())
        common: dict[str, dict[str, Any]] = {
            "DEFAULT": {"rpc_transport": "json-rpc", "sealing_key_file": key},
            "database": {"connection": shown.replace("%", "%%")},
            "conductor": {
                "heartbeat_interval": 1, "heartbeat_timeout": TIMEOUT_S,
                "check_provision_state_interval": 5, "workers_pool_size": 40,
            },
            "fake": {"deploy_delay": "0.05,0.5", "power_delay": "0,0.2"},
        }  # fmt: skip
        for group, values in more.items():
            common[group] = common.get(group, {}) | values
        return common

    def start(self) -> None:
        for number in range(2):
            self.members.append(self._member("api", f"api-{number}"))
        for number in range(3):
            name = f"127.0.0.{number + 2}"
            self.members.append(
                self._member(
                    "conductor",
                    f"conductor-{number}",
                    DEFAULT={"host": name},
                    json_rpc={"host_ip": name, "port": _free_port(name)},
                )
            )
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait_until_it_serves()

    def _member(self, role: str, name: str, **more: dict[str, Any]) -> Member:
        return Member(role, self.folder / name, self.options(**more), self.witness.port)

    def stop(self) -> None:
        for member in self.members:
            if member.lives:  # also of one that has ended by itself: its pipes are open
                member.kill()

    # -------------------------------------------------------------------------------- asking

    def ask(self, lots: random.Random, method: str, path: str, body: Any = None) -> Any:
        """Ask one of the APIs that serve; return the request id and the answer."""
        serving = [each for each in self.members if each.role == "api" and each.is_serving]
        request = urllib.request.Request(
            f"{lots.choice(serving).url}{path}", method=method, data=orjson.dumps(body),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.90"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=90) as answer:
            text = answer.read()
            return answer.headers["X-OpenStack-Request-Id"], orjson.loads(text) if text else None

    def enrol(self, count: int) -> None:
        lots = random.Random(0)
        for _ in range(count):
            values = {"driver": "fake-hardware", "uuid": str(uuid.uuid4())}
            self.ask(lots, "POST", "/v1/nodes", values)
            self.nodes.append(values["uuid"])
        database = Database(self.url)
        database.transact(lambda conn: conn.execute(
            sa.update(NODES).values(provision_state="available")
        ))  # fmt: skip
        database.close()

    def use(self, nodes: list[str], seed: str) -> None:
        """Ask for one thing after the other, until it is over."""
        lots = random.Random(seed)
        while not self.is_over.is_set():
            node = lots.choice(nodes)
            with contextlib.suppress(OSError, urllib.error.URLError, IndexError):
                _, row = self.ask(lots, "GET", f"/v1/nodes/{node}")
                verbs = _VERBS.get(row["provision_state"], ())
                if verbs and row["reservation"] is None:
                    self._order(lots, node, lots.choice(verbs))
            self.is_over.wait(lots.uniform(0, 0.1))

    def _order(self, lots: random.Random, node: str, verb: str) -> None:
        request_id, _ = self.ask(lots, "PUT", f"/v1/nodes/{node}/states/provision",
                                 {"target": verb})  # fmt: skip
        self.acknowledged[request_id] = f"{verb} of {node}"

    # ------------------------------------------------------------------------------- trouble

    def trouble(self, lasts_s: float, lots: random.Random) -> None:
        """Every few seconds kill somebody, who starts again, or let a conductor stand still."""
        ends_at = time.monotonic() + lasts_s
        conductors = [member for member in self.members if member.role == "conductor"]
        stand_still_until: dict[int, float] = {}
        while (now := time.monotonic()) < ends_at:
            for index, until in list(stand_still_until.items()):
                if until <= now:
                    del stand_still_until[index]
                    conductors[index].go_on()
            self.is_over.wait(lots.uniform(2, 5))
            index = lots.randrange(len(conductors))
            if not stand_still_until and lots.random() < 0.4:
                conductors[index].stand_still()
                stand_still_until[index] = now + lots.uniform(5, TIMEOUT_S + 12)
            elif index not in stand_still_until:
                victim = lots.choice([conductors[index], conductors[index], self.members[0]])
                victim.kill()
                victim.start()
        for index in stand_still_until:
            conductors[index].go_on()

    # ------------------------------------------------------------------------------- the end

    def rows(self, query: Any) -> list[Any]:
        database = Database(self.url)
        try:
            with database.read() as conn:
                return list(conn.execute(query).mappings())
        finally:
            database.close()

    def unrest(self) -> list[str]:
        at_rest = {s.value for s in states.State} - {s.value for s in states.UNSTABLE_STATES}
        busy = [
            f"{row['uuid']} is {row['provision_state']}, held by {row['reservation']}"
            for row in self.rows(sa.select(NODES))
            if row["reservation"] is not None or row["provision_state"] not in at_rest
        ]
        runs = self.rows(sa.select(STEP_RUNS).where(STEP_RUNS.c.state.in_(OPEN_RUNS)))
        return busy + [f"{run['node_uuid']}: {run['step']} is {run['state']}" for run in runs]

    def check(self) -> None:
        wait_for(lambda: not self.unrest(), "rest", timeout_s=RESTS_WITHIN_S, every_s=1.0)
        assert self.witness.faults == []
        named = {row["request_id"] for table in (NODE_HISTORY, STEP_RUNS)
                 for row in self.rows(sa.select(table.c.request_id))}  # fmt: skip
        lost = [order for id_, order in self.acknowledged.items() if id_ not in named]
        assert not lost, f"acknowledged, and left no trace: {lost}"
        for row in self.rows(sa.select(NODES)):
            failed = row["provision_state"] in {s.value for s in states.FAILURE_STATES}
            assert row["last_error"] or not failed, f"{row['uuid']} does not say why it failed"


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Site]:
    if not (server := os.environ.get(SERVER)):
        pytest.skip(f"{SERVER} names no server")
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    name = f"bloomery_chaos_{uuid.uuid4().hex}"
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    witness = Witness()
    site = Site(tmp_path, sa.make_url(server).set(database=name), witness)
    database = Database(site.url, Settings())
    schema.upgrade(database)
    database.close()
    try:
        yield site
    finally:
        site.is_over.set()
        site.stop()
        witness.stop()
        with admin.connect() as conn:
            conn.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


def live(site: Site, seed: int, *, nodes: int, lasts_s: float) -> None:
    site.start()
    site.enrol(nodes)
    callers = [
        threading.Thread(target=site.use, args=(site.nodes[n::CALLERS], f"{seed}-{n}"))
        for n in range(CALLERS)
    ]
    for caller in callers:
        caller.start()
    site.trouble(lasts_s, random.Random(f"trouble {seed}"))
    site.is_over.set()
    for caller in callers:
        caller.join()
    site.check()
    assert sum(member.lives for member in site.members) > len(site.members), "nobody was killed"
    assert len(site.acknowledged) > nodes / 2
    assert site.witness.count > nodes / 2


def test_nothing_is_lost_when_conductors_die_and_stand_still(many: Site, seed: int) -> None:
    live(many, seed, nodes=40, lasts_s=45.0)


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_nothing_is_lost_in_ten_minutes(many: Site, seed: int, number: int) -> None:
    live(many, seed + number, nodes=200, lasts_s=600.0)
