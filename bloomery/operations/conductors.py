"""Conductors: who serves the nodes, and who is alive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bloomery.db import conductors as db
from bloomery.model import conductor as model
from bloomery.model.conductor import Conductor
from bloomery.operations import documents, links, paging
from bloomery.operations.context import Context
from bloomery.rpc import ring

Json = dict[str, Any]

DEFAULT: Final = ("hostname", "conductor_group", "alive")
DETAIL: Final = tuple(model.FIELDS)
ALSO_ASKED: Final = ("links",)


def show(ctx: Context, asked: Mapping[str, Any]) -> Json:
    """Return a page of conductors; its marker is a host name."""
    page = paging.read(ctx, asked, model.FIELDS)
    shown = _shown(asked)
    with ctx.services.db.read() as conn:
        known = db.list_page(
            conn,
            sort_key=page.sort_key,
            descending=page.descending,
            marker=page.marker,
            limit=page.limit,
        )
    found: Json = {"conductors": _documents(ctx, known, shown)}
    if page.is_full(len(known)):
        found["next"] = paging.next_url(
            ctx,
            "conductors",
            page,
            known[-1].hostname,
            detail=asked.get("detail"),
            fields=None if asked.get("detail") else shown,
        )
    return found


def one(ctx: Context, hostname: str, fields: Iterable[str] | None = None) -> Json:
    """Return one conductor in full.  Raises ConductorNotFound."""
    shown = DETAIL if fields is None else tuple(fields)
    documents.check_fields(shown, model.FIELDS, ctx.version, also=ALSO_ASKED)
    with ctx.services.db.read() as conn:
        known = db.get(conn, hostname)
    return _documents(ctx, [known], shown)[0]


def _shown(asked: Mapping[str, Any]) -> tuple[str, ...]:
    fields = asked.get("fields")
    documents.refuse_both(fields, detail=asked.get("detail"))
    if asked.get("detail"):
        return DETAIL
    if fields is None:
        return DEFAULT
    documents.check_fields(fields, model.FIELDS, 1, also=ALSO_ASKED)
    return tuple(fields)


def _documents(ctx: Context, known: list[Conductor], shown: Iterable[str]) -> list[Json]:
    living = {each.hostname for each in ring.alive(known)}
    return [
        {name: _value(each, name, living) for name in shown if name != "links"}
        | {"links": links.of(ctx.url, f"conductors/{each.hostname}")}
        for each in known
    ]


def _value(conductor: Conductor, name: str, living: set[str]) -> Any:
    if name == "alive":
        return conductor.hostname in living
    return getattr(conductor, name)
