"""What keeps changes and events whole on a database server is off; the probe goes red.

The suites of servers use the probes, too; there they are seen to pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bloomery.db import commit_tokens, engine, events
from bloomery.db.tables import EVENTS
from tests.kit.probes import database_probes
from tests.kit.servers.tcp_proxy import Cut, TcpProxy
from tests.servers.conftest import add_node, admin, db, far, migrated, proxy, server

__all__ = ["add_node", "admin", "db", "far", "migrated", "proxy", "server"]  # fixtures

TOKENS: dict[str, tuple[Callable[..., bool], Cut]] = {
    "nobody asks, and it runs again": (lambda _conn, _token: False, Cut.AFTER),
    "nobody asks, and it is taken for done": (lambda _conn, _token: True, Cut.BEFORE),
}


@pytest.mark.parametrize("mutant", TOKENS.values(), ids=TOKENS)
def test_it_is_noticed_that_nobody_asks_for_the_token_of_a_commit(
    db: engine.Database,
    far: engine.Database,
    proxy: TcpProxy,
    add_node: Any,
    monkeypatch: pytest.MonkeyPatch,
    mutant: tuple[Callable[..., bool], Cut],
) -> None:
    claim, cut = mutant
    node = db.transact(lambda conn: add_node(conn, description="x"))
    database_probes.a_change_is_made_once(far, proxy, node, Cut.NOT)
    db.transact(lambda conn: database_probes.nodes.update(conn, node, {"description": "x"}))
    monkeypatch.setattr(commit_tokens, "claim", claim)
    with pytest.raises(AssertionError):
        database_probes.a_change_is_made_once(far, proxy, node, cut)


def test_it_is_noticed_that_readers_go_by_keys(
    db: engine.Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "_number", lambda _conn: EVENTS.c.id)
    with pytest.raises(AssertionError):
        database_probes.who_commits_late_is_not_passed(db)
