"""The floor of a request: bare cheroot, sqlite3 and orjson, no routing, no checks, no versions.

GET reads one row and answers with it, PATCH writes one row and commits, POST adds one.  Run as
``python -m bench.bare DATABASE``; it prints its port.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import sqlite3
import sys
import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
from cheroot import wsgi

from bench import harness

_TEXT = "x" * 1500  # about what the columns of a node hold


class App:
    """A WSGI application on a table of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count(1)
        self._own = threading.local()
        self._turn = threading.Lock()
        self._connection().executescript(
            "CREATE TABLE floor (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, name TEXT, text TEXT)",
        )
        self._add()

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._own, "connection"):
            self._own.connection = open_raw(self._path)
        found: sqlite3.Connection = self._own.connection
        return found

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PATCH":
            self._write("UPDATE floor SET name = ? WHERE id = 1", (str(next(self._numbers)),))
        elif environ["REQUEST_METHOD"] == "POST":
            self._add()
        cursor = self._connection().execute("SELECT * FROM floor WHERE id = 1")
        names = [column[0] for column in cursor.description]
        said = orjson.dumps(dict(zip(names, cursor.fetchone(), strict=True)))
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(said)))])
        return [said]

    def _add(self) -> None:
        values = (str(uuid.uuid4()), "n", _TEXT)
        self._write("INSERT INTO floor (uuid, name, text) VALUES (?, ?, ?)", values)

    def _write(self, statement: str, values: tuple[str, ...]) -> None:
        with self._turn, committing(self._connection()) as connection:
            connection.execute(statement, values)


def open_raw(path: Path) -> sqlite3.Connection:
    """Open a database as the service does, and nothing more."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={harness.SYNCHRONOUS}")
    return connection


@contextlib.contextmanager
def committing(connection: sqlite3.Connection) -> Any:
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.execute("COMMIT")


def _serve(path: Path) -> None:
    server = wsgi.Server(("127.0.0.1", 0), App(path), numthreads=4, shutdown_timeout=1)
    server.keep_alive_conn_limit = 100
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.prepare()
    print(server.bind_addr[1], flush=True)
    server.serve()


class Bare(harness.Process):
    """The floor's server as a process of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(sys.executable, "-m", "bench.bare", str(folder / "floor.sqlite"))
        self.port = int(self.line())

    def client(self) -> harness.Client:
        return harness.Client(self.port)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
