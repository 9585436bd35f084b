"""Stacks over HTTP: CPU of the server from the request to the end, beside 1,000 bare commits.

Whoever waits looks at the database file instead of asking the server.  What goes by the clock is
told beside it.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from bench import bare, harness, transition
from bench.harness import Client, Line

FLAT: Final = 500
CHAIN: Final = 100
MANY, OF_EACH = 50, 3
LARGE, SMALL = 1000, 100
_FLOOR_COMMITS: Final = 1000
_OPEN: Final = (
    "SELECT (SELECT count(*) FROM stack_orders) + "
    "(SELECT count(*) FROM stack_locks WHERE engine_id IS NOT NULL)"
)
_FAILED: Final = "SELECT reason FROM stacks WHERE status = 'FAILED'"
_NUMBERS = itertools.count(1)


class Stacks:
    """The orchestration API of a server, and its database."""

    def __init__(self, server: harness.Server, home: Path) -> None:
        self.server, self.home = server, home
        self.client = server.orchestration_client()
        self.database = bare.open_raw(home / "bloomery.sqlite")

    def template(self, resources: dict[str, Any], **sections: Any) -> dict[str, Any]:
        return {"heat_template_version": "2021-04-16", "resources": resources} | sections

    def create(self, template: dict[str, Any], client: Client | None = None, **more: Any) -> str:
        """Order a stack; return its path.  ``more``: what else is in the request."""
        name = f"s{next(_NUMBERS)}"
        body = {"stack_name": name, "template": template} | more
        made = json.loads((client or self.client).ask("POST", "/v1/admin/stacks", body))
        return f"/v1/admin/stacks/{name}/{made['stack']['id']}"

    def wait(self) -> None:
        """Wait until nobody works on any stack; none may have failed."""
        harness.until(lambda: not self.is_busy, "all stacks to rest")
        if failed := self.database.execute(_FAILED).fetchone():
            raise RuntimeError(f"a stack has failed: {failed[0]}")

    @property
    def is_busy(self) -> bool:
        return bool(self.database.execute(_OPEN).fetchone()[0])

    def delete(self, path: str) -> None:
        self.client.ask("DELETE", path)
        self.wait()

    def measured(self, work: Callable[[], None]) -> tuple[float, float]:
        """Return the server's CPU and the clock's seconds until all stacks rest."""
        before = self.server.cpu_s(), time.perf_counter()
        work()
        self.wait()
        return self.server.cpu_s() - before[0], time.perf_counter() - before[1]


def values(count: int, changed: int = 0) -> dict[str, Any]:
    return {
        f"r{number}": {
            "type": "OS::Heat::Value",
            "properties": {"value": f"v{changed if number == 0 else 0}-{number}"},
        }
        for number in range(count)
    }


def chain(count: int) -> dict[str, Any]:
    return {
        f"r{number}": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": [f"r{number - 1}", "value"]} if number else "x"},
        }
        for number in range(count)
    }


def measure() -> Sequence[Line]:
    with harness.folder() as folder, harness.Server(folder / "home") as server:
        stacks = Stacks(server, folder / "home")
        stacks.delete(stacks.create(stacks.template(values(3))))  # what is imported is imported
        return [
            *_flat(stacks, folder), *_chain(stacks), *_update(stacks), *_many(stacks),
            *_reads(stacks), *_slope(stacks), *_beside(stacks), *_memory(),
        ]  # fmt: skip


def _flat(stacks: Stacks, folder: Path) -> list[Line]:
    cpu = Line(what=f"stack of {FLAT} values, CPU", unit="s", at_most=0.35)
    floors = Line(
        what=f"stack of {FLAT} values, {_FLOOR_COMMITS} commits", unit="s", at_most=4, ratio=True
    )
    wall = Line(what=f"stack of {FLAT} values, by the clock", unit="s", at_most=1)
    for _ in harness.rounds():
        floor = transition.bare_commit_ms(folder / "floor.sqlite") * _FLOOR_COMMITS / 1000
        used, took = stacks.measured(lambda: _made.append(stacks.create(_flat_template(stacks))))
        cpu.add(used)
        floors.add(used, floor)
        wall.add(took)
        stacks.delete(_made.pop())
    return [cpu, floors, wall]


_made: list[str] = []


def _flat_template(stacks: Stacks, changed: int = 0) -> dict[str, Any]:
    return stacks.template(
        values(FLAT, changed),
        outputs={
            name: {"value": {"get_attr": [f"r{number}", "value"]}}
            for number, name in enumerate(("first", "second"))
        },
    )


def _chain(stacks: Stacks) -> list[Line]:
    cpu = Line(what=f"chain of {CHAIN} values, CPU", unit="s", at_most=0.35)
    wall = Line(what=f"chain of {CHAIN} values, by the clock", unit="s", at_most=0.6)
    for _ in harness.rounds():
        used, took = stacks.measured(
            lambda: _made.append(stacks.create(stacks.template(chain(CHAIN))))
        )
        cpu.add(used)
        wall.add(took)
        stacks.delete(_made.pop())
    return [cpu, wall]


def _update(stacks: Stacks) -> list[Line]:
    cpu = Line(what=f"update of 1 of {FLAT} values, CPU", unit="s", at_most=0.2)
    path = stacks.create(_flat_template(stacks))
    stacks.wait()
    for number in harness.rounds():
        body = {"template": _flat_template(stacks, number + 1)}
        used, _ = stacks.measured(lambda body=body: _ask(stacks, "PUT", path, body))
        cpu.add(used)
    stacks.delete(path)
    return [cpu]


def _ask(stacks: Stacks, method: str, path: str, body: Any) -> None:
    stacks.client.ask(method, path, body)


def _many(stacks: Stacks) -> list[Line]:
    cpu = Line(what=f"{MANY} stacks of {OF_EACH} at once, CPU", unit="s", at_most=0.6)
    wall = Line(what=f"{MANY} stacks of {OF_EACH} at once, by the clock", unit="s", at_most=0.9)
    template = stacks.template(values(OF_EACH))
    clients = [stacks.server.orchestration_client() for _ in range(8)]
    for _ in harness.rounds():
        paths: list[str] = []

        def order(paths: list[str] = paths) -> None:
            with ThreadPoolExecutor(len(clients)) as pool:
                jobs = [
                    pool.submit(stacks.create, template, clients[number % len(clients)])
                    for number in range(len(clients))
                ]
                paths += [job.result() for job in jobs]
            # the rest, one client after the other: a connection carries one request at a time
            paths += [stacks.create(template, client) for client in _spread(clients)]

        used, took = stacks.measured(order)
        cpu.add(used)
        wall.add(took)
        for path in paths:
            stacks.client.ask("DELETE", path)
        stacks.wait()
    return [cpu, wall]


def _spread(clients: list[Client]) -> list[Client]:
    return [clients[number % len(clients)] for number in range(MANY - len(clients))]


def _reads(stacks: Stacks) -> list[Line]:
    path = stacks.create(_flat_template(stacks))
    stacks.wait()
    asked = {
        "show a stack with 2 outputs": ("", 8),
        f"list {FLAT} resources": ("/resources", 16),
        f"list {2 * FLAT + 2} events": ("/events", 22),
    }
    lines = []
    for what, (below, most) in asked.items():
        line = Line(what=what, unit="ms", at_most=most)
        stacks.client.ask("GET", path + below)
        for _ in harness.rounds():
            before = stacks.server.cpu_s()
            for _ in range(10):
                stacks.client.ask("GET", path + below)
            line.add((stacks.server.cpu_s() - before) * 1000 / 10)
        lines.append(line)
    stacks.delete(path)
    return lines


def _slope(stacks: Stacks) -> list[Line]:
    """How the cost of a resource grows from a small stack to a large one: 1 is not at all."""
    slope = Line(what=f"cost of a value, {LARGE} against {SMALL}", unit="", at_most=1.1)
    for _ in harness.rounds():
        each = []
        for count in (SMALL, LARGE):
            times = LARGE // count if count == SMALL else 1
            used = 0.0
            for _ in range(times):
                template = stacks.template(values(count))
                used += stacks.measured(lambda t=template: _made.append(stacks.create(t)))[0]
                stacks.delete(_made.pop())
            each.append(used / (count * times))
        slope.add(each[1] / each[0])
    return [slope]


def _beside(stacks: Stacks) -> list[Line]:
    """How long a GET of one node takes while stacks are created: the slowest of a hundred."""
    line = Line(
        what=f"GET a node while {MANY} stacks of {SMALL} are made, p99", unit="ms", at_most=25
    )
    client = stacks.server.client()
    client.ask("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "node-1"})
    template = stacks.template(values(SMALL))
    for _ in harness.rounds():
        took: list[float] = []
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(lambda: [stacks.create(template) for _ in range(MANY)])
            while not job.done() or stacks.is_busy:
                began = time.perf_counter()
                client.ask("GET", "/v1/nodes/node-1")
                took.append((time.perf_counter() - began) * 1000)
        line.add(sorted(took)[len(took) * 99 // 100])
        for path in job.result():
            stacks.client.ask("DELETE", path)
        stacks.wait()
    return [line]


def _memory() -> list[Line]:
    """What a stack that waits adds to a server that has read templates, and has no stack."""
    with harness.folder() as folder, harness.Server(folder / "home") as server:
        stacks = Stacks(server, folder / "home")
        stacks.delete(stacks.create(stacks.template(values(3))))
        return _waiting(stacks)


def _waiting(stacks: Stacks) -> list[Line]:
    line = Line(what=f"memory for {LARGE} resources that wait", unit="MiB", at_most=30)
    waiting = {
        f"r{number}": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": "v", "wait_secs": 3600},
        }
        for number in range(LARGE - 1)
    }
    before = stacks.server.rss_mib()
    path = stacks.create(stacks.template(waiting))
    harness.until(lambda: _in_progress(stacks.database) >= LARGE - 1, "all to wait")
    line.add(stacks.server.rss_mib() - before)
    stacks.client.ask("DELETE", path)
    return [line]


def _in_progress(database: sqlite3.Connection) -> int:
    query = "SELECT count(*) FROM resources WHERE status = 'IN_PROGRESS'"
    found: int = database.execute(query).fetchone()[0]
    return found


if __name__ == "__main__":
    harness.main(measure)
