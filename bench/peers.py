"""Bloomery beside the published Ironic and Heat: CPU of each, for the same requests in turns.

    make bench-peers

Ironic runs as one process with SQLite and fake hardware, Heat as one process with PostgreSQL, whose
own CPU is not counted.  A value is Bloomery's, its floor the peer's, so that a ratio of 0.05 is a
twentieth of the peer's CPU.  The table is written into ``doc/reference/benchmarks.md``.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import platform
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bench import cycle, harness, stacks
from bench.harness import Client, Line
from tests.conformance import life_heat
from tests.conformance.ironic import server as ironic_server

IRONIC: Final = harness.ROOT / "build/ironic/bin"
HEAT: Final = harness.ROOT / "build/heat/bin/python"
PAGE: Final = harness.ROOT / "doc/reference/benchmarks.md"
MARK: Final = "<!-- what follows is written by make bench-peers -->\n"
GETS, WRITES, LISTS = 200, 60, 5
LISTED: Final = 1000  # nodes
CYCLED: Final = 10  # nodes
VALUES: Final = 20  # resources of a stack
_LOOK_S: Final = 0.2  # between two looks at a peer that works
_CYCLED: Final = (
    "SELECT count(*) FROM nodes WHERE provision_state = ? AND reservation IS NULL"
    " AND target_provision_state IS NULL"
)
_NUMBERS = itertools.count(1)


class Peer(NamedTuple):
    """One of two services that are asked the same."""

    port: int
    pids: frozenset[int]
    path: str  # of its stacks
    database: Path | None = None  # a file, where whoever waits looks past the service

    def client(self) -> Client:
        return Client(self.port)

    def cpu_s(self) -> float:
        return sum(harness.cpu_s(pid) for pid in self.pids)


Work = Callable[[Peer, Client], None]


class Subject(NamedTuple):
    line: Line
    work: Work
    in_round: int  # requests, nodes or stacks that one round has

    def measure(self, ours: Peer, theirs: Peer) -> None:
        self.line.add(self._cpu_ms(ours), self._cpu_ms(theirs))

    def _cpu_ms(self, peer: Peer) -> float:
        with closing(peer.client()) as client:
            before = peer.cpu_s()
            self.work(peer, client)
            return (peer.cpu_s() - before) * 1000 / self.in_round


# ---------------------------------------------------------------------------------------- peers


def _children(pid: int) -> Iterator[int]:
    """Yield the processes below one, at any depth."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            yield child
            yield from _children(child)


@contextmanager
def _ironic() -> Iterator[Peer]:
    before = set(_children(os.getpid()))
    with ironic_server.running(IRONIC) as (_host, port):
        pids = frozenset(_children(os.getpid())) - before
        command = Path(f"/proc/{min(pids)}/cmdline").read_text()
        settings = Path(re.findall(r"[^\0 ]*ironic\.conf", command)[0])
        yield Peer(port, pids, "", settings.with_name("ironic.sqlite"))


@contextmanager
def _heat() -> Iterator[Peer]:
    before = set(_children(os.getpid()))
    with life_heat.running(str(HEAT)) as url:
        address = urlsplit(url)
        yield Peer(address.port or 0, frozenset(_children(os.getpid())) - before, address.path)


@contextmanager
def _bloomery(folder: Path) -> Iterator[tuple[Peer, Peer]]:
    """Yield the service by its API of machines, and by that of stacks."""
    home = folder / "home"
    with harness.Server(home) as server:
        pids, database = frozenset({server.pid}), home / "bloomery.sqlite"
        yield (
            Peer(server.port, pids, "", database),
            Peer(server.orchestration_port, pids, "/v1/admin", database),
        )


# ------------------------------------------------------------------------------------- machines


def _repeat(count: int, ask: Callable[[Client], object]) -> Work:
    def work(_peer: Peer, client: Client) -> None:
        for _ in range(count):
            ask(client)

    return work


def _enrol(client: Client) -> str:
    body = {"driver": "fake-hardware", "name": f"node-{next(_NUMBERS)}"}
    uuid: str = json.loads(client.ask("POST", "/v1/nodes", body))["uuid"]
    return uuid


def _cycle(peer: Peer, client: Client) -> None:
    """Take nodes from their enrolment through a deployment to available again."""
    assert peer.database is not None
    uuids = [_enrol(client) for _ in range(CYCLED)]
    with closing(sqlite3.connect(f"file:{peer.database}?mode=ro", uri=True)) as database:
        for verb, arrived in cycle.WAY:
            for uuid in uuids:
                client.ask("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": verb})
            _look_until(functools.partial(_are_there, database, arrived), arrived)
    for uuid in uuids:
        client.ask("DELETE", f"/v1/nodes/{uuid}")


