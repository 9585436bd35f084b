"""Stored credentials of a tree: the caller of the last accepted request."""

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
    """The caller on whose behalf an engine acts."""

    user: str | None
    project: str
    roles: tuple[str, ...]


OF_REQUEST: Final = "request"  # auth method: user, project and roles of the request


def insert(
    conn: sa.Connection, uuid: str, *, user: str | None, project: str, roles: Sequence[str]
) -> None:
    conn.execute(_INSERT, {"uuid": uuid, "created_at": rows.now(),
                                          **_columns(user, project, roles)})  # fmt: skip


def renew(
    conn: sa.Connection, uuid: str, *, user: str | None, project: str, roles: Sequence[str]
) -> None:
    """Replace the stored caller by another one of the project."""
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
