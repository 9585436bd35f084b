"""A relay and all that may happen to it, drawn by lot: nothing is lost or out of order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bloomery.db import event_cursors
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.sink_worker import Pace, SinkWorker

PACE = Pace(batch=3, acknowledge_s=2.0)


class Sink:
    name = "keeper"
    wants_snapshots = False

    def __init__(self, lots: random.Random, got: list[int]) -> None:
        self._lots, self._got = lots, got

    def open(self) -> None:
        return

    def send(self, event: EventRow) -> None:
        fate = self._lots.random()
        if fate < 0.2:
            raise ConnectionError("not taken")
        self._got.append(event.id)
        if fate < 0.3:
            raise ConnectionError("taken, but nobody heard that it was")

    def close(self) -> None:
        return


class World:
    """One life after another of a carrier; the clock is ours."""

    def __init__(self, db: Database, lots: random.Random) -> None:
        self.db, self.lots, self.now = db, lots, 0.0
        self.got: list[int] = []
        self.live()

    def live(self) -> None:
        sink = Sink(self.lots, self.got)
        self.sink_worker = SinkWorker(
            self.db, sink, holder="here:1", pace=PACE, clock=lambda: self.now
        )

    def turn(self) -> None:
        self.now += self.lots.choice([0.0, 1.0, 3.0])
        try:
            self.sink_worker.send_batch()
        except ConnectionError:
            return

    def die(self) -> None:
        self.live()

    def end_well(self) -> None:
        self.sink_worker.finish()
        self.live()


@pytest.mark.sampled
@pytest.mark.parametrize("round_", range(20))
def test_each_event_arrives_and_the_first_arrivals_are_in_order(
    db: Database, happen: Any, seed: int, round_: int
):
    lots = random.Random(seed * 1000 + round_)
    db.transact(lambda conn: event_cursors.add_missing(conn, ["keeper"]))
    world, happened = World(db, lots), []
    for _ in range(60):
        act = lots.choice(["happen", "happen", "turn", "turn", "turn", "die", "end_well"])
        if act == "happen":
            happened.append(happen())
        else:
            getattr(world, act)()
    while not happened or not world.got or world.got[-1] != happened[-1]:
        happened = happened or [happen()]
        world.turn()
    assert list(dict.fromkeys(world.got)) == happened
    steps = zip(world.got, world.got[1:], strict=False)
    assert all(later <= earlier + 1 for earlier, later in steps)  # it goes back, never ahead
