"""A tree is woken by what happens to the objects it waits for, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db import events, stack_orders
from bloomery.db.engine import Database, Meter
from bloomery.model.stacks import Order, OrderKind
from bloomery.orchestration.engine_host.wakes import EventTail
from bloomery.secrets import Sealer
from tests.kit.servers.site import KEY
from tests.kit.stacks import trees
from tests.kit.waiting import wait_for


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    yield database
    database.close()


def happen(db: Database, uuid: str, kind: str = "node", status: str = "end") -> None:
    row = events.encode(
        events.Event(object=kind, object_uuid=uuid, action="provision_set", status=status)
    )
    db.transact(lambda conn: events.insert(conn, [row]))


class Woken:
    def __init__(self, db: Database, *, alone: bool = True, **more: Any) -> None:
        self.roots: list[str] = []
        self.stacks = 0
        self.tail = EventTail(
            db, on_events=self.roots.append, on_stacks=self._stack, alone=alone, **more
        )

    def _stack(self) -> None:
        self.stacks += 1


@pytest.fixture
def woken(db: Database) -> Iterator[Woken]:
    made = Woken(db)
    made.tail.begin()
    yield made
    made.tail.stop()


def test_an_event_wakes_the_trees_that_wait_for_its_object(db: Database, woken: Woken) -> None:
    happen(db, "n1")  # before anybody waits
    assert woken.tail.watch("a", ["n1", "n2"])
    assert woken.tail.watch("b", ["n1"])
    assert woken.tail.take_objects_to_check("a") == {
        "n1",
        "n2",
    }  # new waits are looked at once more
    assert woken.tail.take_objects_to_check("b") == {"n1"}
    happen(db, "n1")
    happen(db, "n3")
    woken.tail.wake()
    wait_for(lambda: len(woken.roots) == 2, "both trees")
    assert sorted(woken.roots) == ["a", "b"]
    assert woken.tail.take_objects_to_check("a") == {"n1"}
    assert woken.tail.take_objects_to_check("a") == set()


def test_resources_of_a_stack_do_not_wake_those_that_wait_for_it(db: Database) -> None:
    woken = Woken(db)
    woken.tail.watch("a", ["s1"])
    happen(db, "s1", kind="resource")
    woken.tail.read()
    assert woken.roots == []
    happen(db, "s1", kind="stack")
    woken.tail.read()
    assert woken.roots == ["a"]


def test_what_comes_close_upon_another_is_read_with_it(db: Database) -> None:
    """The first one is read at once."""
    woken = Woken(db, gather_s=60.0)
    woken.tail.watch("a", ["n1"])
    woken.tail.begin()
    happen(db, "n1")
    woken.tail.wake()
    wait_for(lambda: woken.roots, "the first")
    meter = Meter(db)
    for _ in range(20):
        happen(db, "n1")
        woken.tail.wake()
    woken.tail.stop()
    assert not [text for text in meter.statements if text.startswith("SELECT")]
    woken.tail.read()
    assert woken.roots == ["a", "a"]


def test_what_happened_between_the_look_and_the_watch_is_looked_at(db: Database) -> None:
    woken = Woken(db)  # its thread does not run: nothing but the watch can tell
    happen(db, "n1")
    woken.tail.wake()
    assert woken.tail.watch("a", ["n1"])
    assert woken.tail.take_objects_to_check("a") == {"n1"}
    happen(db, "n1")
    woken.tail.read()
    assert woken.roots == ["a"]


def test_a_wait_that_is_over_wakes_nobody(db: Database) -> None:
    woken = Woken(db)
    woken.tail.watch("a", ["n1", "n2"])
    assert not woken.tail.watch("a", ["n2"])
    woken.tail.watch("b", ["n2"])
    woken.tail.forget("b")
    happen(db, "n1")
    woken.tail.read()
    assert woken.roots == []
    happen(db, "n2")
    woken.tail.read()
    assert woken.roots == ["a"]


def test_nothing_is_read_where_nobody_waits(db: Database) -> None:
    woken = Woken(db)
    meter = Meter(db)
    woken.tail.wake()
    woken.tail.watch("a", [])
    woken.tail.wake()
    assert meter.statements == []


def test_the_end_of_what_a_node_did_wakes_queues(db: Database, woken: Woken) -> None:
    """Another may begin then; what begins, and what happens to a stack, makes room for nobody."""
    woken.tail.watch("a", ["queue:deployed:"])
    happen(db, "s1", kind="stack")
    happen(db, "n1", status="start")
    woken.tail.wake()
    happen(db, "n2", status="error")
    woken.tail.wake()
    wait_for(lambda: woken.roots, "the wake")
    assert woken.tail.take_objects_to_check("a") == {"queue:deployed:"}


def test_another_process_is_heard_without_being_called(db: Database) -> None:
    woken = Woken(db, alone=False)
    woken.tail.begin()
    try:
        woken.tail.watch("a", ["n1"])
        happen(db, "n1")
        happen(db, "s1", kind="stack")
        wait_for(lambda: woken.roots and woken.stacks, "the poll")
    finally:
        woken.tail.stop()
    assert woken.roots == ["a"]


def test_an_order_without_an_event_is_heard_once(db: Database) -> None:
    """So it is with a signal: without a look at the orders it waited for the sweep."""
    woken = Woken(db, alone=False)
    woken.tail.read()
    order = Order(root_uuid="root", stack_uuid="root", kind=OrderKind.SIGNAL)
    db.transact(lambda conn: stack_orders.insert(conn, Sealer(KEY), order))
    assert woken.stacks == 0
    woken.tail.read()
    woken.tail.read()
    assert woken.stacks == 1
