"""Callers whose BMC is mute wait beside the API: everybody else is served meanwhile."""

from __future__ import annotations

import dataclasses
import functools
import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.redfish import BmcOptions, Redfish
from bloomery.state_dir import StateDir
from tests.functional.redfish.conftest import BUDGET_S
from tests.kit import databases
from tests.kit.waiting import wait_for

until = functools.partial(wait_for, timeout_s=60.0)  # machines that test may be busy
THREADS = 4
PLACES = THREADS // 2
CALLERS = 50
VERSION = {"X-OpenStack-Ironic-API-Version": "1.115", "Content-Type": "application/json"}


def conf(**redfish: Any) -> Conf:
    return dataclasses.replace(
        Conf(),
        api=Api(port=0, threads=THREADS),
        default=Default(enabled_hardware_types=("redfish",)),
        conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5),
        redfish=Redfish(**redfish),
        bmc=BmcOptions(breaker_failures=1000),
    )


class Caller:
    """Clients of a running service, each call on a connection of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.service.api.address[:2], timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, VERSION | headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def enrol(self, driver_info: dict[str, Any]) -> str:
        status, _, said = self.ask(
            "POST", "/v1/nodes", {"driver": "redfish", "driver_info": driver_info}
        )
        assert status == 201, said
        return str(json.loads(said)["uuid"])

    def boot_device(self, node: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return self.ask("GET", f"/v1/nodes/{node}/management/boot_device", **headers)

    def is_free(self, node: str) -> bool:
        return json.loads(self.ask("GET", f"/v1/nodes/{node}")[2])["reservation"] is None


@pytest.fixture
def serve(tmp_path) -> Iterator[Any]:
    """Start a service, as ``bloomery serve`` does."""
    started: list[Any] = []

    def start(**redfish: Any) -> Caller:
        home = StateDir(tmp_path / "state").__enter__()
        settings = dataclasses.replace(conf(**redfish), database=databases.settings(tmp_path))
        service = Service(settings, home)
        service.start()
        started.extend([service, home])
        return Caller(service)

    yield start
    for one in started:
        one.__exit__(None, None, None)


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
    nodes = [caller.enrol(info) for _ in range(6)]
    order = {"boot_device": "pxe", "persistent": False} if verb == "write" else None
    method = "PUT" if verb == "write" else "GET"
    calls = [
        pool.submit(caller.ask, method, f"/v1/nodes/{node}/management/boot_device", order)
        for node in nodes
    ]
    status, _, _ = caller.ask("GET", "/v1/nodes")
    assert status == 200
    assert {status for status, _, _ in answers(calls)} <= {503}, "the list had to wait for a BMC"
    until(lambda: len(answers(calls)) == len(nodes) - PLACES, "the others to be told")
    for status, headers, said in answers(calls):
        assert (status, int(headers["retry-after"]) > 0) == (503, True)
        assert "[api]threads" in json.loads(json.loads(said)["error_message"])["faultstring"]
    mute.close()
    left = [call.result() for call in calls if call.result()[0] != 503]
    assert [status for status, _, _ in left] == [500] * PLACES
    assert all(caller.is_free(node) for node in nodes)


def test_a_client_that_cannot_bear_the_header_is_not_sent_it(serve, pool, mute) -> None:
    caller = serve()
    node = caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
    others = [
        caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
        for _ in range(PLACES)
    ]
    node_locks = caller.service.conductor.runtime.node_locks
    calls = [pool.submit(caller.boot_device, other) for other in others]
    until(lambda: node_locks.places.in_use == PLACES, "the places to be taken")
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
    assert {call.result()[0] for call in calls} <= {500, 503, 409}
    assert 503 in {call.result()[0] for call in calls}
    for machine in machines:
        machine.bmc.faults.clear()
    assert [caller.boot_device(node)[0] for node in nodes] == [200] * 10
    assert caller.service.conductor.runtime.node_locks.places.in_use == 0


def test_a_caller_that_gave_up_leaves_the_node_free(serve, mute) -> None:
    caller = serve()
    node = caller.enrol({"redfish_address": f"http://127.0.0.1:{mute.getsockname()[1]}"})
    node_locks = caller.service.conductor.runtime.node_locks
    with socket.create_connection(caller.service.api.address[:2]) as client:
        client.sendall(
            f"GET /v1/nodes/{node}/management/boot_device HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        until(lambda: node_locks.places.in_use == 1, "the BMC to be asked")
    mute.close()
    until(lambda: caller.is_free(node) and not node_locks.in_use, "the node to be free")
    until(lambda: not caller.service.conductor.runtime.workers.busy, "the worker to be free")
