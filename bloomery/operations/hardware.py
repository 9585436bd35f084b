"""What was found out about a machine: BIOS settings, firmware, inventory.  Read only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bloomery import errors
from bloomery.db import hardware as db
from bloomery.model import hardware as model
from bloomery.model.fields import FieldTable
from bloomery.operations import documents, links, lookup
from bloomery.operations.context import Context

Json = dict[str, Any]

BIOS_SHORT: Final = ("name", "value")
BIOS_ALWAYS: Final = ("created_at", "updated_at")


def bios(
    ctx: Context,
    ident: str,
    *,
    detail: bool | None = None,
    fields: Iterable[str] | None = None,
) -> Json:
    """Return the BIOS settings by name; the times are shown whatever ``fields`` says."""
    uuid = lookup.uuid_of(ctx, ident)
    documents.refuse_both(fields, detail=detail)
    if fields is not None:
        documents.check_fields(fields, model.BIOS, ctx.version, also=("links",))
    shown = _bios_shown(ctx, fields, detail=bool(detail))
    with ctx.services.db.read() as conn:
        found = db.list_bios(conn, uuid)
    return {"bios": [_bios_document(ctx, ident, row, shown) for row in found]}


def bios_setting(ctx: Context, ident: str, name: str) -> Json:
    """Return one setting under its own name.  Raises BIOSSettingNotFound."""
    uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        row = db.find_bios(conn, uuid, name)
    if row is None:
        raise errors.BIOSSettingNotFound(node=uuid, setting=name)
    return {name: _bios_document(ctx, ident, row, _known(model.BIOS, ctx.version))}


def _bios_shown(ctx: Context, fields: Iterable[str] | None, *, detail: bool) -> tuple[str, ...]:
    if detail:
        return _known(model.BIOS, ctx.version)
    asked = BIOS_SHORT if fields is None else fields
    return tuple(name for name in (*asked, *BIOS_ALWAYS) if name in model.BIOS)


def _bios_document(ctx: Context, ident: str, row: Json, shown: Iterable[str]) -> Json:
    path = f"nodes/{ident}/bios/{row['name']}"
    return {name: row[name] for name in shown} | {"links": links.of(ctx.url, path)}


def firmware(ctx: Context, ident: str, fields: Iterable[str] | None = None) -> Json:
    """Return the firmware components, with the versions seen first, now and flashed last."""
    uuid = lookup.uuid_of(ctx, ident)
    if fields is not None:
        documents.check_fields(fields, model.FIRMWARE, ctx.version)
    shown = _known(model.FIRMWARE, ctx.version) if fields is None else tuple(fields)
    with ctx.services.db.read() as conn:
        found = db.list_firmware(conn, uuid)
    return {"firmware": [{name: row[name] for name in shown} for row in found]}


def inventory(ctx: Context, ident: str) -> Json:
    """Return what the last inspection found.  Raises InventoryNotFound."""
    uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        found = db.find_inventory(conn, uuid)
    if found is None:
        raise errors.InventoryNotFound(node=uuid)
    return found


def _known(fields: FieldTable, version: int) -> tuple[str, ...]:
    return tuple(field.name for field in fields.values() if field.since <= version)
