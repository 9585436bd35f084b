"""How soon an event that one process commits is in the hands of a sink in another, on servers.

The other process is this program, called with a URL: it runs a relay and commits events, one after
the other, and prints when each commit ended; here a sink notes when each came.  Both read the
machine's clock.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa

from bench import harness
from bench.harness import ROOT, Line
from bloomery.db import events, schema
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.relay import Relay
from tools import servers

EVENTS: Final = 300
PAUSE_S: Final = 0.01
_NODE: Final = str(uuid.UUID(int=1))
SERVERS: Final = (
    (servers.postgresql, "BLOOMERY_TEST_POSTGRESQL"),
    (servers.mariadb, "BLOOMERY_TEST_MARIADB"),
)


class Clocked:
    """A sink that notes when each event came."""

    name = "clocked"
    wants_snapshots = False

    def __init__(self) -> None:
        self.came_at: dict[str, float] = {}

    def open(self) -> None: ...

    def send(self, event: EventRow) -> None:
        self.came_at[str(event.request_id)] = time.time()

    def close(self) -> None: ...


@contextmanager
def database(url: sa.URL) -> Iterator[Database]:
    """A new database at the head of the schema, dropped afterwards."""
    name = f"bloomery_bench_{uuid.uuid4().hex}"
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    db = Database(url.set(database=name))
    try:
        schema.upgrade(db)
        yield db
    finally:
        db.close()
        with admin.connect() as conn:
            conn.exec_driver_sql(f"DROP DATABASE {name}")
        admin.dispose()


def measure() -> Sequence[Line]:
    lines = []
    for find, variable in SERVERS:
        with find() as server, database(sa.make_url(server.env[variable])) as db:
            lines.append(_line(db, server.name.split()[0]))
    return lines


def _line(db: Database, name: str) -> Line:
    line = Line(what=f"commit to a sink in another process, {name}, p99", unit="ms", at_most=200)
    line.synchronous = None
    sink = Clocked()
    relay = Relay(db, [sink], holder="here:1", keep_hours=1)
    relay.start()
    try:
        for _ in harness.rounds():
            sink.came_at.clear()
            took = sorted(_round(db, sink))
            line.add(took[len(took) * 99 // 100])
    finally:
        relay.stop()
    return line


def _round(db: Database, sink: Clocked) -> list[float]:
    url = db.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "bench.event_relay", "--write", url]
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    committed_at: dict[str, float] = json.loads(printed)
    harness.until(lambda: len(sink.came_at) >= len(committed_at), "all events")
    return [(sink.came_at[each] - at) * 1000 for each, at in committed_at.items()]


def write(url: str) -> None:
    """Commit events as a conductor does, with a relay beside that numbers them."""
    db = Database(url)
    relay = Relay(db, [], holder="there:2", keep_hours=1)
    relay.start()
    committed_at = {}
    pause = threading.Event()
    for _ in range(EVENTS):
        ident = uuid.uuid4().hex
        row = _row(ident)
        db.transact(lambda conn, row=row: events.insert(conn, [row]))
        committed_at[ident] = time.time()
        relay.wake()
        pause.wait(PAUSE_S)
    relay.stop()
    db.close()
    sys.stdout.write(json.dumps(committed_at))


def _row(ident: str) -> dict[str, Any]:
    event = events.Event(
        object="node", object_uuid=_NODE, action="update", status="end", request_id=ident
    )
    return events.encode(event)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2])
    else:
        harness.main(measure)
