"""Faults of a database server: their names, and which are transient."""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors

_DEADLOCK: Final = "transactions lock each other out again and again"
_AGAIN: Final = frozenset({"40001", "40P01", "1213"})  # serialization failure, deadlock
_BUSY: Final = {
    **dict.fromkeys(_AGAIN, _DEADLOCK),
    **dict.fromkeys(("57014", "1969", "3024"), "a statement takes longer than "
                    "[database]statement_timeout"),
    **dict.fromkeys(("53300", "1040", "1203"), "the server has no connection left: raise its "
                    "max_connections, or lower [database]max_pool_size and max_overflow"),
    **dict.fromkeys(("53100", "1021", "1114"), "the server's disk is full"),
    **dict.fromkeys(("58030", "1026"), "the server's disk is full, or fails"),
    **dict.fromkeys(("53200", "1037", "1038", "1041"), "the server is out of memory"),
    **dict.fromkeys(("53000", "53400"), "the server cannot give a statement what it takes: "
                    "its log says more"),
    **dict.fromkeys(("25006", "1290", "1792", "1836"), "the server takes no writes: it is "
                    "read-only, or a replica"),
}  # fmt: skip
_FULL: Final = re.compile(r"connection slots are reserved|too many (clients|connections)")
_KEPT: Final = frozenset({"55P03", "1205"})
_GOING: Final = frozenset({"57P01", "57P02", "57P03", "1053", "1927"})  # the server stops or starts


def is_lost(exc: sa.exc.DBAPIError) -> bool:
    """Is the connection gone, and with it the transaction?"""
    return exc.connection_invalidated or _code(exc) in _GOING


def may_pass(exc: Exception) -> bool:
    """May the transaction be repeated?  Nothing of it was committed."""
    if isinstance(exc, sa.exc.DBAPIError):
        return is_lost(exc) or _code(exc) in _AGAIN
    return isinstance(exc, errors.DatabaseAway)


def named(exc: Exception, url: sa.URL) -> errors.DatabaseBusy | None:
    """Return the named error of the server's fault, or None."""
    if isinstance(exc, errors.DatabaseBusy):
        return exc
    if not isinstance(exc, sa.exc.DBAPIError):
        return None
    if is_lost(exc):
        return away(exc, url)
    if _code(exc) in _KEPT:
        kept = "another transaction keeps a row for longer than [database]lock_timeout"
        return errors.RowKept(reason=kept, log=_message(exc))
    reason = _BUSY.get(_code(exc))
    return None if reason is None else errors.DatabaseBusy(reason=reason, log=_message(exc))


def away(exc: sa.exc.DBAPIError, url: sa.URL) -> errors.DatabaseBusy:
    """Return the error for a connection that is lost, or could not be opened."""
    message = _message(exc)
    code = "53300" if _FULL.search(message) else _code(exc)  # psycopg opens without an SQLSTATE
    if reason := _BUSY.get(code):
        return errors.DatabaseBusy(reason=reason, log=message)
    lines = [line for line in message.splitlines() if line.strip()]
    return errors.DatabaseAway(server=server_name(url), reason=lines[0] if lines else "it is gone")


def server_name(url: sa.URL) -> str:
    """Return the server and the database, without the user."""
    place = url.host or str(url.query.get("host") or url.query.get("unix_socket") or "local socket")
    if url.port:
        place = f"{place}:{url.port}"
    return f"{url.get_backend_name()}://{place}/{url.database or ''}"


def _code(exc: sa.exc.DBAPIError) -> str:
    """Return PostgreSQL's SQLSTATE, or MySQL's number, which is more specific."""
    cause: Any = exc.orig
    first = (cause.args or ("",))[0]
    return str(first if isinstance(first, int) else getattr(cause, "sqlstate", None))


def _message(exc: sa.exc.DBAPIError) -> str:
    """Return the driver's message, without MySQL's number."""
    return str((exc.orig.args or ("",))[-1]) if exc.orig is not None else ""
