"""[database]: the database and its limits."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    connection: str | None = option(
        None, "SQLAlchemy URL of the database; unset: bloomery.sqlite in the state dir", secret=True
    )
    synchronous: str = option(
        "FULL",
        "SQLite only: FULL survives a power cut, NORMAL only a crash of the process",
        choices=("FULL", "NORMAL"),
    )
    max_retries: int = option(5, "attempts of a transaction after deadlocks", least=1)
    write_timeout: int = option(
        30, "SQLite only: seconds that a writer waits for the write lock", least=1
    )
    max_pool_size: int = option(
        10, "server only: idle connections that a process keeps open", least=1
    )
    max_overflow: int = option(
        10, "server only: connections that a process may open beyond max_pool_size", least=0
    )
    pool_timeout: int = option(
        10, "server only: seconds to wait for a free connection before a request gets 503", least=0
    )
    connect_timeout: int = option(
        10, "server only: seconds to wait for a new connection or a reconnection", least=1
    )
    statement_timeout: int = option(
        60,
        "server only: seconds for one statement, or for an idle transaction; 0: no limit",
        least=0,
    )
    lock_timeout: int = option(
        10, "server only: seconds to wait for a row that another transaction has locked", least=1
    )
