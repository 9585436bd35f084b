from __future__ import annotations

import dataclasses

import pytest

from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import access
from bloomery.lab.rack import Rack
from tests.kit.clock import HandClock
from tests.kit.machines.driver_task import FakeTask


@pytest.fixture
def rack():
    with Rack(1) as made:
        yield made


@pytest.fixture
def machine(rack):
    return rack.machines[0]


@pytest.fixture
def task(machine):
    made = FakeTask(machine.driver_info)
    made.node.driver = "redfish"
    return made


@pytest.fixture
def conf():
    return dataclasses.replace(
        Conf(),
        conductor=Conductor(preflight_timeout=0),
        redfish=Redfish(power_on_conflict_retry_interval=1, connect_timeout=1, read_timeout=1),
    )


@pytest.fixture
def way(conf):
    return access.of(conf)


@pytest.fixture
def clock(way):
    way.gateway.clock = HandClock()
    return way.gateway.clock
