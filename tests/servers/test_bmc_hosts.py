"""Servers compute the host of a node's BMC as SQLite does, and find nodes by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import engine, nodes
from tests.unit.db.test_bmc_hosts import check_hosts, node_of

NODE_COUNT = 400


def test_servers_compute_the_host_of_a_bmc(db: engine.Database, add_node: Callable[..., str]):
    check_hosts(db, add_node)


@pytest.mark.parametrize("text", ["bmc\0", "\0", "\\u0000", "\\", '"', "\x1f"])
def test_a_server_stores_an_address_of_any_characters(
    db: engine.Database, add_node: Callable[..., str], text: str
):
    uuid = db.transact(lambda conn: add_node(conn, **node_of("redfish", text)))
    with db.read() as conn:
        assert nodes.get(conn, uuid).driver_info["redfish_address"] == text


@pytest.mark.only_on("postgresql")
def test_the_nodes_of_a_bmc_are_found_by_an_index(
    db: engine.Database, add_node: Callable[..., str]
):
    statements: list[Any] = []

    def fill(conn: sa.Connection) -> list[str]:
        return [
            add_node(conn, **node_of("redfish", f"bmc-{number}")) for number in range(NODE_COUNT)
        ]

    uuids = db.transact(fill)
    with db.read() as conn:
        conn.exec_driver_sql("ANALYZE nodes")
        sa.event.listen(conn, "before_cursor_execute", lambda *call: statements.append(call[2:4]))
        nodes.list_with_bmc_of(conn, uuids[7], "redfish", "bmc-7")
        statement, parameters = statements[-1]
        plan = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    assert "ix_nodes_bmc_host" in json.dumps(plan)
