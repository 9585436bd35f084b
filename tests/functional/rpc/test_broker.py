"""Calls over a message broker that is away, comes back, and keeps what nobody may lose."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kombu
import pytest
from amqp import exceptions as amqp

from bloomery import errors
from bloomery.cmd import threads
from bloomery.model.request import Request
from bloomery.rpc import transports
from tests.kit.servers import rpc
from tests.kit.waiting import wait_for

threads.use_threads()
from bloomery.rpc import oslo_rpc  # noqa: E402  the line above comes first

BOUND_S = 2 * oslo_rpc.CONNECT_S + 5  # a machine under load included


@contextlib.contextmanager
def behind(wire: rpc.Between, **default: Any) -> Iterator[rpc.Link]:
    """A conductor and its caller, who reach the broker by ``wire``."""
    url = urlsplit(rpc.broker_url())
    by_wire = f"rabbit://{url.username}:{url.password}@127.0.0.1:{wire.port}{url.path}"
    conf, endpoint = rpc.conf_of("oslo", transport_url=by_wire, **default), rpc.Endpoint()
    host = rpc.name_of(conf)
    server, client = transports.build_server(conf, host, endpoint), transports.build_client(conf)
    try:
        yield rpc.Link(conf=conf, host=host, endpoint=endpoint, client=client, server=server)
    finally:
        client.close()
        server.stop(5)
        wire.down()
        rpc.forget_queue(host)


@pytest.fixture
def wire() -> rpc.Between:
    return rpc.Between(urlsplit(rpc.broker_url()).port or 5672, is_up=False)


def test_a_broker_that_is_away_is_told_soon_and_used_when_it_comes(wire, monkeypatch):
    monkeypatch.setattr(oslo_rpc, "_LISTEN_S", 0.1)
    with behind(wire) as link:
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(errors.ConductorUnreached, match="broker does not answer"):
                link.conductor.inject_nmi(Request.new(), "a")
        link.server.start()
        assert time.monotonic() - began < BOUND_S
        wire.up()
        wait_for(lambda: answers(link), "calls to be answered", timeout_s=30, every_s=0.1)
        assert [method for method, _, _ in link.endpoint.calls] == ["vif_list"]


def answers(link: rpc.Link) -> bool:
    try:
        link.conductor.vif_list(Request.new(), "a")
    except errors.TemporaryFailure:
        return False
    return True


def test_a_broker_that_went_away_is_used_again(wire):
    wire.up()
    with behind(wire, rpc_response_timeout=2) as link:
        link.server.start()
        link.conductor.inject_nmi(Request.new(), "a")
        wire.down()
        began = time.monotonic()
        with pytest.raises(errors.TemporaryFailure):
            link.conductor.inject_nmi(Request.new(), "a")
        assert time.monotonic() - began < BOUND_S
        wire.up()
        wait_for(lambda: answers(link), "calls to be answered", timeout_s=30, every_s=0.1)
        orders = [method for method, _, _ in link.endpoint.calls if method == "inject_nmi"]
        assert len(orders) <= 2


def test_an_order_that_never_left_was_not_done(wire):
    wire.up()
    with behind(wire, rpc_response_timeout=2) as link:
        link.server.start()
        link.conductor.inject_nmi(Request.new(), "a")
        assert (link.client.missing(), link.client.is_connected) == ([], True)
        assert link.server.is_connected
        wire.down()
        wait_for(lambda: not link.client.is_connected, "the caller to see it")
        wait_for(lambda: not link.server.is_connected, "the conductor to see it")
        for _ in range(2):
            with pytest.raises(errors.ConductorUnreached, match="nothing was done"):
                link.conductor.inject_nmi(Request.new(), "a")
        assert link.client.missing() == ["the message broker does not answer"]
        wire.up()
        wait_for(lambda: answers(link), "calls to be answered", timeout_s=30, every_s=0.1)
        wait_for(lambda: link.server.is_connected, "the conductor")
        assert link.client.missing() == []
        orders = [method for method, _, _ in link.endpoint.calls if method == "inject_nmi"]
        assert orders == ["inject_nmi"]


def test_a_caller_that_does_not_look_first_could_not_tell(wire, monkeypatch):
    """The safeguard of the test above is off."""
    wire.up()
    with behind(wire, rpc_response_timeout=2) as link:
        link.server.start()
        link.conductor.inject_nmi(Request.new(), "a")
        wire.down()
        wait_for(lambda: not link.client.is_connected, "the caller to see it")
        monkeypatch.setattr(oslo_rpc.OsloChannel, "_hear_replies", lambda _channel: True)
        with pytest.raises(errors.ConductorSilent):
            link.conductor.inject_nmi(Request.new(), "a")


def test_a_connection_that_broke_between_two_calls_is_made_anew(wire):
    wire.up()
    with behind(wire, rpc_response_timeout=10) as link:
        link.server.start()
        link.conductor.inject_nmi(Request.new(), "a")
        wire.down()
        wire.up()
        wait_for(lambda: answers(link), "calls to be answered", timeout_s=30, every_s=0.1)


def test_an_order_that_nobody_waits_for_any_more_is_not_run_later():
    with rpc.link("oslo", rpc.Endpoint(), rpc_response_timeout=1) as link:
        link.conductor.vif_list(Request.new(), "a")
        link.server.stop(5, returns=True)
        with pytest.raises(errors.ConductorSilent):
            link.conductor.inject_nmi(Request.new(), "a")
        successor = transports.build_server(link.conf, link.host, link.endpoint)
        successor.start()
        try:
            wait_for(lambda: answers(link), "the successor", timeout_s=20)
            assert [method for method, _, _ in link.endpoint.calls] == ["vif_list"] * 2
        finally:
            successor.stop(5)


def test_a_conductor_that_was_stopped_is_told_at_once():
    with rpc.link("oslo", rpc.Endpoint()) as link:
        link.conductor.vif_list(Request.new(), "a")
        link.server.stop(5)
        with pytest.raises(errors.ConductorUnreached, match="it has no queue"):
            link.conductor.vif_list(Request.new(), "a")


@pytest.mark.parametrize("calls", [1, 0])
def test_a_clean_stop_warns_of_nothing(caplog, calls):
    """Without a call, the queue is deleted by a new connection, beside its first heartbeat."""
    for _ in range(5):
        with rpc.link("oslo", rpc.Endpoint()) as link:
            for _call in range(calls):
                link.conductor.vif_list(Request.new(), "a")
            link.server.stop(5)
    faults = ("during closing", "cannot delete queue")
    assert [line for line in caplog.messages if any(each in line for each in faults)] == []


def test_a_call_waits_for_a_conductor_that_returns():
    with rpc.link("oslo", rpc.Endpoint()) as link, ThreadPoolExecutor(1) as callers:
        link.conductor.vif_list(Request.new(), "a")
        link.server.stop(5, returns=True)
        waiting = callers.submit(link.conductor.inject_nmi, Request.new(), "a")
        successor = transports.build_server(link.conf, link.host, link.endpoint)
        successor.start()
        try:
            assert waiting.result(timeout=20) is None
        finally:
            successor.stop(5)


def test_calls_that_come_while_a_conductor_stops_are_answered():
    counts, faults, is_over = collections.Counter(), [], threading.Event()

    def ask(link: rpc.Link, caller: int) -> None:
        while not is_over.is_set():
            try:
                link.conductor.vif_list(Request.new(), "a")
            except errors.Failure as exc:
                faults.append(exc)
            counts[caller] += 1

    def wait_for_more() -> None:
        before = dict(counts)
        wait_for(lambda: all(counts[each] > before.get(each, 0) + 1 for each in range(4)), "calls")

    with rpc.link("oslo", rpc.Endpoint(), rpc_response_timeout=5) as link:
        with ThreadPoolExecutor(4) as callers, _ended_by(is_over):
            for caller in range(4):
                callers.submit(ask, link, caller)
            wait_for_more()
            link.server.stop(5, returns=True)
            successor = transports.build_server(link.conf, link.host, link.endpoint)
            successor.start()
            wait_for_more()
        successor.stop(5)
    assert faults == []


@contextlib.contextmanager
def _ended_by(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()


def test_a_conductor_has_a_queue_of_its_own_that_loses_nothing():
    with (
        rpc.link("oslo", rpc.Endpoint()) as link,
        kombu.Connection(rpc.amqp_url()) as connection,
        pytest.raises(amqp.PreconditionFailed, match=r"inequivalent arg 'x-queue-type'.*quorum"),
    ):
        connection.channel().queue_declare(rpc.queue_of(link.host), durable=True, auto_delete=False)


def test_notifications_keep_an_exchange_of_their_own():
    """Theirs, ``ironic``, may be durable or not: calls never declare it."""
    with (
        rpc.link("oslo", rpc.Endpoint()) as link,
        kombu.Connection(rpc.amqp_url()) as connection,
    ):
        link.conductor.vif_list(Request.new(), "a")
        connection.channel().exchange_declare(oslo_rpc.EXCHANGE, "topic", passive=True)
        assert oslo_rpc.EXCHANGE != "ironic"


def test_calls_that_run_are_answered_before_the_end():
    endpoint, go_on, results = rpc.Endpoint(), threading.Event(), []
    endpoint.answer = lambda *_, **__: go_on.wait(10)
    with rpc.link("oslo", endpoint) as link:
        caller = threading.Thread(
            target=lambda: results.append(link.conductor.inject_nmi(Request.new(), "a"))
        )
        caller.start()
        wait_for(lambda: endpoint.calls, "the call")
        ending = threading.Thread(target=link.server.stop, args=(10,))
        ending.start()
        go_on.set()
        caller.join()
        ending.join()
        assert results == [True]


def test_a_url_of_no_use_is_refused_at_the_start():
    conf = rpc.conf_of("oslo", transport_url="nonsense://here/")
    with pytest.raises(errors.CannotStart, match="transport_url"):
        transports.build_client(conf)


def test_queues_that_processes_would_share_are_refused_at_the_start(tmp_path: Path):
    file = tmp_path / "bloomery.conf"
    file.write_text("[oslo_messaging_rabbit]\nuse_queue_manager = true\n")
    with pytest.raises(errors.CannotStart, match="each other's answers"):
        transports.build_client(rpc.conf_of("oslo"), config_files=[str(file)])


def test_options_of_the_broker_come_from_the_files(tmp_path: Path):
    file = tmp_path / "bloomery.conf"
    file.write_text("[oslo_messaging_rabbit]\nrabbit_quorum_queue = false\n")
    assert oslo_rpc.options_of([]).oslo_messaging_rabbit.rabbit_quorum_queue is True
    assert oslo_rpc.options_of([str(file)]).oslo_messaging_rabbit.rabbit_quorum_queue is False
