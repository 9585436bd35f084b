"""What looks on while processes die notices what must not happen."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import nodes, rows
from bloomery.db.events import EventRow
from bloomery.db.tables import NODES
from bloomery.model.node import OBJECTS, Node
from tests.chaos import oracles, witness
from tests.chaos.site import POSTGRESQL, Site, empty_database, opened


@pytest.fixture(params=(POSTGRESQL, "BLOOMERY_TEST_MARIADB"))
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site without processes."""
    if not (server := os.environ.get(request.param)):
        pytest.skip(f"{request.param} names no server")
    with empty_database(server) as url:
        site = Site(tmp_path, url, "json-rpc", "")
        yield site
        site.stop()


@pytest.mark.parametrize(("generations", "faults"), [((1, 2, 2), 0), ((2, 1), 1)])
def test_an_order_under_an_older_lock_is_noticed(generations: tuple[int, ...], faults: int) -> None:
    looks_on = witness.Witness()
    lines = witness.Lines(looks_on.port)
    for generation in generations:
        order = {"node": "n", "generation": generation, "checked_at": time.monotonic()}
        lines.ask(json.dumps(order).encode() + b"\n")
    lines.close()
    looks_on.stop()
    assert (len(looks_on.faults), looks_on.late) == (faults, 0)


def test_a_second_holder_meets_the_first_one_as_long_as_that_lives() -> None:
    if not (port := os.environ.get(witness.REDIS)):
        pytest.skip(f"{witness.REDIS} names no server")
    node = str(uuid.uuid4())
    dead, first, second = "host 1 0", f"host 1 {os.getpid()}", f"other 2 {os.getpid()}"
    with contextlib.closing(witness.Keys(int(port))) as keys:
        assert keys.take(node, dead) is None
        assert keys.take(node, first) is None
        assert keys.take(node, second) == first
        keys.leave(node, first)
        assert keys.take(node, second) is None
        keys.leave(node, second)


CHANGES: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"provision_state": "active"}, True),  # somebody else holds it
    ({"description": "x"}, False),
    ({"reservation": "c", "lock_generation": 2}, True),
    ({"lock_generation": 0}, True),
    ({"reservation": None, "lock_generation": 2}, False),  # who is dead is freed
)


def test_a_write_to_a_node_of_somebody_else_is_noticed(site: Site) -> None:
    oracles.watch_rows(site)
    with opened(sa.make_url(site.url_of("b"))) as database:
        for changes, complains in CHANGES:
            ident, before = str(uuid.uuid4()), len(oracles.complaints(site))
            node = Node(
                uuid=ident, driver="fake-hardware", provision_state="available", reservation="a",
                lock_generation=1, created_at=rows.now(),
            )  # fmt: skip
            columns = rows.encode(dataclasses.asdict(node), OBJECTS)
            del columns["id"], columns["traits"]
            database.transact(lambda conn, columns=columns: nodes.insert(conn, columns))
            change = sa.update(NODES).where(NODES.c.uuid == ident).values(changes)
            database.transact(lambda conn, change=change: conn.execute(change))
            assert (len(oracles.complaints(site)) > before) is complains, changes


@pytest.mark.parametrize(("order", "faults"), [((1, 2, 1), 0), ((2, 1), 1)])
def test_what_is_told_late_is_noticed_and_what_is_told_twice_is_not(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...], faults: int
) -> None:
    listener = oracles.Listener(None)
    events = {number: _event(number) for number in (1, 2)}
    monkeypatch.setattr(listener, "_events", lambda: list(events.values()))
    listener.messages = [{"message_id": events[number].message_id} for number in order]
    assert len(listener.disorder()) == faults
    assert listener.untold() == []


def _event(number: int) -> EventRow:
    return EventRow(
        id=number, created_at=rows.now(), object="node", object_uuid=str(uuid.UUID(int=1)),
        action="update", status="end", level="info", publisher=None, request_id=None,
        facts_text="{}", snapshot_text=None, owner=None, lessee=None,
    )  # fmt: skip
