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
    write_timeout: int = option(30, "seconds that a writer waits for its turn", least=1)
