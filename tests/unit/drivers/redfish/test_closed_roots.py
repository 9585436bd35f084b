"""BMCs that show their service root to users alone."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.redfish import access
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from tests.kit.machines.driver_task import FakeTask


@pytest.fixture
def machine():
    with Rack(1, rules=Rules(root_needs_login=True)) as rack:
        yield rack.machines[0]


def power(system):
    return system.power_state.value


@pytest.mark.parametrize(("auth", "sessions"), [("auto", 1), ("session", 1), ("basic", 0)])
def test_the_root_is_read_with_the_password_and_the_rest_as_configured(
    machine, conf, auth, sessions
):
    way, task = access.of(conf), FakeTask(machine.driver_info | {"redfish_auth_type": auth})
    assert way.read(task, power) == "Off"
    asked = machine.bmc.requests
    assert way.read(task, power) == "Off"
    assert machine.bmc.requests == asked + 1, "the root is known"
    assert len(machine.bmc.sessions) == sessions


def test_a_wrong_password_is_sent_once(machine, conf):
    task = FakeTask(machine.driver_info | {"redfish_password": "guess"})
    with pytest.raises(errors.BmcLoginRefused, match="the user name or the password"):
        access.of(conf).read(task, power)
    assert machine.bmc.wrong_passwords == 1
