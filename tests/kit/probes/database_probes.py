"""What must hold of a database server: for the tests, and for the mutants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import engine, event_numbers, events, nodes
from tests.kit.servers.tcp_proxy import Cut, TcpProxy, is_commit

_ANY: Final = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"


def cut_once(is_meant: Callable[[bytes], bool], cut: Cut) -> Callable[[bytes], Cut]:
    """Cut at the first request that is meant; all others are forwarded."""
    cuts = iter([cut])
    return lambda data: next(cuts, Cut.NOT) if is_meant(data) else Cut.NOT


def a_change_is_made_once(far: engine.Database, proxy: TcpProxy, node: str, cut: Cut) -> None:
    """Counted up once, whether the server got the COMMIT, never got it, or gets it late."""

    def grow(conn: sa.Connection) -> str:
        description = f"{nodes.get_for_update(conn, node).description}x"
        nodes.update(conn, node, {"description": description})
        return description

    proxy.on_request = cut_once(is_commit, cut)
    if cut is Cut.LATE:  # what the first try has locked is free once its server side has ended
        _deliver_at_rerun(proxy)
    assert far.transact(grow) == "xx"
    with far.read() as conn:
        assert nodes.get(conn, node).description == "xx"


def _deliver_at_rerun(proxy: TcpProxy) -> None:
    """Deliver the late COMMIT once the work is begun anew."""
    cut, begun = proxy.on_request, []

    def on_request(data: bytes) -> Cut:
        if b"BEGIN" in data and b"NOT ATOMIC" not in data:
            begun.append(data)
            if len(begun) == 2:
                proxy.deliver()
        return cut(data)

    proxy.on_request = on_request


def event(action: str) -> dict[str, Any]:
    return events.encode(
        events.Event(object="node", object_uuid=_ANY, action=action, status="success"),
    )


class Other:
    """A transaction of another process, taken step by step."""

    def __init__(self, db: engine.Database) -> None:
        self._engine = sa.create_engine(db.url)
        self.conn = self._engine.connect()

    def write(self, action: str) -> None:
        events.insert(self.conn, [event(action)])

    def end(self, how: str = "commit") -> None:
        getattr(self.conn, how)()
        self.conn.close()
        self._engine.dispose()


class Reader:
    """Goes by numbers, as every reader does; numbers first what nobody has numbered."""

    def __init__(self, db: engine.Database) -> None:
        self._db = db
        self.last_id = 0

    def read(self) -> list[str]:
        self._db.transact(event_numbers.assign)
        with self._db.read() as conn:
            batch = events.list_after(conn, self.last_id, 10)
        self.last_id = batch[-1].id if batch else self.last_id
        return [stored.action for stored in batch]


def who_commits_late_is_not_passed(db: engine.Database) -> None:
    """The transaction that took the lower key commits after a reader has seen the higher one."""
    reader, first, second = Reader(db), Other(db), Other(db)
    first.write("first")
    second.write("second")
    second.end()
    assert reader.read() == ["second"]
    first.end()
    assert reader.read() == ["first"]
