from __future__ import annotations

from datetime import UTC, datetime

from bloomery.model.stacks import Order, OrderKind, Stack, Turn
from bloomery.orchestration.engine import runtime
from bloomery.orchestration.engine.trees import StackTree
from tests.kit.stacks.memory_store import MemoryStore

AT = datetime(2026, 1, 1, tzinfo=UTC)


def stack(uuid="s", **more):
    return Stack(
        uuid=uuid,
        name=uuid,
        project="p",
        root_uuid="s",
        template_uuid="t",
        action="CREATE",
        status="IN_PROGRESS",
        reason="",
        created_at=AT,
        **more,
    )


def test_orders_wait_until_a_turn_has_taken_them_and_their_numbers_grow():
    store = MemoryStore()
    order = Order(root_uuid="s", stack_uuid="s", kind=OrderKind.CREATE)
    first = store.accept(order, stacks=[stack()])
    assert store.load("s").orders == [first]
    store.write("s", Turn(orders=[first.id]))
    second = store.accept(order)
    assert store.list_orders("s", first.id).orders == [second]
    assert [each.uuid for each in store.list_orders("s", 0).stacks] == ["s"]
    assert store.list_orders("s", second.id).orders == []


def test_a_tree_has_no_stacks_that_are_deleted():
    store = MemoryStore()
    store.write("s", Turn(stacks=[stack(), stack("n", deleted_at=AT)]))
    assert [each.uuid for each in store.load("s").stacks] == ["s"]


def test_a_root_that_is_deleted_comes_with_the_orders_that_were_late():
    store = MemoryStore()
    store.accept(
        Order(root_uuid="s", stack_uuid="s", kind=OrderKind.DELETE), stacks=[stack(deleted_at=AT)]
    )
    tree = StackTree.load(store.load("s"), runtime.EngineRuntime())
    turn = tree.turn()
    assert (turn.is_idle, turn.orders, turn.stacks) == (True, [1], [])
