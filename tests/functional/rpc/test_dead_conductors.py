"""A conductor that does not answer leaves an API that does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.model.request import Request
from bloomery.rpc import call_limits, transports
from tests.kit import rpc
from tests.kit.waiting import wait_for


@pytest.fixture
def paused() -> Iterator[str]:
    """The address of a conductor that is stopped: connections are made, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


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
