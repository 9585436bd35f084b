"""Nodes have a position on the hash ring.

Revision 0016, after 0015.

Servers compute it from the UUID: the first 28 bits of its MD5.  SQLite has no MD5, and a single
conductor, which needs no position.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
kind = "expand"

POSITIONS = {
    "postgresql": "('x0' || substr(md5(uuid), 1, 7))::bit(32)::integer",
    "mysql": "conv(substr(md5(uuid), 1, 7), 16, 10)",
}


def upgrade() -> None:
    formula = POSITIONS.get(op.get_bind().dialect.name.replace("mariadb", "mysql"))
    if formula is not None:
        position = sa.Column("ring_position", sa.Integer, sa.Computed(formula, persisted=True))
        op.add_column("nodes", position)
        op.create_index("ix_nodes_ring_position", "nodes", ["ring_position"])
