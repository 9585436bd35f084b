from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_numbers, events, purge, rows, stack_locks, stack_orders, tables
from bloomery.db.engine import Database
from bloomery.model.stacks import Action, Order, OrderKind, ResourceAction, Snapshot, Turn
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.store import RowStore
from tests.kit.stacks import trees
from tests.kit.stacks.trees import SEALER, ident

WEB = ident("web")
BIG = 2**80 + 1
AGES = timedelta(days=365)


@pytest.fixture
def store(db: Database) -> RowStore:
    return RowStore(db, SEALER, publisher="engine.host")


@pytest.fixture
def order_id(db: Database) -> int:
    """The tree ``web``, accepted and not yet taken."""
    stack = trees.stack(tags=("b", "a"))
    return trees.accept(db, trees.order(), stack, templates=(trees.template(),))


@pytest.fixture
def lease(db: Database, order_id: int) -> Lease:
    assert order_id
    return StackLock(db, WEB, "engine-1").acquire(trees.everybody)


def holder(db: Database) -> str | None:
    (row,) = trees.rows_of(db, tables.STACK_LOCKS)
    engine_id: str | None = row.engine_id
    return engine_id


def test_what_a_turn_writes_is_what_the_next_engine_loads(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    tree = store.load(WEB)
    assert [order.id for order in tree.orders] == [order_id]
    root = dataclasses.replace(
        tree.stacks[0], graph={"vertices": [["a", 1]]}, open=True, deadline_at=trees.AT
    )
    child = trees.stack(
        "child", root_uuid=WEB, owner_uuid=WEB, owner_resource="group", depth=1,
        template_uuid=ident("below"),
    )  # fmt: skip
    below = trees.template(
        "below", files={"a.yaml": "x: é"}, environment={"parameters": {"n": BIG}}
    )
    server = trees.resource(
        state_before="INIT_COMPLETE", physical_id="p-1", replaces_uuid=ident("old"), traversal=2,
        properties_uuid=ident("properties"),
        policy={"deletion": "retain"}, metadata={"m": [BIG]},
        metadata_version=3, requires=("net", "port"),
        pending_action=ResourceAction(action=Action.UPDATE, traversal=2, token=[1, None],
                arguments={"before": ident("before")}),

        attempt=2, due_at=trees.AT, waits_for=f"stack/{ident('child')}", updated_at=trees.AT,
        data={"a": 1, "secret": {"b": BIG}}, redacted={"secret"}, is_current=False,
    )  # fmt: skip
    values = trees.properties(data={"value": BIG, "text": "\ud800"})
    before = trees.properties("before")
    turn = Turn(
        stacks=[root, child], resources=[server], templates=[below], properties=[values, before],
        orders=[order_id],
    )  # fmt: skip
    assert not store.write(WEB, lease, turn).released

    loaded = RowStore(db, SEALER).load(WEB)
    assert list(loaded.stacks) == [root, child]
    assert list(loaded.resources) == [server]
    assert loaded.templates == {ident("template"): trees.template(), ident("below"): below}
    assert loaded.properties == {values.uuid: values, before.uuid: before}
    assert not loaded.orders


def test_a_turn_changes_the_resources_it_names_and_no_others(
    db: Database, store: RowStore, lease: Lease
):
    both = [trees.resource(name, data={"k": 1, "l": 2}) for name in ("a", "b")]
    store.write(WEB, lease, Turn(resources=both))
    changed = dataclasses.replace(both[0], status="COMPLETE", data={"k": 3})
    store.write(WEB, lease, Turn(resources=[changed]))
    assert list(store.load(WEB).resources) == [changed, both[1]]
    store.write(WEB, lease, Turn(removed=[both[1].uuid]))
    assert list(store.load(WEB).resources) == [changed]
    assert [row.resource_uuid for row in trees.rows_of(db, tables.RESOURCE_DATA)] == [changed.uuid]


def test_equal_files_are_stored_once(db: Database, store: RowStore, lease: Lease):
    files = {"b": "2", "a": "1"}
    same = [
        trees.template("one", files=files),
        trees.template("two", files=dict(sorted(files.items()))),
    ]
    store.write(WEB, lease, Turn(templates=same))
    assert len(trees.rows_of(db, tables.TEMPLATE_FILES)) == 1
    assert len(trees.rows_of(db, tables.RAW_TEMPLATES)) == 3


def test_files_that_are_used_again_are_as_young_as_new_ones(
    db: Database, store: RowStore, lease: Lease
):
    """So that nobody drops them as old ones to which nothing refers."""
    store.write(WEB, lease, Turn(templates=[trees.template("one", files={"a": "1"})]))
    db.transact(
        lambda conn: conn.execute(sa.update(tables.TEMPLATE_FILES), {"created_at": trees.AT - AGES})
    )
    again = rows.now()
    store.write(WEB, lease, Turn(templates=[trees.template("two", files={"a": "1"})]))
    (files,) = trees.rows_of(db, tables.TEMPLATE_FILES)
    assert files.created_at >= again


def test_properties_before_an_open_act_are_not_purged(db: Database, store: RowStore, lease: Lease):
    properties = [trees.properties(name) for name in ("now", "before", "of nobody")]
    row = trees.resource(
        properties_uuid=properties[0].uuid,
        pending_action=ResourceAction(
            action=Action.UPDATE, traversal=1, arguments={"before": properties[1].uuid}
        ),
    )
    store.write(WEB, lease, Turn(properties=properties, resources=[row]))
    assert db.transact(lambda conn: purge.drop_properties(conn, WEB)) == 1
    assert set(store.load(WEB).properties) == {properties[0].uuid, properties[1].uuid}


def test_a_pending_action_with_its_key_from_before_revision_0011_is_read():
    action = ResourceAction(action=Action.UPDATE, traversal=2, token=["t"], arguments={"key": 1})
    document = action.document()
    document["word"] = document.pop("action")
    assert ResourceAction.of(document) == action


SECRET = "correct-horse-battery"


def test_no_secret_stands_in_a_row(db: Database, store: RowStore, lease: Lease, order_id: int):
    hidden = {"plain_name": SECRET}
    db.transact(
        lambda conn: conn.execute(
            sa.insert(tables.SNAPSHOTS),
            {
                "uuid": ident("snapshot"), "stack_uuid": WEB, "project": "p1", "reason": "",
                "action": "SNAPSHOT", "status": "IN_PROGRESS", "created_at": trees.AT,
            },
        )
    )  # fmt: skip
    turn = Turn(
        templates=[
            trees.template(
                "below", template=hidden, has_secret=True,
                environment={"parameters": hidden, "parameter_defaults": {"x": SECRET}},
            )
        ],
        properties=[trees.properties(data=hidden, has_secret=True)],
        resources=[
            trees.resource(
                data={"k": SECRET}, redacted={"k"}, metadata=hidden,
                pending_action=ResourceAction(
                    action=Action.CREATE, traversal=1, arguments=dict(hidden)
                ),
                template_uuid=ident("below"), properties_uuid=ident("properties"), has_secret=True,
            )
        ],
        snapshots=[
            Snapshot(
                uuid=ident("snapshot"), stack_uuid=WEB, status="COMPLETE", reason="", data=hidden
            )
        ],
        orders=[order_id],
    )  # fmt: skip
    store.write(WEB, lease, turn)
    signal = trees.order(OrderKind.SIGNAL, payload={"details": SECRET})
    trees.accept(db, signal)

    loaded = store.load(WEB)
    assert loaded.templates[ident("below")] == turn.templates[0]
    assert loaded.properties[ident("properties")] == turn.properties[0]
    assert list(loaded.resources) == list(turn.resources)
    assert loaded.orders[0].payload == signal.payload
    assert trees.rows_of(db, tables.SNAPSHOTS)[0].status == "COMPLETE"
    assert SECRET not in everything(db)


def everything(db: Database) -> str:
    """All rows of all tables, as text."""
    return "\n".join(str(trees.rows_of(db, table)) for table in tables.METADATA.sorted_tables)


# ------------------------------------------------------------------------------------------ events


def test_the_api_and_the_relay_are_told_with_the_turn(db: Database, store: RowStore, lease: Lease):
    done = dataclasses.replace(store.load(WEB).stacks[0], status="COMPLETE", reason="r")
    of_resource = trees.event(name="server", physical_id="p-1", reason="é" * 300)
    store.write(WEB, lease, Turn(stacks=[done], events=[of_resource, trees.event(reason="done")]))
    stored = trees.rows_of(db, tables.STACK_EVENTS)
    assert [row.name for row in stored] == ["server", "web"]
    assert stored[0].reason == "é" * 255
    resource, relayed = trees.rows_of(db, tables.EVENTS)
    assert (resource.object, resource.object_uuid) == ("resource", WEB)
    assert (relayed.object, relayed.object_uuid) == ("stack", WEB)
    assert (relayed.action, relayed.status, relayed.level) == ("create", "end", "info")
    assert relayed.publisher == "engine.host"
    if not db.is_sqlite:
        db.transact(event_numbers.assign)
    with db.read() as conn:
        event_types = [each.event_type for each in events.list_after(conn, 0, 9)]
    assert event_types == ["orchestration.resource.create.end", "orchestration.stack.create.end"]


def test_a_failure_is_told_as_an_error(db: Database, store: RowStore, lease: Lease):
    store.write(WEB, lease, Turn(events=[trees.event("FAILED"), trees.event("IN_PROGRESS")]))
    assert [(row.status, row.level) for row in trees.rows_of(db, tables.EVENTS)] == [
        ("error", "error"),
        ("start", "info"),
    ]


def test_sentences_are_cut_and_cleaned_as_all_databases_need_it(
    db: Database, store: RowStore, lease: Lease
):
    bad = "a\0b\ud800c" + "é" * 70_000
    stack = dataclasses.replace(store.load(WEB).stacks[0], reason=bad)
    rows = [trees.resource(reason=bad)]
    store.write(WEB, lease, Turn(stacks=[stack], resources=rows, events=[trees.event(reason=bad)]))
    tree = store.load(WEB)
    for reason in (tree.stacks[0].reason, tree.resources[0].reason):
        assert reason.startswith("a\ufffdb?cé")
        assert len(reason.encode()) <= 65_535
    (stored,) = trees.rows_of(db, tables.STACK_EVENTS)
    assert stored.reason == tree.stacks[0].reason[:255]


# ------------------------------------------------------------------- what is accepted meanwhile


def test_a_stack_that_was_asked_for_something_else_is_not_overwritten(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    mine = store.load(WEB).stacks[0]
    updated = dataclasses.replace(mine, action="UPDATE", traversal=2)
    trees.accept(db, trees.order(OrderKind.UPDATE), updated)
    turn = Turn(
        stacks=[dataclasses.replace(mine, status="COMPLETE")],
        resources=[trees.resource(status="COMPLETE")],
        events=[trees.event(), trees.event(name="server", physical_id="p-1")],
        orders=[order_id],
        is_idle=True,
    )
    written = store.write(WEB, lease, turn)
    assert written.overtaken == {WEB}
    assert not written.released
    tree = store.load(WEB)
    assert list(tree.stacks) == [dataclasses.replace(updated, tags=("b", "a"))]
    assert tree.resources[0].status == "COMPLETE"
    assert [row.name for row in trees.rows_of(db, tables.STACK_EVENTS)] == ["server"]
    assert [row.object for row in trees.rows_of(db, tables.EVENTS)] == ["resource"]


def test_once_its_order_is_taken_a_stack_is_written_again(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    mine = store.load(WEB).stacks[0]
    updated = dataclasses.replace(mine, action="UPDATE", traversal=2)
    update = trees.accept(db, trees.order(OrderKind.UPDATE), updated)
    accepted = store.list_orders(WEB, order_id)
    assert [order.id for order in accepted.orders] == [update]
    assert list(accepted.stacks) == [updated]
    assert list(accepted.templates) == [mine.template_uuid]
    # a turn that was made before the order was taken: the store knows it by its orders
    late = Turn(stacks=[dataclasses.replace(mine, status="COMPLETE")], orders=[order_id])
    assert store.write(WEB, lease, late).overtaken == {WEB}
    done = dataclasses.replace(updated, status="COMPLETE", updated_at=trees.AT)
    written = store.write(WEB, lease, Turn(stacks=[done], orders=[update], is_idle=True))
    assert written.released
    assert not written.overtaken
    assert list(store.load(WEB).stacks) == [done]


def test_a_traversal_of_the_engine_and_one_of_a_client_are_told_apart(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    """Both count from the same number: only who read what last decides."""
    mine = store.load(WEB).stacks[0]
    deleted = dataclasses.replace(mine, action="DELETE", traversal=2)
    trees.accept(db, trees.order(OrderKind.DELETE), deleted)
    rollback = dataclasses.replace(mine, action="ROLLBACK", traversal=2)
    assert store.write(WEB, lease, Turn(stacks=[rollback], orders=[order_id])).overtaken == {WEB}
    assert store.load(WEB).stacks[0].action == "DELETE"


def test_a_new_traversal_of_the_engine_is_written(db: Database, store: RowStore, lease: Lease):
    mine = store.load(WEB).stacks[0]
    for traversal in (2, 3):
        root = dataclasses.replace(mine, action="ROLLBACK", traversal=traversal)
        assert not store.write(WEB, lease, Turn(stacks=[root])).overtaken
        assert store.load(WEB).stacks[0].traversal == traversal


def test_a_lock_is_released_with_the_turn_that_rests(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    done = dataclasses.replace(store.load(WEB).stacks[0], status="COMPLETE")
    written = store.write(WEB, lease, Turn(stacks=[done], orders=[order_id], is_idle=True))
    assert written.released
    assert holder(db) is None


def test_an_order_that_waits_keeps_the_lock(
    db: Database, store: RowStore, lease: Lease, order_id: int
):
    trees.accept(db, trees.order(OrderKind.SIGNAL))
    assert not store.write(WEB, lease, Turn(orders=[order_id], is_idle=True)).released
    assert holder(db) == "engine-1"


def test_no_order_is_left_to_nobody(db: Database, order_id: int):
    """Orders in one thread, turns that rest in another: each order is seen by who has the lock."""
    count = 100

    def accept_all() -> None:
        for _ in range(count):
            trees.accept(db, trees.order(OrderKind.SIGNAL))

    accepting = threading.Thread(target=accept_all)
    accepting.start()
    taken: set[int] = set()
    store = RowStore(db, SEALER)
    while len(taken) < count + 1:
        try:
            lease = StackLock(db, WEB, "engine-1").acquire(trees.everybody)
        except errors.StackLocked:
            pytest.fail("a lock that was released is not free")
        ids = [order.id for order in store.load(WEB).orders]
        while not store.write(WEB, lease, Turn(orders=ids, is_idle=True)).released:
            taken.update(ids)
            ids = [order.id for order in store.list_orders(WEB, max(ids, default=0)).orders]
            assert ids, "the lock was kept for an order that is not there"
        taken.update(ids)
    accepting.join()
    assert len(taken) == count + 1


# ------------------------------------------------------------------------------- fences and faults


def test_who_lost_the_lock_writes_nothing(db: Database, store: RowStore, lease: Lease):
    StackLock(db, WEB, "engine-2").acquire(trees.nobody)
    before = everything(db)
    with pytest.raises(errors.StackLockLost, match="engine-1"):
        store.write(WEB, lease, Turn(resources=[trees.resource()], events=[trees.event()]))
    assert everything(db) == before


def test_a_turn_that_cannot_be_written_leaves_nothing_behind(
    db: Database, store: RowStore, lease: Lease
):
    event = trees.event()
    store.write(WEB, lease, Turn(events=[event]))
    before = everything(db)
    with pytest.raises(sa.exc.IntegrityError):
        store.write(WEB, lease, Turn(resources=[trees.resource()], events=[event]))
    assert everything(db) == before
    store.write(WEB, lease, Turn(resources=[trees.resource()]))
    assert len(store.load(WEB).resources) == 1


@pytest.mark.parametrize("is_idle", [False, True])
def test_a_turn_whose_commit_was_in_doubt_is_written_once(
    db: Database, store: RowStore, lease: Lease, order_id: int, is_idle: bool
):
    done = dataclasses.replace(store.load(WEB).stacks[0], status="COMPLETE")
    turn = Turn(stacks=[done], events=[trees.event()], orders=[order_id], is_idle=is_idle)
    guard = lease.guard
    first = store.write(WEB, lease, turn)
    lease.guard = guard  # the answer to the commit was lost, and the turn is tried again
    second = RowStore(db, SEALER).write(WEB, lease, turn)
    assert first == second
    assert len(trees.rows_of(db, tables.STACK_EVENTS)) == 1


def test_a_tree_that_is_gone_cannot_be_loaded(store: RowStore):
    with pytest.raises(errors.NotFound, match="cannot load stack"):
        store.load(ident("nothing"))


def test_nested_stacks_that_are_deleted_are_not_loaded(db: Database, store: RowStore, lease: Lease):
    child = trees.stack("child", root_uuid=WEB, owner_uuid=WEB, depth=1)
    row = trees.resource("leaf", stack_uuid=child.uuid)
    store.write(WEB, lease, Turn(stacks=[child], resources=[row]))
    assert len(store.load(WEB).resources) == 1
    store.write(WEB, lease, Turn(stacks=[dataclasses.replace(child, deleted_at=trees.AT)]))
    tree = store.load(WEB)
    assert [stack.uuid for stack in tree.stacks] == [WEB]
    assert not tree.resources


def test_the_name_of_a_deleted_root_is_free(db: Database, store: RowStore, lease: Lease):
    gone = dataclasses.replace(store.load(WEB).stacks[0], deleted_at=trees.AT)
    again = trees.stack(uuid=ident("again"), root_uuid=ident("again"))
    create = trees.order(stack_uuid=again.uuid, root_uuid=again.uuid)
    with pytest.raises(sa.exc.IntegrityError, match="live_name"):
        trees.accept(db, create, again)
    store.write(WEB, lease, Turn(stacks=[gone]))
    assert trees.accept(db, create, again)


def test_a_load_sees_one_moment(db: Database, store: RowStore, order_id: int):
    """An order and the state that was accepted with it: both or neither."""
    stop = threading.Event()

    def accept_all() -> None:
        traversal = 1
        while not stop.is_set():
            traversal += 1
            stack = trees.stack(traversal=traversal)
            trees.accept(db, trees.order(OrderKind.UPDATE), stack)

    accepting = threading.Thread(target=accept_all)
    accepting.start()
    try:
        for _ in range(50):
            tree = store.load(WEB)
            assert len(tree.orders) == tree.stacks[0].traversal
    finally:
        stop.set()
        accepting.join()


def test_orders_come_in_the_order_of_acceptance(db: Database, order_id: int):
    later = [trees.accept(db, trees.order(OrderKind.CHECK)) for _ in range(3)]
    assert [order_id, *later] == sorted([order_id, *later])
    with db.read() as conn:
        rows = stack_orders.list_rows(conn, WEB, order_id)
        assert stack_orders.list_roots(conn) == [WEB]
    assert [row.id for row in rows] == later
    decoded: Order = stack_orders.from_row(rows[0], SEALER)
    assert decoded == trees.order(OrderKind.CHECK, id=later[0])


def test_who_may_want_an_engine(db: Database, order_id: int):
    def orphans(*live: str) -> list[str]:
        with db.read() as conn:
            return stack_locks.list_orphans(conn, live)

    assert orphans("engine-1") == [WEB]  # an order, and nobody at work
    lease = StackLock(db, WEB, "engine-1").acquire(trees.nobody)
    assert orphans("engine-1") == []
    assert orphans() == orphans("engine-2") == [WEB]
    RowStore(db, SEALER).write(WEB, lease, Turn(orders=[order_id], is_idle=True))
    assert orphans() == []
