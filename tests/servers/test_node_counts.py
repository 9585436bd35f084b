"""Triggers count nodes on each database, also where several connections change them at once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, node_counts, nodes, schema
from bloomery.db.tables import NODES
from tests.unit.db.test_node_counts import COUNTED, NOT_COUNTED, PLAIN, count_rows, groups

STATES = ("manageable", "available", "active")


@pytest.mark.parametrize(("changes", "condition"), COUNTED)
def test_a_change_of_a_condition_is_counted(
    db: engine.Database, add_node: Any, changes: dict[str, Any], condition: dict[str, Any]
) -> None:
    first, _second = db.transact(lambda conn: [add_node(conn), add_node(conn)])
    db.transact(lambda conn: nodes.update(conn, first, changes))
    assert groups(db) == {PLAIN: 1, PLAIN._replace(**condition): 1}
    db.transact(lambda conn: nodes.delete(conn, first))
    assert groups(db) == {PLAIN: 1}


def test_another_change_writes_no_row(db: engine.Database, add_node: Any) -> None:
    node = db.transact(add_node)
    before = count_rows(db)
    for changes in NOT_COUNTED:
        db.transact(lambda conn, changes=changes: nodes.update(conn, node, changes))
    assert count_rows(db) == before


def test_many_connections_count_and_fold_at_once(
    db: engine.Database, add_node: Any, lots: random.Random
) -> None:
    uuids = db.transact(lambda conn: [add_node(conn) for _ in range(6)])

    def change(seed: int) -> None:
        own = random.Random(seed)
        for _ in range(20):
            node, state = own.choice(uuids), own.choice(STATES)
            db.transact(lambda conn, n=node, s=state: nodes.update(conn, n, {"provision_state": s}))

    def fold(_seed: int) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for _ in range(20):
            try:
                db.transact(lambda conn: node_counts.fold(conn, at_most=50))
                outcomes["folded"] += 1
            except errors.Conflict:
                outcomes["refused"] += 1
        return outcomes

    with ThreadPoolExecutor(6) as threads:
        changing = [threads.submit(change, lots.getrandbits(32)) for _ in range(4)]
        folding = [threads.submit(fold, number) for number in range(2)]
    for each in changing:
        each.result()
    assert sum((each.result() for each in folding), Counter[str]())["folded"]
    assert sum(groups(db).values()) == len(uuids)
    for _ in range(9):
        db.transact(lambda conn: node_counts.fold(conn, at_most=500))
    assert count_rows(db) <= 1 + len(STATES)


def test_nodes_from_before_the_triggers_are_counted(fresh: engine.Database, add_node: Any) -> None:
    schema.upgrade(fresh, line=replace(schema.OURS, head="0014"))
    fresh.transact(lambda conn: [add_node(conn) for _ in range(3)])
    schema.upgrade(fresh)
    assert groups(fresh) == {PLAIN: 3}
    fresh.transact(lambda conn: conn.execute(sa.update(NODES).values(owner="p1")))
    assert groups(fresh) == {PLAIN._replace(owner="p1"): 3}
