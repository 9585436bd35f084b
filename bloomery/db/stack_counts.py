"""How many stacks and resources there are in which state: for metrics."""

from __future__ import annotations

import sqlalchemy as sa

from bloomery.db.tables import RESOURCES, STACKS


def stacks_by_state(conn: sa.Connection) -> dict[str, int]:
    """Return the number of stacks by ACTION_STATUS, nested ones included, deleted ones not."""
    return _by_state(conn, STACKS, STACKS.c.deleted_at.is_(None))


def resources_by_state(conn: sa.Connection) -> dict[str, int]:
    """Return the number of resources by ACTION_STATUS, replaced ones that still exist included."""
    return _by_state(conn, RESOURCES, sa.true())


def _by_state(
    conn: sa.Connection, table: sa.Table, which: sa.ColumnElement[bool]
) -> dict[str, int]:
    state = (table.c.action, table.c.status)
    query = sa.select(*state, sa.func.count()).where(which).group_by(*state)
    return {f"{action}_{status}": count for action, status, count in conn.execute(query)}
