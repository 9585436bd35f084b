"""Queries on stacks by column, for lists and checks; ``trees`` loads whole trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import pagination, tree_values
from bloomery.db.tables import RESOURCES, STACK_TAGS, STACKS
from bloomery.model.stacks import Stack

_T = STACKS.c
_G = STACK_TAGS.c
_WHOLE = sa.select(
    *(_T[name] for name in tree_values.STACK_COLUMNS)
)  # without the graph, which only engines read
_BY_UUID = _WHOLE.where(_T.uuid == sa.bindparam("ident"))
_BY_NAME = (
    _WHOLE.where(_T.name == sa.bindparam("name"), _T.deleted_at.is_(None)).order_by(_T.id).limit(1)
)
_TAGS_OF = (
    sa.select(_G.stack_uuid, _G.tag)
    .where(_G.stack_uuid.in_(sa.bindparam("idents", expanding=True)))
    .order_by(_G.position)
)
_COUNT_ROOTS = (
    sa.select(sa.func.count())
    .select_from(STACKS)
    .where(_T.project == sa.bindparam("project"), _T.deleted_at.is_(None), _T.owner_uuid.is_(None))
)
_LIVE = sa.select(_T.id).where(_T.live_name == sa.bindparam("live_name")).limit(1)
_MOST_IDENTS: Final = 500  # in one statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A list of stacks.

    ``equal``     column -> accepted values
    ``hidden``    stacks with one of these tags are left out
    ``states``    accepted (action, status) pairs; an action of None is any
    ``order``     (column, descending), ties by id
    """

    project: str | None = None
    equal: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    states: Sequence[tuple[str | None, str]] = ()
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    hidden: Sequence[str] = ()
    deleted: bool = False
    nested: bool = False
    order: Sequence[tuple[str, bool]] = (("created_at", True),)
    marker: str | None = None
    limit: int | None = None


def find(conn: sa.Connection, uuid: str) -> Stack | None:
    """Return a stack without its graph, deleted ones included."""
    return _one(conn, conn.execute(_BY_UUID, {"ident": uuid}).one_or_none())


def find_by_name(conn: sa.Connection, project: str | None, name: str) -> Stack | None:
    """Return the oldest living stack of that name; ``project`` None: of any."""
    query = _BY_NAME if project is None else _BY_NAME.where(_T.project == project)
    return _one(conn, conn.execute(query, {"name": name}).one_or_none())


def _one(conn: sa.Connection, row: sa.Row[Any] | None) -> Stack | None:
    return None if row is None else _values(conn, [row])[0]


def _values(conn: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[Stack]:
    tags: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(rows), _MOST_IDENTS):
        idents = [row.uuid for row in rows[start : start + _MOST_IDENTS]]
        for uuid, tag in conn.execute(_TAGS_OF, {"idents": idents}):
            tags[uuid] = (*tags.get(uuid, ()), tag)
    return [Stack(**row._mapping, tags=tags.get(row.uuid, ())) for row in rows]  # noqa: SLF001


def list_page(conn: sa.Connection, query: Query) -> list[Stack]:
    """Return a page; an unknown marker is ignored, as in Heat."""
    statement = _WHOLE.where(*_conditions(query))
    statement = pagination.after(conn, statement, STACKS, query.order, query.marker)
    if query.limit is not None:
        statement = statement.limit(query.limit)
    return _values(conn, conn.execute(statement).all())


def count(conn: sa.Connection, query: Query) -> int:
    statement = sa.select(sa.func.count()).select_from(STACKS).where(*_conditions(query))
    return conn.execute(statement).scalar_one()


def count_roots(conn: sa.Connection, project: str) -> int:
    """Count the root stacks of a project."""
    return conn.execute(_COUNT_ROOTS, {"project": project}).scalar_one()


def list_of_tree(conn: sa.Connection, root_uuid: str, *, deleted: bool = False) -> list[Stack]:
    """Return the stacks of a tree, the root first; ``deleted``: deleted ones, too."""
    query = _WHOLE.where(_T.root_uuid == root_uuid).order_by(_T.depth, _T.id)
    if not deleted:
        query = query.where(sa.or_(_T.deleted_at.is_(None), _T.uuid == root_uuid))
    return [Stack(**row._mapping) for row in conn.execute(query)]  # noqa: SLF001


