"""What one node costs among 10,000, in costs among 100: an order that reads all nodes shows here.

CPU of the server for each of NODES nodes.  The nodes around them have Redfish BMCs, which no power
sync calls.  Verbs are ordered of fake hardware that needs no time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench import bare, cycle, harness, population
from bench.harness import Client, Line, Server

NODES: Final = 50
FEW: Final = 100
MOST: Final = 1.15
_OPTIONS: Final = {"DEFAULT/enabled_hardware_types": "redfish,fake-hardware"}
_WAYS: Final = ("POST a node", "PATCH its BMC", "validate it", *(verb for verb, _ in cycle.WAY))
_WAITING: Final = (
    "SELECT count(*) FROM nodes WHERE driver = 'fake-hardware' AND (provision_state <> ? "
    "OR reservation IS NOT NULL OR target_provision_state IS NOT NULL)"
)

Costs = dict[str, float]


def measure() -> Sequence[Line]:
    lines = {
        what: Line(what=f"{what} among {population.MANY:,}, against {FEW}", unit="ms", ratio=True,
                   at_most=MOST, connections=1)
        for what in _WAYS
    }  # fmt: skip
    with harness.folder() as folder, ExitStack() as stack:
        few, many = (
            stack.enter_context(Server(_populated(folder / str(count), count), _OPTIONS))
            for count in (FEW, population.MANY)
        )
        for number in harness.rounds():
            among_few, among_many = (_costs(server, number) for server in (few, many))
            for what, line in lines.items():
                line.add(among_many[what], among_few[what])
    return list(lines.values())


def _populated(home: Path, count: int) -> Path:
    """Make a state dir whose nodes have Redfish BMCs; return it."""
    population.make(home, count)
    with bare.open_raw(home / "bloomery.sqlite") as database:
        database.execute("UPDATE nodes SET driver = 'redfish'")
    database.close()
    return home


def _costs(server: Server, number: int) -> Costs:
    """Return CPU milliseconds for each node by what is done; the nodes are deleted again."""
    client, database = server.client(), bare.open_raw(server.home / "bloomery.sqlite")
    costs, uuids = Costs(), list[str]()

    def run(what: str, ask: Callable[[str], Any], arrived: str | None = None) -> None:
        before = server.cpu_s()
        for each in uuids or map(str, range(NODES)):
            ask(each)
        if arrived:
            harness.until(lambda: _is_there(database, arrived), f"{NODES} nodes in {arrived}")
        costs[what] = (server.cpu_s() - before) * 1000 / NODES

    created = list[str]()
    run("POST a node", lambda each: created.append(_create(client, "redfish", number, int(each))))
    uuids += created
    run("PATCH its BMC", lambda each: client.ask("PATCH", f"/v1/nodes/{each}", [
        {"op": "replace", "path": "/driver_info/redfish_address", "value": f"https://{each}.test"}
    ]))  # fmt: skip
    run("validate it", lambda each: client.ask("GET", f"/v1/nodes/{each}/validate"))
    _delete(client, uuids)
    uuids[:] = [_create(client, "fake-hardware", number, each) for each in range(NODES)]
    for verb, arrived in cycle.WAY:
        body = {"target": verb}
        run(verb, lambda each, body=body: client.ask(
            "PUT", f"/v1/nodes/{each}/states/provision", body), arrived)  # fmt: skip
    _delete(client, uuids)
    client.close()
    database.close()
    return costs


def _create(client: Client, driver: str, number: int, node: int) -> str:
    info = {"redfish_address": f"https://172.16.{number}.{node}", "redfish_password": "secret"}
    body = {"driver": driver, "driver_info": info}
    return str(json.loads(client.ask("POST", "/v1/nodes", body))["uuid"])


def _delete(client: Client, uuids: Sequence[str]) -> None:
    for each in uuids:
        client.ask("DELETE", f"/v1/nodes/{each}")


def _is_there(database: sqlite3.Connection, state: str) -> bool:
    waiting: int = database.execute(_WAITING, (state,)).fetchone()[0]
    return not waiting


if __name__ == "__main__":
    harness.main(measure)
