"""Tokens of commits; on MariaDB and MySQL texts are compared byte by byte, as everywhere else.

Revision 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
kind = "expand"

LAST = "event_cursors"  # the table that is converted last: no key refers to it, or from it
KEYS = (  # foreign keys over texts: table, column, the table whose uuid it is, what a deletion does
    ("nodes", "allocation_uuid", "allocations", "SET NULL"),
    ("nodes", "chassis_uuid", "chassis", None),
    ("resources", "stack_uuid", "stacks", "CASCADE"),
    ("snapshots", "stack_uuid", "stacks", "CASCADE"),
    ("software_deployments", "config_uuid", "software_configs", None),
    ("stack_events", "stack_uuid", "stacks", "CASCADE"),
    ("stack_tags", "stack_uuid", "stacks", "CASCADE"),
    ("bios_settings", "node_uuid", "nodes", "CASCADE"),
    ("firmware_information", "node_uuid", "nodes", "CASCADE"),
    ("node_history", "node_uuid", "nodes", "CASCADE"),
    ("node_inventory", "node_uuid", "nodes", "CASCADE"),
    ("node_traits", "node_uuid", "nodes", "CASCADE"),
    ("portgroups", "node_uuid", "nodes", "CASCADE"),
    ("resource_data", "resource_uuid", "resources", "CASCADE"),
    ("step_runs", "node_uuid", "nodes", "CASCADE"),
    ("volume_connectors", "node_uuid", "nodes", "CASCADE"),
    ("volume_targets", "node_uuid", "nodes", "CASCADE"),
    ("ports", "node_uuid", "nodes", "CASCADE"),
    ("ports", "portgroup_uuid", "portgroups", None),
)


def upgrade() -> None:
    op.create_table(
        "commit_tokens",
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("is_void", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_commit_tokens")),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    bind = op.get_bind()
    if bind.dialect.name == "mysql":
        op.alter_column("node_history", "duration_seconds", type_=mysql.DOUBLE())
        is_mariadb = getattr(bind.dialect, "is_mariadb", False)
        compare_bytes(bind, "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin")


def compare_bytes(bind: sa.Connection, collation: str) -> None:
    """Give each table that was made with another collation this one; foreign keys go meanwhile."""
    tables = list_others(bind, collation)
    if LAST not in tables:
        return
    for table, column, _, _ in KEYS:
        op.drop_constraint(f"fk_{table}_{column}", table, type_="foreignkey")
    for table in tables:
        if table != LAST:
            convert(bind, table, collation)
    for table, column, target, ondelete in KEYS:
        name = f"fk_{table}_{column}"
        op.create_foreign_key(name, table, target, [column], ["uuid"], ondelete=ondelete)
    convert(bind, LAST, collation)


def list_others(bind: sa.Connection, collation: str) -> list[str]:
    query = sa.text(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = database() "
        "AND table_type = 'BASE TABLE' AND table_collation <> :collation ORDER BY table_name"
    )
    return list(bind.execute(query, {"collation": collation}).scalars())


def convert(bind: sa.Connection, table: str, collation: str) -> None:
    """Convert one table: by no call of ``op``, since the next try asks which are left."""
    bind.exec_driver_sql(
        f"ALTER TABLE `{table}` CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}"
    )