def list_children(conn: sa.Connection, owner_uuid: str) -> list[Stack]:
    """Return the nested stacks directly below a stack."""
    query = _WHOLE.where(_T.owner_uuid == owner_uuid, _T.deleted_at.is_(None)).order_by(_T.id)
    return [Stack(**row._mapping) for row in conn.execute(query)]  # noqa: SLF001


def list_foreign(conn: sa.Connection, project: str, uuids: Sequence[str]) -> list[str]:
    """Return those of ``uuids`` that are stacks of another project."""
    query = sa.select(_T.uuid).where(_T.uuid.in_(list(uuids)), _T.project != project)
    return list(conn.execute(query).scalars())


def update_guarded(
    conn: sa.Connection, uuid: str, traversal: int, values: Mapping[str, Any]
) -> bool:
    """Change columns of a stack if its traversal is the expected one."""
    statement = sa.update(STACKS).where(_T.uuid == uuid, _T.traversal == traversal)
    return bool(conn.execute(statement.values(dict(values))).rowcount)


def replace_tags(conn: sa.Connection, uuid: str, tags: Sequence[str]) -> None:
    conn.execute(sa.delete(STACK_TAGS).where(_G.stack_uuid == uuid))
    if tags:
        rows = [
            {"stack_uuid": uuid, "tag": tag, "position": place} for place, tag in enumerate(tags)
        ]
        conn.execute(sa.insert(STACK_TAGS), rows)


def _conditions(query: Query) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]]
    conditions = [_T[name].in_(list(values)) for name, values in query.equal.items()]
    if query.project is not None:
        conditions.append(_T.project == query.project)
    if query.states:
        conditions.append(_in_states(query.states))
    if not query.deleted:
        conditions.append(_T.deleted_at.is_(None))
    if not query.nested:
        conditions.append(_T.owner_uuid.is_(None))
    if query.tags:
        conditions.append(_tagged_with_all(query.tags))
    if query.tags_any:
        conditions.append(_tagged(query.tags_any))
    if query.not_tags:
        conditions.append(sa.not_(_tagged_with_all(query.not_tags)))
    conditions += [sa.not_(_tagged(tags)) for tags in (query.not_tags_any, query.hidden) if tags]
    return conditions


def _in_states(states: Sequence[tuple[str | None, str]]) -> sa.ColumnElement[bool]:
    """Match pairs; one term for each pair would nest deeper than SQLite parses."""
    actions: dict[str | None, set[str]] = {}
    for action, status in states:
        actions.setdefault(action, set()).add(status)
    statuses = actions.pop(None, set())
    pairs = [(action, status) for action, each in actions.items() for status in each]
    return sa.or_(_T.status.in_(list(statuses)), sa.tuple_(_T.action, _T.status).in_(pairs))


def _tagged(tags: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(_G.stack_uuid == _T.uuid, _G.tag.in_(list(tags)))


def _tagged_with_all(tags: Sequence[str]) -> sa.ColumnElement[bool]:
    """Match stacks with all of these tags, in one term."""
    unique = list(dict.fromkeys(tags))
    count = sa.select(sa.func.count(_G.tag.distinct())).where(
        _G.stack_uuid == _T.uuid, _G.tag.in_(unique)
    )
    return count.correlate(STACKS).scalar_subquery() == len(unique)


def is_taken(conn: sa.Connection, project: str, name: str) -> bool:
    """Is there a living root with this name?"""
    return conn.execute(_LIVE, {"live_name": f"{project}/{name}"}).first() is not None


def count_by_state(conn: sa.Connection) -> dict[str, int]:
    """Count stacks by ACTION_STATUS, nested ones included, deleted ones not."""
    return _by_state(conn, STACKS, STACKS.c.deleted_at.is_(None))


def count_resources_by_state(conn: sa.Connection) -> dict[str, int]:
    """Count resources by ACTION_STATUS, replaced ones that still exist included."""
    return _by_state(conn, RESOURCES, sa.true())


def _by_state(
    conn: sa.Connection, table: sa.Table, which: sa.ColumnElement[bool]
) -> dict[str, int]:
    state = (table.c.action, table.c.status)
    query = sa.select(*state, sa.func.count()).where(which).group_by(*state)
    return {f"{action}_{status}": count for action, status, count in conn.execute(query)}
