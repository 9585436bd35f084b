"""What a tree of stacks in rows costs: commits and statements, exactly, however large it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db.engine import Database, Meter
from bloomery.model.stacks import OrderKind, Template, Turn
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.store import RowStore
from tests.kit.stacks import trees
from tests.kit.stacks.row_engines import Clients, Engine

WEB = trees.ident("web")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    trees.accept(database, trees.order(), trees.stack(), templates=(trees.template(),))
    yield database
    database.close()


@pytest.fixture
def meter(db: Database) -> Meter:
    return Meter(db)


@pytest.fixture
def store(db: Database) -> RowStore:
    return RowStore(db, trees.SEALER)


@pytest.fixture
def lease(db: Database) -> Lease:
    return StackLock(db, WEB, "engine-1").acquire(trees.nobody)


def begin(count: int) -> Turn:
    """A turn in which ``count`` resources begin."""
    return Turn(
        resources=[
            trees.resource(f"r{n}", properties_uuid=trees.ident(f"p{n}")) for n in range(count)
        ],
        properties=[trees.properties(f"p{n}") for n in range(count)],
        events=[trees.event("IN_PROGRESS", name=f"r{n}", physical_id=None) for n in range(count)],
    )


@pytest.mark.parametrize("count", [1, 500])
def test_a_turn_in_which_resources_begin_is_six_statements(
    store: RowStore, lease: Lease, meter: Meter, count: int
):
    """The guard, properties, resources, what they had of data, both kinds of events; one commit."""
    turn = begin(count)
    meter.reset()
    store.write(WEB, lease, turn)
    assert (len(meter.statements), meter.commits) == (6, 1)


def test_the_last_turn_is_ten_statements(store: RowStore, lease: Lease, meter: Meter, db: Database):
    """The guard; the stack, looked at and changed; resources and their data; the revision; both
    kinds of events; the order that was taken; the lock.
    """
    tree = store.load(WEB)
    begun = begin(500)
    store.write(WEB, lease, begun)
    last = Turn(
        stacks=[dataclasses.replace(tree.stacks[0], status="COMPLETE")],
        resources=[dataclasses.replace(row, status="COMPLETE") for row in begun.resources],
        events=[trees.event()],
        orders=[tree.orders[0].id],
        is_idle=True,
    )
    meter.reset()
    assert store.write(WEB, lease, last).released
    assert (len(meter.statements), meter.commits) == (10, 1)


@pytest.mark.parametrize("count", [1, 500])
def test_a_load_is_seven_statements(store: RowStore, lease: Lease, meter: Meter, count: int):
    store.write(WEB, lease, begin(count))
    meter.reset()
    assert len(store.load(WEB).resources) == count
    assert (len(meter.statements), meter.commits) == (7, 0)


def test_a_load_of_a_new_stack_is_five_statements(store: RowStore, meter: Meter):
    """A stack without resources has neither data nor properties of any."""
    assert not store.load(WEB).resources
    assert (len(meter.statements), meter.commits) == (5, 0)


def test_a_look_for_orders_is_one_statement(
    db: Database, store: RowStore, meter: Meter, lease: Lease
):
    last = store.load(WEB).orders[-1].id
    meter.reset()
    assert not store.list_orders(WEB, last).orders
    assert len(meter.statements) == 1
    trees.accept(db, trees.order(OrderKind.CHECK))
    meter.reset()
    assert store.list_orders(WEB, last).orders
    assert len(meter.statements) == 4  # the stack, its tags, its template


def test_a_lock_is_taken_with_two_statements(db: Database, meter: Meter):
    meter.reset()
    StackLock(db, WEB, "engine-1").acquire(trees.nobody)
    assert (len(meter.statements), meter.commits) == (2, 1)


# ---------------------------------------------------------------------------- whole lives of stacks


def flat(count: int, salt: str = "") -> dict[str, Any]:
    """Values that know nothing of each other; ``salt`` changes the last one."""
    values = [f"v{number}" for number in range(count)]
    values[-1] += salt
    kind = "OS::Heat::Value"
    return {f"r{n}": {"type": kind, "properties": {"value": v}} for n, v in enumerate(values)}


def chain(count: int) -> dict[str, Any]:
    """Values of which each is made from the one before."""
    resources = flat(count)
    for number in range(1, count):
        before = {"get_attr": [f"r{number - 1}", "value"]}
        resources[f"r{number}"]["properties"]["value"] = before
    return resources


def document(resources: dict[str, Any]) -> Template:
    text = {"heat_template_version": "2021-04-16", "resources": resources}
    return trees.template(str(len(str(resources))), template=text)


def run(clients: Clients) -> Engine:
    engine = Engine(clients.db, clients.runtime())
    engine.run(clients.root)
    assert clients.stack().status == "COMPLETE"
    return engine


def test_a_flat_stack_is_made_in_two_turns(tmp_path: Path):
    clients = Clients(trees.database(tmp_path))
    clients.create(document(flat(500)))
    assert run(clients).commits == 2  # six would be allowed, with those of the request


def test_a_chain_takes_a_turn_for_each_link(tmp_path: Path):
    clients = Clients(trees.database(tmp_path))
    clients.create(document(chain(100)))
    assert run(clients).commits == 101


def test_a_change_of_one_resource_writes_that_one_alone(tmp_path: Path):
    clients = Clients(trees.database(tmp_path))
    clients.create(document(flat(500)))
    run(clients)
    clients.update(document(flat(500, salt="x")))
    engine = run(clients)
    assert engine.commits == 2
    assert [len(turn.resources) for turn in engine.turns] == [1, 1]


def test_a_deletion_is_two_turns(tmp_path: Path):
    clients = Clients(trees.database(tmp_path))
    clients.create(document(flat(500)))
    run(clients)
    clients.delete()
    assert run(clients).commits == 2
