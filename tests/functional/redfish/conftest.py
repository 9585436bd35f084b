"""A rack on loopback, asked over real HTTP, and a site that serves Redfish."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import BmcOptions, Redfish
from bloomery.drivers import registry
from bloomery.lab import wire
from bloomery.lab.rack import Machine, Rack
from tests.kit.servers.stories import Stage

ISO = "http://images.test/rescue.iso"
BUDGET_S = 3.0  # what the configuration below allows a call, and a change of power


def conf() -> Conf:
    """Only Redfish; a BMC that is mute is given up soon."""
    return dataclasses.replace(
        Conf(),
        default=Default(enabled_hardware_types=("redfish",)),
        conductor=Conductor(power_state_change_timeout=int(BUDGET_S), preflight_timeout=0),
        redfish=Redfish(connect_timeout=1, read_timeout=1, power_on_conflict_retry_interval=1),
        bmc=BmcOptions(call_timeout=int(BUDGET_S), breaker_failures=3, breaker_pause=60),
    )


@pytest.fixture
def make_rack() -> Iterator[Callable[..., Rack]]:
    """Make racks, each machine with a BMC of its own."""
    made: list[Rack] = []

    def make(nodes: int = 1, **more: Any) -> Rack:
        made.append(Rack(nodes, **{"apart": True} | more).start())
        return made[-1]

    yield make
    for rack in made:
        rack.stop()


@pytest.fixture
def machine(make_rack) -> Machine:
    return make_rack(power_s=0.1).machines[0]


@pytest.fixture
def stage(make_site) -> Iterator[Stage]:
    made = Stage(make_site(registry=registry.load(conf()), bmc_outage_budget=int(BUDGET_S)))
    yield made
    assert made.nothing_is_left(), "a reservation is left"


@pytest.fixture
def asked(monkeypatch):
    """Every request to the lab's BMCs since it was cleared, as "METHOD path"."""
    seen: list[str] = []
    serve = wire.Connection.serve

    def noted(self, request):
        seen.append(f"{request.method} {request.target.removeprefix('/redfish/v1')}")
        serve(self, request)

    monkeypatch.setattr(wire.Connection, "serve", noted)
    return seen


def enrol(stage: Stage, machine: Machine, **driver_info: Any) -> str:
    return stage.enrol(driver="redfish", driver_info=machine.driver_info | driver_info)


def manageable(stage: Stage, machine: Machine, **driver_info: Any) -> str:
    node = enrol(stage, machine, **driver_info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


def available(stage: Stage, machine: Machine) -> str:
    """Return a node that could be deployed with an ISO."""
    node = manageable(stage, machine)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    stage.patch(node, **{"instance_info.boot_iso": ISO})
    return node
