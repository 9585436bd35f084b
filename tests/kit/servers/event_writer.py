"""A process that changes nodes and tells of it, as a conductor does: guard, event, commit.

    python -m tests.kit.servers.event_writer URL TURNS SEED

Each turn raises the generation of a random node and inserts its events, each with the generation;
one turn in ten is rolled back.  Prints how many events were committed.
"""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.db.tables import NODES

EVENTS_OF_A_TURN: Final = 4


class TurnedBackError(Exception):
    """The turn shall leave nothing behind."""


def turn(db: Database, node: str, *, fails: bool = False) -> int:
    """Tell of one change of ``node``; return how many events that were."""
    mine = NODES.c.uuid == node

    def write(conn: sa.Connection) -> int:
        guard = sa.update(NODES).where(mine)
        conn.execute(guard.values(lock_generation=NODES.c.lock_generation + 1))
        generation = conn.execute(sa.select(NODES.c.lock_generation).where(mine)).scalar_one()
        rows = [event(node, generation, place) for place in range(EVENTS_OF_A_TURN)]
        events.insert(conn, rows)
        if fails:
            raise TurnedBackError
        return len(rows)

    return db.transact(write)


def event(node: str, generation: int, place: int) -> dict[str, Any]:
    return events.encode(
        events.Event(
            object="node", object_uuid=node, action="update", status="end",
            facts={"generation": generation, "place": place},
        )
    )  # fmt: skip


def main(url: str, turns: int, seed: int) -> None:
    db, lots, count = Database(url), random.Random(seed), 0
    with db.read() as conn:
        nodes = list(conn.execute(sa.select(NODES.c.uuid)).scalars())
    for _ in range(turns):
        with contextlib.suppress(TurnedBackError):
            count += turn(db, lots.choice(nodes), fails=lots.random() < 0.1)
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
