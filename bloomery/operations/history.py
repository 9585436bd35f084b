"""What happened to a node, oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import history as db
from bloomery.model import history as model
from bloomery.model.rules import idents
from bloomery.operations import lookup, paging
from bloomery.operations.context import Context

Json = dict[str, Any]

SHORT: Final = ("uuid", "created_at", "severity", "event")
MAX_SHORT_EVENT: Final = 255


def show(ctx: Context, ident: str, asked: Mapping[str, Any]) -> Json:
    """Return a page of a node's history; with ``detail`` all that the version knows."""
    uuid = lookup.uuid_of(ctx, ident)
    page = paging.read(ctx, asked, model.FIELDS, default_key="created_at")
    with ctx.services.db.read() as conn:
        rows = db.list_rows(
            conn,
            uuid,
            sort_key=page.sort_key,
            descending=page.descending,
            marker=page.marker,
            limit=page.limit,
        )
    found: Json = {
        "history": [_entry(ctx, ident, row, detail=bool(asked.get("detail"))) for row in rows],
    }
    if page.is_full(len(rows)):
        fields = None if asked.get("detail") else SHORT
        found["next"] = paging.next_url(
            ctx,
            f"nodes/{ident}/history",
            page,
            rows[-1]["uuid"],
            detail=asked.get("detail"),
            fields=fields,
        )
    return found


def entry(ctx: Context, ident: str, uuid: str) -> Json:
    """Return one entry in full.  Raises NodeHistoryNotFound."""
    if not idents.is_uuid(uuid):
        raise errors.InvalidUUID(argument="event_ident", value=uuid)
    node_uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        row = db.get_row(conn, node_uuid, uuid)
    return _entry(ctx, ident, row, detail=True)


def _entry(ctx: Context, ident: str, row: Any, *, detail: bool) -> Json:
    shown = [
        field.name
        for field in model.FIELDS.values()
        if field.since <= ctx.version and (detail or field.name in SHORT)
    ]
    found = {name: row[name] for name in shown}
    if not detail:
        found["event"] = _short(found["event"])
    href = f"{ctx.url}/v1/nodes/{ident}/history/{row['uuid']}"
    return found | {"links": [{"href": href, "rel": "self"}]}


def _short(event: str) -> str:
    return event if len(event) <= MAX_SHORT_EVENT else event[: MAX_SHORT_EVENT - 4] + "..."
