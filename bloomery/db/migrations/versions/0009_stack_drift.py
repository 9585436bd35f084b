"""Reported differences of machines from their resources.

Revision 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0008"
kind = "expand"

_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "stack_drift",
        sa.Column("resource_uuid", sa.String(length=36), nullable=False),
        sa.Column("differences", _TEXT, nullable=False),
        sa.Column("since", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_uuid"], ["resources.uuid"], ondelete="CASCADE",
            name="fk_stack_drift_resource_uuid",
        ),
        sa.PrimaryKeyConstraint("resource_uuid", name="pk_stack_drift"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
    )  # fmt: skip
