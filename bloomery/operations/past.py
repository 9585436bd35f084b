"""The past of an imported node in another service: its history and its inspection data.

past.bring(ctx, "web-1", history=[{"uuid": ..., "created_at": ..., ...}], inspected=None)
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import hardware, nodes
from bloomery.db import history as db
from bloomery.model.node_facts import HistoryEntry
from bloomery.operations import bulk, policy
from bloomery.operations.context import Context

Json = dict[str, Any]


def bring(ctx: Context, ident: str, *, history: Sequence[Json], inspected: Json | None) -> None:
    """Store both; entries of the history that are there stay, so that a repetition adds nothing.

    ``inspected``: {"inventory": ..., "plugin_data": ...}, in place of what is there.  Raises
    NodeNotFound, and Conflict unless the node is in maintenance.
    """
    uuid = policy.get_uuid(ctx, ident, bulk.IMPORT_RULE)
    entries = [_entry(uuid, document) for document in history]
    ctx.services.db.transact(lambda conn: _store(conn, uuid, entries, inspected))


def _entry(node_uuid: str, document: Json) -> HistoryEntry:
    """Return an entry.  Raises Invalid; other services' times have no zone and mean UTC."""
    try:
        created_at = datetime.fromisoformat(document["created_at"])
    except ValueError:
        raise errors.Invalid(
            reason=f"created_at must be a time as of ISO 8601, not "
            f"{errors.shortened(document['created_at'])!r}"
        ) from None
    if created_at.tzinfo is None:
        created_at = created_at.replace(tzinfo=UTC)
    return HistoryEntry(**document | {"node_uuid": node_uuid, "created_at": created_at})


def _store(
    conn: sa.Connection, uuid: str, entries: Sequence[HistoryEntry], inspected: Json | None
) -> None:
    node = nodes.get(conn, uuid)
    if not node.maintenance:
        raise errors.Conflict(
            reason=f"cannot bring the past of node {errors.name_of(node)}, which is not in "
            "maintenance: only an imported node that has not been taken over gets one",
        )
    there = db.find_known(conn, [entry.uuid for entry in entries])
    for entry in entries:
        if entry.uuid not in there:
            db.insert(conn, entry)
    if inspected is not None:
        hardware.replace_inventory(conn, uuid, inspected)
