"""Booting by virtual media: what becomes of the power meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bloomery.drivers.redfish.boot import RedfishVirtualMedia
from bloomery.lab.rack import Rack
from bloomery.outcome import DONE
from tests.kit.machines.driver_task import FakeTask

ISO = "http://images.test/agent.iso"


@pytest.mark.parametrize("disable_power_off", [True, False])
def test_a_machine_that_may_not_be_off_stays_on(conf: Any, disable_power_off: bool) -> None:
    """Its caller restarts it."""
    orders: list[str] = []

    def order(_task: Any, state: str) -> Any:
        orders.append(state)
        return DONE

    with Rack(1) as rack:
        machine = rack.machines[0]
        task: Any = FakeTask(
            machine.driver_info | {"deploy_iso": ISO}, disable_power_off=disable_power_off
        )
        task.driver = SimpleNamespace(power=SimpleNamespace(set_power_state=order))
        boot = RedfishVirtualMedia(conf)
        assert boot.prepare_ramdisk(task, {}) == DONE
        assert machine.system.media == {"Cd": ISO}
        assert boot.clean_up_ramdisk(task) == DONE
        assert machine.system.media == {"Cd": None}
    assert orders == ([] if disable_power_off else ["power off", "power off"])
