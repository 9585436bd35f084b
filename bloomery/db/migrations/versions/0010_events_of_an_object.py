"""Events are found by their object.

Revision 0010, after 0009.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
kind = "expand"


def upgrade() -> None:
    op.create_index(op.f("ix_events_object_uuid"), "events", ["object_uuid"], unique=False)
