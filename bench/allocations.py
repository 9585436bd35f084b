"""Nodes given out: CPU of one allocation among 10,000 nodes, and 1,000 that ask at once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa

from bench import harness, inside, population
from bench.harness import Line
from bloomery.conductor import allocations
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db.tables import ALLOCATIONS, NODES

ONE_BY_ONE = 200
AT_ONCE = 1000
THREADS = 16
EXACT = "bm.exact"  # the class of as many nodes as ask for one at once
KINDS: dict[str, dict[str, Any]] = {
    "": {"resource_class": "bm.large"},
    ", with 2 traits": {"resource_class": "bm.large", "traits": list(population.TRAITS[:2])},
}


def measure() -> Sequence[Line]:
    lines = {
        kind: Line(
            what=f"allocate 1 of {population.MANY:,} nodes{kind}", unit="ms", at_most=4,
            note="CPU, from the call to the node",
        )
        for kind in KINDS
    }  # fmt: skip
    wrong = Line(
        what=f"lost or doubled of {AT_ONCE:,} allocations at once", unit="nodes", at_most=0
    )
    each = Line(what=f"one of {AT_ONCE:,} allocations at once", unit="ms", note="wall clock")
    with harness.folder() as folder:
        home = population.make(folder / "home")
        with inside.conductor(home) as runtime:
            runtime.db.transact(_make_exact)
            for _ in harness.rounds():
                for kind, line in lines.items():
                    line.add(_cpu_ms(runtime, KINDS[kind]))
                took_ms, count = _at_once(runtime)
                wrong.add(count)
                each.add(took_ms)
    return [*lines.values(), wrong, each]


def _make_exact(conn: sa.Connection) -> None:
    free = sa.select(NODES.c.id).where(NODES.c.provision_state == "available").limit(AT_ONCE)
    ids = list(conn.execute(free).scalars())
    conn.execute(sa.update(NODES).where(NODES.c.id.in_(ids)).values(resource_class=EXACT))


def _cpu_ms(runtime: ConductorRuntime, kind: dict[str, Any]) -> float:
    before = time.process_time()
    for _ in range(ONE_BY_ONE):
        _ask(runtime, kind)
    _wait(runtime)
    took_s = time.process_time() - before
    _check(runtime, ONE_BY_ONE)
    _give_back(runtime)
    return took_s / ONE_BY_ONE * 1000


def _at_once(runtime: ConductorRuntime) -> tuple[float, int]:
    """Return the milliseconds that each took, and how many went wrong."""
    before = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: _ask(runtime, {"resource_class": EXACT}), range(AT_ONCE)))
    _wait(runtime)
    took_s = time.perf_counter() - before
    count = AT_ONCE - len(_taken(runtime))
    _give_back(runtime)
    return took_s / AT_ONCE * 1000, count


def _ask(runtime: ConductorRuntime, kind: dict[str, Any]) -> None:
    values = {"uuid": str(uuid.uuid4())} | kind
    allocations.create(inside.context(runtime), values, None)


def _wait(runtime: ConductorRuntime) -> None:
    while _count(runtime, ALLOCATIONS.c.state == "allocating"):
        threading.Event().wait(0.05)


def _count(runtime: ConductorRuntime, condition: Any) -> int:
    with runtime.db.read() as conn:
        query = sa.select(sa.func.count()).select_from(ALLOCATIONS).where(condition)
        return int(conn.execute(query).scalar_one())


def _taken(runtime: ConductorRuntime) -> set[str]:
    """Return the nodes whose own row, and one allocation's, say that they are given out."""
    joined = sa.select(NODES.c.uuid).join(
        ALLOCATIONS,
        sa.and_(
            NODES.c.allocation_uuid == ALLOCATIONS.c.uuid, NODES.c.uuid == ALLOCATIONS.c.node_uuid
        ),
    )
    with runtime.db.read() as conn:
        return set(conn.execute(joined).scalars())


def _check(runtime: ConductorRuntime, expected: int) -> None:
    if (count := len(_taken(runtime))) != expected:
        raise RuntimeError(f"{count} nodes are given out instead of {expected}")


def _give_back(runtime: ConductorRuntime) -> None:
    def work(conn: sa.Connection) -> None:
        given_out = NODES.c.allocation_uuid.is_not(None)
        free = {"allocation_uuid": None, "instance_uuid": None}
        conn.execute(sa.update(NODES).where(given_out).values(free))
        conn.execute(sa.delete(ALLOCATIONS))

    runtime.db.transact(work)


if __name__ == "__main__":
    harness.main(measure)
