"""Queries that delete the remains of deleted stacks, and unreferenced rows.

Each is one batch: the caller repeats it until nothing is deleted, so that others may write in
between.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery.db.tables import (
    CREDENTIALS,
    PROPERTIES_DATA,
    RAW_TEMPLATES,
    RESOURCES,
    STACK_EVENTS,
    STACK_LOCKS,
    STACK_ORDERS,
    STACK_REVISIONS,
    STACKS,
    TEMPLATE_FILES,
)

_S = STACKS.c
_E = STACK_EVENTS.c
_P = PROPERTIES_DATA.c


def list_deleted(conn: sa.Connection, *, before: datetime, at_most: int) -> list[tuple[str, str]]:
    """Return uuid and root of stacks that were deleted before, oldest first."""
    query = sa.select(_S.uuid, _S.root_uuid).where(_S.deleted_at < before)
    deleted = conn.execute(query.order_by(_S.deleted_at).limit(at_most))
    return [(uuid, root) for uuid, root in deleted]


def drop_stacks(conn: sa.Connection, stacks: Sequence[tuple[str, str]]) -> None:
    """Delete stacks with their resources, events, tags and snapshots (by foreign keys).

    With a root, the lock, the orders and the properties of the whole tree are deleted.
    """
    uuids = [uuid for uuid, _ in stacks]
    roots = [root for uuid, root in stacks if uuid == root]
    conn.execute(sa.delete(STACKS).where(_S.uuid.in_(uuids)))
    for table in (STACK_LOCKS, STACK_ORDERS, PROPERTIES_DATA):
        conn.execute(sa.delete(table).where(table.c.root_uuid.in_(roots)))
    for root in {root for uuid, root in stacks if root not in roots}:
        drop_properties(conn, root)


def list_crowded(conn: sa.Connection, *, more_than: int) -> list[str]:
    """Return stacks with more than ``more_than`` events."""
    query = sa.select(_E.stack_uuid).group_by(_E.stack_uuid).having(sa.func.count() > more_than)
    return list(conn.execute(query).scalars())


def drop_events(conn: sa.Connection, stack_uuid: str, *, keep: int) -> int:
    """Delete the oldest events of a stack; return their number."""
    newest = sa.select(_E.id).where(_E.stack_uuid == stack_uuid).order_by(_E.id.desc())
    first_to_go = conn.execute(newest.offset(keep).limit(1)).scalar_one_or_none()
    if first_to_go is None:
        return 0
    old = sa.delete(STACK_EVENTS).where(_E.stack_uuid == stack_uuid, _E.id <= first_to_go)
    return conn.execute(old).rowcount


def drop_properties(conn: sa.Connection, root_uuid: str) -> int:
    """Delete a tree's properties without a resource or event; return their number."""
    users = (
        RESOURCES.c.properties_uuid,
        RESOURCES.c.previous_properties_uuid,
        STACK_EVENTS.c.properties_uuid,
    )
    used = [
        sa.select(user).where(user.table.c.root_uuid == root_uuid, user.is_not(None))
        for user in users
    ]
    unused = sa.and_(*(_P.uuid.not_in(uuids) for uuids in used))
    drop = sa.delete(PROPERTIES_DATA).where(_P.root_uuid == root_uuid, unused)
    return conn.execute(drop).rowcount


def root_of(conn: sa.Connection, stack_uuid: str) -> str | None:
    return conn.execute(sa.select(_S.root_uuid).where(_S.uuid == stack_uuid)).scalar_one_or_none()


_TEMPLATES_IN_USE = (
    _S.template_uuid, _S.previous_template_uuid, RESOURCES.c.template_uuid,
    STACK_REVISIONS.c.template_uuid,
)  # fmt: skip


def drop_templates(conn: sa.Connection, *, before: datetime) -> int:
    """Delete unreferenced templates and their files; return the number of templates.

    ``before``: younger templates stay, since a transaction may be about to refer to them.
    """
    gone = _drop_unused(conn, RAW_TEMPLATES, RAW_TEMPLATES.c.uuid, _TEMPLATES_IN_USE, before)
    digests = (RAW_TEMPLATES.c.files_digest,)
    _drop_unused(conn, TEMPLATE_FILES, TEMPLATE_FILES.c.digest, digests, before)
    return gone


def drop_credentials(conn: sa.Connection, *, before: datetime) -> int:
    """Delete stored credentials without a stack."""
    return _drop_unused(conn, CREDENTIALS, CREDENTIALS.c.uuid, (_S.credentials_uuid,), before)


def _drop_unused(
    conn: sa.Connection,
    table: sa.Table,
    key: sa.Column[Any],
    users: Sequence[sa.Column[Any]],
    before: datetime,
) -> int:
    unused = [key.not_in(sa.select(user).where(user.is_not(None))) for user in users]
    return conn.execute(sa.delete(table).where(table.c.created_at < before, *unused)).rowcount
