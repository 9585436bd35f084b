"""Reads of resources of stacks, as far as an answer needs them; they are written by ``trees``.

``leftovers``: rows of replaced resources that still exist are read as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows, tree_values, upserts
from bloomery.db.tables import PROPERTIES_DATA, RESOURCE_DATA, RESOURCES, STACKS
from bloomery.model.stacks import Properties, StoredResource
from bloomery.secrets import Sealer

_T = RESOURCES.c
_D = RESOURCE_DATA.c
_LISTED: Final = (
    "uuid", "stack_uuid", "name", "type", "action", "status", "reason", "physical_id", "requires",
    "is_current", "created_at", "updated_at",
)  # fmt: skip
_IS_CURRENT = _T.is_current.is_(sa.true())


def list_shown(
    conn: sa.Connection, stacks: Collection[str], *, leftovers: bool = False
) -> Sequence[StoredResource]:
    """Return what lists show of the resources of some stacks that stand, in order of creation."""
    query = sa.select(*(_T[name] for name in _LISTED)).where(_T.stack_uuid.in_(list(stacks)))
    query = query if leftovers else query.where(_IS_CURRENT)
    return [
        StoredResource(**row._asdict() | tree_values.decoded_state(row))
        for row in conn.execute(query.order_by(_T.id))
    ]


def list_of_stack(
    conn: sa.Connection,
    stack_uuid: str,
    sealer: Sealer,
    names: Collection[str] | None = None,
    *,
    leftovers: bool = False,
) -> list[StoredResource]:
    """Return the resources of a stack that stand, with their data; ``names`` None: all."""
    query = sa.select(RESOURCES).where(_T.stack_uuid == stack_uuid).order_by(_T.id)
    query = query if leftovers else query.where(_IS_CURRENT)
    if names is None:
        return _decoded(conn, conn.execute(query).all(), sealer)
    stored: list[sa.Row[Any]] = []
    for some in upserts.chunks(sorted(names)):
        stored += conn.execute(query.where(_T.name.in_(list(some)))).all()
    return _decoded(conn, stored, sealer)


def find(conn: sa.Connection, stack_uuid: str, name: str, sealer: Sealer) -> StoredResource | None:
    return next(iter(list_of_stack(conn, stack_uuid, sealer, [name])), None)


def list_of_tree(
    conn: sa.Connection, root_uuid: str, sealer: Sealer, *, leftovers: bool = False
) -> list[StoredResource]:
    """Return the resources of all stacks of a tree that stand."""
    query = sa.select(RESOURCES).where(_T.root_uuid == root_uuid).order_by(_T.id)
    query = query if leftovers else query.where(_IS_CURRENT)
    return _decoded(conn, conn.execute(query).all(), sealer)


def _decoded(
    conn: sa.Connection, records: Sequence[sa.Row[Any]], sealer: Sealer
) -> list[StoredResource]:
    data, redacted = data_of(conn, [row.uuid for row in records], sealer)
    return [
        tree_values.decode_resource(
            row, data.get(row.uuid, {}), redacted.get(row.uuid, set()), sealer
        )
        for row in records
    ]


def data_of(
    conn: sa.Connection, uuids: Sequence[str], sealer: Sealer
) -> tuple[dict[str, dict[str, Any]], dict[str, set[str]]]:
    """Return the data of resources, and the keys of those that are redacted, by resource."""
    data: dict[str, dict[str, Any]] = {}
    redacted: dict[str, set[str]] = {}
    for some in upserts.chunks(uuids):
        for row in conn.execute(sa.select(RESOURCE_DATA).where(_D.resource_uuid.in_(some))):
            data.setdefault(row.resource_uuid, {})[row.key] = tree_values.decode_data(row, sealer)
            if row.redacted:
                redacted.setdefault(row.resource_uuid, set()).add(row.key)
    return data, redacted


def properties_of(
    conn: sa.Connection, uuids: Collection[str], sealer: Sealer
) -> Mapping[str, Properties]:
    """Return stored properties by their uuid."""
    table = PROPERTIES_DATA
    properties: dict[str, Properties] = {}
    for some in upserts.chunks(sorted(uuids)):
        for row in conn.execute(sa.select(table).where(table.c.uuid.in_(list(some)))):
            properties[row.uuid] = tree_values.decode_properties(row, sealer)
    return properties


def set_state(conn: sa.Connection, uuid: str, *, action: str, status: str, reason: str) -> bool:
    """Change the state of a resource that is not at work; False: it is, or is gone."""
    statement = sa.update(RESOURCES).where(_T.uuid == uuid, _T.status != "IN_PROGRESS")
    statement = statement.values(
        action=action, status=status, reason=tree_values.storable(reason), updated_at=rows.now()
    )
    return bool(conn.execute(statement).rowcount)


def set_flag(conn: sa.Connection, uuid: str, key: str, *, is_set: bool) -> None:
    """Set a flag in the data of a resource to true, or remove the flag."""
    if is_set:
        set_data(conn, uuid, key, True)
    else:
        conn.execute(sa.delete(RESOURCE_DATA).where(_D.resource_uuid == uuid, _D.key == key))


def set_data(conn: sa.Connection, uuid: str, key: str, value: Any) -> None:
    """Set a public value in the data of a resource."""
    conn.execute(sa.delete(RESOURCE_DATA).where(_D.resource_uuid == uuid, _D.key == key))
    row = {"resource_uuid": uuid, "key": key, "value": rows.dump_document(value)}
    conn.execute(sa.insert(RESOURCE_DATA), row | {"redacted": False})


def list_types(conn: sa.Connection, root_uuid: str) -> list[str]:
    """Return the types that the resources of a tree have, each once."""
    query = sa.select(_T.type).where(_T.root_uuid == root_uuid).distinct().order_by(_T.type)
    return list(conn.execute(query).scalars())


def list_physical_ids(conn: sa.Connection, root_uuid: str) -> list[str]:
    """Return the physical IDs of the resources of a tree, of replaced ones as well."""
    query = sa.select(_T.physical_id).where(_T.root_uuid == root_uuid, _T.physical_id.is_not(None))
    return list(conn.execute(query).scalars())


def list_foreign(conn: sa.Connection, project: str, physical_ids: Sequence[str]) -> list[str]:
    """Return those of ``physical_ids`` that resources of stacks of another project have."""
    query = (
        sa.select(_T.physical_id)
        .join(STACKS, STACKS.c.uuid == _T.stack_uuid)
        .where(_T.physical_id.in_(list(physical_ids)), STACKS.c.project != project)
    )
    return [str(each) for each in conn.execute(query).scalars()]
