"""The broker or the database goes away under load and comes back; calls and replies are cut.

Processes of a site, as in ``test_many_conductors``, but nobody of them dies: what they are
connected to does.  Afterwards the same things hold.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import oracles
from tests.chaos.site import Site, in_use, on_servers_of_the_test
from tests.kit.servers import own
from tests.kit.servers.tcp_proxy import Cut
from tests.kit.waiting import wait_for
from tools import servers

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
AWAY_S: Final = 4.0
ORDERS: Final = 20  # between two outages, and after the last: who works again
CUTS: Final = 0.03  # the part of the calls and replies that is cut
CUT_ORDERS: Final = 150
ENDS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
DURABLE: Final = {"oslo_messaging_rabbit": {"amqp_durable_queues": "true"}}

DATABASES: Final = {
    "postgresql": (servers.own_postgresql, "postgresql+psycopg://postgres@127.0.0.1:{port}/test"),
    "mariadb": (servers.own_mariadb, "mysql+pymysql://root@127.0.0.1:{port}/"),
}


def live(site: Site, seed: int, disturb: Callable[[], None]) -> None:
    listener, stuck = oracles.Listener(site), oracles.StuckNodes(site)
    oracles.watch_rows(site)
    with listener.listening():
        site.start()
        site.enrol(40)
        with stuck.watching(), in_use(site, f"{seed}"):
            disturb()
        oracles.check(site, listener)
    assert stuck.faults == []


def wait_for_orders(site: Site, count: int) -> None:
    before = len(site.acknowledged)
    wait_for(lambda: len(site.acknowledged) >= before + count, "orders", timeout_s=120)


def outages(site: Site, server: servers.OwnServer) -> None:
    for number in ENDS:
        wait_for_orders(site, ORDERS)
        server.stop(number)
        threading.Event().wait(AWAY_S)
        server.start()
    wait_for_orders(site, ORDERS)


def test_a_broker_that_goes_away_loses_nothing(tmp_path: Path, seed: int) -> None:
    with contextlib.ExitStack() as until:
        server = own.start(servers.own_rabbitmq(), until)
        broker = f"rabbit://guest:guest@127.0.0.1:{server.port}/"
        site = until.enter_context(
            on_servers_of_the_test(tmp_path, "oslo", broker=broker, **DURABLE)
        )
        live(site, seed, lambda: outages(site, server))


@pytest.mark.parametrize("transport", ["json-rpc", "oslo"])
@pytest.mark.parametrize("kind", DATABASES)
def test_a_database_that_goes_away_loses_nothing(
    tmp_path: Path, seed: int, kind: str, transport: str
) -> None:
    own_server, url = DATABASES[kind]
    with contextlib.ExitStack() as until:
        server = own.start(own_server(), until)
        site = until.enter_context(
            on_servers_of_the_test(tmp_path, transport, database=url.format(port=server.port))
        )
        live(site, seed, lambda: outages(site, server))


@pytest.mark.parametrize("transport", ["json-rpc", "oslo"])
def test_calls_and_replies_that_are_cut_are_made_once(
    tmp_path: Path, lots: random.Random, seed: int, transport: str
) -> None:
    """A cut takes the connection with it, and whatever else was under way on it."""
    cuts: list[Cut] = []
    begun = threading.Event()  # not before the nodes are there

    def decide(data: bytes) -> Cut:
        is_one = b"method" in data or b"result" in data
        if not (begun.is_set() and is_one) or lots.random() >= CUTS:
            return Cut.NOT
        cuts.append(lots.choice((Cut.BEFORE, Cut.AFTER)))
        return cuts[-1]

    def disturb(site: Site) -> None:
        begun.set()
        wait_for_orders(site, CUT_ORDERS)
        begun.clear()

    with on_servers_of_the_test(tmp_path, transport, on_call=decide) as site:
        live(site, seed, lambda: disturb(site))
    assert len(cuts) > 5, "hardly anything was cut"
