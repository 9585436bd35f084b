"""Who an engine acts for: the caller of the last accepted call on a tree, never more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import CREDENTIALS

_T = CREDENTIALS.c
_INSERT = sa.insert(CREDENTIALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who an engine acts for."""

    user: str | None
    project: str
    roles: tuple[str, ...]


OF_REQUEST: Final = "request"  # auth method: user, project and roles as the request had them


def insert(
    conn: sa.Connection, uuid: str, *, user: str | None, project: str, roles: Sequence[str]
) -> None:
    conn.execute(_INSERT, {"uuid": uuid, "created_at": rows.now(),
                                          **_columns(user, project, roles)})  # fmt: skip


def renew(
    conn: sa.Connection, uuid: str, *, user: str | None, project: str, roles: Sequence[str]
) -> None:
    """Let another caller of the project take the place of the last one."""
    values = {"updated_at": rows.now(), **_columns(user, project, roles)}
    conn.execute(sa.update(CREDENTIALS).where(_T.uuid == uuid).values(values))


def find(conn: sa.Connection, uuid: str) -> Caller | None:
    row = conn.execute(sa.select(CREDENTIALS).where(_T.uuid == uuid)).one_or_none()
    if row is None:
        return None
    return Caller(user=row.user, project=row.project, roles=tuple(rows.load(row.roles)))


def _columns(user: str | None, project: str, roles: Sequence[str]) -> dict[str, Any]:
    return {
        "user": user,
        "project": project,
        "roles": rows.dump(list(roles)),
        "auth_method": OF_REQUEST,
    }
