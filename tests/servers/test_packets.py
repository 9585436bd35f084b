"""How often a client speaks to the server: each time costs a way there and back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings
from bloomery.db import engine, nodes
from tests.kit.servers.tcp_proxy import TcpProxy

WARM = 8  # psycopg prepares a statement at its sixth use, at the cost of an exchange
READ = 1
TRANSACTION = 3  # BEGIN, the statement, and COMMIT with its token


def exchanges(proxy: TcpProxy, work: Callable[[], object]) -> int:
    for _ in range(WARM):
        work()
    before = proxy.exchanges
    work()
    return proxy.exchanges - before


def test_a_read_is_one_exchange(far: engine.Database, proxy: TcpProxy):
    def read() -> object:
        with far.read() as conn:
            return nodes.find_uuid(conn, "web-1")

    assert exchanges(proxy, read) == READ


def test_a_transaction_of_one_statement_is_three(far: engine.Database, proxy: TcpProxy, add_node):
    node = far.transact(add_node)
    update = {"description": "new"}
    work = lambda: far.transact(lambda conn: nodes.update(conn, node, update))  # noqa: E731
    assert exchanges(proxy, work) == TRANSACTION


def test_a_transaction_that_fails_is_no_more(far: engine.Database, proxy: TcpProxy, add_node):
    far.transact(lambda conn: add_node(conn, name="web-1"))

    def clash() -> None:
        with pytest.raises(errors.DuplicateName):
            far.transact(lambda conn: add_node(conn, name="web-1"))

    assert exchanges(proxy, clash) == TRANSACTION


def test_who_comes_when_all_connections_are_in_use_is_told_so(db: engine.Database):
    narrow = engine.Database(db.url, Settings(max_pool_size=1, max_overflow=1, pool_timeout=0))
    entered, may_leave = [Event(), Event()], Event()

    def stay(number: int) -> None:
        with narrow.read():
            entered[number].set()
            assert may_leave.wait(20)

    with ThreadPoolExecutor(2) as pool:
        stays = [pool.submit(stay, number) for number in range(2)]
        assert all(event.wait(20) for event in entered)
        with pytest.raises(errors.DatabaseBusy, match=r"all 2 connections .* raise") as busy:
            narrow.read().__enter__()
        heart = narrow.reserved()
        with heart.read() as conn:
            assert nodes.find_uuid(conn, "web-1") is None
        heart.close()
        may_leave.set()
        for each in stays:
            each.result(20)
    assert busy.value.status == 503
    narrow.close()


def test_who_waits_too_long_for_a_row_is_told_so(db: engine.Database, add_node):
    node = db.transact(add_node)
    hasty = engine.Database(db.url, Settings(lock_timeout=1))

    def wait_inside(conn: sa.Connection) -> None:
        nodes.lock_row(conn, node)
        with pytest.raises(errors.DatabaseBusy, match="keeps a row for longer"):
            hasty.transact(lambda conn: nodes.lock_row(conn, node))

    db.transact(wait_inside)
    hasty.close()


def test_a_statement_that_takes_too_long_is_ended(db: engine.Database):
    hasty = engine.Database(db.url, Settings(statement_timeout=1))
    sleep = {"postgresql": "SELECT pg_sleep(20)", "mysql": "SELECT sleep(20)"}
    with pytest.raises(errors.DatabaseBusy, match="takes longer than"), hasty.read() as conn:
        conn.exec_driver_sql(sleep[db.url.get_backend_name()])
    hasty.close()


def test_transactions_are_read_committed_and_snapshots_repeat(db: engine.Database, add_node):
    def look_twice(conn: sa.Connection) -> list[bool]:
        seen = []
        for name in ("web-1", "web-2"):
            seen.append(nodes.find_uuid(conn, "web-1") is not None)
            db.transact(lambda conn, name=name: add_node(conn, name=name))
        return [*seen, nodes.find_uuid(conn, "web-2") is not None]

    with db.snapshot() as conn:
        assert look_twice(conn) == [False, False, False]
    db.transact(lambda conn: conn.execute(sa.delete(nodes.NODES)))
    assert db.transact(look_twice) == [False, True, True]
