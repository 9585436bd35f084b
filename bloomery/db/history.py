"""Queries on the history of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import pagination, upserts
from bloomery.db.tables import NODE_HISTORY
from bloomery.model.node_facts import HistoryEntry
from bloomery.model.request import Page

_T = NODE_HISTORY.c
_COLUMNS = tuple(f.name for f in fields(HistoryEntry))
_WHOLE = sa.select(*(_T[name] for name in _COLUMNS))
_INSERT = sa.insert(NODE_HISTORY)
OLDEST_FIRST: Final = Page(sort_key="created_at")


def insert(conn: sa.Connection, entry: HistoryEntry) -> None:
    # the plain values, since ``asdict`` would copy each deeply
    conn.execute(_INSERT, {name: getattr(entry, name) for name in _COLUMNS})


def find_known(conn: sa.Connection, node_uuid: str, uuids: Sequence[str]) -> set[str]:
    """Return those of ``uuids`` that are entries of the node."""
    known = sa.select(_T.uuid).where(_T.node_uuid == node_uuid)
    return {
        uuid
        for part in upserts.chunks(uuids)
        for uuid in conn.execute(known.where(_T.uuid.in_(part))).scalars()
    }


def get_row(conn: sa.Connection, node_uuid: str, uuid: str) -> sa.RowMapping:
    """Return one entry of a node.  Raises NodeHistoryNotFound."""
    query = _WHOLE.where(_T.node_uuid == node_uuid, _T.uuid == uuid)
    row = conn.execute(query).mappings().one_or_none()
    if row is None:
        raise errors.NodeHistoryNotFound(history=uuid)
    return row


def list_rows(
    conn: sa.Connection,
    node_uuid: str,
    page: Page = OLDEST_FIRST,
) -> Sequence[sa.RowMapping]:
    """Return the entries of a node.  Raises NodeHistoryNotFound unless the marker is one."""
    of_node = _T.node_uuid == node_uuid
    query = pagination.after(
        conn, _WHOLE.where(of_node), NODE_HISTORY, [(page.sort_key, page.descending)], page.marker,
        lambda unknown: errors.NodeHistoryNotFound(history=unknown), visible=(of_node,),
    )  # fmt: skip
    return conn.execute(query.limit(page.limit)).mappings().all()


def list_of_type_since(
    conn: sa.Connection, node_uuid: str, event_type: str, since: datetime
) -> list[tuple[datetime, str]]:
    """Return time and text of a node's entries of one type, oldest first."""
    of_type = _T.node_uuid == node_uuid, _T.event_type == event_type, _T.created_at >= since
    query = sa.select(_T.created_at, _T.event).where(*of_type).order_by(_T.id)
    return [(row.created_at, row.event) for row in conn.execute(query)]


def find_since_last_error(conn: sa.Connection, node_uuid: str, event_type: str) -> str | None:
    """Return the newest entry of one type after the node's last failure."""
    of_node = _T.node_uuid == node_uuid
    failed = sa.select(sa.func.max(_T.id)).where(of_node, _T.severity == "ERROR")
    query = sa.select(_T.event).where(
        of_node, _T.event_type == event_type, _T.id > failed.scalar_subquery()
    )
    event: str | None = conn.execute(query.order_by(_T.id.desc()).limit(1)).scalar_one_or_none()
    return event


def find_mover(conn: sa.Connection, node_uuid: str) -> str | None:
    """Return the user of the node's newest transition that a user ordered."""
    ordered = _T.node_uuid == node_uuid, _T.event_type == "transition", _T.user.is_not(None)
    query = sa.select(_T.user).where(*ordered).order_by(_T.id.desc()).limit(1)
    user: str | None = conn.execute(query).scalar_one_or_none()
    return user


def list_crowded(conn: sa.Connection, *, keep: int) -> list[str]:
    """Return the nodes with more than ``keep`` entries; reads the index of all."""
    count = sa.func.count()
    query = sa.select(_T.node_uuid).group_by(_T.node_uuid).having(count > keep)
    return list(conn.execute(query).scalars())


def trim(conn: sa.Connection, *, node_uuid: str, keep: int, at_most: int) -> int:
    """Delete entries of a node beyond the newest ``keep``; return their number."""
    newest_first = sa.select(_T.id).where(_T.node_uuid == node_uuid).order_by(_T.id.desc())
    old = list(conn.execute(newest_first.offset(keep).limit(at_most)).scalars())
    if old:
        conn.execute(sa.delete(NODE_HISTORY).where(_T.id.in_(old)))
    return len(old)


def find_last_error(conn: sa.Connection, node_uuid: str) -> dict[str, Any] | None:
    """Return the latest failure in a node's history."""
    query = _WHOLE.where(_T.node_uuid == node_uuid, _T.severity == "ERROR")
    row = conn.execute(query.order_by(_T.id.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else dict(row)
