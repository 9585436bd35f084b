"""``kill -9`` at a seeded random moment in a hundred deployments, and a start anew."""

from __future__ import annotations

import json
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.engine import Database
from bloomery.db.tables import NODE_HISTORY, NODES, STEP_RUNS
from tests.chaos import conductor_process
from tests.chaos.conductor_process import GIVES_UP_S
from tests.chaos.conductor_process import NODES as HOW_MANY

PROGRAM = Path(conductor_process.__file__)
WHOLE_S = 2.2  # about how long the deployments take, from the first order on


class Child:
    """A conductor in a process, and what it said."""

    def __init__(self, state_dir: Path, seed: int, program: Path = PROGRAM) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(program), str(state_dir), str(seed)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self._news: queue.Queue[dict[str, Any]] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            self._news.put(self.said[-1])

    def _read_errors(self) -> None:
        self.errors += self.process.stderr

    def wait_for(self, key: str, timeout_s: float) -> Any:
        give_up_at = time.monotonic() + timeout_s
        while (left_s := give_up_at - time.monotonic()) > 0:
            try:
                said = self._news.get(timeout=min(left_s, 0.5))
            except queue.Empty:
                if self.process.poll() is not None and self._news.empty():
                    break
                continue
            if key in said:
                return said[key]
        raise AssertionError(f"it did not say {key!r}: {''.join(self.errors)[-2000:]}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        self.process.wait(timeout=GIVES_UP_S)
        for reader in self._readers:
            reader.join(timeout=5)
        self.process.stdout.close()
        self.process.stderr.close()

    def acknowledged(self) -> dict[str, str]:
        """Request id -> node, of the orders that were acknowledged."""
        return {said["ack"]: said["node"] for said in self.said if "ack" in said}


@pytest.fixture
def children() -> Iterator[list[Child]]:
    made: list[Child] = []
    yield made
    for child in made:
        child.kill()  # also of one that has ended: its pipes may be open


def rows(path: Path, table: sa.Table) -> list[dict[str, Any]]:
    db = Database(f"sqlite:///{path / 'bloomery.sqlite'}")
    try:
        with db.read() as conn:
            return [dict(row) for row in conn.execute(sa.select(table)).mappings()]
    finally:
        db.close()


def test_deployments_go_on_after_kill_9(
    tmp_path: Path, children: list[Child], seed: int, record_property
):
    kill_and_start_anew(tmp_path, children, seed, record_property)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_deployments_go_on_20_times_in_a_row(
    tmp_path: Path, children: list[Child], seed: int, record_property, number: int
):
    kill_and_start_anew(tmp_path, children, seed * 1000 + number, record_property)


def kill_and_start_anew(
    tmp_path: Path, children: list[Child], seed: int, record_property: Callable[[str, Any], None]
) -> None:
    lots = random.Random(f"kill {seed}")
    first = Child(tmp_path, seed)
    children.append(first)
    first.wait_for("ack", 60)
    threading.Event().wait(lots.uniform(0, WHOLE_S))
    first.kill()
    interrupted = [n for n in rows(tmp_path, NODES) if n["provision_state"] == "deploying"]

    second = Child(tmp_path, seed)
    children.append(second)
    took_s = second.wait_for("settled", GIVES_UP_S + 30)
    second.end()
    assert second.process.returncode == 0, "".join(second.errors)

    found = {node["uuid"]: node for node in rows(tmp_path, NODES)}
    assert len(found) == HOW_MANY
    active = [node for node in found.values() if node["provision_state"] == "active"]
    others = [node for node in found.values() if node["provision_state"] != "active"]
    assert len(active) >= 95, [(n["provision_state"], n["last_error"]) for n in others]
    for node in others:
        assert node["provision_state"] == "deploy failed"
        assert "while step" in node["last_error"]
    assert [node["reservation"] for node in found.values()] == [None] * HOW_MANY
    assert took_s < 60
    record_property("interrupted", len(interrupted))
    record_property("recovered_s", took_s)

    told = {(row["request_id"], row["node_uuid"]) for row in rows(tmp_path, NODE_HISTORY)}
    assert first.acknowledged().items() <= told
    assert second.acknowledged().items() <= told
    assert not set(first.acknowledged().values()) & set(second.acknowledged().values())
    assert {row["state"] for row in rows(tmp_path, STEP_RUNS)} <= {"done", "failed", "skipped"}
