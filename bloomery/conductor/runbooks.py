"""Rules of runbooks: a runbook is public, or belongs to a project."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import Context
from bloomery.model.runbook import Runbook


def check_new(_context: Context, _conn: sa.Connection, runbook: Runbook) -> None:
    if runbook.public:
        runbook.owner = None


def check_change(
    _context: Context, _conn: sa.Connection, _node: Any, runbook: Runbook, changed: dict[str, Any]
) -> None:
    """Remove the owner of a runbook that becomes public; refuse an owner for a public runbook.

    Duplicate traits are dropped.
    """
    if "traits" in changed:
        changed["traits"] = list(dict.fromkeys(changed["traits"]))
    if changed.get("public", runbook.public):
        if "public" not in changed and changed.get("owner"):
            raise errors.Invalid(
                reason=f"cannot give runbook {runbook.uuid} an owner while it is public",
            )
        if runbook.owner is not None or changed.get("owner"):
            changed["owner"] = None


RULES: Final = Rules(create=check_new, update=check_change)
