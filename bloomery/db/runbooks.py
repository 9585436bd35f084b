"""Queries on runbooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import RUNBOOKS

_T = RUNBOOKS.c


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookSteps:
    """What a verb needs of a runbook."""

    steps: list[dict[str, Any]]
    traits: list[str]
    disable_ramdisk: bool
    owner: str | None


def find(conn: sa.Connection, ident: str) -> RunbookSteps | None:
    """Return the steps of the runbook with this UUID or name."""
    query = sa.select(_T.steps, _T.traits, _T.disable_ramdisk, _T.owner)
    row = conn.execute(query.where(sa.or_(_T.uuid == ident, _T.name == ident))).one_or_none()
    if row is None:
        return None
    return RunbookSteps(
        steps=rows.load(row.steps),
        traits=rows.load(row.traits),
        disable_ramdisk=row.disable_ramdisk,
        owner=row.owner,
    )
