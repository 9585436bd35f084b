"""Processes on one PostgreSQL or MariaDB: conductors, APIs, and callers who ask for things.

    with on_servers_of_the_test(folder, "oslo") as site:
        site.start(conductors=3, apis=2)
        site.enrol(40)
        with in_use(site, "seed 1"):
            site.conductors[0].kill()

What callers were promised is in ``acknowledged``; what no caller may ever see is in ``faults``.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from bloomery.conductor import states
from bloomery.conf.default import Database as Settings
from bloomery.db import schema
from bloomery.db.engine import Database
from bloomery.db.tables import NODES, STEP_RUNS
from bloomery.model.step import OPEN_RUNS
from tests.chaos.members import Member
from tests.chaos.witness import Witness
from tests.kit.servers import rpc
from tests.kit.servers.tcp_proxy import Cut, TcpProxy
from tools.servers import free_port

POSTGRESQL: Final = "BLOOMERY_TEST_POSTGRESQL"
TIMEOUT_S: Final = 22  # the least that heartbeat_timeout may be
CHECK_S: Final = 5
_AT_REST: Final = {s.value for s in states.State} - {s.value for s in states.UNSTABLE_STATES}
VERBS: Final = {
    "available": ("active", "manage"), "manageable": ("provide", "inspect", "clean"),
    "active": ("rebuild", "deleted"), "deploy failed": ("active", "deleted"),
    "clean failed": ("manage",), "inspect failed": ("manage",), "error": ("deleted",),
}  # fmt: skip
_MORE: Final = {"clean": {"clean_steps": [{"interface": "vendor", "step": "log_passthrough"}]}}
_ANSWERS_WITHIN_S: Final = 90
_WAITS_FOR_AGENT: Final = {"fake": {"wait": {"deploy.deploy": 0.5}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller was told is under way."""

    request_id: str
    verb: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A 503; ``says_when``: nothing was done, and it may be asked again after a while."""

    what: str
    text: str
    says_when: bool


@dataclass(slots=True)
class Site:
    """``transport``: how calls reach conductors; ``broker``: of calls and notifications.

    ``on_call``: decides what becomes of each piece that goes to a conductor, or to the broker.
    """

    folder: Path
    url: sa.URL
    transport: str
    broker: str
    witness: Witness = field(default_factory=Witness)
    more: dict[str, dict[str, Any]] = field(default_factory=dict)  # options beside ours
    on_call: Callable[[bytes], Cut] | None = None
    code: Path | None = None  # of an older release that members begin with
    until_stopped: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    members: list[Member] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    acknowledged: list[Order] = field(default_factory=list)
    unavailable: list[Refusal] = field(default_factory=list)  # whoever was told to come again
    faults: list[str] = field(default_factory=list)
    topic: str = field(default_factory=lambda: f"chaos_{uuid.uuid4().hex}")

    # ----------------------------------------------------------------------------- processes

    def options(self, name: str, **own: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the configuration of a member; the database hears its name when it connects."""
        common: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "rpc_transport": self.transport, "transport_url": self._broker_of_members(),
                "sealing_key_file": self._sealing_key(), "rpc_response_timeout": 20,
                "notification_level": "info", "versioned_notifications_topics": self.topic,
            },
            "oslo_messaging_notifications": {"driver": "messagingv2"},
            "database": {"connection": self.url_of(name)},
            "conductor": {
                "heartbeat_interval": 1, "heartbeat_timeout": TIMEOUT_S,
                "check_provision_state_interval": CHECK_S, "workers_pool_size": 40,
            },
            "fake": {"deploy_delay": "0.05,0.5", "power_delay": "0,0.2"},
        }  # fmt: skip
        for options in (self.more, own):
            for group, values in options.items():
                common[group] = common.get(group, {}) | values
        return common

    def url_of(self, name: str) -> str:
        """Return the URL by which the database knows who writes: on MariaDB, who logs in."""
        url = self.url.update_query_dict({"application_name": name})
        if self.url.get_backend_name() == "mysql":
            url = self.url.set(username=name)
            self._as_admin("CREATE USER :name@'%'", name)
            self._as_admin(f"GRANT ALL ON {self.url.database}.* TO :name@'%'", name)
            self.until_stopped.callback(self._as_admin, "DROP USER :name@'%'", name)
        return url.render_as_string(hide_password=False)

    def _as_admin(self, statement: str, name: str) -> None:
        with _admin(self.url) as conn:
            conn.execute(sa.text(statement), {"name": name})

    def _broker_of_members(self) -> str:
        if self.transport == "json-rpc" or self.on_call is None:
            return self.broker
        url = sa.make_url(self.broker)
        proxy = self._proxy((str(url.host), url.port or 5672), ("127.0.0.1", 0))
        return url.set(host=proxy.host, port=proxy.port).render_as_string(hide_password=False)

    def _proxy(self, target: tuple[str, int], at: tuple[str, int]) -> TcpProxy:
        assert self.on_call is not None
        proxy = TcpProxy(target, at)
        proxy.on_request = self.on_call
        return self.until_stopped.enter_context(proxy)

    def _sealing_key(self) -> Path:
        key = self.folder / "sealing.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(Fernet.generate_key())
        return key

    def start(self, *, conductors: int = 3, apis: int = 2) -> None:
        """Start so many of each, and return when all of them serve."""
        names = [f"api-{number}" for number in range(apis)]
        self.members += [self._member("api", name) for name in names]
        self.members += [self._conductor(number) for number in range(conductors)]
        for member in self.members:
            member.code = self.code or member.code
            member.start()
        for member in self.members:
            member.wait_until_it_serves()

    def _conductor(self, number: int) -> Member:
        if self.transport != "json-rpc":
            name = f"conductor-{number}-{uuid.uuid4().hex[:8]}"
            return self._member("conductor", name, DEFAULT={"host": name})
        address = f"127.0.0.{number + 2}"
        port = free_port(address)
        listens_at = address
        if self.on_call is not None:
            listens_at = f"127.0.1.{number + 2}"
            self._proxy((listens_at, port), (address, port))
        own = {"DEFAULT": {"host": address}, "json_rpc": {"host_ip": listens_at, "port": port}}
        return self._member("conductor", f"{address}:{port}", **own)

    def _member(self, role: str, name: str, **own: dict[str, Any]) -> Member:
        folder = self.folder / name.replace(":", "-")
        return Member(role, name, folder, self.options(name, **own), self.witness.port)

    @property
    def outlives_broker(self) -> bool:
        """Whether what is told survives the end of the broker."""
        return "amqp_durable_queues" in self.more.get("oslo_messaging_rabbit", {})

    @property
    def conductors(self) -> list[Member]:
        return [member for member in self.members if member.role == "conductor"]

    @property
    def apis(self) -> list[Member]:
        return [member for member in self.members if member.role == "api"]

    def stop(self) -> None:
        for member in self.members:
            if member.lives:  # also of one that has ended by itself: its pipes are open
                member.kill()
        self.witness.stop()
        self.until_stopped.close()
        if self.transport == "oslo":
            for member in self.conductors:
                rpc.forget_queue(member.name, self.broker)

    # -------------------------------------------------------------------------------- asking

    def ask(self, lots: random.Random, method: str, path: str, body: Any = None) -> Any:
        """Ask one of the APIs that serve; return the request id and the answer.

        Raises OSError where nobody answers, and HTTPError for a refusal.
        """
        serving = [each for each in self.apis if each.is_serving]
        request = urllib.request.Request(
            f"{lots.choice(serving).url}{path}", method=method, data=orjson.dumps(body),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.90"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=_ANSWERS_WITHIN_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refusal:
            self._check_refusal(refusal, f"{method} {path}")
            raise
        return answer.headers["X-OpenStack-Request-Id"], orjson.loads(text) if text else None

    def _check_refusal(self, refusal: urllib.error.HTTPError, what: str) -> None:
        """Note an error that is not the caller's; the only one that may be is 503."""
        text = refusal.read().decode()
        if refusal.code == 503:
            says_when = "Retry-After" in refusal.headers
            self.unavailable.append(Refusal(what=what, text=text, says_when=says_when))
        elif refusal.code >= 500:
            self.faults.append(f"{what}: {refusal.code} {text}")

    def enrol(self, count: int) -> None:
        """Make nodes that are available; the deployments of half of them wait for an agent."""
        lots = random.Random(0)
        for number in range(count):
            values = {
                "driver": "fake-hardware", "uuid": str(uuid.uuid4()),
                "driver_info": _WAITS_FOR_AGENT if number % 2 else {},
            }  # fmt: skip
            self.ask(lots, "POST", "/v1/nodes", values)
            self.nodes.append(values["uuid"])
        with opened(self.url) as database:
            available = sa.update(NODES).values(provision_state="available")
            database.transact(lambda conn: conn.execute(available))

    def use(
        self, nodes: list[str], seed: str, verbs: Mapping[str, Sequence[str]], ends: threading.Event
    ) -> None:
        """Ask for one thing after the other, until the end; ``verbs``: what for, by state."""
        lots = random.Random(seed)
        while not ends.is_set():
            node = lots.choice(nodes)
            with contextlib.suppress(OSError, IndexError):  # IndexError: no API serves
                _, row = self.ask(lots, "GET", f"/v1/nodes/{node}")
                choice = verbs.get(row["provision_state"], ())
                if choice and row["reservation"] is None:
                    self.order(lots, node, lots.choice(choice))
            ends.wait(lots.uniform(0, 0.1))

    def order(self, lots: random.Random, node: str, verb: str) -> None:
        """Ask for a verb, and note it if it was acknowledged.  Raises OSError."""
        path = f"/v1/nodes/{node}/states/provision"
        request_id, _ = self.ask(lots, "PUT", path, {"target": verb} | _MORE.get(verb, {}))
        self.acknowledged.append(Order(request_id=request_id, verb=verb, node=node))

    # ------------------------------------------------------------------------------- looking

    def rows(self, query: Any) -> list[Any]:
        with opened(self.url) as database, database.read() as conn:
            return list(conn.execute(query).mappings())

    def unrest(self) -> list[str]:
        """Say which nodes and steps have not come to rest."""
        busy = [
            f"{row['uuid']} is {row['provision_state']}, held by {row['reservation']}"
            for row in self.rows(sa.select(NODES))
            if row["reservation"] is not None or row["provision_state"] not in _AT_REST
        ]
        runs = self.rows(sa.select(STEP_RUNS).where(STEP_RUNS.c.state.in_(OPEN_RUNS)))
        return busy + [f"{run['node_uuid']}: {run['step']} is {run['state']}" for run in runs]


@contextlib.contextmanager
def in_use(
    site: Site, seed: str, verbs: Mapping[str, Sequence[str]] = VERBS, callers: int = 6
) -> Iterator[None]:
    """Let so many callers ask for things, each of nodes of its own, until the end of the block."""
    ends = threading.Event()
    threads = [
        threading.Thread(target=site.use, args=(site.nodes[n::callers], f"{seed}-{n}", verbs, ends))
        for n in range(callers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def opened(url: sa.URL) -> Iterator[Database]:
    with contextlib.closing(Database(url, Settings())) as database:
        yield database


@contextlib.contextmanager
def _admin(server: sa.URL) -> Iterator[sa.Connection]:
    """A connection that commits each statement by itself."""
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as conn:
        yield conn


@contextlib.contextmanager
def empty_database(server: str) -> Iterator[sa.URL]:
    """Make a database at the head of the schema on the server of this URL, and drop it."""
    name = f"bloomery_chaos_{uuid.uuid4().hex}"
    admin = sa.make_url(server)
    with _admin(admin) as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    url = admin.set(database=name)
    with opened(url) as database:
        schema.upgrade(database)
    try:
        yield url
    finally:
        forced = " WITH (FORCE)" if url.get_backend_name() == "postgresql" else ""
        with _admin(admin) as conn:
            conn.exec_driver_sql(f"DROP DATABASE {name}{forced}")


@contextlib.contextmanager
def on_servers_of_the_test(
    folder: Path,
    transport: str,
    *,
    database: str | None = None,
    broker: str | None = None,
    on_call: Callable[[bytes], Cut] | None = None,
    **more: Any,
) -> Iterator[Site]:
    """A site on these servers, or those that the environment names; without: skip the test."""
    if not (server := database or os.environ.get(POSTGRESQL)):
        pytest.skip(f"{POSTGRESQL} names no server")
    broker = broker or rpc.broker_url()
    with empty_database(server) as url:
        site = Site(folder, url, transport, broker, more=more, on_call=on_call)
        try:
            yield site
        finally:
            site.stop()
