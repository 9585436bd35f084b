"""Stacks have revisions: the orders that gave them a template.

Revision 0018, after 0017.

Each root stack that lives gets its present template as its first revision.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0018"
down_revision = "0017"
kind = "expand"

UtcTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COUNTS: Final = (
    "created", "updated", "serviced", "rebuilt", "deleted", "failed", "data_lost",
)  # fmt: skip
COPIED: Final = ("template_uuid", "action", "status", "reason", "user", "created_at")
STACKS: Final = sa.table(
    "stacks",
    *(sa.column(name) for name in ("uuid", "owner_uuid", "deleted_at", "updated_at", *COPIED)),
)
REVISIONS: Final = sa.table(
    "stack_revisions",
    *(sa.column(name) for name in ("stack_uuid", "number", "ended_at", *COPIED)),
)


def upgrade() -> None:
    op.create_table(
        "stack_revisions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("stack_uuid", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("template_uuid", sa.String(36), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("request_id", sa.String(64)),
        sa.Column("ended_at", UtcTime),
        *(sa.Column(name, sa.Integer(), nullable=False, server_default="0") for name in COUNTS),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name="pk_stack_revisions"),
        sa.UniqueConstraint(
            "stack_uuid", "number", name="uq_stack_revisions_stack_uuid_number"
        ),
        sa.ForeignKeyConstraint(
            ["stack_uuid"], ["stacks.uuid"], name="fk_stack_revisions_stack_uuid",
            ondelete="CASCADE",
        ),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )  # fmt: skip
    op.create_index("ix_stack_revisions_template_uuid", "stack_revisions", ["template_uuid"])
    stacks = STACKS.c
    runs = stacks.status == "IN_PROGRESS"
    ended_at = sa.case(
        (runs, sa.null()), else_=sa.func.coalesce(stacks.updated_at, stacks.created_at)
    )
    present = sa.select(
        stacks.uuid, sa.literal_column("1"), ended_at, *(stacks[name] for name in COPIED)
    ).where(stacks.owner_uuid.is_(None), stacks.deleted_at.is_(None))
    op.execute(
        sa.insert(REVISIONS).from_select(["stack_uuid", "number", "ended_at", *COPIED], present)
    )
