"""Run revisions on the connection that ``schema.upgrade`` hands over; it owns the transaction."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    render_as_batch=True,  # SQLite changes a table by making it anew
)
context.run_migrations()
