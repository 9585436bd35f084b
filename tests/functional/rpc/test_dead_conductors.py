"""A conductor that does not answer leaves an API that does."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Iterator
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
from bloomery.rpc import call_limits, transports
from bloomery.rpc.client import Client
from bloomery.rpc.ring import Ring
from tests.kit import rpc
from tests.kit.stories import Stage
from tests.kit.waiting import wait_for


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
    monkeypatch.setattr(call_limits, "LATELY_S", 0.0)
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
    nobody = f"127.0.0.1:{rpc.free_port()}"
    with pytest.raises(errors.ConductorUnreached, match="refused"):
        caller.proxy(nobody).inject_nmi(Request.new(), "a")
    wait_for(lambda: caller.limits.calls == 0, "the call to be over")


def test_requests_that_need_no_conductor_are_answered_while_one_is_paused(
    stopped, paused, make_site, monkeypatch
):
    """Twenty-four orders for a machine whose conductor is stopped, and lists of nodes meanwhile."""
    monkeypatch.setattr(call_limits, "LATELY_S", 0.0)
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
    api = server.Server(app.make_app(services), conf)
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
