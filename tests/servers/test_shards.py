"""Shards are counted in the same order on each database."""

from __future__ import annotations

from typing import Any

from bloomery.db import engine, nodes


def test_nodes_without_a_shard_come_first_among_as_many(db: engine.Database, add_node: Any) -> None:
    for shard in ("b", None, "c", "c", "a"):
        db.transact(lambda conn, shard=shard: add_node(conn, shard=shard))
    with db.read() as conn:
        assert nodes.count_by_shard(conn) == [("c", 2), (None, 1), ("a", 1), ("b", 1)]
