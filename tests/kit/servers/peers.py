"""Other conductors of a database, as their rows show them."""

from __future__ import annotations

from collections.abc import Sequence

from bloomery.conductor.process_identity import ProcessIdentity
from bloomery.db import conductors
from bloomery.db.engine import Database
from bloomery.model.conductor import Conductor

ELSEWHERE = ProcessIdentity(pid=7, machine="elsewhere", boot="another", namespace=1, ticks=1)


def join(
    db: Database, name: str, drivers: Sequence[str] = ("fake-hardware",), group: str = ""
) -> str | None:
    """Put a conductor on line whose process is on another machine; return its incarnation."""
    return db.transact(
        lambda conn: conductors.register(
            conn, hostname=name, group=group, drivers=drivers, interfaces=[],
            process=ELSEWHERE.encoded(),
        )
    )  # fmt: skip


def look(db: Database, name: str) -> Conductor:
    with db.read() as conn:
        return conductors.get(conn, name)


def beat(db: Database, name: str, *, online: bool = True) -> bool:
    incarnation = look(db, name).incarnation
    return db.transact(lambda conn: conductors.beat(conn, name, incarnation, online=online))


def leave(db: Database, name: str) -> bool:
    """Let it sign off in good order."""
    incarnation = look(db, name).incarnation
    return db.transact(lambda conn: conductors.sign_off(conn, name, incarnation))


def fence_out(db: Database, name: str) -> bool:
    """Let a peer declare it dead."""
    seen = look(db, name)
    return db.transact(lambda conn: conductors.fence_out(conn, seen))
