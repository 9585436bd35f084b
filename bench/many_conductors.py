"""Many conductors on PostgreSQL: three against one, and the nodes of one that died.

Cycles of nodes are asked of an API, which calls conductors by JSON-RPC; each value is what a node
takes with three conductors, its floor with one.  BMCs of 50 ms hold a worker for as long: a fake
machine is asked three times in a cycle, and answers each time as slowly as twenty such calls.
Nodes come in equal numbers to the conductors: how unevenly a ring of 32 partitions a host spreads
so few would be measured else.  The notes tell what the machine was busy with.  The
dead conductor has never lived: its rows say that it works on a thousand deployments, and its
counter stands still.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from bench import event_relay, harness
from bench.harness import Client, Line, Process
from bloomery import conf
from bloomery.conductor import deployments, lifecycle, nodes, runner, task_manager
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.db import conductors
from bloomery.db.engine import Database
from bloomery.db.tables import NODES
from bloomery.model.request import ProvisionArguments, Request
from bloomery.model.step import Run
from bloomery.rpc.ring import Ring
from bloomery.state_dir import StateDir
from tools import servers
from tools.servers import free_port

NODES_OF_A_ROUND: Final = 120  # so many that each conductor has its share of them
TAKEN_OVER: Final = 1000
CLIENTS: Final = 8
BMC_S: Final = 0.05
HEARTBEAT: Final = {"conductor/heartbeat_interval": 5, "conductor/heartbeat_timeout": 30}
WORKERS: Final = {"conductor/workers_pool_size": 8}
CALLS: Final = 20  # of 50 ms, where a fake machine is asked once
SLOW: Final = dict.fromkeys(("fake/power_delay", "fake/management_delay"), CALLS * BMC_S)
WAY: Final = (
    ("manage", "manageable"), ("provide", "available"), ("active", "active"),
    ("deleted", "available"),
)  # fmt: skip
_DEAD: Final = "dead"
_AGAIN_S: Final = 0.1


def measure() -> Sequence[Line]:
    quick = Line(what="a cycle with 3 conductors, against 1", unit="ms", ratio=True,
                 at_most=1 / 0.9, connections=CLIENTS, synchronous=None)  # fmt: skip
    slow = Line(what="a cycle with 3 conductors, BMCs of 50 ms, against 1", unit="ms", ratio=True,
                at_most=1 / 2.5, connections=CLIENTS, synchronous=None)  # fmt: skip
    late = Line(what=f"{TAKEN_OVER:,} nodes taken over, after the time-out", unit="s",
                at_most=10, synchronous=None)  # fmt: skip
    cpu = Line(what=f"{TAKEN_OVER:,} nodes taken over, CPU of the heir", unit="s", at_most=5,
               synchronous=None)  # fmt: skip
    with servers.postgresql() as server:
        url = sa.make_url(server.env["BLOOMERY_TEST_POSTGRESQL"])
        for line, options in ((quick, {}), (slow, SLOW | WORKERS)):
            _compare(line, url, options)
        with harness.folder() as folder, event_relay.database(url) as db:
            late_s, cpu_s = taken_over(db, folder)
        late.add(late_s)
        cpu.add(cpu_s)
    return quick, slow, late, cpu


# ---------------------------------------------------------------------------- three against one


def _compare(line: Line, url: sa.URL, options: dict[str, Any]) -> None:
    with _site(url, 3, options) as three, _site(url, 1, options) as one:
        for _ in harness.rounds():
            line.add(three.cycle_ms(), one.cycle_ms())
        line.note = f"cores busy: {three.busy()} with 3, {one.busy()} with 1, of {os.cpu_count()}"


class Site:
    """Conductors, an API, and the rows to see what became of what was asked."""

    def __init__(self, db: Database, roles: Sequence[Role]) -> None:
        self._db, self._roles, self._api = db, roles, roles[-1]
        self._ring = Ring(db)
        self._own_busy: list[float] = []
        self._all_busy: list[float] = []

    def cycle_ms(self) -> float:
        """Take so many nodes through a cycle at once; return the wall time of one."""
        with ThreadPoolExecutor(CLIENTS) as clients:
            uuids = list(clients.map(self._enrol, self._spread()))
            began, own_s, all_s = time.perf_counter(), self._cpu_s(), harness.machine_cpu_s()
            for verb, arrived in WAY:
                self._order_all(clients, uuids, verb)
                self._wait(uuids, arrived)
            took_s = time.perf_counter() - began
        self._own_busy.append((self._cpu_s() - own_s) / took_s)
        self._all_busy.append((harness.machine_cpu_s() - all_s) / took_s)
        return took_s * 1000 / NODES_OF_A_ROUND

    def busy(self) -> str:
        """Tell how many cores were: with the database and neighbours, and without."""
        return f"{statistics.mean(self._all_busy):.1f} (own {statistics.mean(self._own_busy):.1f})"

    def _cpu_s(self) -> float:
        """Return the CPU time of the conductors, the API and this program."""
        return sum(role.cpu_s() for role in self._roles) + time.process_time()

    def _spread(self) -> list[str]:
        """Return UUIDs of new nodes, as many of them for each conductor."""
        hosts = self._ring.living_hosts()
        left = dict.fromkeys(hosts, NODES_OF_A_ROUND // len(hosts))
        uuids: list[str] = []
        while len(uuids) < NODES_OF_A_ROUND:
            node = str(uuid.uuid4())
            host = self._ring.host_of_node(driver="fake-hardware", group="", uuid=node)
            if left[host]:
                left[host] -= 1
                uuids.append(node)
        return uuids

    def _enrol(self, node: str) -> str:
        values = {"driver": "fake-hardware", "uuid": node}
        Client(self._api.port).ask("POST", "/v1/nodes", values)
        return node

    def _order_all(self, clients: ThreadPoolExecutor, uuids: list[str], verb: str) -> None:
        """Ask for each node until a worker of its conductor is free; meanwhile, for the others."""
        left = deque(uuids)

        def work(_number: int) -> None:
            client = Client(self._api.port)
            with contextlib.suppress(IndexError):  # nothing is left
                while True:
                    node = left.popleft()
                    path = f"/v1/nodes/{node}/states/provision"
                    if client.ask("PUT", path, {"target": verb}, allowed=(202, 409, 503)):
                        left.append(node)
                        time.sleep(_AGAIN_S)
            client.close()

        list(clients.map(work, range(CLIENTS)))

    def _wait(self, uuids: list[str], state: str) -> None:
        at_rest = sa.select(sa.func.count()).where(
            NODES.c.uuid.in_(uuids), NODES.c.provision_state == state,
            NODES.c.reservation.is_(None),
        )  # fmt: skip

        def all_there() -> bool:
            with self._db.read() as conn:
                return conn.execute(at_rest).scalar_one() == len(uuids)

        harness.until(all_there, f"nodes to be {state}", timeout_s=300)


class Role(Process):
    """``bloomery ROLE`` on a state dir and a configuration of its own; ``more``: arguments."""

    def __init__(self, role: str, folder: Path, options: dict[str, Any], *more: str) -> None:
        file = folder / f"{role}-{uuid.uuid4().hex}.conf"
        file.write_text(harness.config(options))
        self.home = file.with_suffix("")
        listens = ("--port", "0", "--orchestration-port", "0") if role == "api" else ()
        super().__init__(
            sys.executable, "-c", "from bloomery.cli.main import main; main()", role,
            "--state-dir", str(self.home), "--config-file", str(file), *listens, *more,
        )  # fmt: skip
        self.port = self.orchestration_port = 0

    def ready(self) -> Role:
        """Wait until it serves."""
        words = self.line(60).split(" answers at ")
        if len(words) > 1:
            self.port = int(words[1].split()[0].rpartition(":")[2])
            self.orchestration_port = harness.orchestration_port(self.home)
        return self


@contextlib.contextmanager
def _site(url: sa.URL, count: int, options: dict[str, Any]) -> Iterator[Site]:
    with event_relay.database(url) as db, started(db, count, options) as roles:
        yield Site(db, roles)


@contextlib.contextmanager
def started(
    db: Database, count: int, options: dict[str, Any], *more: str
) -> Iterator[Sequence[Role]]:
    """Yield so many conductors, ``more`` roles, and an API as the last."""
    with contextlib.ExitStack() as until_done:
        folder = until_done.enter_context(harness.folder())
        shared = shared_options(db, folder) | options
        roles = [Role("conductor", folder, shared | _named()) for _ in range(count)]
        roles += [Role(role, folder, shared) for role in (*more, "api")]
        for role in roles:
            until_done.enter_context(role)
        for role in roles:
            role.ready()
        yield roles


def shared_options(db: Database, folder: Path) -> dict[str, Any]:
    """Return what all processes of a site are told, and make the key that they share."""
    with StateDir(folder / "key") as home:
        home.sealer(db)
        shutil.copy(home.key, folder / "secrets.key")
    return HEARTBEAT | {
        "DEFAULT/rpc_transport": "json-rpc",
        "DEFAULT/sealing_key_file": folder / "secrets.key",
        "DEFAULT/enabled_hardware_types": "fake-hardware",
        "database/connection": db.url.render_as_string(hide_password=False),
        "conductor/sync_power_state_interval": 0,
        "conductor/graceful_shutdown_timeout": 1,
    }


def _named() -> dict[str, Any]:
    port = free_port()
    return {"DEFAULT/host": "127.0.0.1", "json_rpc/host_ip": "127.0.0.1", "json_rpc/port": port}


# --------------------------------------------------------------------------------- a death


def taken_over(db: Database, folder: Path) -> tuple[float, float]:
    """Return how long after the time-out all nodes are the heir's, and what CPU that took."""
    options = shared_options(db, folder) | _named()
    with StateDir(folder / "key") as home:
        _die(_dead_conductor(db, home))
    with Role("conductor", folder, options) as heir:
        heir.ready()
        timeout_s = HEARTBEAT["conductor/heartbeat_timeout"]
        threading.Event().wait(timeout_s - 2)
        began, cpu_s = time.monotonic(), heir.cpu_s()
        harness.until(lambda: _count_of_heir(db) == TAKEN_OVER, "the heir", timeout_s=300)
        return time.monotonic() - began - 2, heir.cpu_s() - cpu_s


