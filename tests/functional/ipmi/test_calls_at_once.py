"""Callers of many BMCs at once: each is answered, and none keeps a thread of the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bloomery.conf.api import Api
from bloomery.lab.ipmi import IpmiRack
from tests.functional.ipmi.conftest import conf
from tests.kit.clients.bmc_callers import Caller, boot_devices_are_set_at_once, serving
from tests.kit.waiting import wait_for

NODES = 8


@pytest.fixture
def rack(programs, tmp_path) -> Iterator[IpmiRack]:
    with IpmiRack(tmp_path / "rack", nodes=NODES) as rack:
        yield rack


@pytest.fixture
def caller(tmp_path) -> Iterator[Caller]:
    """Clients of an API with the fewest threads."""
    settings = dataclasses.replace(conf(min_command_interval=5), api=Api(port=0, threads=2))
    with serving(tmp_path, settings) as caller:
        yield caller


def test_each_of_eight_boot_devices_set_at_once_is_set(rack, caller):
    nodes = {caller.enrol(each.driver_info, "ipmi"): each for each in rack.machines}
    boot_devices_are_set_at_once(caller, list(nodes))
    assert {machine.boot_device for machine in nodes.values()} == {"pxe"}


def test_two_threads_of_an_api_serve_others_while_bmcs_are_asked(rack, caller):
    nodes = {caller.enrol(each.driver_info, "ipmi"): each for each in rack.machines}
    runtime = caller.service.conductor.runtime
    for machine in nodes.values():
        machine.pause()
    with ThreadPoolExecutor(NODES) as pool:
        calls = [pool.submit(caller.boot_device, node) for node in nodes]
        wait_for(lambda: runtime.parked.in_use == NODES, "all BMCs to be asked", timeout_s=60)
        assert caller.ask("GET", "/v1/nodes")[0] == 200
        assert not any(call.done() for call in calls)
        for machine in nodes.values():
            machine.resume()
        assert [call.result()[0] for call in calls] == [200] * NODES
    assert runtime.parked.in_use == 0
