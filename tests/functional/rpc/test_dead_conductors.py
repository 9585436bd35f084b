"""A conductor that does not answer leaves an API that does."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
import urllib3

from bloomery import errors
from bloomery.api import app, server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.db.tables import CONDUCTORS
from bloomery.model.request import Request
from bloomery.rpc import contract, remote, transports
from bloomery.rpc.client import Client
from bloomery.rpc.json_rpc_client import JsonRpcChannel
from bloomery.rpc.remote import CallLimits, Cap, Remote
from bloomery.rpc.ring import Ring
from tests.kit.clock import HandClock
from tests.kit.servers import rpc
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for
from tools.servers import free_port


@pytest.fixture
def stopped() -> Iterator[socket.socket]:
    """What a conductor that is stopped listens on: connections are made, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener


@pytest.fixture
def paused(stopped: socket.socket) -> str:
    """Its name."""
    return f"127.0.0.1:{stopped.getsockname()[1]}"


@pytest.fixture
def caller() -> Iterator[Any]:
    client = transports.build_client(rpc.conf_of("json-rpc", rpc_response_timeout=60))
    yield client
    client.close()


def test_an_api_that_calls_others_has_threads_to_spare():
    conf = rpc.conf_of("json-rpc")
    assert (Conf().serving_threads, conf.serving_threads) == (Conf().api.threads, 16)


def test_a_paused_conductor_takes_some_threads_and_others_are_refused_at_once(
    paused, caller, monkeypatch
):
    monkeypatch.setattr(remote, "LATELY_S", 0.0)
    refused: list[errors.Failure] = []
    answered = threading.Semaphore(0)

    def ask() -> None:
        try:
            caller.proxy(paused).inject_nmi(Request.new(), "a")
        except errors.Failure as exc:
            refused.append(exc)
        answered.release()

    for _ in range(16):
        threading.Thread(target=ask, daemon=True).start()
    for _ in range(10):
        assert answered.acquire(timeout=20)
    assert caller.limits.calls == 6
    assert {type(exc) for exc in refused} == {errors.ConductorCallsBusy}
    with rpc.link("json-rpc", rpc.Endpoint()) as alive:
        caller.proxy(alive.host).inject_nmi(Request.new(), "a")
        assert len(alive.endpoint.calls) == 1


def test_a_paused_conductor_is_waited_for_until_its_counter_stood_still_for_too_long(
    paused, make_site
):
    """By the counter that others look at, long before a reply is overdue."""
    site, clock = make_site(), HandClock()
    ring = Ring(site.db, Conf(), clock)
    rename = sa.update(CONDUCTORS).values(hostname=paused)
    site.db.transact(lambda conn: conn.execute(rename))
    ring.refresh()
    looks: list[bool] = []

    def look(host: str) -> bool:
        clock.turn(Conf().conductor.heartbeat_interval)
        ring.refresh()
        looks.append(ring.is_silent(host))
        return looks[-1]

    remote = silent_remote(look)
    with pytest.raises(errors.ConductorSilent, match="it sends no heartbeat; it may have been"):
        remote.proxy(paused).inject_nmi(Request.new(), "a")
    assert looks == [False] * 5 + [True]
    remote.close()


def test_a_conductor_that_works_for_long_is_waited_for(make_site):
    endpoint, clock = rpc.Endpoint(), HandClock()
    site = make_site()
    ring = Ring(site.db, Conf(), clock)
    go_on, looks = threading.Event(), []
    endpoint.answer = lambda *_, **__: go_on.wait(20)

    def look(host: str) -> bool:
        clock.turn(Conf().conductor.heartbeat_interval)
        site.db.transact(lambda conn: conn.execute(beat))
        ring.refresh()
        looks.append(ring.is_silent(host))
        if len(looks) == 12:
            go_on.set()
        return looks[-1]

    with rpc.link("json-rpc", endpoint) as link:
        rename = sa.update(CONDUCTORS).values(hostname=link.host)
        site.db.transact(lambda conn: conn.execute(rename))
        beat = sa.update(CONDUCTORS).values(heartbeat=CONDUCTORS.c.heartbeat + 1)
        remote = silent_remote(look)
        assert remote.proxy(link.host).inject_nmi(Request.new(), "a") is True
        remote.close()
    assert set(looks) == {False}


def silent_remote(look: Callable[[str], bool]) -> Remote:
    """Return what calls conductors, and looks at them all the time while it waits."""
    return Remote(
        JsonRpcChannel(rpc.conf_of("json-rpc")), contract.METHODS,
        cap=Cap(version=contract.VERSION), limits=CallLimits(16), response_timeout_s=60,
        is_silent=look, look_every_s=0.001,
    )  # fmt: skip


def test_a_conductor_that_dies_under_a_call_may_have_done_it(caller):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        failures: list[errors.Failure] = []

        def ask() -> None:
            try:
                caller.proxy(address).inject_nmi(Request.new(), "a")
            except errors.Failure as exc:
                failures.append(exc)

        asking = threading.Thread(target=ask)
        asking.start()
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.close()
        asking.join()
    assert [type(exc) for exc in failures] == [errors.ConductorSilent]


def test_a_dead_conductor_is_told_at_once(caller):
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(errors.ConductorUnreached, match="refused"):
        caller.proxy(nobody).inject_nmi(Request.new(), "a")
    wait_for(lambda: caller.limits.calls == 0, "the call to be over")


def test_requests_that_need_no_conductor_are_answered_while_one_is_paused(
    stopped, paused, make_site, monkeypatch
):
    """Twenty-four orders for a machine whose conductor is stopped, and lists of nodes meanwhile."""
    monkeypatch.setattr(remote, "LATELY_S", 0.0)
    stage = Stage(make_site())
    node = stage.enrol()
    rename = sa.update(CONDUCTORS).values(hostname=paused)
    stage.site.db.transact(lambda conn: conn.execute(rename))
    conf = dataclasses.replace(
        rpc.conf_of("json-rpc", rpc_response_timeout=60), api=Api(port=0), conductor=Conductor()
    )
    client = transports.build_client(conf)
    services = dataclasses.replace(
        stage.services, rpc=Client(Ring(stage.site.db, conf), client), conf=conf
    )
    api = server.make(app.make_app(services), conf)
    api.start()
    with ThreadPoolExecutor(24) as orders:
        answers = [orders.submit(order, api.url, node) for _ in range(24)]
        wait_for(lambda: sum(each.done() for each in answers) == 18, "the refusals", timeout_s=30)
        assert {each.result() for each in answers if each.done()} == {503}
        for _ in range(20):
            assert urllib3.request("GET", f"{api.url}/v1/nodes").status == 200
        assert client.limits.calls == 6
        stopped.close()
    assert {each.result() for each in answers} == {503}
    client.close()
    api.stop(5)


def order(url: str, node: str) -> int:
    path = f"{url}/v1/nodes/{node}/states/power"
    return urllib3.request("PUT", path, json={"target": "power on"}, timeout=60).status
