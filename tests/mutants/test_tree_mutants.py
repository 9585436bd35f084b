"""Each safeguard of trees in rows is switched off in turn, and a test that exists goes red.

The tests are those of the store and of the lock, called as they are: what is patched is the
statement that makes them true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from bloomery.db import stack_locks, stack_orders, trees
from bloomery.db.engine import Database
from bloomery.db.tables import STACK_LOCKS
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.store import RowStore
from tests.kit.stacks import trees as kit
from tests.unit.orchestration.engine_host import test_locks as of_locks
from tests.unit.orchestration.engine_host import test_store as of_stores

Patch = pytest.MonkeyPatch
_T = STACK_LOCKS.c
_ROOT = _T.root_uuid == sa.bindparam("root")


class Scene:
    """The tree ``web``, accepted, and locked once somebody asks for the lease."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.store = RowStore(db, kit.SEALER)
        self.order_id = kit.accept(
            db, kit.order(), kit.stack(tags=("b", "a")), templates=(kit.template(),)
        )

    def lease(self) -> Lease:
        return StackLock(self.db, of_stores.WEB, "engine-1").acquire(kit.everybody)


# ---------------------------------------------------------------------------- what is switched off


def guard_off(patch: Patch) -> None:
    """Whoever writes a turn need not have the lock."""
    patch.setattr(stack_locks, "advance", lambda *_args: True)


def generation_off(patch: Patch) -> None:
    """The guard compares the name of the engine, and not how often the lock was taken."""
    named = sa.update(STACK_LOCKS).where(_ROOT, _T.engine_id == sa.bindparam("engine"))
    patch.setattr(stack_locks, "_ADVANCE", named.values(transactions=_T.transactions + 1))


def turns_uncounted(patch: Patch) -> None:
    """A turn passes the guard as often as it is tried."""
    counted = (
        sa.update(STACK_LOCKS).where(*stack_locks._HELD).values(transactions=_T.transactions + 1)
    )
    patch.setattr(stack_locks, "_ADVANCE", counted)


def theft_unfenced(patch: Patch) -> None:
    """A lock is stolen from whoever has it by now."""
    taken = sa.update(STACK_LOCKS).where(_ROOT).values(
        engine_id=sa.bindparam("engine"), generation=_T.generation + 1, transactions=0
    )  # fmt: skip
    patch.setattr(stack_locks, "_ACQUIRE", taken)


def traversal_off(patch: Patch) -> None:
    """The row of a stack is written whatever was accepted meanwhile."""
    stored = trees._stored_traversals

    def as_known(conn: sa.Connection, turn: trees.EncodedTurn) -> dict[str, int]:
        known = {row["uuid"]: row["traversal"] for row in turn.stacks} | dict(turn.traversals)
        return {uuid: known[uuid] for uuid in stored(conn, turn)}

    anyway = sa.update(trees.STACKS).where(trees.STACKS.c.uuid == sa.bindparam("ident"))
    columns = {name: sa.bindparam(f"to_{name}") for name in trees._CHANGED}
    patch.setattr(trees, "_stored_traversals", as_known)
    patch.setattr(trees, "_UPDATE_STACK", anyway.values(columns))


def orders_unseen(patch: Patch) -> None:
    """A turn that rests gives the lock away, whatever waits."""
    released = sa.update(STACK_LOCKS).where(*stack_locks._HELD).values(engine_id=None)
    patch.setattr(stack_locks, "_RELEASE", released)


def one_moment_off(patch: Patch) -> None:
    """What belongs together is read with statements that see a commit each."""
    patch.setattr(Database, "snapshot", Database.read)


def seal_off(patch: Patch) -> None:
    """What a hidden value may have reached is stored as it is."""
    patch.setattr(type(kit.SEALER), "seal_text", lambda _self, text: text)
    patch.setattr(type(kit.SEALER), "open_text", lambda _self, text: text)


# ------------------------------------------------------------------------------------- the tests


def who_lost_the_lock(scene: Scene) -> None:
    of_stores.test_who_lost_the_lock_writes_nothing(scene.db, scene.store, scene.lease())


def the_tree_came_back(scene: Scene) -> None:
    scene.db.transact(lambda conn: stack_orders.delete(conn, [scene.order_id]))
    of_locks.test_the_fence_holds_when_the_tree_came_back(scene.db)


def in_doubt(scene: Scene) -> None:
    of_stores.test_a_turn_whose_commit_was_in_doubt_is_written_once(
        scene.db, scene.store, scene.lease(), scene.order_id, is_idle=False
    )


def many_who_steal(scene: Scene) -> None:
    of_locks.test_only_the_generation_that_was_seen_is_stolen(scene.db)


def something_else(scene: Scene) -> None:
    of_stores.test_a_stack_that_was_asked_for_something_else_is_not_overwritten(
        scene.db, scene.store, scene.lease(), scene.order_id
    )


def an_order_that_waits(scene: Scene) -> None:
    of_stores.test_an_order_that_waits_keeps_the_lock(
        scene.db, scene.store, scene.lease(), scene.order_id
    )


def a_load(scene: Scene) -> None:
    of_stores.test_a_load_sees_one_moment(scene.db, scene.store, scene.order_id)


def no_secret(scene: Scene) -> None:
    of_stores.test_no_secret_stands_in_a_row(scene.db, scene.store, scene.lease(), scene.order_id)


class Mutant(NamedTuple):
    switch_off: Callable[[Patch], None]
    test: Callable[[Scene], Any]


MUTANTS = [
    Mutant(guard_off, who_lost_the_lock),
    Mutant(generation_off, the_tree_came_back),
    Mutant(turns_uncounted, in_doubt),
    Mutant(theft_unfenced, many_who_steal),
    Mutant(traversal_off, something_else),
    Mutant(orders_unseen, an_order_that_waits),
    Mutant(one_moment_off, a_load),
    Mutant(seal_off, no_secret),
]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    db = kit.database(tmp_path)
    yield Scene(db)
    db.close()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.switch_off.__name__)
def test_the_test_is_green_while_the_safeguard_is_there(scene: Scene, mutant: Mutant):
    mutant.test(scene)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.switch_off.__name__)
def test_a_safeguard_that_is_off_is_noticed(scene: Scene, mutant: Mutant, monkeypatch: Patch):
    mutant.switch_off(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, sa.exc.IntegrityError)):
        mutant.test(scene)
