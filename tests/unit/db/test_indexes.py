"""Which indexes hold which rows, and which statements go by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import engine, history, locks, nodes, rows, schema
from bloomery.db.tables import EVENTS, NODES
from bloomery.model.node_facts import HistoryEntry
from bloomery.model.request import Page

ANY = "11111111-2222-3333-4444-555555555555"
Work = Callable[[sa.Connection], Any]


def listed(**filters: Any) -> Work:
    return lambda conn: nodes.list_rows(conn, nodes.Query(columns=("uuid",), **filters))


# What looks nodes up, and the indexes on which it goes.
LOOKUPS: list[tuple[str, Work, set[str]]] = [
    ("by instance", listed(equal={"instance_uuid": ANY}), {"uq_nodes_instance_uuid"}),
    ("by instance's name", listed(equal={"instance_name": "a"}), {"ix_nodes_instance_name"}),
    ("by chassis", listed(equal={"chassis_uuid": ANY}), {"ix_nodes_chassis_uuid"}),
    ("by allocation", listed(equal={"allocation_uuid": ANY}), {"ix_nodes_allocation_uuid"}),
    ("by parent", lambda conn: nodes.list_children(conn, ANY), {"ix_nodes_parent_node"}),
    ("by class", listed(equal={"resource_class": "large"}), {"ix_nodes_allocatable"}),
    ("by owner", listed(equal={"owner": "a"}), {"ix_nodes_owner"}),
    ("by lessee", listed(equal={"lessee": "a"}), {"ix_nodes_lessee"}),
    ("by project", listed(project="a"), {"ix_nodes_owner", "ix_nodes_lessee"}),
    ("by shards", listed(among={"shard": ["a", "b"]}), {"ix_nodes_shard"}),
    ("by driver", listed(equal={"driver": "a"}), {"ix_nodes_bmc_host"}),
    ("by holder", lambda conn: locks.list_of_holder(conn, "host"), {"ix_nodes_reservation"}),
    ("holders", locks.list_holders, {"ix_nodes_reservation"}),
    ("reserved", lambda conn: nodes.count_reserved(conn, None), {"ix_nodes_reservation"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("work", "indexes"), [case[1:] for case in LOOKUPS], ids=[case[0] for case in LOOKUPS]
)
def test_a_lookup_of_nodes_goes_by_its_index(db: engine.Database, work: Work, indexes: set[str]):
    plans = "\n".join(explained(db, work))
    assert {name for name in indexes if f"INDEX {name}" in plans} == indexes, plans
    assert "SCAN nodes\n" not in plans + "\n"


def test_the_nodes_of_a_bmc_are_found_by_the_index_of_its_host(
    db: engine.Database, add_node: Callable[..., str]
):
    info = {"redfish_address": "https://bmc-1.test"}
    node = db.transact(lambda conn: add_node(conn, driver="redfish", driver_info=info))
    plans = explained(db, lambda conn: nodes.list_with_bmc_of(conn, node, "redfish", "bmc-1"))
    assert "ix_nodes_bmc_host (driver=? AND bmc_host=?)" in "".join(plans)


@pytest.mark.parametrize("table", ["chassis", "allocations"])
def test_a_deletion_finds_the_nodes_that_refer_to_it_by_an_index(db: engine.Database, table: str):
    with db.read() as conn:
        roots = conn.exec_driver_sql("SELECT rootpage, name FROM sqlite_master").all()
        program = conn.exec_driver_sql(f"EXPLAIN DELETE FROM {table} WHERE uuid = 'a'").all()
    names = dict(tuple(row) for row in roots)
    read = {names.get(row.p2) for row in program if row.opcode == "OpenRead"}
    assert read & {"nodes", "ix_nodes_chassis_uuid", "ix_nodes_allocation_uuid"} == {
        "chassis": {"ix_nodes_chassis_uuid"}, "allocations": {"ix_nodes_allocation_uuid"}
    }[table]  # fmt: skip


def test_the_history_is_searched_among_the_entries_of_the_node(db: engine.Database):
    plans = explained(db, lambda conn: history.find_known(conn, ANY, [ANY]))
    assert plans == ["SEARCH node_history USING INDEX ix_node_history_node_uuid (node_uuid=?)"]


def test_a_limit_counts_nodes_in_the_index_of_states(
    db: engine.Database, add_node: Callable[..., str]
):
    """A count that reads their rows takes 13 times as long, and each order of a verb counts."""
    states = [State.CLEANING, State.CLEANWAIT]
    mine = db.transact(
        lambda conn: [add_node(conn, provision_state=s) for s in (*states, State.ACTIVE)]
    )
    with db.read() as conn:
        counts = [nodes.count_in_states(conn, uuid, states) for uuid in (*mine, ANY)]
    assert counts == [1, 1, 2, 2]
    plans = explained(db, lambda conn: nodes.count_in_states(conn, ANY, states))
    in_index, by_uuid = [each for each in plans if "nodes" in each]
    assert "COVERING INDEX ix_nodes_provision_state" in in_index
    assert by_uuid.endswith("(uuid=?)")


def test_an_entry_of_another_node_is_no_marker(db: engine.Database, add_node: Callable[..., str]):
    def fill(conn: sa.Connection) -> tuple[str, str]:
        mine, other = add_node(conn), add_node(conn)
        entry = {"created_at": rows.now(), "severity": "INFO", "event": "a"}
        history.insert(conn, HistoryEntry(uuid=ANY, node_uuid=other, **entry))
        return mine, other

    mine, other = db.transact(fill)
    page = Page(sort_key="created_at", marker=ANY)
    with db.read() as conn:
        assert history.list_rows(conn, other, page) == []
        assert (history.find_known(conn, mine, [ANY]), history.find_known(conn, other, [ANY])) == (
            set(), {ANY}
        )  # fmt: skip
        with pytest.raises(errors.NodeHistoryNotFound):
            history.list_rows(conn, mine, page)


def test_columns_without_a_value_are_in_no_index(db: engine.Database):
    """The rest of the nodes' indexes hold every row."""
    with db.read() as conn:
        stored = conn.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            " AND tbl_name IN ('nodes', 'events')"
        ).all()
    declared = {
        str(index.name): str(condition.compile())
        for index in NODES.indexes | EVENTS.indexes
        if (condition := index.dialect_options["sqlite"]["where"]) is not None
    }
    partial = {name: sql.partition(" WHERE ")[2] for name, sql in stored if " WHERE " in sql}
    assert partial == declared
    assert len(partial) == 10
    assert schema.revision_of(db) == schema.HEAD


def test_ordered_uuids_sort_by_their_time(monkeypatch: pytest.MonkeyPatch):
    uuids = []
    for nanoseconds in (0, 10**18, 10**18 + 10**6, 2 * 10**18):
        monkeypatch.setattr(rows.time, "time_ns", lambda at=nanoseconds: at)
        uuids.append(rows.ordered_uuid())
    assert uuids == sorted(uuids)
    assert {(text[14], text[19] in "89ab") for text in uuids} == {("7", True)}
    assert rows.ordered_uuid() != rows.ordered_uuid()


def explained(db: engine.Database, work: Work) -> list[str]:
    """Return SQLite's plans of the statements that ``work`` runs."""
    statements: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        statements.append((statement, values))

    with db.read() as conn:
        sa.event.listen(conn.engine, "before_cursor_execute", note)
        work(conn)
        sa.event.remove(conn.engine, "before_cursor_execute", note)
        plans = [conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all()
                 for sql, values in statements]  # fmt: skip
    return [row.detail for plan in plans for row in plan]
