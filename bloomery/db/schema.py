"""The schema's revision: of the database, of this release, and the upgrade between them.

A start runs one plain query and imports no alembic:

    schema.require_head(db, state_dir=state_dir.path)    # a server database: refuse an old schema
    backup = schema.prepare(db)                          # our own SQLite: create or upgrade it
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, rows

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of revisions, numbered so that their names sort: their directory, first and last."""

    scripts: str
    first: str
    head: str


FIRST: Final = "0013"  # an upgrade begins here, or with an empty database
HEAD: Final = "0019"
OURS: Final = Line(scripts="bloomery.db:migrations", first=FIRST, head=HEAD)
_VERSION_TABLE: Final = "alembic_version"
_VERSION: Final = sa.text("SELECT version_num FROM alembic_version")
_CONTRACTED_AT: Final = sa.text("SELECT value FROM home WHERE name = 'contracted_at'")
_NUMBER: Final = re.compile(r"\d{4}")  # names of our revisions
_ANOTHER_DATABASE: Final = (
    "name a database of Bloomery's own, or an empty one, by [database]connection or --state-dir"
)


def revision_of(db: engine.Database) -> str | None:
    """Return the revision of the schema, or None.  One plain query."""
    try:
        with db.read() as conn:
            return conn.execute(_VERSION).scalar()
    except sa.exc.DBAPIError as exc:
        if _VERSION_TABLE in str(exc.orig):
            return None
        raise _unusable(db, exc.orig) from exc
    except errors.DatabaseAway as exc:
        raise _unusable(db, exc.facts["reason"]) from exc


def require_head(
    db: engine.Database,
    *,
    state_dir: Path,
    config_files: Sequence[str] = (),
    line: Line = OURS,
) -> None:
    """Refuse a database whose schema this release cannot use; compatible newer ones pass.

    Raises SchemaOutdated with the command to run, CannotStart if the database can't be used.
    """
    revision = revision_of(db)
    if _is_usable(db, revision, line):
        return
    words = ["bloomery", "db", "upgrade", "--state-dir", str(state_dir)]
    words += [word for name in config_files for word in ("--config-file", str(name))]
    raise errors.SchemaOutdated(
        schema=revision or "not there yet",
        needed=line.head,
        advice=f"run: {shlex.join(words)}",
    )


def require_known(revision: str, *, line: Line = OURS) -> None:
    """Refuse a revision of another program, and one from which no upgrade begins."""
    if not _NUMBER.fullmatch(revision):
        advice = f"no release of Bloomery calls a schema {revision}: {_ANOTHER_DATABASE}"
    elif revision < line.first:
        advice = (
            f"this release upgrades a schema from {line.first} on: run bloomery db upgrade of an "
            f"earlier release, which brings it to {line.first}, then start this release"
        )
    else:
        return
    raise errors.SchemaOutdated(schema=revision, needed=line.head, advice=advice)


def _is_usable(db: engine.Database, revision: str | None, line: Line) -> bool:
    """Return whether this release can use the schema as it is, or False if an upgrade is needed.

    A compatible newer schema is usable, so that the old processes of a site can restart during a
    rolling upgrade.  Raises SchemaOutdated for a schema that no upgrade makes usable.
    """
    if revision is None:
        return False
    require_known(revision, line=line)
    if revision <= line.head:
        return revision == line.head
    with db.read() as conn:  # the last revision that removed columns or tables of older releases
        contracted_at = conn.execute(_CONTRACTED_AT).scalar()
    if contracted_at is not None and contracted_at > line.head:
        raise errors.SchemaOutdated(
            schema=revision,
            needed=line.head,
            advice="a newer release wrote it: start that one, or put back a backup from before",
        )
    LOG.warning("the schema is %s: a newer release brought it up from %s, which this one needs, "
                "and this one can use it; upgrade this one, too", revision, line.head)  # fmt: skip
    return True


def upgrade(db: engine.Database, *, line: Line = OURS) -> None:
    """Upgrade the schema to the head of its line in one transaction.

    MariaDB and MySQL commit each change of a table by itself: there the next attempt continues.  At
    the head, or on a compatible newer schema, nothing is written.  Raises SchemaOutdated for an
    incompatible newer schema, and for one that is too old.
    """
    revision = revision_of(db)
    if _is_usable(db, revision, line):
        return
    try:
        db.alter(lambda conn: _run_revisions(conn, line))
    except sa.exc.DBAPIError as exc:
        raise errors.CannotStart(
            reason=f"cannot bring the schema from {revision or 'nothing'} to {line.head} "
            f"in {masked_url(db)}: {exc.orig}"
            + ("" if revision else f"; if its tables are another program's, {_ANOTHER_DATABASE}"),
        ) from exc


def prepare(db: engine.Database, *, line: Line = OURS) -> Path | None:
    """Upgrade our own SQLite to the head before serving; return the backup, if any.

    A fresh database gets the schema, an older one is backed up first, a current one stays.
    """
    revision = revision_of(db)
    if _is_usable(db, revision, line):
        return None
    backup = None
    if revision is not None:
        backup = Path(f"{db.url.database}.{revision}-{rows.now():%Y%m%dT%H%M%SZ}.backup")
        db.backup(backup)
    upgrade(db, line=line)
    return backup


def _run_revisions(conn: sa.Connection, line: Line) -> None:
    from alembic import command, config  # a start without an upgrade does not need it

    settings = config.Config(attributes={"connection": conn})
    settings.set_main_option("script_location", line.scripts)
    command.upgrade(settings, line.head)


def _unusable(db: engine.Database, reason: object) -> errors.CannotStart:
    return errors.CannotStart(reason=f"cannot use the database {masked_url(db)}: {reason}")


def masked_url(db: engine.Database) -> str:
    """Return the URL of a database, its password masked."""
    return db.url.render_as_string(hide_password=True)
