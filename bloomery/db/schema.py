"""Which schema the database has, which one this release needs, and the way from one to the other.

A start asks one plain question and imports no alembic:

    schema.require_head(db, state_dir=home.path)         # a server database: refuse what is old
    backup = schema.prepare(db)                          # our own SQLite: create it, bring it up
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of revisions, numbered so that their names sort: where they are, and the last."""

    scripts: str
    head: str


HEAD: Final = "0005"
OURS: Final = Line(scripts="bloomery.db:migrations", head=HEAD)
_VERSION_TABLE: Final = "alembic_version"
_VERSION: Final = sa.text("SELECT version_num FROM alembic_version")


def revision_of(db: engine.Database) -> str | None:
    """Return the revision of the schema, None where there is none yet.  One plain query."""
    try:
        with db.read() as conn:
            return conn.execute(_VERSION).scalar()
    except sa.exc.DBAPIError as exc:
        if _VERSION_TABLE in str(exc.orig):
            return None
        raise _unusable(db, exc) from exc


def require_head(db: engine.Database, *, state_dir: Path, line: Line = OURS) -> None:
    """Refuse a database whose schema is not the one that this release needs.

    Raises SchemaOutdated with the command to run, CannotStart if the database can't be used.
    """
    revision = revision_of(db)
    _refuse_newer(revision, line)
    if revision != line.head:
        raise errors.SchemaOutdated(
            found=revision or "not there yet",
            wanted=line.head,
            advice=f"run: bloomery db upgrade --state-dir {state_dir}",
        )


def upgrade(db: engine.Database, *, line: Line = OURS) -> None:
    """Bring the schema to the head of its line in one transaction: all revisions or none.

    Where it is there already nothing is written.  Raises SchemaOutdated for a newer one.
    """
    revision = revision_of(db)
    _refuse_newer(revision, line)
    if revision == line.head:
        return
    try:
        db.alter(lambda conn: _run_revisions(conn, line))
    except sa.exc.DBAPIError as exc:
        raise errors.CannotStart(
            reason=f"cannot bring the schema from {revision or 'nothing'} to {line.head} "
            f"in {_shown(db)}: {exc.orig}",
        ) from exc


def prepare(db: engine.Database, *, line: Line = OURS) -> Path | None:
    """Bring our own SQLite to the head before serving; return the backup if one was made.

    The schema is created in a fresh database, an older one is backed up and brought up, and for
    the current one nothing is done.
    """
    revision = revision_of(db)
    if revision == line.head:
        return None
    _refuse_newer(revision, line)
    backup = None if revision is None else _back_up(db, revision)
    upgrade(db, line=line)
    return backup


def _back_up(db: engine.Database, revision: str) -> Path:
    stamp = f"{rows.now():%Y%m%dT%H%M%SZ}"
    target = Path(f"{db.url.database}.{revision}-{stamp}.backup")
    db.backup(target)
    return target


def _run_revisions(conn: sa.Connection, line: Line) -> None:
    from alembic import command, config  # at start the schema is asked for without it

    settings = config.Config(attributes={"connection": conn})
    settings.set_main_option("script_location", line.scripts)
    command.upgrade(settings, line.head)


def _refuse_newer(revision: str | None, line: Line) -> None:
    if revision is not None and revision > line.head:
        raise errors.SchemaOutdated(
            found=revision,
            wanted=line.head,
            advice="a newer release wrote it: start that one, or put back a backup from before",
        )


def _unusable(db: engine.Database, exc: sa.exc.DBAPIError) -> errors.CannotStart:
    return errors.CannotStart(reason=f"cannot use the database {_shown(db)}: {exc.orig}")


def _shown(db: engine.Database) -> str:
    return db.url.render_as_string(hide_password=True)
