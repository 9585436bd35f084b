"""The incarnation of a conductor, which distinguishes two processes of one name.

Revision 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0007"
down_revision = "0006"
kind = "expand"

UtcTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    op.add_column("conductors", sa.Column("incarnation", sa.String(36)))
    op.add_column("conductors", sa.Column("process", sa.String(255)))
    op.add_column("conductors", sa.Column("started_at", UtcTime))
    op.add_column("conductors", sa.Column("buried_at", UtcTime))
    op.add_column("conductors", sa.Column("drain_ordered_at", UtcTime))
