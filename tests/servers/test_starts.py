"""A process that starts while somebody stands still inside a transaction waits for its rows."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.cmd.conductor import ConductorProcess
from bloomery.conf.default import Database as Settings
from bloomery.conf.default import JsonRpc
from bloomery.db import conductors, engine, event_numbers
from bloomery.db.tables import EVENT_NUMBERING
from bloomery.state_dir import StateDir
from tests.kit.servers import site as kit
from tests.kit.waiting import wait_for

HOST = "127.0.0.1"


@pytest.fixture
def stuck(db: engine.Database) -> Iterator[sa.Connection]:
    """Who numbers events stands still inside a transaction."""
    db.transact(lambda conn: event_numbers.settle(conn, []))
    peer = sa.create_engine(db.url, poolclass=sa.NullPool)
    with contextlib.closing(peer.connect()) as conn:
        conn.execute(sa.update(EVENT_NUMBERING).values(last_number=1))
        yield conn
    peer.dispose()


@contextlib.contextmanager
def conductor(db: engine.Database, folder: Path, patience_s: int) -> Iterator[ConductorProcess]:
    url = db.url.render_as_string(hide_password=False)
    conf = kit.conf(HOST)
    conf = dataclasses.replace(
        conf,
        default=dataclasses.replace(conf.default, rpc_transport="json-rpc"),
        database=Settings(connection=url, lock_timeout=1, statement_timeout=patience_s),
        json_rpc=JsonRpc(host_ip=HOST, port=0),
    )
    with StateDir(folder, role="conductor") as home:
        process = ConductorProcess(conf, home)
        yield process
        process._rpc_server.stop(0)  # it listens before the start


def test_a_start_waits_for_a_row_that_somebody_keeps(
    db: engine.Database, stuck: sa.Connection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "bloomery.db.server_edge"),
        conductor(db, tmp_path, patience_s=60) as process, ThreadPoolExecutor(1) as pool,
    ):  # fmt: skip
        start = pool.submit(process.start)
        wait_for(lambda: len(caplog.messages) >= 2 or start.done(), "to say it waits")
        assert not start.done()
        assert "a row of event_numbering; the oldest is open for" in caplog.messages[0]
        stuck.rollback()
        start.result(timeout=20)
        with db.read() as conn:
            assert [row.online for row in conductors.list_all(conn)] == [True]
        process.stop()


def test_a_start_that_has_waited_for_long_ends_with_a_sentence(
    db: engine.Database, stuck: sa.Connection, tmp_path: Path
) -> None:
    with (
        conductor(db, tmp_path, patience_s=2) as process,
        pytest.raises(errors.CannotStart, match=r"event_numbering.*; see to that, and start again"),
    ):
        process.start()
