"""Which schema the database has, which one this release needs, and the way from one to the other.

A start asks one plain question and imports no alembic:

    schema.require_head(db, state_dir=home.path)         # a server database: refuse what is old
    backup = schema.prepare(db)                          # our own SQLite: create it, bring it up
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, rows

HEAD: Final = "0001"
_MIGRATIONS: Final = "bloomery.db:migrations"
_VERSION_TABLE: Final = "alembic_version"
_VERSION: Final = sa.text("SELECT version_num FROM alembic_version")


def found(db: engine.Database) -> str | None:
    """Return the revision of the schema, None where there is none yet.  One plain query."""
    try:
        with db.read() as conn:
            return conn.execute(_VERSION).scalar()
    except sa.exc.DBAPIError as exc:
        if _VERSION_TABLE in str(exc.orig):
            return None
        raise _unusable(db, exc) from exc


def require_head(db: engine.Database, *, state_dir: Path) -> None:
    """Refuse a database whose schema is not the one that this release needs.

    Raises SchemaOutdated with the command to run, CannotStart if the database can't be used.
    """
    revision = found(db)
    _refuse_newer(revision)
    if revision != HEAD:
        raise errors.SchemaOutdated(
            found=revision or "not there yet",
            wanted=HEAD,
            advice=f"run: bloomery db upgrade --state-dir {state_dir}",
        )


def upgrade(db: engine.Database) -> None:
    """Bring the schema to HEAD in one transaction: all revisions or none.

    Where the schema is HEAD already nothing is written.  Raises SchemaOutdated for a newer one.
    """
    revision = found(db)
    _refuse_newer(revision)
    if revision == HEAD:
        return
    try:
        db.alter(_run_revisions)
    except sa.exc.DBAPIError as exc:
        raise errors.CannotStart(
            reason=f"cannot bring the schema from {revision or 'nothing'} to {HEAD}: {exc.orig}",
        ) from exc


def prepare(db: engine.Database) -> Path | None:
    """Bring our own SQLite to HEAD before serving; return the backup if one was made.

    The schema is created in a fresh database, an older one is backed up and brought up, and for
    the current one nothing is done.
    """
    revision = found(db)
    if revision == HEAD:
        return None
    _refuse_newer(revision)
    backup = None if revision is None else _back_up(db, revision)
    upgrade(db)
    return backup


def _back_up(db: engine.Database, revision: str) -> Path:
    stamp = f"{rows.now():%Y%m%dT%H%M%SZ}"
    target = Path(f"{db.url.database}.{revision}-{stamp}.backup")
    db.backup(target)
    return target


def _run_revisions(conn: sa.Connection) -> None:
    from alembic import command, config  # at start the schema is asked for without it

    settings = config.Config(attributes={"connection": conn})
    settings.set_main_option("script_location", _MIGRATIONS)
    command.upgrade(settings, "head")


def _refuse_newer(revision: str | None) -> None:
    if revision is not None and revision > HEAD:
        raise errors.SchemaOutdated(
            found=revision,
            wanted=HEAD,
            advice="a newer release wrote it: start that one, or put back a backup from before",
        )


def _unusable(db: engine.Database, exc: sa.exc.DBAPIError) -> errors.CannotStart:
    where = db.url.render_as_string(hide_password=True)
    return errors.CannotStart(reason=f"cannot use the database {where}: {exc.orig}")