def _count_of_heir(db: Database) -> int:
    held = sa.select(sa.func.count()).where(
        NODES.c.reservation.is_not(None), NODES.c.reservation != _DEAD
    )
    with db.read() as conn:
        return int(conn.execute(held).scalar_one())


def _dead_conductor(db: Database, home: StateDir) -> ConductorRuntime:
    settings = conf.Conf(
        default=Default(host=_DEAD, enabled_hardware_types=("fake-hardware",)),
        conductor=Conductor(heartbeat_timeout=30, heartbeat_interval=5),
    )
    runtime = lifecycle.build(settings, db, home.sealer(db, str(home.path.parent / "secrets.key")))
    incarnation = db.transact(
        lambda conn: conductors.register(
            conn, hostname=_DEAD, group="", drivers=["fake-hardware"],
            interfaces=runtime.registry.enabled(),
        )
    )  # fmt: skip
    assert incarnation is not None
    runtime.lease.begin(incarnation)
    return runtime


def _die(runtime: ConductorRuntime) -> None:
    """Leave so many deployments, each at a step that takes an hour, in the hands of nobody."""
    values = {"driver_info": {"fake": {"delay": {"deploy.deploy": 3600}}}}
    for _ in range(TAKEN_OVER):
        context = Context(runtime=runtime, request=Request.new(), in_place=True)
        node = str(uuid.uuid4())
        nodes.create(
            context,
            {"uuid": node, "driver": "fake-hardware", "provision_state": "available", **values},
        )
        runtime.lease.renew()
        task = task_manager.acquire(context, node, purpose="deploy")
        steps = deployments.deploy_steps(task, ProvisionArguments())
        flow = runner.plan(task, deployments.DEPLOY, steps)
        for run in flow.runs:
            here = run.step.name == "deploy.deploy"
            run.state = Run.RUNNING if here else Run.DONE
            if here:
                break
        task.process_event("deploy", journal=flow.opening)


if __name__ == "__main__":
    harness.main(measure)
