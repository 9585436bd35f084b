"""The file ``site`` of a state dir: which site it serves, and how far its database had come.

    site = SiteFile(folder / "site")
    site.recognise(db)         # at the start: another, an empty or an older database is refused
    site.checkpoint(db)        # each minute: SQLite's log is moved into its file, and numbered

SQLite keeps the last commits in the file ``-wal``.  Without it the rest is a valid database that
is older, or empty.  So each checkpoint commits a number first, and writes it here afterwards: a
database with a lower number has lost commits.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bloomery import errors
from bloomery.db import schema, settings
from bloomery.db.engine import Database

_SITE: Final = "site"
_CHECKPOINT: Final = "checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``checkpoint``: the number that SQLite's file must have reached; 0 on a server."""

    site: str
    checkpoint: int


class SiteFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Record | None:
        """Return what the file holds; None before the first start.  Raises CannotStart."""
        try:
            return Record(**json.loads(self.path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as exc:
            raise errors.CannotStart(
                reason=f"cannot read {self.path}, which says whose database this is: {exc}; "
                "put it back, or move it away if the database is the right one",
            ) from exc

    def recognise(self, db: Database) -> None:
        """Refuse a database that is not the one of the last start; remember a first one.

        Raises CannotStart.  The schema is there.  A known database costs one statement.
        """
        record = self.read()
        with db.read() as conn:
            values = settings.find_several(conn, (_SITE, _CHECKPOINT, settings.KEY_ID))
        site, number = values.get(_SITE), int(values.get(_CHECKPOINT, 0))
        if record is not None:
            if site is None and settings.KEY_ID not in values:
                raise self._refused(db, "it is empty")
            if site not in (None, record.site):
                raise self._refused(db, "it is that of another site")
            if db.is_sqlite and number < record.checkpoint:
                raise self._refused(
                    db,
                    "it lacks the last writes, as a backup does, or a file without its "
                    f"{db.url.database}-wal",
                )
        if site is None:
            name = uuid.uuid4().hex if record is None else record.site
            site = db.transact(lambda conn: settings.settle(conn, _SITE, name))
        if record is None:
            self._write(Record(site=site, checkpoint=number))

    def checkpoint(self, db: Database) -> None:
        """Move the commits of SQLite's log into its file; a server does this by itself."""
        record = self.read()
        if not db.is_sqlite or record is None:
            return
        db.checkpoint()
        with db.read() as conn:
            number = int(settings.find(conn, _CHECKPOINT) or 0)
        number = max(number, record.checkpoint) + 1
        db.transact(lambda conn: settings.put(conn, _CHECKPOINT, str(number)))
        self._write(Record(site=record.site, checkpoint=number))

    def _write(self, record: Record) -> None:
        fresh = self.path.with_suffix(f".{os.getpid()}.new")  # other workers of an API write too
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)

    def _refused(self, db: Database, problem: str) -> errors.CannotStart:
        return errors.CannotStart(
            reason=f"cannot serve from {schema.masked_url(db)}: {problem}, and {self.path} tells "
            "of the one that was served last; put that one back, with its -wal file if it is "
            f"SQLite's, or move {self.path} away to go on with the one that is there",
        )
