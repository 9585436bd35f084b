"""Queries on snapshots of stacks; the engine completes them with the tree."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import SNAPSHOTS
from bloomery.model.stacks import Snapshot
from bloomery.secrets import Sealer

_T = SNAPSHOTS.c


def insert(conn: sa.Connection, snapshot: Snapshot, sealer: Sealer) -> None:
    """Insert a snapshot as it was accepted; the engine adds its data."""
    values = {name: getattr(snapshot, name) for name in snapshot.__slots__ if name != "data"}
    accepted = sealer.seal_text(rows.dump_document(snapshot.data))
    conn.execute(sa.insert(SNAPSHOTS), {**values, "definition": accepted})


def list_of_stack(conn: sa.Connection, stack_uuid: str, sealer: Sealer) -> list[Snapshot]:
    query = sa.select(SNAPSHOTS).where(_T.stack_uuid == stack_uuid).order_by(_T.id)
    return [_from_row(row, sealer) for row in conn.execute(query)]


def find(conn: sa.Connection, stack_uuid: str, uuid: str, sealer: Sealer) -> Snapshot | None:
    """Return a snapshot of this stack."""
    query = sa.select(SNAPSHOTS).where(_T.uuid == uuid, _T.stack_uuid == stack_uuid)
    row = conn.execute(query).one_or_none()
    return None if row is None else _from_row(row, sealer)


def count(conn: sa.Connection, stack_uuid: str) -> int:
    query = sa.select(sa.func.count()).select_from(SNAPSHOTS).where(_T.stack_uuid == stack_uuid)
    return conn.execute(query).scalar_one()


def delete(conn: sa.Connection, uuid: str) -> None:
    conn.execute(sa.delete(SNAPSHOTS).where(_T.uuid == uuid))


def _from_row(row: sa.Row[Any], sealer: Sealer) -> Snapshot:
    texts = (text for text in (row.definition, row.data) if text is not None)
    data = {k: v for text in texts for k, v in rows.load_document(sealer.open_text(text)).items()}
    values = {name: getattr(row, name) for name in Snapshot.__slots__ if name != "data"}
    return Snapshot(**values, data=data)
