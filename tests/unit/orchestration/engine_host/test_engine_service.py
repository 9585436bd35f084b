"""The engine of a process: what is ordered is worked on, also by the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.engine import Engine as Options
from bloomery.db import engines, tables
from bloomery.db.engine import Database
from bloomery.model.stacks import OrderKind, Tree
from bloomery.orchestration.engine_host.engine_service import EngineService
from bloomery.orchestration.engine_host.locks import StackLock
from tests.fakes.tree import FakeTree
from tests.kit.stacks import trees
from tests.kit.stacks.trees import SEALER, ident
from tests.kit.waiting import wait_for

Make = Callable[..., "Engine"]
WEB = ident("web")


class Engine:
    """An engine whose trees are fakes."""

    def __init__(self, db: Database, **options: Any) -> None:
        self.db, self.trees, self.held = db, list[FakeTree](), False
        conf = Conf(default=Default(host="host-a"), engine=Options(**options))
        self.service = EngineService(conf, db, SEALER, _no_runtime, make_tree=self._make)

    def _make(self, tree: Tree) -> FakeTree:
        made = FakeTree(tree)
        if self.held:
            made.go_on.clear()
        self.trees.append(made)
        return made

    def statuses(self) -> list[str]:
        return [row.status for row in trees.rows_of(self.db, tables.STACKS)]

    def wait_for_rest(self) -> None:
        def is_idle() -> bool:
            if trees.rows_of(self.db, tables.STACK_ORDERS):
                return False  # looked at first: whoever takes an order has the lock by then
            return not any(lock.engine_id for lock in trees.rows_of(self.db, tables.STACK_LOCKS))

        wait_for(is_idle, "all trees to rest")


def _no_runtime() -> Any:
    raise AssertionError("fakes need no runtime")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    yield database
    database.close()


@pytest.fixture
def make(db: Database) -> Iterator[Make]:
    made: list[Engine] = []

    def make(**options: Any) -> Engine:
        made.append(Engine(db, **options))
        return made[-1]

    yield make
    for engine in made:
        for tree in engine.trees:
            tree.go_on.set()
        engine.service.stop(grace_s=10)


def order(db: Database, name: str = "web") -> str:
    root = ident(name)
    new = trees.order(root_uuid=root, stack_uuid=root)
    trees.accept(db, new, trees.stack(name), templates=(trees.template(),))
    return root


def test_what_is_ordered_is_worked_on_and_the_lock_is_free_afterwards(
    db: Database, make: Make
) -> None:
    engine = make()
    engine.service.start()
    engine.service.wake(order(db))
    engine.wait_for_rest()
    assert engine.statuses() == ["COMPLETE"]
    wait_for(lambda: WEB not in engine.service.groups, "the tree to be dropped")


def test_many_trees_are_worked_on_by_few_workers(db: Database, make: Make) -> None:
    engine = make(num_engine_workers=2)
    engine.service.start()
    for number in range(20):
        engine.service.wake(order(db, f"stack-{number}"))
    engine.wait_for_rest()
    assert engine.statuses() == ["COMPLETE"] * 20
    assert len(engine.trees) == 20


def test_an_order_for_a_tree_that_is_here_goes_to_that_tree(db: Database, make: Make) -> None:
    engine = make()
    engine.held = True
    engine.service.start()
    engine.service.wake(order(db))
    wait_for(lambda: engine.trees and engine.trees[0].inside.is_set(), "the turn")
    trees.accept(db, trees.order(OrderKind.CHECK))
    engine.service.wake(WEB)
    engine.trees[0].go_on.set()
    engine.wait_for_rest()
    assert len(engine.trees) == 1


def test_what_a_former_life_left_is_taken_up_at_the_start(db: Database, make: Make) -> None:
    order(db)  # accepted, and nobody was told
    other = order(db, "other")
    db.transact(_register_dead)
    StackLock(db, other, "dead").acquire(trees.nobody)
    engine = make()
    engine.service.start()
    engine.wait_for_rest()
    assert engine.statuses() == ["COMPLETE", "COMPLETE"]


def _register_dead(conn: Any) -> None:
    engines.register(
        conn, engine_id="dead", host="h", hostname="h", binary="b", topic="t", report_interval=1
    )


def test_a_stop_lets_the_turn_end_and_the_next_engine_goes_on(db: Database, make: Make) -> None:
    first = make()
    first.held = True
    first.service.start()
    first.service.wake(order(db))
    wait_for(lambda: first.trees and first.trees[0].inside.is_set(), "the turn")
    first.service.begin_stop()
    first.trees[0].go_on.set()
    first.service.stop(grace_s=10)
    assert len(first.trees[0].turns) == 1  # the turn that ran, and no other
    assert first.statuses() == ["IN_PROGRESS"]

    second = make()
    second.service.start()
    second.wait_for_rest()
    assert second.statuses() == ["COMPLETE"]


def test_a_turn_that_does_not_end_in_time_is_left_behind(db: Database, make: Make) -> None:
    first = make()
    first.held = True
    first.service.start()
    first.service.wake(order(db))
    wait_for(lambda: first.trees and first.trees[0].inside.is_set(), "the turn")
    first.service.stop(grace_s=0)

    second = make()
    second.service.start()
    second.wait_for_rest()
    first.trees[0].go_on.set()  # and it comes back: the fence stops it
    wait_for(lambda: not first.service.groups.busy, "the late turn to end")
    assert second.statuses() == ["COMPLETE"]


def test_a_tree_that_is_gone_is_nobodys(make: Make) -> None:
    engine = make()
    engine.service.start()
    engine.service.wake(ident("gone"))
    wait_for(lambda: ident("gone") not in engine.service.groups, "it to be left alone")
    assert engine.trees == []


def test_an_engine_that_was_taken_for_dead_begins_anew_from_rows(db: Database, make: Make) -> None:
    engine = make()
    engine.held = True
    engine.service.start()
    engine.service.wake(order(db))
    wait_for(lambda: engine.trees and engine.trees[0].inside.is_set(), "the turn")
    engine.held = False
    old_id = engine.service.liveness.engine_id
    db.transact(lambda conn: engines.unregister(conn, old_id))
    StackLock(db, WEB, "engine-2").acquire(trees.nobody)  # which dies, too
    engine.service.liveness.beat()
    engine.trees[0].go_on.set()
    engine.wait_for_rest()
    wait_for(lambda: engine.trees[0].turns, "the end of the first turn, which is void")
    assert [len(tree.turns) for tree in engine.trees] == [1, 2]
    assert engine.statuses() == ["COMPLETE"]
    assert "sweep" in engine.service.groups
