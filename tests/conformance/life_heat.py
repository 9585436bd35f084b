"""The published Heat, started for a while, and lives led in it; nothing of ours is asked."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from tests.conformance.life_client import LifeClient
from tools.servers import postgresql

SERVER: Final = Path(__file__).resolve().parent / "heat_server.py"
PATIENCE_S: Final = 12
CROWD: Final = 16  # lives at a time: its workers poll each second
QUIET_S: Final = 1.5
TRIES: Final = 3

Observations = list[dict[str, Any]]


@contextlib.contextmanager
def running(python: str) -> Iterator[str]:
    """Yield the URL of a Heat whose interpreter is ``python``; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="heat-") as directory, database() as url:
        command = [python, str(SERVER), url, directory]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            assert process.stderr
            if not (port := process.stdout.readline().strip()):
                raise SystemExit(f"Heat does not start: {process.stderr.read()[-2000:]}")
            try:
                yield f"http://127.0.0.1:{port}/v1/conformance"
            finally:
                process.kill()


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database; SQLite is locked too often for Heat."""
    name = f"heat_{os.getpid()}"
    with postgresql() as server:
        url = server.env["BLOOMERY_TEST_POSTGRESQL"].replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                yield url.replace("://", "+psycopg2://").rpartition("/")[0] + f"/{name}"
            finally:
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))


def lead(base: str, lives: Sequence[Mapping[str, Any]], suffix: str = "") -> list[Observations]:
    with ThreadPoolExecutor(CROWD) as pool:
        return list(pool.map(lambda life: _lead_one(base, life, suffix), lives))


def _lead_one(base: str, life: Mapping[str, Any], suffix: str) -> Observations:
    """Lead one life; once more where Heat was too slow for the race to be one."""
    for attempt in range(TRIES):
        name = f"{life['id']}{suffix}{attempt or ''}".replace("-", "_")
        observations = LifeClient(base, name, wait_for_quiet).live(life)
        if all(
            is_race(step, seen)
            for step, seen in zip(life["steps"], observations, strict=True)
            if step["do"] == "race"
        ):
            break
    else:
        sys.stderr.write(f"Heat is too slow for the race of {life['id']}\n")
    return observations


def is_race(step: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Whether the second update came while the slow resource was being updated for the first."""
    started = [n for n, line in enumerate(seen["events"]) if line == "/ UPDATE_IN_PROGRESS"]
    ended = f"{step['slow']} UPDATE_COMPLETE"
    return len(started) == 2 and started[1] < seen["events"].index(ended)


def wait_for_quiet(client: LifeClient) -> None:
    """Wait until the slow resource is being updated and no event has come for a while."""
    client.wait(lambda: client.slow in client.in_progress(), f"the update of {client.slow}")
    count, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_S:
        if (events := len(client.listed_events())) != count:
            count, since = events, time.monotonic()
        time.sleep(0.1)
