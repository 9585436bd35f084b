from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from bloomery import errors
from bloomery.db import engine, locks, nodes
from bloomery.model.node import Node


def reserve(db: engine.Database, uuid: str, holder: str = "host-a") -> Node:
    return db.transact(lambda conn: locks.reserve(conn, uuid, holder=holder, purpose="deploying"))


def guard_of(node: Node) -> locks.Guard:
    return locks.Guard(
        node_uuid=node.uuid,
        holder=node.reservation or "",
        generation=node.lock_generation,
    )


def get(db: engine.Database, uuid: str) -> Node:
    with db.read() as conn:
        return nodes.get(conn, uuid)


@pytest.fixture
def node(db: engine.Database, add_node) -> str:
    return db.transact(lambda conn: add_node(conn, name="web-1"))


def test_a_reservation_names_holder_purpose_and_time_and_raises_the_generation(
    db: engine.Database, node: str
):
    before = get(db, node)
    held = reserve(db, node)
    assert (held.reservation, held.reserved_for) == ("host-a", "deploying")
    assert held.reserved_at is not None
    assert held.lock_generation == before.lock_generation + 1
    assert get(db, node) == held


def test_a_second_holder_is_told_who_holds_and_what_for(db: engine.Database, node: str):
    held = reserve(db, node)
    with pytest.raises(errors.NodeLocked, match=r"locked by host host-a \(deploying\)"):
        reserve(db, node, "host-b")
    assert get(db, node) == held


def test_the_same_holder_cannot_take_a_node_twice(db: engine.Database, node: str):
    reserve(db, node)
    with pytest.raises(errors.NodeLocked):
        reserve(db, node)


def test_a_node_that_is_not_there_cannot_be_reserved(db: engine.Database):
    with pytest.raises(errors.NodeNotFound):
        reserve(db, "nobody")


def test_a_long_purpose_is_cut_to_its_column(db: engine.Database, node: str):
    held = db.transact(lambda conn: locks.reserve(conn, node, holder="h", purpose="p" * 999))
    assert held.reserved_for == "p" * 255


def test_one_of_many_who_reserve_at_once_wins(db: engine.Database, node: str):
    def attempt(number: int) -> bool:
        try:
            reserve(db, node, f"host-{number}")
        except errors.NodeLocked:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, range(64))) == 1


def test_a_released_node_is_free_and_can_be_taken_again(db: engine.Database, node: str):
    first = reserve(db, node)
    assert db.transact(lambda conn: locks.release(conn, guard_of(first)))
    free = get(db, node)
    assert (free.reservation, free.reserved_for, free.reserved_at) == (None, None, None)
    assert reserve(db, node, "host-b").lock_generation == first.lock_generation + 1


def test_a_lock_is_released_once(db: engine.Database, node: str):
    guard = guard_of(reserve(db, node))
    assert db.transact(lambda conn: locks.release(conn, guard))
    assert not db.transact(lambda conn: locks.release(conn, guard))


def test_the_holder_passes_the_guard_and_writes(db: engine.Database, node: str):
    guard = guard_of(reserve(db, node))
    db.transact(lambda conn: locks.check(conn, guard))
    db.transact(lambda conn: locks.update_guarded(conn, guard, {"description": "new"}))
    assert get(db, node).description == "new"


def test_after_all_reservations_are_void_the_old_holder_cannot_write(
    db: engine.Database, node: str
):
    guard = guard_of(reserve(db, node))
    assert db.transact(locks.void_all) == [node]
    with pytest.raises(errors.LockLost, match="the lock of host host-a was taken over"):
        db.transact(lambda conn: locks.check(conn, guard))
    with pytest.raises(errors.LockLost):
        db.transact(lambda conn: locks.update_guarded(conn, guard, {"description": "stale"}))
    assert not db.transact(lambda conn: locks.release(conn, guard))
    assert get(db, node).description is None


def test_the_fence_holds_when_the_same_host_took_the_node_again(db: engine.Database, node: str):
    old = guard_of(reserve(db, node))
    db.transact(locks.void_all)
    new = guard_of(reserve(db, node))
    with pytest.raises(errors.LockLost):
        db.transact(lambda conn: locks.check(conn, old))
    db.transact(lambda conn: locks.check(conn, new))


def test_a_lost_lock_undoes_the_whole_transaction(db: engine.Database, node: str):
    guard = guard_of(reserve(db, node))
    db.transact(locks.void_all)

    def write_then_check(conn) -> None:
        nodes.add_traits(conn, node, ["CUSTOM_X"])
        locks.check(conn, guard)

    with pytest.raises(errors.LockLost):
        db.transact(write_then_check)
    assert get(db, node).traits == ()


def test_only_the_reservations_of_the_dead_host_are_void(db: engine.Database, add_node):
    dead, alive, free = (db.transact(add_node) for _ in range(3))
    reserve(db, dead, "host-dead")
    held = reserve(db, alive, "host-alive")
    untouched = get(db, free)
    assert db.transact(lambda conn: locks.void_all(conn, "host-dead")) == [dead]
    assert get(db, dead).reservation is None
    assert get(db, alive) == held
    assert get(db, free) == untouched


def test_a_guarded_write_names_the_broken_constraint(db: engine.Database, node: str, add_node):
    db.transact(lambda conn: add_node(conn, name="taken"))
    guard = guard_of(reserve(db, node))
    with pytest.raises(errors.DuplicateName, match="taken"):
        db.transact(lambda conn: locks.update_guarded(conn, guard, {"name": "taken"}))
