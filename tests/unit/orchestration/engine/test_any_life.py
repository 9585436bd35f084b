"""Lives that are drawn: any order at any moment, engines killed at any write; nothing is left."""

from __future__ import annotations

import random

import pytest

from bloomery.model.stacks import OrderKind
from tests.kit.stacks.tree_world import World
from tests.unit.orchestration.engine.test_kills import FILES, text

MORE = (
    "",
    "  z: {type: Test::Thing}",
    "  z: {type: Test::Thing, depends_on: e}",
    "  y: {type: Test::Thing, properties: {wait_s: 4}}\n  z: {type: Test::Thing, depends_on: y}",
)
ACTIONS = ("update", "update", "update", "cancel", "roll_back", "check", "suspend", "resume")


class Life:
    """One stack through a few orders; ``log``: which."""

    def __init__(self, seed: int, kills: float) -> None:
        self.draw, killer = random.Random(seed), random.Random(seed + 1)
        self.world = World()
        self.world.kill = lambda when, _number: (
            killer.random() < kills and not (when == "after" and self.world.turns[-1].is_idle)
        )
        self.log: list[str] = []

    def template(self) -> str:
        draw = self.draw.choice
        fail = draw(["false", "false", "true"])
        return text(draw("xyz"), draw("123"), fail, draw("0123"), draw(MORE))

    def live(self) -> None:
        self.world.create(self.template(), files=FILES, rollback=self.draw.random() < 0.5)
        for _ in range(self.draw.randint(1, 5)):
            later_s = self.draw.choice([0.5, 1.5, 2.5, 4, 1e6])
            self.world.run(before_s=self.world.clock.now() + later_s)
            self.order()
        self.world.run()

    def order(self) -> None:
        root, order = self.world.root, self.draw.choice(ACTIONS)
        busy = root.status == "IN_PROGRESS"
        if root.action == "SUSPEND":
            order = "resume"  # an API refuses anything else but a deletion
        if order == "update":
            self.world.update(self.template(), files=FILES, rollback=self.draw.random() < 0.5)
        elif order == "cancel" and busy:
            self.world.cancel(rollback=False)
        elif order == "roll_back" and busy and root.action == "UPDATE":
            self.world.cancel(rollback=True)
        elif order in {"check", "suspend", "resume"}:
            self.world.order(OrderKind(order))
        self.log.append(order)

    def check(self) -> None:
        picture, live = self.world.picture(), self.world.store.stacks.values()
        assert (picture["orphans"], picture["open"]) == ([], []), self.log
        ends = {(each.status, each.open) for each in live if each.deleted_at is None}
        assert ends <= {("COMPLETE", False), ("FAILED", False)}, self.log
        if self.world.state in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
            assert picture["missing"] == [], self.log
            assert {status for *_rest, status in picture["rows"]} == {"COMPLETE"}, self.log
            assert all(each.is_current for each in self.world.store.resources.values()), self.log

    def end(self) -> None:
        self.world.delete()
        self.world.run()
        assert self.world.state == "DELETE_COMPLETE", self.log
        assert (self.world.reality.things, self.world.store.resources) == ({}, {}), self.log


@pytest.mark.sampled
@pytest.mark.parametrize("kills", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_asked_whenever_leaves_nothing_behind(seed, kills):
    life = Life(seed, kills)
    life.live()
    life.check()
    life.end()
