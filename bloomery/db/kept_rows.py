"""Let a starting process wait for rows that other transactions have locked.

    with kept_rows.outlasted():          # in the thread that starts a process
        db.transact(work)

A process that hangs inside a transaction (SIGSTOP, swapping) keeps its rows until the server ends
the transaction, after ``[database]statement_timeout``.  API callers are asked to retry; a starting
process waits for longer than that time-out, and logs the transaction.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings

_OUTLASTS: Final = ContextVar("bloomery.outlasts_kept_rows", default=False)
_WITHOUT_LIMIT_S: Final = 600  # where the server ends no transaction
_TABLE: Final = re.compile(r"(?:UPDATE|INTO|FROM)\s+\"?(\w+)")
_OLDEST: Final = {  # the oldest other transaction on this database: program, address, seconds
    "postgresql": "SELECT application_name, client_addr || ':' || client_port,"
    " extract(epoch FROM now() - xact_start)::int FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1",
    "mysql": "SELECT concat('connection ', p.id), p.host,"
    " timestampdiff(SECOND, t.trx_started, now()) FROM information_schema.innodb_trx t"
    " JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id"
    " WHERE p.db = database() AND p.id <> connection_id() ORDER BY t.trx_started LIMIT 1",
}


@contextlib.contextmanager
def outlasted() -> Iterator[None]:
    """Let transactions of this thread wait for rows until the server frees them."""
    token = _OUTLASTS.set(True)
    try:
        yield
    finally:
        _OUTLASTS.reset(token)


def patience_s(settings: Settings) -> int:
    """Return the longest wait of this thread for a row, beyond ``lock_timeout``."""
    return (settings.statement_timeout or _WITHOUT_LIMIT_S) if _OUTLASTS.get() else 0


def described(conn: sa.Connection, exc: errors.RowKept) -> str:
    """Return the error, and the oldest transaction, which most likely has the row."""
    table = _TABLE.search(getattr(exc.__cause__, "statement", None) or "")
    what = f"another transaction keeps a row of {table[1] if table else 'a table'}"
    try:
        oldest = conn.exec_driver_sql(_OLDEST[conn.dialect.name]).one_or_none()
    except sa.exc.DBAPIError:  # MariaDB needs the PROCESS privilege
        return what
    if oldest is None:
        return what
    program, address, seconds = oldest
    who = f"{program or 'somebody'} at {address or 'a local socket'}"
    return f"{what}; the oldest is open for {seconds} s, of {who}"
