"""A node's cycle, manage, provide, active, deleted, on fake hardware that needs no time.

Over HTTP the server's CPU is counted, and whoever waits looks at the database file instead of
asking the server.  Inside one process the commits are counted as well, and nothing is HTTP.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import bare, harness, inside, transition
from bench.harness import Client, Line
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db.engine import Meter
from bloomery.model.request import Request

NODES = 40
_COMMITS = 14  # that a cycle may make; so many bare ones are its floor
WAY = (
    ("manage", "manageable"),
    ("provide", "available"),
    ("active", "active"),
    ("deleted", "available"),
)
_AT_REST = (
    "SELECT count(*) FROM nodes WHERE provision_state = ? AND reservation IS NULL "
    "AND target_provision_state IS NULL"
)


def measure() -> Sequence[Line]:
    http = Line(what="cycle of a node over HTTP", unit="ms", at_most=10, ratio=True, connections=1)
    alone = Line(what="cycle of a node without HTTP", unit="ms", ratio=True)
    commits = Line(what="commits of a cycle", unit="", at_most=_COMMITS)
    with (
        harness.folder() as folder,
        harness.Server(folder / "home") as server,
        inside.conductor(folder / "inside") as runtime,
    ):
        for _ in harness.rounds():
            floor = transition.bare_commit_ms(folder / "floor.sqlite") * _COMMITS
            http.add(_over_http(server, folder / "home"), floor)
            alone.add(_inside(runtime, folder / "inside"), floor)
        commits.add(_commits(runtime, folder / "inside"))
    return http, alone, commits


def _over_http(server: harness.Server, home: Path) -> float:
    client, database = server.client(), _database(home)
    uuids = [_enrol(client) for _ in range(NODES)]
    before = server.cpu_s()
    for verb, arrived in WAY:
        for uuid in uuids:
            client.ask("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": verb})
        _wait(database, arrived)
    took_s = server.cpu_s() - before
    for uuid in uuids:
        client.ask("DELETE", f"/v1/nodes/{uuid}")
    client.close()
    return took_s * 1000 / NODES


def _enrol(client: Client) -> str:
    made = json.loads(client.ask("POST", "/v1/nodes", {"driver": "fake-hardware"}))
    return str(made["uuid"])


def _database(home: Path) -> sqlite3.Connection:
    return bare.open_raw(home / "bloomery.sqlite")


def _wait(database: sqlite3.Connection, state: str) -> None:
    """Wait until every node stands in ``state`` and nobody holds it."""

    def all_there() -> bool:
        found: int = database.execute(_AT_REST, (state,)).fetchone()[0]
        return found == NODES

    harness.until(all_there, f"{NODES} nodes in {state}")


def _inside(runtime: ConductorRuntime, home: Path) -> float:
    """Return CPU milliseconds per node."""
    with _enrolled(runtime) as uuids:
        before = time.process_time()
        _walk(runtime, home, uuids)
        return (time.process_time() - before) * 1000 / NODES


def _commits(runtime: ConductorRuntime, home: Path) -> float:
    """Return commits per node; counting costs time, so this comes last."""
    with _enrolled(runtime) as uuids:
        meter = Meter(runtime.db)
        _walk(runtime, home, uuids)
        return meter.commits / NODES


@contextmanager
def _enrolled(runtime: ConductorRuntime) -> Iterator[list[str]]:
    uuids = [inside.enrol(inside.context(runtime), "enroll") for _ in range(NODES)]
    yield uuids
    for uuid in uuids:
        ConductorManager(runtime).destroy_node(Request.new(), uuid)


def _walk(runtime: ConductorRuntime, home: Path, uuids: list[str]) -> None:
    manager, database = ConductorManager(runtime), _database(home)
    for verb, arrived in WAY:
        for uuid in uuids:
            _order(manager, verb)(uuid)
        _wait(database, arrived)


def _order(manager: ConductorManager, verb: str) -> Callable[[str], None]:
    return lambda uuid: manager.do_provisioning_action(Request.new(), uuid, verb, {})


if __name__ == "__main__":
    harness.main(measure)
