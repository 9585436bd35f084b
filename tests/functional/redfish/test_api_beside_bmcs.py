"""Callers whose BMC is mute wait beside the API: everybody else is served meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import BmcOptions, Redfish
from tests.functional.redfish.conftest import BUDGET_S
from tests.kit.clients.bmc_callers import serving
from tests.kit.waiting import wait_for

until = functools.partial(wait_for, timeout_s=60.0)  # machines that test may be busy
WORKERS = 20
PLACES = WORKERS // 2
CALLERS = 50


def conf(**redfish: Any) -> Conf:
    return dataclasses.replace(
        Conf(),
        api=Api(port=0, threads=2),
        default=Default(enabled_hardware_types=("redfish",)),
        conductor=Conductor(workers_pool_size=WORKERS, graceful_shutdown_timeout=5),
        redfish=Redfish(**redfish),
        bmc=BmcOptions(breaker_failures=1000),
    )


@pytest.fixture
def serve(tmp_path) -> Iterator[Any]:
    """Start a service with options of [redfish]."""
    with contextlib.ExitStack() as started:
        yield lambda **redfish: started.enter_context(serving(tmp_path, conf(**redfish)))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CALLERS) as threads:
        yield threads


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A BMC that takes connections and says nothing until it is closed."""
    with socket.create_server(("127.0.0.1", 0), backlog=CALLERS) as hole:
        yield hole


def answers(calls: list[Future[Any]]) -> list[Any]:
    return [call.result() for call in calls if call.done()]


@pytest.mark.parametrize("verb", ["read", "write"])
def test_an_unrelated_get_is_answered_while_mute_bmcs_are_asked(serve, pool, mute, verb) -> None:
    caller = serve()
    address = f"http://127.0.0.1:{mute.getsockname()[1]}"
    info = {"redfish_address": address, "redfish_username": "u", "redfish_password": "p"}
    nodes = [caller.enrol(info) for _ in range(PLACES + 4)]
    order = {"boot_device": "pxe", "persistent": False} if verb == "write" else None
    method = "PUT" if verb == "write" else "GET"
    calls = [
        pool.submit(caller.ask, method, f"/v1/nodes/{node}/management/boot_device", order)
        for node in nodes
    ]
    until(lambda: caller.service.conductor.runtime.parked.in_use == PLACES, "BMCs to be asked")
    status, _, _ = caller.ask("GET", "/v1/nodes")
    assert status == 200
    assert {status for status, _, _ in answers(calls)} <= {503}, "the list had to wait for a BMC"
    until(lambda: len(answers(calls)) == len(nodes) - PLACES, "the others to be told")
    for status, headers, said in answers(calls):
        assert (status, int(headers["retry-after"]) > 0) == (503, True)
        fault = json.loads(json.loads(said)["error_message"])["faultstring"]
        assert "[conductor]workers_pool_size" in fault
    mute.close()
    left = [call.result() for call in calls if call.result()[0] != 503]
    assert [status for status, _, _ in left] == [502] * PLACES
    assert all(caller.is_free(node) for node in nodes)


def test_a_client_that_cannot_bear_the_header_is_not_sent_it(serve, pool, mute) -> None:
    caller = serve()
    node = caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
    others = [
        caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
        for _ in range(PLACES)
    ]
    runtime = caller.service.conductor.runtime
    calls = [pool.submit(caller.boot_device, other) for other in others]
    until(lambda: runtime.parked.in_use == PLACES, "the places to be taken")
    status, headers, _ = caller.boot_device(node, **{"User-Agent": "python-ironicclient"})
    assert (status, "retry-after" in headers) == (503, False)
    mute.close()
    for call in calls:
        call.result()


def test_fifty_callers_of_mute_bmcs_harm_nobody_and_all_is_well_when_they_are_back(
    serve, pool, make_rack
) -> None:
    machines = make_rack(nodes=10).machines
    caller = serve(connect_timeout=1, read_timeout=1)
    nodes = [caller.enrol(machine.driver_info) for machine in machines]
    for machine in machines:
        machine.bmc.faults.add(kind="hang", seconds=BUDGET_S * 10, times=-1)
    calls = [pool.submit(caller.boot_device, nodes[n % 10]) for n in range(CALLERS)]
    while not all(call.done() for call in calls):
        assert caller.ask("GET", "/v1/nodes")[0] == 200
    assert {call.result()[0] for call in calls} <= {502, 503, 409}
    assert 503 in {call.result()[0] for call in calls}
    for machine in machines:
        machine.bmc.faults.clear()
    assert [caller.boot_device(node)[0] for node in nodes] == [200] * 10
    assert caller.service.conductor.runtime.parked.in_use == 0


def test_a_caller_that_gave_up_leaves_the_node_free(serve, mute) -> None:
    caller = serve()
    node = caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
    runtime = caller.service.conductor.runtime
    with socket.create_connection(caller.service.api.address[:2]) as client:
        client.sendall(
            f"GET /v1/nodes/{node}/management/boot_device HTTP/1.1\r\n"
            "Host: localhost\r\n\r\n".encode()
        )
        until(lambda: runtime.parked.in_use == 1, "the BMC to be asked")
    mute.close()
    until(lambda: caller.is_free(node) and not runtime.node_locks.in_use, "the node to be free")
    until(lambda: not runtime.workers.busy, "the worker to be free")
