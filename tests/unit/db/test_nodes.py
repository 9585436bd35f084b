from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import engine, nodes
from bloomery.db.tables import NODES
from bloomery.model import node as model

ANY = str(uuid.uuid4())


def test_a_node_comes_back_as_it_was_stored(db: engine.Database, add_node):
    said: dict[str, Any] = {
        "uuid": ANY,
        "name": "web-1",
        "driver_info": {"address": "https://[::1]", "nested": [1, {"ü": None}]},
        "automated_clean": False,
        "retired": True,
        "provision_state": "available",
        "provision_updated_at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    }
    db.transact(lambda conn: add_node(conn, **said))
    with db.read() as conn:
        node = nodes.get(conn, ANY)
    assert {name: getattr(node, name) for name in said} == said
    assert node.secure_boot is None


def test_a_node_that_is_not_there_is_named(db: engine.Database):
    with db.read() as conn, pytest.raises(errors.NodeNotFound, match="nobody"):
        nodes.get(conn, "nobody")


@pytest.mark.parametrize(
    ("clash", "named"),
    [
        ({"uuid": ANY}, errors.NodeAlreadyExists),
        ({"name": "web-1"}, errors.DuplicateName),
        ({"instance_uuid": ANY}, errors.InstanceAssociated),
    ],
)
def test_what_must_be_unique_is_named(db: engine.Database, add_node, clash, named):
    db.transact(lambda conn: add_node(conn, uuid=ANY, name="web-1", instance_uuid=ANY))
    with pytest.raises(named) as on_insert:
        db.transact(lambda conn: add_node(conn, **clash))
    assert next(iter(clash.values())) in str(on_insert.value)
    other = db.transact(add_node)
    with pytest.raises(named):
        db.transact(lambda conn: nodes.update(conn, other, clash))


def test_a_chassis_that_is_not_there_is_named(db: engine.Database, add_node):
    with pytest.raises(errors.ChassisNotFound, match=ANY):
        db.transact(lambda conn: add_node(conn, chassis_uuid=ANY))
    node = db.transact(add_node)
    with pytest.raises(errors.ChassisNotFound, match=ANY):
        db.transact(lambda conn: nodes.update(conn, node, {"chassis_uuid": ANY}))


def test_a_constraint_without_a_name_of_its_own_stays_what_it_is(db: engine.Database, add_node):
    node = db.transact(add_node)
    with pytest.raises(sa.exc.IntegrityError) as caught:
        db.transact(lambda conn: nodes.update(conn, node, {"driver": None}))
    assert caught.value.__cause__ is not caught.value


def test_traits_come_sorted_with_their_node_and_go_with_it(db: engine.Database, add_node):
    uuid_ = db.transact(add_node)
    db.transact(lambda conn: nodes.add_traits(conn, uuid_, ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"]))
    db.transact(lambda conn: nodes.add_traits(conn, uuid_, ["CUSTOM_A", "CUSTOM_C"]))
    with db.read() as conn:
        assert nodes.get(conn, uuid_).traits == ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
    db.transact(lambda conn: nodes.delete(conn, uuid_))
    with db.read() as conn:
        assert nodes.traits_of(conn, uuid_) == []


def test_removing_traits_counts_what_was_there(db: engine.Database, add_node):
    uuid_ = db.transact(add_node)
    db.transact(lambda conn: nodes.add_traits(conn, uuid_, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]))
    gone = ["CUSTOM_A", "CUSTOM_X"]
    assert db.transact(lambda conn: nodes.remove_traits(conn, uuid_, gone)) == 1
    assert db.transact(lambda conn: nodes.remove_traits(conn, uuid_, None)) == 2


def test_an_unchanged_default_is_kept_by_an_update_of_another_column(db: engine.Database, add_node):
    uuid_ = db.transact(lambda conn: add_node(conn, extra={"a": 1}))
    db.transact(lambda conn: nodes.update(conn, uuid_, {"description": "new"}))
    with db.read() as conn:
        node = nodes.get(conn, uuid_)
    assert (node.extra, node.description) == ({"a": 1}, "new")
    assert node.updated_at is not None


def test_nodes_in_other_states_are_counted(db: engine.Database, add_node):
    *_, busy = [
        db.transact(lambda conn, state=state: add_node(conn, provision_state=state))
        for state in (State.AVAILABLE, State.AVAILABLE, State.DEPLOYING)
    ]
    with db.read() as conn:
        for uuid_, others in ((busy, 0), ("another", 1)):
            counted = [State.DEPLOYING, State.CLEANING]
            assert nodes.count_others_in_states(conn, uuid_, counted) == others


def uuids(db: engine.Database, **query: Any) -> list[str]:
    with db.read() as conn:
        found = nodes.list_rows(conn, nodes.Query(columns=("uuid",), **query))
    return [row.uuid for row in found]


def test_filters_choose_rows(db: engine.Database, add_node):
    def add(**values: Any) -> str:
        return db.transact(lambda conn: add_node(conn, **values))

    plain = add()
    used = add(instance_uuid=ANY, owner="p1")
    shard = add(shard="s1", description="the good one")
    child = add(parent_node=plain, lessee="p1")
    assert uuids(db, associated=True) == [used]
    assert uuids(db, associated=False) == [plain, shard, child]
    assert uuids(db, sharded=True) == [shard]
    assert uuids(db, project="p1") == [used, child]
    assert uuids(db, description_contains="good") == [shard]
    assert uuids(db, include_children=False) == [plain, used, shard]
    assert uuids(db, equal={"shard": None, "owner": "p1"}) == [used]
    assert uuids(db, among={"shard": ["s1", "s2"]}) == [shard]


def test_an_unknown_marker_is_named(db: engine.Database):
    with pytest.raises(errors.NodeNotFound, match="nobody"):
        uuids(db, marker="nobody", limit=1)


TEXT = st.none() | st.text("abÄ€", max_size=2)
FLAG = st.none() | st.booleans()
START = datetime(2026, 1, 1, tzinfo=UTC)
TIME = st.none() | st.integers(0, 2_000_000).map(lambda us: START + timedelta(microseconds=us))
COLUMNS = {
    "resource_class": TEXT,
    "automated_clean": FLAG,
    "provision_updated_at": TIME,
}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    values=st.lists(st.fixed_dictionaries(COLUMNS), max_size=12),
    key=st.sampled_from([*COLUMNS, "id"]),
    descending=st.booleans(),
    limit=st.integers(1, 5),
)
def test_pages_one_after_the_other_are_the_sorted_list(
    db: engine.Database, add_node, values, key, descending, limit
):
    db.transact(lambda conn: conn.execute(sa.delete(NODES)))
    added = [
        {"id": number, "uuid": db.transact(lambda conn, one=one: add_node(conn, **one))} | one
        for number, one in enumerate(values)
    ]

    def place(node: dict[str, Any]) -> tuple[Any, ...]:
        value = node[key]
        return (value is not None, *(() if value is None else (value,)), node["id"])

    wanted = [node["uuid"] for node in sorted(added, key=place, reverse=descending)]
    paged: list[str] = []
    while True:
        marker = paged[-1] if paged else None
        page = uuids(db, sort_key=key, descending=descending, marker=marker, limit=limit)
        if not page:
            break
        paged += page
    assert paged == wanted


def test_every_sortable_attribute_sorts_and_pages(db: engine.Database, add_node):
    for number in range(3):
        db.transact(lambda conn, number=number: add_node(conn, name=f"n{number}"))
    for field in model.FIELDS.values():
        if field.can_sort:
            whole = uuids(db, sort_key=field.name)
            assert uuids(db, sort_key=field.name, marker=whole[0]) == whole[1:]


def test_nodes_are_found_by_however_many_addresses(db: engine.Database):
    addresses = [f"52:54:00:{n >> 16:02x}:{n >> 8 & 255:02x}:{n & 255:02x}" for n in range(260_000)]
    with db.read() as conn:
        assert nodes.list_with_addresses(conn, addresses) == []


def test_a_row_is_locked_with_the_same_statement_each_time(db: engine.Database, add_node):
    """A new one has its cache key worked out anew: that was a fifth of the calls of a PATCH."""
    statements = []

    def lock(conn: sa.Connection) -> None:
        add_node(conn, uuid=ANY)
        sa.event.listen(conn, "before_execute", lambda _c, what, *_: statements.append(what))
        nodes.get_for_update(conn, ANY)
        nodes.get_for_update(conn, ANY)

    db.transact(lock)
    assert len(statements) == 2
    assert statements[0] is statements[1]


@pytest.mark.parametrize(
    "find",
    [
        lambda conn: nodes.list_unattended(conn, [], [State.DEPLOYING, State.CLEANING]),
        lambda conn: nodes.list_of_interface(
            conn, [], "deploy_interface", "fake", [State.DEPLOYWAIT, State.CLEANWAIT]
        ),
    ],
)
def test_a_look_at_nodes_in_some_states_costs_the_same_however_many_are_in_others(
    db: engine.Database, add_node, find
):
    def steps() -> int:
        """How many instructions of SQLite's the look takes."""
        count = itertools.count()
        with db.read() as conn:
            raw: Any = conn.connection.dbapi_connection
            raw.set_progress_handler(lambda: next(count) < 0, 1)
            find(conn)
            raw.set_progress_handler(None, 1)
        return next(count)

    def add(count: int) -> None:
        for _ in range(count):
            db.transact(lambda conn: add_node(conn, provision_state=State.ACTIVE))

    add(3)
    few = steps()
    add(30)
    assert 0 < steps() == few
