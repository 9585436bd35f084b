"""[database]: where the rows live."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    connection: str | None = option(
        None,
        "SQLAlchemy URL; unset: bloomery.sqlite in the state dir",
        secret=True,
    )
    synchronous: str = option(
        "FULL",
        "SQLite: FULL survives a power cut, NORMAL only a crash of the process",
        choices=("FULL", "NORMAL"),
    )
    max_retries: int = option(5, "tries of a transaction that met a deadlock", least=1)
    write_timeout: int = option(30, "SQLite: seconds that a writer waits for its turn", least=1)
    max_pool_size: int = option(
        10, "server: connections that a process keeps open between uses", least=1
    )
    max_overflow: int = option(
        10, "server: connections that a process opens beyond max_pool_size, while in use", least=0
    )
    pool_timeout: int = option(
        10, "server: seconds to wait for a free connection, until a caller gets 503", least=0
    )
    connect_timeout: int = option(
        10, "server: seconds to wait for a new connection, and to reach a server again", least=1
    )
    statement_timeout: int = option(
        60, "server: seconds that one statement may take, or a transaction be idle; 0: any", least=0
    )
    lock_timeout: int = option(
        10, "server: seconds to wait for a row that another transaction has locked", least=1
    )
