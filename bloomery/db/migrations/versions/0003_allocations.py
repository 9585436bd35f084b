"""Indexes by which allocations find their nodes, and nodes their allocations.

Revision 0003, after 0002.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
kind = "expand"


def upgrade() -> None:
    op.create_index("ix_nodes_allocation_uuid", "nodes", ["allocation_uuid"])
    op.create_index(
        "ix_nodes_allocatable",
        "nodes",
        ["resource_class", "provision_state", "instance_uuid", "uuid"],
    )
    op.create_index("ix_allocations_state", "allocations", ["state"])
    op.create_index("ix_allocations_owner", "allocations", ["owner"])