def _are_there(database: sqlite3.Connection, state: str) -> bool:
    found: int = database.execute(_CYCLED, (state,)).fetchone()[0]
    return found == CYCLED


def _look_until(true: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + 120
    while not true():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"waited 120 s for {what}")
        time.sleep(_LOOK_S)


def _machines(ours: Peer, theirs: Peer) -> list[Line]:
    shown = {}
    for peer in (ours, theirs):
        with closing(peer.client()) as client:
            shown[peer] = _enrol(client)

    def get(peer: Peer, client: Client) -> None:
        for _ in range(GETS):
            client.ask("GET", f"/v1/nodes/{shown[peer]}")

    def patch(peer: Peer, client: Client) -> None:
        for number in range(WRITES):
            change = [{"op": "add", "path": "/extra/n", "value": number}]
            client.ask("PATCH", f"/v1/nodes/{shown[peer]}", change)

    few = [
        Subject(_line("Ironic: GET a node", 1 / 20), get, GETS),
        Subject(_line("Ironic: POST a node", 1 / 25), _repeat(WRITES, _enrol), WRITES),
        Subject(_line("Ironic: PATCH a node", 1 / 40), patch, WRITES),
        Subject(_line("Ironic: manage, provide, active, deleted", 1 / 80), _cycle, CYCLED),
    ]
    listing = _repeat(LISTS, lambda client: client.ask("GET", f"/v1/nodes/detail?limit={LISTED}"))
    many = Subject(_line(f"Ironic: list {LISTED} nodes in detail"), listing, LISTS)
    return [*_measured(few, ours, theirs), *_listed(many, ours, theirs)]


def _listed(many: Subject, ours: Peer, theirs: Peer) -> list[Line]:
    for peer in (ours, theirs):
        with closing(peer.client()) as client:
            page = json.loads(client.ask("GET", f"/v1/nodes?limit={LISTED}"))
            for _ in range(LISTED - len(page["nodes"])):
                _enrol(client)
    return _measured([many], ours, theirs)


# --------------------------------------------------------------------------------------- stacks


def _make_and_delete(peer: Peer, client: Client) -> None:
    template = {"heat_template_version": "2021-04-16", "resources": stacks.values(VALUES)}
    name = f"s{next(_NUMBERS)}"
    body = {"stack_name": name, "template": template}
    made = json.loads(client.ask("POST", f"{peer.path}/stacks", body))["stack"]
    path = f"{peer.path}/stacks/{name}/{made['id']}"
    _look_until(lambda: _status(client, path) == "CREATE_COMPLETE", "the stack")
    client.ask("DELETE", path)
    _look_until(lambda: _status(client, path) in ("DELETE_COMPLETE", None), "its end")


def _status(client: Client, path: str) -> str | None:
    document: dict[str, Any] = json.loads(client.ask("GET", path, allowed=(200, 404)))
    status: str | None = document.get("stack", {}).get("stack_status")
    return status


def _stacks(ours: Peer, theirs: Peer) -> list[Line]:
    line = _line(f"Heat: create and delete a stack of {VALUES} values")
    return _measured([Subject(line, _make_and_delete, 1)], ours, theirs)


# ---------------------------------------------------------------------------------------- table


def _line(what: str, at_most: float | None = None) -> Line:
    return Line(what=what, unit="ms", at_most=at_most, ratio=True)


def _measured(subjects: Sequence[Subject], ours: Peer, theirs: Peer) -> list[Line]:
    for subject in subjects:  # what is imported at the first request is imported
        for peer in (ours, theirs):
            with closing(peer.client()) as client:
                subject.work(peer, client)
    for _ in harness.rounds():
        for subject in subjects:
            subject.measure(ours, theirs)
    return [subject.line for subject in subjects]


def measure() -> Sequence[Line]:
    with harness.folder() as folder, _bloomery(folder) as (machines, ours):
        with _ironic() as theirs:
            lines = _machines(machines, theirs)
        with _heat() as theirs:
            lines += _stacks(ours, theirs)
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + _table(lines))
    return lines


def _table(lines: Sequence[Line]) -> str:
    rows = "\n".join(_row(line) for line in lines)
    return (
        "\n| Peer, and what is asked of both | Bloomery, ms | peer, ms | peer / Bloomery | spread |"
        f"\n|---|---|---|---|---|\n{rows}\n\nMedians of {len(lines[0].values)} rounds; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.\n"
    )


def _row(line: Line) -> str:
    values, floors = sorted(line.values), sorted(line.floors)
    times = sorted(1 / ratio for ratio in line.figures())
    middle = len(times) // 2
    return (
        f"| {line.what} | {_ms(values[middle])} | {_ms(floors[middle])} | {times[middle]:.0f} "
        f"| {times[0]:.0f} to {times[-1]:.0f} |"
    )


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    harness.main(measure)
