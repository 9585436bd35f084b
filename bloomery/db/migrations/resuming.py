"""Go on with revisions that broke off on MariaDB or MySQL, which commit each change of a table.

Before a statement of a revision is run its number is noted, in a table that is there only
meanwhile.  The next try skips what was done.  A statement during which the connection broke may
have been done: then it is run, and what it makes may be there already.  (Each statement is done as
a whole or not at all, since MariaDB 10.6 and MySQL 8.)
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from alembic.ddl.impl import DefaultImpl
from alembic.ddl.mysql import MySQLImpl

VERSION_TABLE: Final = "alembic_version"
_THERE: Final = frozenset(
    {1050, 1060, 1061, 1359, 1826}
)  # table, column, key, trigger, foreign key
_KEY_THERE: Final = (1005, "errno: 121 ")  # foreign key, as MariaDB says it
_GONE: Final = frozenset({1051, 1054, 1091})  # table, column to rename or drop, key
_MAKE: Final = (
    "CREATE TABLE IF NOT EXISTS schema_steps "
    "(begun INTEGER NOT NULL, done INTEGER NOT NULL) ENGINE = InnoDB"
)
_NOTE: Final = "UPDATE schema_steps SET begun = %s, done = %s"


class ResumableImpl(MySQLImpl):
    """alembic's ways with MySQL, in steps that are noted; tables compare texts byte by byte."""

    __dialect__ = "mysql"

    _number = 0  # of the statement, within its revision
    _done = 0  # the last one that a former try is known to have done
    _begun = 0  # the last one that it began
    _is_noting = False

    def start_migrations(self) -> None:
        self._run(_MAKE)
        row = self._run("SELECT begun, done FROM schema_steps").one_or_none()
        if row is None:
            self._run("INSERT INTO schema_steps (begun, done) VALUES (0, 0)")
        else:
            self._begun, self._done = row
        self._is_noting = True

    def create_table(self, table: sa.Table, **more: Any) -> None:
        is_mariadb = getattr(self.dialect, "is_mariadb", False)
        collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        table.kwargs.setdefault("mysql_collate", collation)
        super().create_table(table, **more)

    def _exec(self, construct: Any, *args: Any, **more: Any) -> Any:
        if not self._is_noting:
            return super()._exec(construct, *args, **more)
        if getattr(getattr(construct, "table", None), "name", None) == VERSION_TABLE:
            # in the transaction that stores the number of the revision, begin to count anew
            self._number = self._done = self._begun = 0
            self._note(begun=0, done=0)
            return super()._exec(construct, *args, **more)
        self._number += 1
        if self._number <= self._done:
            return None
        self._note(begun=self._number, done=self._number - 1)
        try:
            return super()._exec(construct, *args, **more)
        except sa.exc.DBAPIError as exc:
            if exc.connection_invalidated:
                raise
            if self._number == self._begun and _is_done(exc):
                return None
            self._note(begun=self._number - 1, done=self._number - 1)
            self._run("COMMIT")
            raise

    def _note(self, *, begun: int, done: int) -> None:
        self._run(_NOTE, (begun, done))

    def _run(self, statement: str, values: tuple[int, ...] = ()) -> Any:
        assert self.connection is not None
        return self.connection.exec_driver_sql(statement, values)

    def end(self) -> None:
        self._run("DROP TABLE schema_steps")


def end(impl: DefaultImpl) -> None:
    """Remove what was noted, once every revision is done."""
    if isinstance(impl, ResumableImpl):
        impl.end()


def _is_done(exc: sa.exc.DBAPIError) -> bool:
    """Whether a statement fails because what it makes is there, or what it drops is gone."""
    arguments: Any = getattr(exc.orig, "args", None) or (None,)
    if arguments[0] == _KEY_THERE[0]:
        return _KEY_THERE[1] in str(arguments[-1])
    return arguments[0] in _THERE | _GONE
