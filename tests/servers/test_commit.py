"""A connection that breaks before COMMIT, or after it: nothing is lost, nothing runs twice."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import commit_tokens, engine, locks, nodes, settings
from bloomery.db.tables import COMMIT_TOKENS
from tests.kit.probes import database_probes
from tests.kit.probes.database_probes import cut_once
from tests.kit.servers.tcp_proxy import Cut, TcpProxy, is_commit


def tokens(db: engine.Database) -> list[bool]:
    with db.read() as conn:
        return list(conn.execute(sa.select(COMMIT_TOKENS.c.is_void)).scalars())


@pytest.mark.parametrize("cut", [Cut.AFTER, Cut.BEFORE, Cut.LATE])
def test_nothing_runs_twice_and_nothing_is_lost(
    db: engine.Database, far: engine.Database, proxy: TcpProxy, add_node, cut: Cut
):
    node = db.transact(lambda conn: add_node(conn, description="x"))
    database_probes.a_change_is_made_once(far, proxy, node, cut)


@pytest.mark.parametrize("cut", [Cut.AFTER, Cut.BEFORE])
def test_a_lock_is_not_taken_against_its_own_host(
    db: engine.Database, far: engine.Database, proxy: TcpProxy, add_node, cut: Cut
):
    node = db.transact(add_node)
    proxy.on_request = cut_once(is_commit, cut)
    reserved = far.transact(lambda conn: locks.reserve(conn, node, holder="a", purpose="deploy"))
    assert (reserved.reservation, reserved.lock_generation) == ("a", 1)


@pytest.mark.parametrize("cut", [Cut.AFTER, Cut.BEFORE])
def test_what_was_created_is_no_conflict(far: engine.Database, proxy: TcpProxy, add_node, cut: Cut):
    ident = str(uuid.uuid4())
    proxy.on_request = cut_once(is_commit, cut)
    assert far.transact(lambda conn: add_node(conn, uuid=ident, name="web-1")) == ident


def test_a_connection_that_breaks_before_the_commit_is_replaced(
    far: engine.Database, proxy: TcpProxy, add_node
):
    proxy.on_request = cut_once(lambda data: b"INSERT INTO nodes" in data, Cut.AFTER)
    ident = far.transact(lambda conn: add_node(conn, name="web-1"))
    with far.read() as conn:
        assert nodes.find_uuid(conn, "web-1") == ident


def test_a_transaction_that_only_reads_leaves_no_token(db: engine.Database, far, proxy: TcpProxy):
    proxy.on_request = cut_once(is_commit, Cut.AFTER)
    assert far.transact(lambda conn: settings.find(conn, "nothing")) is None
    assert tokens(db) == []


def test_who_cannot_find_out_says_so(far: engine.Database, proxy: TcpProxy, add_node):
    def on_request(data: bytes) -> Cut:
        proxy.is_open = not is_commit(data)
        return Cut.NOT if proxy.is_open else Cut.AFTER

    far.transact(add_node)
    proxy.on_request = on_request
    with pytest.raises(errors.CommitInDoubt, match=rf"127.0.0.1:{proxy.port}/.* went away"):
        far.transact(add_node)


def test_a_server_that_is_away_is_named(far: engine.Database, proxy: TcpProxy, add_node):
    far.transact(add_node)
    proxy.is_open = False
    proxy.cut()
    for ask in (lambda: far.transact(add_node), lambda: far.read().__enter__()):
        with pytest.raises(errors.DatabaseAway, match=r"cannot reach the database .*retry") as away:
            ask()
        assert away.value.status == 503
    proxy.is_open = True
    far.transact(add_node)


def test_a_connection_that_the_server_has_closed_is_replaced_without_being_noticed(
    far: engine.Database, proxy: TcpProxy
):
    with far.read() as conn:
        settings.find(conn, "nothing")
    proxy.cut()
    with far.read() as conn:
        assert settings.find(conn, "nothing") is None


def test_old_tokens_are_dropped_and_young_ones_are_not(db: engine.Database, add_node, monkeypatch):
    db.transact(add_node)
    assert db.transact(commit_tokens.trim) == 0
    monkeypatch.setattr(commit_tokens, "KEEP_S", -1)
    assert db.transact(commit_tokens.trim) == len(["of add_node"])
    assert tokens(db) == [False], "of the transaction that trims"
