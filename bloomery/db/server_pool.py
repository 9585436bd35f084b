"""Connections to PostgreSQL, MariaDB and MySQL: their settings, and the test for stale ones.

The driver commits each statement by itself, so that neither it nor SQLAlchemy sends anything on its
own: a read is one packet.  Isolation and time-outs are set once per connection.
"""

from __future__ import annotations

import os
import select
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conf.default import Database as Settings

_LOOPBACK: Final = frozenset({None, "localhost", "127.0.0.1", "::1"})
_USED: Final = "bloomery.used"  # of a connection's record: it has been checked out before
# beyond the time-out of a statement, until its connection counts as dead
_NETWORK_SLACK_S: Final = 10
ALTERING_LOCK_S: Final = 60  # to wait for a table; later requests queue behind the change
ALTERING_TURN_S: Final = 600  # to wait for another process that changes the schema


def create(url: sa.URL, settings: Settings, idle_s: int | None = None) -> sa.Engine:
    """Return the pool for regular use: its size and each wait are bounded.

    ``idle_s``: the longest idle transaction; None: the time-out of statements.
    """
    engine = sa.create_engine(
        url,
        pool_size=settings.max_pool_size,
        max_overflow=settings.max_overflow,
        pool_timeout=settings.pool_timeout,
        connect_args=_connect_args(url, settings, settings.statement_timeout, idle_s),
        **_PLAIN,
    )
    sa.event.listen(engine, "checkout", _refuse_stale)
    return engine


def create_unbounded(url: sa.URL, settings: Settings) -> sa.Engine:
    """Return an engine without time-outs, for changes of the schema."""
    arguments = _connect_args(url, settings, statement_timeout_s=0)
    return sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=arguments, **_PLAIN)


_PLAIN: Final[dict[str, Any]] = {
    "pool_reset_on_return": None,  # ``server_edge`` ends its transactions
    "skip_autocommit_rollback": True,
}


def _connect_args(
    url: sa.URL, settings: Settings, statement_timeout_s: int, idle_s: int | None = None
) -> dict[str, Any]:
    idle_s = statement_timeout_s if idle_s is None else idle_s
    arguments: dict[str, Any] = {"autocommit": True, "connect_timeout": settings.connect_timeout}
    if url.get_backend_name() == "postgresql":
        limits = {
            "default_transaction_isolation": "read\\ committed",
            "lock_timeout": f"{settings.lock_timeout}s",
            "statement_timeout": f"{statement_timeout_s}s",
            "idle_in_transaction_session_timeout": f"{idle_s}s",
        }
        options = [f"-c {name}={value}" for name, value in limits.items()]
        silent_s = settings.connect_timeout + _NETWORK_SLACK_S
        return arguments | {
            "fallback_application_name": f"bloomery {os.getpid()}",
            "options": " ".join([*options, str(url.query.get("options", ""))]).strip(),
            "keepalives_idle": settings.connect_timeout,
            "keepalives_interval": max(settings.connect_timeout // 3, 1),
            "keepalives_count": 3,
            "tcp_user_timeout": silent_s * 1000,
        }
    # MariaDB alone reads /*M! comments, MySQL alone /*!8
    if url.host in _LOOPBACK and not any(name.startswith("ssl") for name in url.query):
        arguments["ssl_disabled"] = True  # PyMySQL reads all certificates for each connection
    command = (
        f"SET SESSION sql_mode = 'TRADITIONAL', innodb_lock_wait_timeout = {settings.lock_timeout}"
        " /*!80000 , transaction_isolation = 'READ-COMMITTED' */"
        " /*M!100300 , tx_isolation = 'READ-COMMITTED'"
        f", max_statement_time = {statement_timeout_s}"
        f", idle_transaction_timeout = {idle_s} */"
    )
    wait_s = statement_timeout_s + _NETWORK_SLACK_S if statement_timeout_s else None
    return arguments | {"init_command": command, "read_timeout": wait_s, "write_timeout": wait_s}


def _refuse_stale(dbapi: Any, record: Any, _proxy: Any) -> None:
    """Let the pool replace a connection that the server has closed, without a query.

    A server sends nothing on an idle connection: readable data is its end.
    """
    if not record.info.setdefault(_USED, False):
        record.info[_USED] = True
        return
    try:
        # PyMySQL has no public name
        descriptor = dbapi.pgconn.socket if hasattr(dbapi, "pgconn") else dbapi._sock.fileno()  # noqa: SLF001
    except Exception as exc:  # of any driver: the socket is closed
        raise sa.exc.DisconnectionError("the server has closed it") from exc
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if poll.poll(0):
        raise sa.exc.DisconnectionError("the server has closed it")
