"""Views of a node's history, BIOS settings and firmware."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery.api.declare import Call
from bloomery.api.views import pagination, projection
from bloomery.model import node_facts as model
from bloomery.model.fields import FieldTable
from bloomery.model.request import Page

Json = dict[str, Any]

BIOS_SHORT: Final = ("name", "value")
BIOS_ALWAYS: Final = ("created_at", "updated_at")  # shown whatever ``fields`` selects
HISTORY_SHORT: Final = ("uuid", "created_at", "severity", "event")
MAX_SHORT_EVENT: Final = 255


def names_in(fields: FieldTable, version: int) -> tuple[str, ...]:
    """Return the names of the fields in ``version``."""
    return tuple(field.name for field in fields.values() if field.since <= version)


def history_page(
    call: Call,
    ident: str,
    page: Page,
    rows: Sequence[sa.RowMapping],
    *,
    detail: bool | None,
) -> Json:
    entries = [history_entry(call, row, detail=bool(detail)) for row in rows]
    answer: Json = {"history": entries}
    if page.is_full(rows):
        answer["next"] = pagination.next_url(
            call,
            f"nodes/{ident}/history",
            page,
            rows[-1]["uuid"],
            detail=detail,
            fields=None if detail else HISTORY_SHORT,
        )
    return answer


def history_entry(call: Call, row: sa.RowMapping, *, detail: bool = True) -> Json:
    names = names_in(model.HISTORY, call.version)
    entry = {name: row[name] for name in names if detail or name in HISTORY_SHORT}
    if not detail and len(entry["event"]) > MAX_SHORT_EVENT:
        entry["event"] = entry["event"][: MAX_SHORT_EVENT - 4] + "..."
    href = call.at(f"nodes/{row['node_uuid']}/history/{row['uuid']}")
    return entry | {"links": [{"href": href, "rel": "self"}]}


def bios_fields(call: Call, fields: Iterable[str] | None, *, detail: bool | None) -> list[str]:
    """Return the fields of a list of BIOS settings."""
    if detail:
        return list(names_in(model.BIOS, call.version))
    names = (*(BIOS_SHORT if fields is None else fields), *BIOS_ALWAYS)
    return [name for name in names if name in model.BIOS]


def bios_setting(call: Call, ident: str, setting: Json, fields: Iterable[str]) -> Json:
    path = f"nodes/{ident}/bios/{setting['name']}"
    return {name: setting[name] for name in fields} | {"links": projection.links(call.url, path)}
