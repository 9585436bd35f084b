"""Triggers count nodes, whoever changes them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, node_counts, nodes
from bloomery.db.node_counts import Condition, Group
from bloomery.db.tables import NODE_COUNTS, NODES

PLAIN = Condition(None, None, None, False, False, None, None, None, "fake-hardware", "")
COUNTED = [  # columns by which nodes are counted: changes of a node, and its condition then
    ({"provision_state": "active"}, {"provision_state": "active"}),
    ({"power_state": "power on"}, {"power_state": "power on"}),
    ({"fault": "power failure", "maintenance": True},
     {"fault": "power failure", "maintenance": True}),
    ({"last_error": "no fan turns"}, {"has_error": True}),
    ({"resource_class": "large"}, {"resource_class": "large"}),
    ({"owner": "p1", "lessee": "p2"}, {"owner": "p1", "lessee": "p2"}),
    ({"driver": "redfish"}, {"driver": "redfish"}),
    ({"conductor_group": "east"}, {"conductor_group": "east"}),
]  # fmt: skip
NOT_COUNTED = [{"extra": '{"a": 1}'}, {"last_error": ""}, {"provision_state": None}]


def groups(db: engine.Database) -> Counter[Condition]:
    """Return the nodes of each condition that has some; they agree with the nodes."""
    with db.snapshot() as conn:
        assert node_counts.compare(conn) == {}
        return Counter(
            {each.condition: each.nodes for each in node_counts.list_groups(conn) if each.nodes}
        )


def arrivals(db: engine.Database) -> int:
    with db.read() as conn:
        return sum(each.arrivals for each in node_counts.list_groups(conn))


def count_rows(db: engine.Database) -> int:
    with db.read() as conn:
        return conn.execute(sa.select(sa.func.count()).select_from(NODE_COUNTS)).scalar_one()


@pytest.mark.parametrize(("changes", "condition"), COUNTED)
def test_a_change_of_a_condition_is_counted(db: engine.Database, add_node, changes, condition):
    first, _second = db.transact(lambda conn: [add_node(conn), add_node(conn)])
    assert groups(db) == {PLAIN: 2}
    db.transact(lambda conn: nodes.update(conn, first, changes))
    assert groups(db) == {PLAIN: 1, PLAIN._replace(**condition): 1}
    db.transact(lambda conn: nodes.delete(conn, first))
    assert groups(db) == {PLAIN: 1}


@pytest.mark.parametrize("changes", NOT_COUNTED)
def test_another_change_writes_no_row(db: engine.Database, add_node, changes: dict[str, Any]):
    node = db.transact(add_node)
    before = count_rows(db)
    db.transact(lambda conn: nodes.update(conn, node, changes))
    assert count_rows(db) == before


def test_a_statement_that_changes_many_nodes_is_counted(db: engine.Database, add_node):
    db.transact(lambda conn: [add_node(conn) for _ in range(3)])
    db.transact(lambda conn: conn.execute(sa.update(NODES).values(owner="p1")))
    assert groups(db) == {PLAIN._replace(owner="p1"): 3}
    db.transact(lambda conn: conn.execute(sa.delete(NODES)))
    assert groups(db) == {}


def test_what_is_rolled_back_is_not_counted(db: engine.Database, add_node):
    def fail(conn: sa.Connection) -> None:
        add_node(conn)
        raise LookupError

    with pytest.raises(LookupError):
        db.transact(fail)
    assert groups(db) == {}


def test_nodes_that_come_to_a_driver_or_group_are_counted_as_arrivals(db, add_node):
    node = db.transact(add_node)
    for changes, number in (({"owner": "p1"}, 1), ({"driver": "redfish"}, 2),
                            ({"conductor_group": "east"}, 3)):  # fmt: skip
        db.transact(lambda conn, changes=changes: nodes.update(conn, node, changes))
        assert arrivals(db) == number
    db.transact(lambda conn: nodes.delete(conn, node))
    assert arrivals(db) == 3


@pytest.mark.parametrize("at_most", [2, 100])
def test_a_fold_leaves_the_sums(db: engine.Database, add_node, at_most: int):
    first, *_ = db.transact(lambda conn: [add_node(conn) for _ in range(3)])
    for state in ("manageable", "available", "active", "available"):
        change = {"provision_state": state}
        db.transact(lambda conn, change=change: nodes.update(conn, first, change))
    before = groups(db), arrivals(db)
    with db.read() as conn:
        assert node_counts.count_surplus(conn) == 3 + 2 * 4 - 4
    for _ in range(9):
        db.transact(lambda conn: node_counts.fold(conn, at_most=at_most))
    assert (groups(db), arrivals(db)) == before
    if at_most == 100:
        assert count_rows(db) == 2  # of no node and no arrival there is no row


def test_two_folds_of_the_same_rows_do_not_count_them_twice(db, add_node, monkeypatch):
    db.transact(lambda conn: [add_node(conn) for _ in range(3)])
    chunks = node_counts.upserts.chunks
    monkeypatch.setattr(node_counts.upserts, "chunks", lambda ids: chunks([*ids, 99]))
    with pytest.raises(errors.Conflict):
        db.transact(lambda conn: node_counts.fold(conn, at_most=100))
    assert groups(db) == {PLAIN: 3}


def test_counts_that_differ_are_named_and_mended(db: engine.Database, add_node):
    node = db.transact(add_node)
    db.transact(lambda conn: conn.exec_driver_sql("DROP TRIGGER count_changed_node"))
    db.transact(lambda conn: nodes.update(conn, node, {"owner": "p1"}))
    with db.snapshot() as conn:
        lacking = node_counts.compare(conn)
    owned = PLAIN._replace(owner="p1")
    assert lacking == {PLAIN: -1, owned: 1}
    before = arrivals(db)
    db.transact(lambda conn: node_counts.mend(conn, lacking))
    assert groups(db) == {owned: 1}
    assert arrivals(db) > before  # other nodes than were counted may be there
    with db.read() as conn:
        assert Group(PLAIN, 0, 2) in node_counts.list_groups(conn)
