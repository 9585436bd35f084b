"""Queries on records of any noun: get, list, insert, update, delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import json_members, pagination, rows, upserts
from bloomery.db.tables import METADATA, NODES
from bloomery.model.fields import Column
from bloomery.model.noun import Noun
from bloomery.model.request import Page
from bloomery.model.rules import idents


def table(noun: Noun) -> sa.Table:
    return METADATA.tables[noun.table]


def find_row(
    conn: sa.Connection, noun: Noun, ident: str, columns: Sequence[Column]
) -> sa.Row[Any] | None:
    """Return these columns of the record with this UUID or name: objects still JSON text."""
    return conn.execute(_select(conn, noun, columns).where(_is(noun, ident))).one_or_none()


def _select(conn: sa.Connection, noun: Noun, columns: Sequence[Column]) -> sa.Select[Any]:
    t = table(noun)
    selected = (
        t.c[each] if isinstance(each, str) else json_members.column(conn.dialect, t, each)
        for each in columns
    )
    return sa.select(*selected).select_from(t)


def _is(noun: Noun, ident: str) -> sa.ColumnElement[bool]:
    """Match the UUID before the name: a name that looks like a UUID would hide a record."""
    c = table(noun).c
    return c.name == ident if noun.has_names and not idents.is_uuid(ident) else c.uuid == ident


def get(conn: sa.Connection, noun: Noun, ident: str, *, for_update: bool = False) -> Any:
    """Return one record by UUID or name, or raise the noun's error of a missing one."""
    query = _select(conn, noun, noun.columns).where(_is(noun, ident))
    row = conn.execute(query.with_for_update() if for_update else query).mappings().one_or_none()
    if row is None:
        raise noun.missing(ident)
    return _value(noun, row)


def list_where(conn: sa.Connection, noun: Noun, **equal: Any) -> list[Any]:
    """Return all records whose columns equal these, oldest first; a list holds alternatives."""
    c = table(noun).c
    conditions = (c[n].in_(v) if isinstance(v, list) else c[n] == v for n, v in equal.items())
    query = _select(conn, noun, noun.columns).where(*conditions)
    return [_value(noun, row) for row in conn.execute(query.order_by(c.id)).mappings()]


def list_rows_where(
    conn: sa.Connection, noun: Noun, column: str, values: Collection[str]
) -> Sequence[sa.Row[Any]]:
    """Return the records with one of ``values`` in a column: objects still JSON text."""
    query = _select(conn, noun, noun.columns)
    return [
        row
        for some in upserts.chunks(sorted(values))
        for row in conn.execute(query.where(table(noun).c[column].in_(list(some))))
    ]


def _value(noun: Noun, row: sa.RowMapping) -> Any:
    values = dict(row)
    for name in noun.objects:
        values[name] = rows.load(values[name])
    return noun.value(**values)


# ------------------------------------------------------------------------------------- writes


def insert(conn: sa.Connection, noun: Noun, record: Any) -> None:
    """Insert a record; the database adds its id, this function its created_at.

    Raises the noun's errors for duplicate values and missing parents.
    """
    record.created_at = rows.now()
    values = {name: getattr(record, name) for name in noun.columns if name != "id"}
    with naming_conflicts(noun, values):
        conn.execute(sa.insert(table(noun)), rows.encode(values, noun.objects))


def update(conn: sa.Connection, noun: Noun, uuid: str, values: Mapping[str, Any]) -> None:
    """Change columns of a record; raises as ``insert`` does."""
    encoded = rows.encode(values, noun.objects)
    t = table(noun)
    with naming_conflicts(noun, {"uuid": uuid} | dict(values)):
        conn.execute(
            sa.update(t).where(t.c.uuid == uuid).values(updated_at=rows.now(), **encoded),
        )


def delete(conn: sa.Connection, noun: Noun, uuid: str) -> bool:
    """Delete a record; raises the noun's ``not_empty`` if it has children."""
    t = table(noun)
    empty = noun.not_empty(uuid) if noun.not_empty else None
    with rows.naming_conflicts(lambda exc: rows.broken_constraint(exc, {}, empty)):
        return bool(conn.execute(sa.delete(t).where(t.c.uuid == uuid)).rowcount)


def naming_conflicts(noun: Noun, values: Mapping[str, Any]) -> rows.naming_conflicts:
    """Turn a violated unique or foreign key of the noun's table into its named error."""
    meanings: dict[str, Callable[[], errors.Failure]] = {
        f"{noun.table}.{column}": partial(fault, values.get(column))
        for column, fault in noun.taken.items()
    }
    missing = next((fault(values[n]) for n, fault in noun.parents.items() if values.get(n)), None)
    return rows.naming_conflicts(lambda exc: rows.broken_constraint(exc, meanings, missing))


# -------------------------------------------------------------------------------------- lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A page of records; ``conductor_groups`` and ``shards`` are those of their nodes.

    ``project`` is the owner or lessee of the nodes, or the owner of the records; public records
    count as owned.
    """

    columns: Sequence[Column]
    equal: Mapping[str, Any] = field(default_factory=dict)
    shards: Sequence[str] | None = None
    conductor_groups: Sequence[str] | None = None
    project: str | None = None
    description_contains: str | None = None
    page: Page = field(default_factory=Page)


def list_rows(conn: sa.Connection, noun: Noun, query: Query) -> Sequence[sa.Row[Any]]:
    """Return rows of the selected columns, in that order: objects still JSON text.

    Raises the noun's error of a missing record for an unknown marker.
    """
    page, c = query.page, table(noun).c
    visible: list[sa.ColumnElement[bool]] = []  # to a project
    if query.project is not None and noun.of_node:
        tenant = sa.or_(NODES.c.owner == query.project, NODES.c.lessee == query.project)
        visible.append(c.node_uuid.in_(sa.select(NODES.c.uuid).where(tenant)))
    elif query.project is not None:
        own = c.owner == query.project
        visible.append(sa.or_(own, c.public.is_(True)) if "public" in c else own)
    conditions: list[sa.ColumnElement[bool]] = [c[n] == v for n, v in query.equal.items()]
    if query.description_contains is not None:
        conditions.append(c.description.ilike(f"%{query.description_contains}%"))
    of_nodes: list[sa.ColumnElement[bool]] = [
        column.in_(list(values))
        for column, values in (
            (NODES.c.shard, query.shards),
            (NODES.c.conductor_group, query.conductor_groups),
        )
        if values is not None
    ]
    if of_nodes:
        conditions.append(c.node_uuid.in_(sa.select(NODES.c.uuid).where(*of_nodes)))
    listed = pagination.after(
        conn, _select(conn, noun, query.columns).where(*conditions, *visible), table(noun),
        [(page.sort_key, page.descending)], page.marker, noun.missing, visible=visible,
    )  # fmt: skip
    return conn.execute(listed if page.limit is None else listed.limit(page.limit)).all()
