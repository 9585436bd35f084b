from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.cmd import threads
from bloomery.db import events
from bloomery.db.engine import Database
from tests.kit.servers import site

threads.use_threads()  # before anything here imports oslo.messaging

NODE = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    opened = site.database(tmp_path / "events.sqlite")
    yield opened
    opened.close()


Happen = Callable[..., int]


@pytest.fixture
def happen(db: Database) -> Happen:
    """Write one event row; return its number."""

    def write(action: str = "provision_set", status: str = "end", **more: Any) -> int:
        said: dict[str, Any] = {
            "object": "node", "object_uuid": NODE, "publisher": "ironic-conductor.bm-cond-1",
            "request_id": "req-1",
        }  # fmt: skip
        row = events.encode(events.Event(action=action, status=status, **(said | more)))
        db.transact(lambda conn: events.insert(conn, [row]))
        with db.read() as conn:
            return events.last_id(conn)

    return write
