"""Queries of the drift watch: machines of stacks at rest, page by page, and reported differences.

A page is read with one statement for each table, on a connection whose statements see one moment:
an engine stores that a resource is at work before it orders anything.  So the row of a resource at
rest and the row of its node belong together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows, upserts
from bloomery.db.tables import CREDENTIALS, RESOURCES, STACK_DRIFT, STACKS

_R, _S, _D = RESOURCES.c, STACKS.c, STACK_DRIFT.c
_ROOT = STACKS.alias("root")
_MACHINES: Final = "OS::Ironic::%"
OUTPUTS: Final = "OS::Heat::StackOutputs"
_IN_PROGRESS: Final = "IN_PROGRESS"
_AT_REST = (
    sa.or_(_R.type.like(_MACHINES), _R.type == OUTPUTS),
    _R.is_current.is_(sa.true()),
    _R.physical_id.is_not(None),
    _R.action.not_in(("INIT", "DELETE")),
    sa.or_(_R.status == "COMPLETE", sa.and_(_R.action == "CHECK", _R.status == "FAILED")),
)
_PAGE = (
    sa.select(
        _R.id, _R.uuid, _R.stack_uuid, _R.root_uuid, _R.name, _R.type, _R.action, _R.status,
        _R.reason, _R.physical_id, _R.properties_uuid, _R.traversal,
        _S.name.label("stack_name"), _S.project,
        CREDENTIALS.c.user, CREDENTIALS.c.project.label("caller_project"), CREDENTIALS.c.roles,
    )
    .join(STACKS, _S.uuid == _R.stack_uuid)
    .join(_ROOT, _ROOT.c.uuid == _R.root_uuid)
    .outerjoin(CREDENTIALS, CREDENTIALS.c.uuid == _ROOT.c.credentials_uuid)
    .where(
        *_AT_REST,
        _R.id > sa.bindparam("after_id"),
        _S.deleted_at.is_(None),
        _S.status != _IN_PROGRESS,
        _ROOT.c.status != _IN_PROGRESS,
    )
    .order_by(_R.id)
    .limit(sa.bindparam("size"))
)  # fmt: skip
_COUNT = sa.select(sa.func.count()).select_from(RESOURCES).where(*_AT_REST)
_STORED = sa.select(STACK_DRIFT).where(_D.resource_uuid.in_(sa.bindparam("idents", expanding=True)))
_UNCHANGED = sa.select(_R.uuid).where(
    _R.uuid == sa.bindparam("ident"),
    _R.traversal == sa.bindparam("traversal"),
    _R.action == sa.bindparam("action"),
    _R.status == sa.bindparam("status"),
)


def count(conn: sa.Connection) -> int:
    """Return how many resources that are machines are at rest, about."""
    return int(conn.execute(_COUNT).scalar_one())


def list_page(conn: sa.Connection, after_id: int, size: int) -> Sequence[sa.Row[Any]]:
    """Return resources at rest in stacks at rest, with the credentials of their trees."""
    return conn.execute(_PAGE, {"after_id": after_id, "size": size}).all()


def stored(conn: sa.Connection, uuids: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the reported differences by resource: sentence by field."""
    return {
        row.resource_uuid: rows.load(row.differences)
        for some in upserts.chunks(sorted(uuids))
        for row in conn.execute(_STORED, {"idents": list(some)})
    }


def is_unchanged(conn: sa.Connection, resource: sa.Row[Any]) -> bool:
    """Whether a resource is unchanged since its page was read."""
    state = {
        "ident": resource.uuid,
        "traversal": resource.traversal,
        "action": resource.action,
        "status": resource.status,
    }
    return conn.execute(_UNCHANGED, state).first() is not None


def replace(
    conn: sa.Connection, uuid: str, differences: Mapping[str, str], *, now: datetime
) -> None:
    """Store the reported differences of a resource; {}: none are left."""
    stored = conn.execute(sa.select(_D.resource_uuid).where(_D.resource_uuid == uuid)).first()
    if not differences:
        conn.execute(sa.delete(STACK_DRIFT).where(_D.resource_uuid == uuid))
    elif stored is not None:
        change = {"differences": rows.dump(differences)}
        conn.execute(sa.update(STACK_DRIFT).where(_D.resource_uuid == uuid).values(change))
    else:
        row = {"resource_uuid": uuid, "differences": rows.dump(differences), "since": now}
        conn.execute(sa.insert(STACK_DRIFT), row)


def list_of_tree(conn: sa.Connection, root_uuid: str) -> Sequence[sa.Row[Any]]:
    """Return the differences of a tree: name, stack_uuid, differences (JSON text), since."""
    query = (
        sa.select(_R.name, _R.stack_uuid, _D.differences, _D.since)
        .join(RESOURCES, _R.uuid == _D.resource_uuid)
        .where(_R.root_uuid == root_uuid)
        .order_by(_D.since, _R.id)
    )
    return conn.execute(query).all()


def count_by_type(conn: sa.Connection) -> dict[str, int]:
    """Return how many resources differ from their machines, by type: for metrics."""
    query = sa.select(_R.type, sa.func.count()).join(STACK_DRIFT, _D.resource_uuid == _R.uuid)
    return {str(name): int(number) for name, number in conn.execute(query.group_by(_R.type))}
