"""``kill -9`` at a seeded random moment while nodes are given out, and a start anew."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from bloomery.db.tables import ALLOCATIONS, NODES
from tests.chaos import allocating_process
from tests.chaos.allocating_process import GIVES_UP_S, NODES_FREE
from tests.chaos.test_kill import Child, children, rows

__all__ = ["children"]  # the fixture
PROGRAM = Path(allocating_process.__file__)
WHOLE_S = 1.0  # about how long it takes, from the first acknowledgement on


def test_no_allocation_is_lost_and_no_node_given_twice(
    tmp_path: Path, children: list[Child], seed: int
):
    kill_and_start_anew(tmp_path, children, seed)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_none_is_lost_20_times_in_a_row(
    tmp_path: Path, children: list[Child], seed: int, number: int
):
    kill_and_start_anew(tmp_path, children, seed * 1000 + number)


def kill_and_start_anew(tmp_path: Path, children: list[Child], seed: int) -> None:
    first = Child(tmp_path, seed, PROGRAM)
    children.append(first)
    first.wait_for("ack", 60)
    threading.Event().wait(random.Random(f"kill {seed}").uniform(0, WHOLE_S))
    first.kill()
    acknowledged = {line["ack"] for line in first.said if "ack" in line}

    second = Child(tmp_path, seed, PROGRAM)
    children.append(second)
    second.wait_for("settled", GIVES_UP_S + 30)
    second.end()
    assert second.process.returncode == 0, "".join(second.errors)

    allocations = {row["uuid"]: row for row in rows(tmp_path, ALLOCATIONS)}
    nodes = {row["uuid"]: row for row in rows(tmp_path, NODES)}
    assert acknowledged <= allocations.keys()
    states = Counter(row["state"] for row in allocations.values())
    assert states["allocating"] == 0
    assert states["active"] == min(len(allocations), NODES_FREE)
    for uuid, row in allocations.items():
        if row["state"] == "active":
            node = nodes[row["node_uuid"]]
            assert node["allocation_uuid"] == node["instance_uuid"] == uuid
    bound = [row["allocation_uuid"] for row in nodes.values() if row["allocation_uuid"]]
    assert len(bound) == len(set(bound)) == states["active"]
