"""What must hold of calls between processes, each asked in a few milliseconds."""

from __future__ import annotations

import contextlib
import http.client
from types import SimpleNamespace
from typing import Any

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import JsonRpc
from bloomery.rpc import contract
from bloomery.rpc.dispatch import Dispatcher
from bloomery.rpc.json_rpc_server import JsonRpcServer
from bloomery.rpc.remote import CallLimits


def _conductor(orders: list[str]) -> Dispatcher:
    endpoint = SimpleNamespace(inject_nmi=lambda _request, node_uuid: orders.append(node_uuid))
    return Dispatcher(endpoint, contract.METHODS, host="h", version=contract.VERSION)


def _order(**more: Any) -> dict[str, Any]:
    return {
        "method": "inject_nmi", "version": "1.0", "call_id": "one", "host": "h",
        "context": {"request_id": "r"}, "arguments": {"node_uuid": "a"},
    } | more  # fmt: skip


def an_order_that_comes_twice_is_run_once() -> None:
    orders: list[str] = []
    conductor = _conductor(orders)
    assert conductor.dispatch(_order()) == conductor.dispatch(_order())
    assert orders == ["a"]


def a_successor_does_not_run_what_its_predecessor_may_have_run() -> None:
    orders: list[str] = []
    reply = _conductor(orders).dispatch(_order(instance="the one that died"))
    assert "failure" in reply
    assert orders == []


def another_host_at_the_address_runs_nothing() -> None:
    orders: list[str] = []
    assert "failure" in _conductor(orders).dispatch(_order(host="somebody-else"))
    assert orders == []


def a_dead_host_leaves_threads_to_others() -> None:
    now = [0.0]
    limits = CallLimits(16, lambda: now[0])
    with contextlib.ExitStack() as waiting:
        for _ in range(16):
            with contextlib.suppress(errors.ConductorCallsBusy):
                waiting.enter_context(limits.call("dead"))
            now[0] += 10
        assert limits.calls < limits.most
        waiting.enter_context(limits.call("alive"))
        assert limits.calls <= 8


def a_server_that_stops_answers_a_kept_connection() -> None:
    server = JsonRpcServer(_conductor([]), Conf(json_rpc=JsonRpc(port=0)))
    server.start()
    with contextlib.closing(http.client.HTTPConnection(*server.address, timeout=10)) as caller:
        statuses = []
        for begin_stop in (lambda: None, server.begin_stop):
            begin_stop()
            with contextlib.suppress(OSError, http.client.HTTPException):
                caller.request("GET", "/")
                answer = caller.getresponse()
                answer.read()
                statuses.append((answer.status, answer.will_close))
    server.stop()
    assert statuses == [(405, False), (405, True)]


PROBES = (
    a_server_that_stops_answers_a_kept_connection,
    an_order_that_comes_twice_is_run_once,
    a_successor_does_not_run_what_its_predecessor_may_have_run,
    another_host_at_the_address_runs_nothing,
    a_dead_host_leaves_threads_to_others,
)
