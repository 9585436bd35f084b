"""Events are numbered after their commit, and say which projects they concern.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
kind = "expand"


def upgrade() -> None:
    op.add_column("events", sa.Column("number", sa.BigInteger()))
    op.add_column("events", sa.Column("owner", sa.String(length=255)))
    op.add_column("events", sa.Column("lessee", sa.String(length=255)))
    op.create_index("ix_events_number_id", "events", ["number", "id"])
    op.add_column(
        "event_cursors",
        sa.Column("wants_snapshots", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    numbering = op.create_table(
        "event_numbering",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event_numbering"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
    )
    op.bulk_insert(numbering, [{"id": 1, "last_number": 0}])
