"""One tree under its lock: what a turn has changed is written before anything else happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import tables
from bloomery.db.engine import Database
from bloomery.model.stacks import OrderKind, Tree
from bloomery.orchestration.engine_host.locks import StackLock
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.engine_host.tree_work import MOST_FAULTS, TreeRuntime, TreeWork
from tests.fakes.tree import FakeTree
from tests.kit.stacks import trees
from tests.kit.stacks.trees import SEALER, ident

WEB = ident("web")


class Wakes:
    def __init__(self) -> None:
        self.to_check: set[str] = set()
        self.watched: dict[str, set[str]] = {}

    def watch(self, root: str, objects: Iterable[str]) -> bool:
        wanted = set(objects)
        new = wanted - self.watched.get(root, set())
        self.watched[root] = wanted
        self.to_check |= new
        return bool(new)

    def take_objects_to_check(self, root: str) -> set[str]:
        taken, self.to_check = self.to_check, set()
        return taken

    def forget(self, root: str) -> None:
        self.watched.pop(root, None)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    trees.accept(database, trees.order(), trees.stack(), templates=(trees.template(),))
    yield database
    database.close()


class Bench:
    """A tree's work, and what it did."""

    def __init__(self, db: Database, **more: Any) -> None:
        self.db, self.now, self.told, self.waits_on = db, 50.0, 0, ()
        self.made: list[FakeTree] = []
        self.wakes = Wakes()
        runtime = TreeRuntime(
            store=RowStore(db, SEALER), make_tree=self._make, wakes=self.wakes,
            on_events_written=self._tell, clock=lambda: self.now,
        )  # fmt: skip
        lease = StackLock(db, WEB, "engine-1").acquire(trees.nobody)
        self.work = TreeWork(dataclasses.replace(runtime, **more), lease)

    def _make(self, tree: Tree) -> FakeTree:
        self.made.append(FakeTree(tree, waits_on=self.waits_on))
        return self.made[-1]

    def _tell(self) -> None:
        self.told += 1

    def holder(self) -> str | None:
        (row,) = trees.rows_of(self.db, tables.STACK_LOCKS)
        engine: str | None = row.engine_id
        return engine

    def status(self) -> str:
        (row,) = trees.rows_of(self.db, tables.STACKS)
        status: str = row.status
        return status


def test_a_tree_is_turned_to_its_end_and_the_lock_goes_with_the_last_turn(db: Database) -> None:
    bench = Bench(db)
    due_at = bench.work.step(False)
    assert due_at is not None
    assert due_at <= 50.0 + 1e9  # at once, by the tree's own clock
    assert (bench.holder(), bench.status()) == ("engine-1", "IN_PROGRESS")
    assert bench.work.step(False) is None
    assert (bench.holder(), bench.status()) == (None, "COMPLETE")
    assert trees.rows_of(db, tables.STACK_ORDERS) == []
    assert bench.made[0].looks == [None]  # each wait is looked at once after a load


def test_an_order_is_taken_when_the_tree_is_woken(db: Database) -> None:
    bench = Bench(db)
    bench.work.step(False)
    trees.accept(db, trees.order(OrderKind.CHECK))
    bench.work.step(True)
    assert [len(turn.orders) for turn in bench.made[0].turns] == [1, 1]
    assert bench.work.step(False) is None


def test_an_order_in_the_moment_of_the_end_keeps_the_lock(db: Database) -> None:
    bench = Bench(db)
    bench.work.step(False)
    trees.accept(db, trees.order(OrderKind.CHECK))  # and nobody has woken the tree yet
    assert bench.work.step(False) == 0.0
    assert bench.holder() == "engine-1"
    assert bench.work.step(False) is not None
    assert bench.work.step(False) is None
    assert trees.rows_of(db, tables.STACK_ORDERS) == []


def test_orders_are_looked_for_now_and_then_whoever_forgot_to_tell(db: Database) -> None:
    bench = Bench(db, poll_s=30.0)
    bench.waits_on = ("node-1",)
    for _ in range(3):
        due_at = bench.work.step(False)
    assert due_at == 80.0
    trees.accept(db, trees.order(OrderKind.CHECK))
    bench.now = 80.0
    bench.work.step(False)
    assert len(bench.made[0].turns[-1].orders) == 1


