"""Proofs of erased disks.

Revision 0012, after 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0012"
down_revision = "0011"
kind = "expand"

_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("proof", _TEXT, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME),
        sa.ForeignKeyConstraint(
            ["node_uuid"], ["nodes.uuid"], ondelete="CASCADE", name="fk_erasures_node_uuid",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
        sa.UniqueConstraint("uuid", name="uq_erasures_uuid"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
    )  # fmt: skip
    op.create_index("ix_erasures_node_uuid", "erasures", ["node_uuid"])
