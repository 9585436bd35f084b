"""Run revisions on the connection that ``schema.upgrade`` hands over; it owns the transaction."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context

from bloomery.db.migrations import resuming


def note_contraction(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:
    """Store from which revision on releases can use the schema: they look before they start."""
    if step.up_revision.module.kind == "contract":
        row = {"revision": step.up_revision_id}
        ctx.connection.execute(sa.text("DELETE FROM home WHERE name = 'contracted_at'"))
        ctx.connection.execute(
            sa.text("INSERT INTO home (name, value) VALUES ('contracted_at', :revision)"), row
        )


context.configure(
    connection=context.config.attributes["connection"],
    render_as_batch=True,  # SQLite changes a table by making it anew
    on_version_apply=note_contraction,
)
context.run_migrations()
resuming.end(context.get_context().impl)
