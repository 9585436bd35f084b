"""What is old enough goes, and nothing that anybody still refers to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery.conf.engine import Engine as Options
from bloomery.db import tables
from bloomery.db.engine import Database
from bloomery.model.stacks import OrderKind, Turn
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.purge import Purge
from bloomery.orchestration.engine_host.store import RowStore
from tests.kit.stacks import trees
from tests.kit.stacks.trees import AT, SEALER, ident

WEB = ident("web")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    trees.accept(database, trees.order(), trees.stack(), templates=(trees.template(),))
    yield database
    database.close()


@pytest.fixture
def store(db: Database) -> RowStore:
    return RowStore(db, SEALER)


@pytest.fixture
def lease(db: Database) -> Lease:
    return StackLock(db, WEB, "engine-1").acquire(trees.nobody)


def write(store: RowStore, lease: Lease, **turn: object) -> None:
    store.load(WEB)
    store.write(WEB, lease, Turn(**turn))


def purge(db: Database, *, days: float, **options: int) -> None:
    """Purge so many days after everything was made."""
    Purge(db, Options(**options), now=lambda: AT + timedelta(days=days)).run()


def count(db: Database, *which: sa.Table) -> list[int]:
    return [len(trees.rows_of(db, table)) for table in which]


def make_old(db: Database) -> None:
    """Give everything the time by which the test counts."""
    for table in (tables.RAW_TEMPLATES, tables.TEMPLATE_FILES, tables.CREDENTIALS):
        db.transact(lambda conn, table=table: conn.execute(sa.update(table).values(created_at=AT)))


def keep_revisions(db: Database, count: int) -> None:
    """Accept updates until there are so many revisions; each but the newest has ended."""
    for number in range(2, count + 1):
        template = trees.template(f"t{number}")
        stack = trees.stack(
            action="UPDATE", status="IN_PROGRESS", template_uuid=template.uuid, traversal=number
        )
        order = dataclasses.replace(trees.order(), kind=OrderKind.UPDATE)
        trees.accept(db, order, stack, templates=(template,))
    newest = tables.STACK_REVISIONS.c.number == count
    db.transact(
        lambda conn: conn.execute(
            sa.update(tables.STACK_REVISIONS).where(~newest).values(ended_at=AT, status="COMPLETE")
        )
    )


@pytest.mark.parametrize(
    ("options", "days", "kept"),
    [
        ({"max_revisions_per_stack": 0}, 99, [1, 2, 3, 4, 5]),
        ({"max_revisions_per_stack": 3}, 0, [3, 4, 5]),
        ({"max_revisions_per_stack": 1}, 0, [5]),
        ({"max_revisions_per_stack": 0, "revision_days": 9}, 8, [1, 2, 3, 4, 5]),
        ({"max_revisions_per_stack": 0, "revision_days": 9}, 10, [5]),
        ({"max_revisions_per_stack": 2, "revision_days": 9}, 8, [4, 5]),
    ],
)
def test_revisions_are_kept_by_number_and_age(
    db: Database, options: dict[str, int], days: float, kept: list[int]
) -> None:
    keep_revisions(db, 5)
    purge(db, days=days, **options)
    assert [row.number for row in trees.rows_of(db, tables.STACK_REVISIONS)] == kept


def test_the_revision_of_the_present_template_and_the_templates_of_revisions_stay(
    db: Database,
) -> None:
    """A rolled back stack has the template of an older revision."""
    keep_revisions(db, 4)
    second = trees.rows_of(db, tables.STACK_REVISIONS)[1]
    back = sa.update(tables.STACKS).values(
        template_uuid=second.template_uuid, previous_template_uuid=None
    )
    db.transact(lambda conn: conn.execute(back))
    make_old(db)
    purge(db, days=30, max_revisions_per_stack=1)
    kept = trees.rows_of(db, tables.STACK_REVISIONS)
    assert [row.number for row in kept] == [2, 4]
    templates = {row.uuid for row in trees.rows_of(db, tables.RAW_TEMPLATES)}
    assert templates == {row.template_uuid for row in kept}


EVERYTHING = (
    tables.STACKS, tables.RESOURCES, tables.RESOURCE_DATA, tables.STACK_EVENTS, tables.STACK_LOCKS,
    tables.STACK_ORDERS, tables.PROPERTIES_DATA, tables.RAW_TEMPLATES,
)  # fmt: skip


def test_of_a_stack_that_was_deleted_long_ago_nothing_is_left(
    db: Database, store: RowStore, lease: Lease
) -> None:
    gone = trees.stack(action="DELETE", status="COMPLETE", deleted_at=AT)
    write(
        store, lease, stacks=[gone], resources=[trees.resource(data={"k": 1})],
        events=[trees.event()], properties=[trees.properties()],
    )  # fmt: skip
    make_old(db)
    purge(db, days=89)
    assert count(db, *EVERYTHING) == [1] * 8
    purge(db, days=91, purge_days=-1)
    assert count(db, *EVERYTHING) == [1] * 8
    purge(db, days=91)
    assert count(db, *EVERYTHING) == [0] * 8


def test_a_stack_that_lives_stays_and_a_deleted_one_below_it_goes(
    db: Database, store: RowStore, lease: Lease
) -> None:
    child = trees.stack(
        "child", root_uuid=WEB, owner_uuid=WEB, depth=1, deleted_at=AT, status="COMPLETE"
    )
    write(
        store, lease, stacks=[child], resources=[trees.resource(properties_uuid=ident("used"))],
        properties=[trees.properties("used"), trees.properties("unused")],
    )  # fmt: skip
    make_old(db)
    purge(db, days=91)
    assert [row.name for row in trees.rows_of(db, tables.STACKS)] == ["web"]
    assert [row.uuid for row in trees.rows_of(db, tables.PROPERTIES_DATA)] == [ident("used")]
    assert count(db, tables.STACK_LOCKS, tables.RAW_TEMPLATES) == [1, 1]


def test_templates_go_when_neither_stack_nor_resource_has_them_and_they_have_settled(
    db: Database, store: RowStore, lease: Lease
) -> None:
    more = [
        trees.template(name, files={"f": name})
        for name in ("previous", "of resource", "unused", "fresh")
    ]
    stack = trees.stack(previous_template_uuid=ident("previous"))
    write(
        store, lease, stacks=[stack], templates=more,
        resources=[trees.resource(template_uuid=ident("of resource"))],
    )  # fmt: skip
    make_old(db)
    later = AT + timedelta(days=2)
    fresh = tables.RAW_TEMPLATES.c.uuid == ident("fresh")
    db.transact(
        lambda conn: conn.execute(
            sa.update(tables.RAW_TEMPLATES).where(fresh).values(created_at=later)
        )
    )
    purge(db, days=2.5)
    left = {row.uuid for row in trees.rows_of(db, tables.RAW_TEMPLATES)}
    assert left == {ident(name) for name in ("template", "previous", "of resource", "fresh")}
    assert count(db, tables.TEMPLATE_FILES) == [3]


def test_the_oldest_events_go_when_a_stack_has_too_many(
    db: Database, store: RowStore, lease: Lease
) -> None:
    events = [trees.event(reason=str(number)) for number in range(12)]
    used, unused = trees.properties("used"), trees.properties("unused")
    events[0] = dataclasses.replace(events[0], properties_uuid=unused.uuid)
    events[11] = dataclasses.replace(events[11], properties_uuid=used.uuid)
    write(store, lease, events=events, properties=[used, unused])
    purge(db, days=0, max_events_per_stack=5, event_purge_batch_size=7)
    assert count(db, tables.STACK_EVENTS) == [12]  # not yet
    purge(db, days=0, max_events_per_stack=5, event_purge_batch_size=6)
    assert [row.reason for row in trees.rows_of(db, tables.STACK_EVENTS)] == [
        "7", "8", "9", "10", "11"
    ]  # fmt: skip
    assert [row.uuid for row in trees.rows_of(db, tables.PROPERTIES_DATA)] == [used.uuid]
    purge(db, days=0, max_events_per_stack=0, event_purge_batch_size=1)
    assert count(db, tables.STACK_EVENTS) == [5]
