"""Disks that take nothing: full ones, by a limit on SQLite's file, and read-only ones."""

from __future__ import annotations

from bloomery.db.engine import Database


def fill(db: Database) -> None:
    """Let the file grow no more: what fits into its free pages is still written."""
    pages = db.transact(lambda conn: conn.exec_driver_sql("PRAGMA page_count").scalar_one())
    _set(db, f"max_page_count={pages}")


def make_room(db: Database) -> None:
    _set(db, "max_page_count=1000000")


def make_readonly(db: Database) -> None:
    _let_write(db, 0)


def make_writable(db: Database) -> None:
    _let_write(db, 1)


def _let_write(db: Database, may: int) -> None:
    """Not in a transaction: none begins on a connection that may not write."""
    with db._edge._turn():
        db._edge._writer.exec_driver_sql(f"PRAGMA query_only={1 - may}").close()


def _set(db: Database, pragma: str) -> None:
    db.transact(lambda conn: conn.exec_driver_sql(f"PRAGMA {pragma}").close())
