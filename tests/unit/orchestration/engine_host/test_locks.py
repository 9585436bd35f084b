from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from bloomery import errors
from bloomery.db import engines, stack_locks, tables
from bloomery.db.engine import Database
from bloomery.db.stack_locks import Guard
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from tests.kit.stacks import trees
from tests.kit.stacks.trees import ident

WEB = ident("web")


@pytest.fixture(autouse=True)
def tree(db: Database) -> None:
    """A tree that nobody works on."""
    db.transact(lambda conn: stack_locks.add(conn, WEB))


def acquire(db: Database, engine: str, is_live: trees.IsLive = trees.everybody) -> Lease:
    return StackLock(db, WEB, engine).acquire(is_live)


def advance(db: Database, guard: Guard) -> bool:
    return db.transact(lambda conn: stack_locks.advance(conn, guard))


def test_a_free_tree_is_taken_and_the_generation_counts(db: Database):
    lease = acquire(db, "engine-1")
    assert (lease.root_uuid, lease.engine_id, lease.generation) == (WEB, "engine-1", 1)
    assert db.transact(lambda conn: stack_locks.release(conn, lease.guard))
    assert acquire(db, "engine-2").generation == 2


def test_the_tree_of_a_live_engine_is_left_to_it(db: Database):
    acquire(db, "engine-1")
    with pytest.raises(errors.StackLocked, match="engine-1"):
        acquire(db, "engine-2")


def test_an_engine_that_lost_the_answer_to_its_acquisition_takes_the_tree_anew(db: Database):
    lost = acquire(db, "engine-1")
    lease = acquire(db, "engine-1")
    assert lease.generation == lost.generation + 1
    with pytest.raises(errors.StackLockLost):
        advance(db, lost.guard)
    assert advance(db, lease.guard)


def test_the_tree_of_a_dead_engine_is_stolen_and_the_dead_one_is_fenced(db: Database):
    old = acquire(db, "engine-1")
    assert advance(db, old.guard)
    old.advance()
    lease = acquire(db, "engine-2", trees.nobody)
    assert lease.generation == old.generation + 1
    with pytest.raises(errors.StackLockLost):
        advance(db, old.guard)
    assert not db.transact(lambda conn: stack_locks.release(conn, old.guard))
    assert advance(db, lease.guard)


def test_the_fence_holds_when_the_tree_came_back(db: Database):
    """The same engine had it before: its former guard does not pass."""
    old = acquire(db, "engine-1")
    other = acquire(db, "engine-2", trees.nobody)
    db.transact(lambda conn: stack_locks.release(conn, other.guard))
    acquire(db, "engine-1")
    with pytest.raises(errors.StackLockLost):
        advance(db, old.guard)


def test_of_many_who_steal_at_once_one_wins(db: Database):
    acquire(db, "dead")

    def steal(number: int) -> Lease | None:
        try:
            return acquire(db, f"engine-{number}", lambda engine: engine != "dead")
        except errors.StackLocked:
            return None

    with ThreadPoolExecutor(8) as pool:
        leases = [lease for lease in pool.map(steal, range(8)) if lease is not None]
    assert len(leases) == 1
    assert leases[0].generation == 2


def test_only_the_generation_that_was_seen_is_stolen(db: Database):
    """Between the look and the theft the dead one's lock went to somebody who lives."""
    lease = acquire(db, "engine-1")
    taken = acquire(db, "engine-2", trees.nobody)
    with pytest.raises(errors.StackLocked, match="engine-2"):
        db.transact(
            lambda conn: stack_locks.acquire(
                conn, WEB, "engine-3", dead=("engine-1", lease.generation)
            )
        )
    assert advance(db, taken.guard)


def test_a_turn_is_counted_once(db: Database):
    lease = acquire(db, "engine-1")
    assert advance(db, lease.guard)
    assert not advance(db, lease.guard)  # written before
    lease.advance()
    assert advance(db, lease.guard)


def test_a_tree_that_is_gone_cannot_be_locked(db: Database):
    with pytest.raises(errors.NotFound, match="it is gone"):
        StackLock(db, ident("nothing"), "engine-1").acquire(trees.everybody)
    assert not db.transact(lambda conn: stack_locks.hold(conn, ident("nothing")))


# --------------------------------------------------------------------------------------- engines


def register(db: Database, engine_id: str, *, alone: bool = False) -> None:
    db.transact(
        lambda conn: engines.register(
            conn, engine_id=engine_id, host="host", hostname="host.example", report_interval=60,
            binary="bloomery-engine", topic="engine", alone=alone,
        )
    )  # fmt: skip


def live(db: Database) -> dict[str, int]:
    with db.read() as conn:
        return {engine.engine_id: engine.heartbeat for engine in engines.list_live(conn)}


def test_an_engine_beats_until_it_retires(db: Database):
    register(db, "engine-1")
    register(db, "engine-2")
    assert db.transact(lambda conn: engines.beat(conn, "engine-1"))
    assert live(db) == {"engine-1": 1, "engine-2": 0}
    db.transact(lambda conn: engines.unregister(conn, "engine-1"))
    assert live(db) == {"engine-2": 0}
    assert not db.transact(lambda conn: engines.beat(conn, "engine-1"))
    with db.read() as conn:
        assert len(engines.list_all(conn)) == 2


def test_an_engine_that_is_alone_retires_all_others(db: Database):
    register(db, "engine-1")
    register(db, "engine-2", alone=True)
    assert list(live(db)) == ["engine-2"]


def test_retired_engines_are_purged(db: Database):
    register(db, "engine-1")
    register(db, "engine-2", alone=True)
    retired_at = next(
        row.deleted_at for row in trees.rows_of(db, tables.ENGINES) if row.deleted_at is not None
    )
    assert db.transact(lambda conn: engines.purge(conn, before=retired_at)) == 0
    after = retired_at.replace(year=retired_at.year + 1)
    assert db.transact(lambda conn: engines.purge(conn, before=after)) == 1
    assert list(live(db)) == ["engine-2"]