def test_a_database_that_is_busy_gets_the_same_turn_again_and_no_handler_runs(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(db)
    bench.work.step(False)

    def busy(_db: Database, _work: Any) -> None:
        raise errors.DatabaseBusy(reason="the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transact", busy)
        for _ in range(3):
            assert bench.work.step(True) == 50.5
    assert len(bench.made[0].turns) == 2
    assert bench.status() == "IN_PROGRESS"
    assert bench.work.step(False) is None
    assert (len(bench.made[0].turns), bench.status()) == (2, "COMPLETE")


def test_a_database_that_is_busy_for_long_is_told_of_once_and_when_it_answers(
    db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(db)
    bench.work.step(False)

    def busy(_db: Database, _work: Any) -> None:
        raise errors.DatabaseBusy(reason="the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transact", busy)
        for _ in range(20):
            bench.work.step(True)
    bench.work.step(False)
    refused, answered = [record.getMessage() for record in caplog.records]
    assert "waits for the database" in refused
    assert "the disk is full" in refused
    assert "the database answers" in answered


def test_a_stolen_tree_is_dropped_without_another_call(db: Database) -> None:
    bench = Bench(db)
    bench.work.step(False)
    StackLock(db, WEB, "engine-2").acquire(trees.nobody)
    assert bench.work.step(False) is None
    assert (bench.holder(), bench.status()) == ("engine-2", "IN_PROGRESS")


def test_a_turn_that_fails_drops_the_tree_and_the_next_one_begins_from_rows(db: Database) -> None:
    bench = Bench(db)
    bench.work.step(False)
    bench.made[0].fault = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        bench.work.step(False)
    while bench.work.step(False) is not None:
        pass
    assert (len(bench.made), bench.status(), bench.holder()) == (2, "COMPLETE", None)


def test_an_engine_that_may_be_taken_for_dead_does_not_act(db: Database) -> None:
    alive = False
    bench = Bench(db, may_act=lambda: alive)
    assert bench.work.step(False) == 50.5
    assert bench.made == []
    alive = True
    bench.work.step(False)
    assert len(bench.made) == 1


def test_a_new_wait_is_looked_at_once_more_and_then_waited_for(db: Database) -> None:
    bench = Bench(db)
    bench.waits_on = ("node-1",)
    assert bench.work.step(False) == 0.0
    bench.work.step(False)
    assert bench.made[0].looks == [None, "node-1"]
    assert bench.work.step(False) == bench.now + 30  # nothing but the net below wake-ups
    bench.wakes.to_check.add("node-1")
    bench.made[0].missing.clear()
    assert bench.work.step(True) is None
    assert bench.made[0].looks == [None, "node-1", "node-1"]


def test_a_turn_whose_commit_is_in_doubt_is_written_again_and_no_other_in_its_place(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(db)
    transact = db.transact

    def answer_lost(work: Any) -> None:
        transact(work)
        monkeypatch.undo()
        raise sa.exc.OperationalError("COMMIT", {}, OSError("the server closed the connection"))

    monkeypatch.setattr(db, "transact", answer_lost)
    with pytest.raises(sa.exc.OperationalError):
        bench.work.step(False)
    assert (bench.holder(), bench.status()) == ("engine-1", "IN_PROGRESS")
    while bench.work.step(False) is not None:
        pass
    assert (bench.holder(), bench.status()) == (None, "COMPLETE")
    assert len(bench.made) == 1  # never loaded anew
    assert [len(turn.orders) for turn in bench.made[0].turns] == [1, 0]


def broken(tree: Tree) -> FakeTree:
    raise ValueError("a secret of the template")


def test_a_tree_that_fails_again_and_again_is_given_up_and_says_why(db: Database) -> None:
    bench = Bench(db, make_tree=broken)
    for _ in range(MOST_FAULTS - 1):
        with pytest.raises(ValueError, match="secret"):
            bench.work.step(False)
        assert bench.status() == "IN_PROGRESS"
    assert bench.work.step(False) is None
    assert (bench.holder(), bench.status(), bench.told) == (None, "FAILED", 1)
    [stack] = trees.rows_of(db, tables.STACKS)
    assert "internal error (ValueError)" in stack.reason
    assert "secret" not in stack.reason
    assert trees.rows_of(db, tables.STACK_ORDERS) == []
    *_, event = trees.rows_of(db, tables.STACK_EVENTS)
    assert (event.name, event.status, event.reason) == (stack.name, "FAILED", stack.reason[:255])


def test_faults_that_pass_are_forgotten(db: Database) -> None:
    bench = Bench(db)
    made = bench._make
    faults = iter([True] * (MOST_FAULTS - 1) + [False] * 9)
    runtime = dataclasses.replace(
        bench.work._runtime, make_tree=lambda tree: broken(tree) if next(faults) else made(tree)
    )
    bench.work._runtime = runtime
    for _ in range(MOST_FAULTS - 1):
        with pytest.raises(ValueError, match="secret"):
            bench.work.step(False)
    while bench.work.step(False) is not None:
        pass
    assert bench.status() == "COMPLETE"
