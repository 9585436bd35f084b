"""Lists of 10,000 nodes in pages: CPU of the server against raw SQL to dicts plus orjson."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence

import orjson

from bench import bare, harness, population
from bench.harness import Client, Line
from bloomery.model import node as model

PAGE = 1000
DEFAULT = ("uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state")
DETAIL = tuple(field.name for field in model.FIELDS.values() if field.column)
TRAITS = "(SELECT group_concat(trait) FROM node_traits WHERE node_uuid = nodes.uuid) AS traits"


def measure() -> Sequence[Line]:
    lists = {
        "/v1/nodes": (DEFAULT, _line("default", 4)),
        "/v1/nodes/detail": ((*DETAIL, TRAITS), _line("detail", 3.5)),
    }
    with harness.folder() as folder:
        home = population.make(folder / "home")
        database = bare.open_raw(home / "bloomery.sqlite")
        with harness.Server(home) as server:
            for path in lists:
                _whole(server.client(), path)
            for _ in harness.rounds():
                for path, (columns, line) in lists.items():
                    line.add(_ours_ms(server, path), _floor_ms(database, columns))
    return [line for _, line in lists.values()]


def _line(kind: str, at_most: float) -> Line:
    return Line(
        what=f"list {population.MANY:,} nodes, {kind}",
        unit="ms",
        at_most=at_most,
        ratio=True,
        connections=1,
        note=f"pages of {PAGE}",
    )


def _ours_ms(server: harness.Server, path: str) -> float:
    client = server.client()
    before = server.cpu_s()
    _whole(client, path)
    took_s = server.cpu_s() - before
    client.close()
    return took_s * 1000


def _whole(client: Client, path: str) -> None:
    """Follow the pages to the end."""
    found, marker = 0, ""
    while True:
        said = client.ask("GET", f"{path}?limit={PAGE}{marker}")
        page = orjson.loads(said)
        found += len(page["nodes"])
        if "next" not in page:
            break
        marker = f"&marker={page['nodes'][-1]['uuid']}"
    if found != population.MANY:
        raise RuntimeError(f"{path}: {found} nodes instead of {population.MANY}")


def _floor_ms(database: sqlite3.Connection, columns: Sequence[str]) -> float:
    before = time.thread_time()
    for page in _raw_pages(database, columns):
        orjson.dumps({"nodes": page})
    return (time.thread_time() - before) * 1000


def _raw_pages(database: sqlite3.Connection, columns: Sequence[str]) -> Iterator[list[object]]:
    wanted = f"SELECT {', '.join(columns)}, id FROM nodes WHERE id > ? ORDER BY id LIMIT {PAGE}"
    last = 0
    while True:
        cursor = database.execute(wanted, (last,))
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        if not rows:
            return
        last = rows[-1][-1]
        yield [dict(zip(names, row, strict=True)) for row in rows]


if __name__ == "__main__":
    harness.main(measure)
