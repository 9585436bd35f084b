"""The index for the newest runs of a step on any node.

Revision 0005, after 0004.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
kind = "expand"


def upgrade() -> None:
    op.create_index("ix_step_runs_kind", "step_runs", ["phase", "interface", "step", "id"])
