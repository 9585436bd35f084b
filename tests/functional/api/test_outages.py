"""What is asked of a service whose database is refused, mute or slow, and how soon it answers.

``test_database_outages`` in tests/chaos asks the same of a real server.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bloomery import errors
from bloomery.api import app, scrape
from bloomery.cmd import gauges
from bloomery.http_server import readiness
from tests.kit.clients import slow_clients
from tests.kit.probes import outage_probes
from tests.kit.probes.outage_probes import OUTAGES

TIMEOUT_S = 0.5  # of a statement
SLOW_S = 0.05  # for a statement


def refused(_over: threading.Event) -> None:
    raise errors.DatabaseAway(server="db", reason="connection refused")


def mute(over: threading.Event) -> None:
    over.wait(TIMEOUT_S)
    raise errors.DatabaseAway(server="db", reason="it does not answer")


def slow(over: threading.Event) -> None:
    over.wait(SLOW_S)


FAULTS: dict[str, Callable[[threading.Event], None]] = {
    "refused": refused, "mute": mute, "slow": slow,
}  # fmt: skip


@pytest.fixture(params=OUTAGES)
def outage(request: pytest.FixtureRequest, world: Any, monkeypatch: Any) -> Iterator[Any]:
    """A service with an outage of its database, while many clients wait for lists of nodes."""
    over, db = threading.Event(), world.site.db
    for name in ("read", "transact", "snapshot"):
        plain = getattr(db, name)

        def use(*args: Any, plain: Any = plain) -> Any:
            FAULTS[request.param](over)
            return plain(*args)

        monkeypatch.setattr(db, name, use)
    monkeypatch.setattr(readiness, "WITHIN_S", TIMEOUT_S)
    metrics = scrape.make(gauges.of_site(db, world.site.rpc.ring))
    with contextlib.ExitStack() as until:
        serving = until.enter_context(slow_clients.serving(app.make_app(world.site, metrics)))
        until.enter_context(slow_clients.clients(serving, slow_clients.GET, outage_probes.CROWD))
        yield request.param, serving.url
        over.set()


def test_each_outage_is_answered_in_time(outage: tuple[str, str]) -> None:
    name, url = outage
    wrong = outage_probes.wrong_answers(url, name, most_s=5 * TIMEOUT_S, queued_s=20.0)
    assert wrong == []
