"""Lists of 10,000 records in pages: CPU of the server against raw SQL to dicts plus orjson."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from bench import bare, harness, population
from bench.harness import Client, Line
from bloomery.model import node as model
from bloomery.model import nouns
from bloomery.model.noun import Noun

PAGE = 1000
DEFAULT = ("uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state")
DETAIL = tuple(field.name for field in model.FIELDS.values() if field.column)
TRAITS = "(SELECT group_concat(trait) FROM node_traits WHERE node_uuid = nodes.uuid) AS traits"
AT_MOST = {"default": 4, "detail": 3.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """A list of 10,000 records: its path, and what the floor reads of which table."""

    path: str
    kind: str
    table: str
    columns: tuple[str, ...]

    def line(self) -> Line:
        return Line(
            what=f"list {population.MANY:,} {self.table}, {self.kind}", unit="ms",
            at_most=AT_MOST[self.kind], ratio=True, connections=1, note=f"pages of {PAGE}",
        )  # fmt: skip


def _all(noun: Noun) -> tuple[str, ...]:
    return tuple(field.name for field in noun.fields.values() if field.column)


LISTS = (
    List(path="nodes", kind="default", table="nodes", columns=DEFAULT),
    List(path="nodes/detail", kind="detail", table="nodes", columns=(*DETAIL, TRAITS)),
    *(
        List(path=f"{noun.path}{path}", kind=kind, table=noun.table, columns=columns)
        for noun in (nouns.PORT, nouns.PORTGROUP)
        for path, kind, columns in (("", "default", noun.listed), ("/detail", "detail", _all(noun)))
    ),
    List(
        path="allocations", kind="detail", table="allocations", columns=_all(nouns.ALLOCATION)
    ),  # it has no other list
)


def measure() -> Sequence[Line]:
    lines = [(each, each.line()) for each in LISTS]
    with harness.folder() as folder:
        home = population.make(folder / "home")
        population.add_records(home)
        database = bare.open_raw(home / "bloomery.sqlite")
        with harness.Server(home) as server:
            for each, _ in lines:
                _whole(server.client(), each)
            for _ in harness.rounds():
                for each, line in lines:
                    line.add(_ours_ms(server, each), _floor_ms(database, each))
    return [line for _, line in lines]


def _ours_ms(server: harness.Server, records: List) -> float:
    client = server.client()
    before = server.cpu_s()
    _whole(client, records)
    took_s = server.cpu_s() - before
    client.close()
    return took_s * 1000


def _whole(client: Client, records: List) -> None:
    """Follow the pages to the end."""
    count, marker = 0, ""
    plural = records.path.partition("/")[0]
    while True:
        page = orjson.loads(client.ask("GET", f"/v1/{records.path}?limit={PAGE}{marker}"))
        count += len(page[plural])
        if "next" not in page:
            break
        marker = f"&marker={page[plural][-1]['uuid']}"
    if count != population.MANY:
        raise RuntimeError(f"{records.path}: {count} instead of {population.MANY}")


def _floor_ms(database: sqlite3.Connection, records: List) -> float:
    before = time.thread_time()
    for page in _raw_pages(database, records):
        orjson.dumps({records.table: page})
    return (time.thread_time() - before) * 1000


def _raw_pages(database: sqlite3.Connection, records: List) -> Iterator[list[object]]:
    query = (
        f"SELECT {', '.join(records.columns)}, id FROM {records.table} WHERE id > ? "
        f"ORDER BY id LIMIT {PAGE}"
    )
    last = 0
    while True:
        cursor = database.execute(query, (last,))
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        if not rows:
            return
        last = rows[-1][-1]
        yield [dict(zip(names, row, strict=True)) for row in rows]


if __name__ == "__main__":
    harness.main(measure)
