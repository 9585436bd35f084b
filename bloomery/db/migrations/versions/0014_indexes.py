"""Indexes leave out rows without a value, and entries of the history by their UUID.

Revision 0014, after 0013.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
kind = "expand"

MOSTLY_NULL: Final = (
    "instance_name", "chassis_uuid", "allocation_uuid", "parent_node", "owner", "lessee", "shard",
    "reservation",
)  # fmt: skip


def upgrade() -> None:
    op.drop_index("ix_nodes_resource_class", "nodes")  # ix_nodes_allocatable begins with it
    with op.batch_alter_table("node_history") as history:
        history.drop_constraint("uq_node_history_uuid", type_="unique")
    backend = op.get_bind().dialect.name
    if backend in ("sqlite", "postgresql"):
        index_set_columns()
    if backend == "sqlite":  # numbers no events
        op.drop_index("ix_events_number_id", "events")
        is_set = sa.column("number").is_not(None)
        op.create_index("ix_events_number_id", "events", ["number", "id"], sqlite_where=is_set)


def index_set_columns() -> None:
    """Leave the rows without a value out; MariaDB has no such indexes."""
    for name in MOSTLY_NULL:
        op.drop_index(f"ix_nodes_{name}", "nodes")
    with op.batch_alter_table("nodes") as nodes:
        nodes.drop_constraint("uq_nodes_instance_uuid", type_="unique")
    create_index("uq_nodes_instance_uuid", "instance_uuid", unique=True)
    for name in MOSTLY_NULL:
        create_index(f"ix_nodes_{name}", name)


def create_index(index: str, column: str, *, unique: bool = False) -> None:
    is_set = sa.column(column).is_not(None)
    op.create_index(
        index, "nodes", [column], unique=unique, sqlite_where=is_set, postgresql_where=is_set
    )
