"""Columns get the names that the code has for them.

Revision 0011, after 0010.  It contracts: releases before it read and write the old names.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
kind = "contract"

RENAMED = (
    ("conductors", "buried_at", "fenced_out_at"),
    ("resources", "act", "pending_action"),
    ("resources", "replaces", "replaces_uuid"),
    ("resources", "stands", "is_current"),
    ("stack_locks", "turn", "transactions"),
    ("step_runs", "taken_up", "recovery_weight"),
)


def upgrade() -> None:
    for table, old, new in RENAMED:  # in place: no database copies the table
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
