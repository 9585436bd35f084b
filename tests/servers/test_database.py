"""What SQLite can't show: that schema and queries mean the same on database servers."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bloomery import errors
from bloomery.cmd.service import Service
from bloomery.conductor.states import State
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Database as Settings
from bloomery.conf.default import Default
from bloomery.db import (
    conductors,
    engine,
    event_numbers,
    events,
    history,
    locks,
    nodes,
    rows,
    schema,
    settings,
    tables,
)
from bloomery.model import node as model
from bloomery.model.conductor import EnabledInterface
from bloomery.model.node_facts import HistoryEntry
from bloomery.state_dir import StateDir
from tests.kit.servers import databases

ANY = str(uuid.uuid4())


def test_the_migrated_schema_is_the_declared_one(db: engine.Database):
    def compare_default(*args: Any) -> bool | None:
        """MariaDB says 0 where false was said; None: compare as usual."""
        return False if {args[3], args[5]} == {"0", "false"} else None

    def is_declared(_item: Any, name: str | None, *_: Any) -> bool:
        """Leave out what the database computes: positions on the ring, hosts of BMCs."""
        return not (name or "").endswith(("ring_position", "bmc_host"))

    compared = {
        "compare_type": True, "compare_server_default": compare_default,
        "include_object": is_declared,
    }  # fmt: skip
    with db.read() as conn:
        context = MigrationContext.configure(conn, opts=compared)
        assert compare_metadata(context, tables.METADATA) == []


RAISE = {
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'kein Platz' USING ERRCODE = '{}'; END $$",
    "mysql": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = 'kein Platz'",
}


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ({"postgresql": "53100", "mysql": "1021"}, "the server's disk is full"),
        ({"postgresql": "53100", "mysql": "1114"}, "the server's disk is full"),
        ({"postgresql": "58030", "mysql": "1026"}, "the server's disk is full, or fails"),
        ({"postgresql": "53200", "mysql": "1037"}, "the server is out of memory"),
        ({"postgresql": "53300", "mysql": "1040"}, "the server has no connection left"),
    ],
)
def test_what_a_server_lacks_is_named_whatever_its_language(
    db: engine.Database, codes: dict[str, str], reason: str
):
    backend = db.url.get_backend_name()
    with pytest.raises(errors.DatabaseBusy, match=f"database: {reason}"), db.read() as conn:
        conn.exec_driver_sql(RAISE[backend].format(codes[backend]))


def test_an_empty_database_has_no_schema_and_is_refused(fresh: engine.Database):
    assert schema.revision_of(fresh) is None
    with pytest.raises(errors.SchemaOutdated, match="bloomery db upgrade"):
        schema.require_head(fresh, state_dir=Path("/srv/b"))


def test_a_shared_dialect_knows_its_server_though_its_first_engine_is_idle(
    server: sa.URL, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(databases, "_compiled", {})
    idle, used = engine.Database(server), engine.Database(server)
    with used.read() as conn:
        assert conn.dialect.server_version_info
    for each in (idle, used):
        each.close()


def test_upgrading_twice_is_upgrading_once(db: engine.Database):
    schema.upgrade(db)
    schema.require_head(db, state_dir=Path("/srv/b"))


@pytest.mark.only_on("postgresql")
def test_a_migration_that_fails_leaves_nothing(fresh: engine.Database):
    fresh.alter(lambda conn: conn.exec_driver_sql("CREATE TABLE ports (mine TEXT)"))
    with pytest.raises(errors.CannotStart, match='"ports" already exists'):
        schema.upgrade(fresh)
    with fresh.read() as conn:
        assert sa.inspect(conn).get_table_names() == ["ports"]


def test_a_server_that_does_not_answer_is_named_without_the_password(server: sa.URL):
    closed = engine.Database(server.set(port=1, password="hunter2"))
    with pytest.raises(
        errors.CannotStart, match=r"cannot use the database (postgres|mysql).*:1/"
    ) as caught:
        schema.revision_of(closed)
    assert "hunter2" not in str(caught.value)


def uuids(db: engine.Database, **query: Any) -> list[str]:
    with db.read() as conn:
        found = nodes.list_rows(conn, nodes.Query(columns=("uuid",), **query))
    return [row.uuid for row in found]


def test_pages_one_after_the_other_are_the_sorted_list(db: engine.Database, add_node):
    at = datetime(2026, 1, 2, tzinfo=UTC)
    for values in (
        {},
        {"resource_class": "b", "automated_clean": True, "provision_updated_at": at},
        {"resource_class": "A", "automated_clean": False},
        {"resource_class": "a", "automated_clean": True, "provision_updated_at": at},
        {},
    ):
        db.transact(lambda conn, values=values: add_node(conn, **values))
    for field in model.FIELDS.values():
        for descending in (False, True):
            if field.can_sort:
                order = {"sort_key": field.name, "descending": descending}
                assert pages(db, **order) == uuids(db, **order), field.name


def pages(db: engine.Database, **order: Any) -> list[str]:
    found: list[str] = []
    while page := uuids(db, **order, marker=found[-1] if found else None, limit=2):
        found += page
    return found


def test_nulls_come_first_ascending_and_last_descending(db: engine.Database, add_node):
    plain = db.transact(add_node)
    named = db.transact(lambda conn: add_node(conn, resource_class="a"))
    assert uuids(db, sort_key="resource_class") == [plain, named]
    assert uuids(db, sort_key="resource_class", descending=True) == [named, plain]


def reserve(db: engine.Database, uuid_: str, holder: str) -> locks.Guard:
    held = db.transact(lambda conn: locks.reserve(conn, uuid_, holder=holder, purpose="deploying"))
    return locks.Guard(node_uuid=uuid_, holder=holder, generation=held.lock_generation)


def test_a_start_frees_what_its_own_name_held_and_nothing_of_others(
    db: engine.Database, add_node, tmp_path: Path
):
    ours, theirs = db.transact(add_node), db.transact(add_node)
    reserve(db, ours, "host-a")
    held = reserve(db, theirs, "host-b")
    conf = Conf(
        api=Api(port=0),
        database=Settings(connection=db.url.render_as_string(hide_password=False)),
        default=Default(host="host-a"),
    )
    with StateDir(tmp_path / "state") as state, Service(conf, state), db.read() as conn:
        assert nodes.get(conn, ours).reservation is None
        locks.require_held(conn, held)


def test_a_connection_in_use_at_a_close_is_closed_when_it_is_given_back(db: engine.Database):
    with db.read() as conn:
        connection = conn.connection.driver_connection
        db.close()
    is_open = getattr(connection, "open", None)  # of PyMySQL; psycopg has ``closed``
    assert connection.closed if is_open is None else not is_open
    for _ in range(2):  # used again, its connections stay
        with db.read() as conn:
            assert conn.connection.driver_connection is not connection
            again = conn.connection.driver_connection
    with db.read() as conn:
        assert conn.connection.driver_connection is again


def test_one_of_many_who_reserve_at_once_wins(db: engine.Database, add_node):
    uuid_ = db.transact(add_node)

    def attempt(number: int) -> bool:
        try:
            reserve(db, uuid_, f"host-{number}")
        except errors.NodeLocked:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(32))) == 1


def test_rows_read_for_update_lose_no_update(db: engine.Database, add_node):
    uuid_ = db.transact(lambda conn: add_node(conn, extra={"count": 0}))

    def count_up(conn: sa.Connection) -> None:
        count = nodes.get_for_update(conn, uuid_).extra["count"]
        nodes.update(conn, uuid_, {"extra": f'{{"count": {count + 1}}}'})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: db.transact(count_up), range(64)))
    with db.read() as conn:
        assert nodes.get(conn, uuid_).extra == {"count": 64}


def test_who_waited_for_a_row_sees_the_traits_of_now(db: engine.Database, add_node):
    node = db.transact(add_node)
    is_locked, may_commit = threading.Event(), threading.Event()

    def change(conn: sa.Connection) -> None:
        nodes.get_for_update(conn, node)
        nodes.add_traits(conn, node, ["CUSTOM_NEW"])
        is_locked.set()
        assert may_commit.wait(20)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(db.transact, change)
        assert is_locked.wait(20)
        second = pool.submit(db.transact, lambda conn: nodes.get_for_update(conn, node))
        with pytest.raises(TimeoutError):
            second.result(timeout=0.5)
        may_commit.set()
        first.result(timeout=20)
        assert second.result(timeout=20).traits == ("CUSTOM_NEW",)


def test_texts_are_compared_byte_by_byte(db: engine.Database, add_node):
    names = ("web-1", "Web-1", "web-1 ", "wéb-1")
    uuids = {name: db.transact(lambda conn, name=name: add_node(conn, name=name)) for name in names}
    with db.read() as conn:
        assert {name: nodes.find_uuid(conn, name) for name in names} == uuids
        assert nodes.find_uuid(conn, "WEB-1") is None
    for holder in ("host-a", "Host-A", "host-a "):
        reserve(db, uuids["web-1"], "Host-A") if holder == "host-a" else None
        freed = db.transact(lambda conn, holder=holder: locks.void_all(conn, holder))
        assert freed == ([uuids["web-1"]] if holder == "Host-A" else [])


def test_what_is_settled_at_once_is_settled_once(db: engine.Database):
    def settle(number: int) -> str:
        return db.transact(lambda conn: settings.settle(conn, "name", str(number)))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(settle, range(16)))) == 1


def test_a_deadlock_is_tried_again_at_the_edge(db: engine.Database, add_node):
    pair = [db.transact(add_node), db.transact(add_node)]

    def touch(order: list[str]) -> None:
        def both(conn: sa.Connection) -> None:
            for uuid_ in order:
                node = nodes.get_for_update(conn, uuid_)
                nodes.update(conn, uuid_, {"description": f"{node.description or ''}x"})

        for _ in range(10):
            db.transact(both)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(touch, [pair, pair[::-1]]))
    with db.read() as conn:
        assert [nodes.get(conn, uuid_).description for uuid_ in pair] == ["x" * 20, "x" * 20]


def test_an_exception_rolls_back(db: engine.Database):
    def fail(conn: sa.Connection) -> None:
        settings.settle(conn, "half", "done")
        raise LookupError

    with pytest.raises(LookupError):
        db.transact(fail)
    with db.read() as conn:
        assert settings.find(conn, "half") is None


def test_history_is_trimmed_to_the_newest(db: engine.Database, add_node):
    uuid_ = db.transact(add_node)

    def write(conn: sa.Connection, event: str) -> None:
        entry = HistoryEntry(
            uuid=str(uuid.uuid4()), node_uuid=uuid_, created_at=rows.now(), severity="INFO",
            event=event,
        )  # fmt: skip
        history.insert(conn, entry)

    for event in ("one", "two", "three"):
        db.transact(lambda conn, event=event: write(conn, event))
    assert db.transact(lambda conn: history.trim(conn, node_uuid=uuid_, keep=2, at_most=10)) == 1
    with db.read() as conn:
        assert [row["event"] for row in history.list_rows(conn, uuid_)] == ["two", "three"]


def test_events_come_in_the_order_of_their_numbers(db: engine.Database):
    for action in ("create", "update"):
        event = events.Event(object="node", object_uuid=ANY, action=action, status="success")
        db.transact(lambda conn, event=event: events.insert(conn, [events.encode(event)]))
    db.transact(event_numbers.assign)
    with db.read() as conn:
        first, second = events.list_after(conn, 0, 10)
        assert (first.action, second.action) == ("create", "update")
        assert events.list_after(conn, first.id, 10) == [second]


def test_a_conductor_registers_again_over_its_former_life(db: engine.Database):
    served = [
        EnabledInterface(hardware_type="fake-hardware", kind="power", name="fake", default=True)
    ]
    former = None
    for _ in range(2):
        assert db.transact(
            lambda conn, former=former: conductors.register(
                conn,
                hostname="host-a",
                group="",
                drivers=["fake-hardware"],
                interfaces=served,
                former=former,
            ),
        )
        with db.read() as conn:
            former = conductors.get(conn, "host-a")
    with db.read() as conn:
        assert conductors.list_interfaces(conn) == {"host-a": served}
        assert conductors.get(conn, "host-a").drivers == ("fake-hardware",)


def test_the_meter_counts_statements_and_commits(db: engine.Database):
    meter = engine.Meter(db)
    db.transact(lambda conn: settings.settle(conn, "name", "value"))
    with db.read() as conn:
        settings.find(conn, "name")
    assert [statement.split()[0] for statement in meter.statements] == [
        "SELECT",
        "INSERT",
        "SELECT",
        "SELECT",
    ]
    assert meter.commits == 1


def test_two_that_move_together_count_each_other(db: engine.Database, add_node):
    """Limits are exact: who comes second counts after the first has committed."""
    db.transact(
        lambda conn: conductors.register(
            conn, hostname="host-1", group="", drivers=[], interfaces=[]
        )
    )
    both = [db.transact(add_node) for _ in range(2)]
    counted, may_commit = threading.Event(), threading.Event()

    def move(node: str) -> int:
        def work(conn: sa.Connection) -> int:
            nodes.update(conn, node, {"provision_state": "cleaning"})
            others = nodes.count_others_in_states(conn, node, [State.CLEANING])
            counted.set()
            assert may_commit.wait(20)
            return others

        return db.transact(work)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(move, both[0])
        assert counted.wait(20)
        second = pool.submit(move, both[1])
        with pytest.raises(TimeoutError):
            second.result(timeout=0.5)
        may_commit.set()
        assert (first.result(timeout=20), second.result(timeout=20)) == (0, 1)
