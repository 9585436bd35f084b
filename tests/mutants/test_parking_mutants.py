"""Callers of BMCs are not parked; eight that come at once notice."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Any

import pytest

from bloomery.conductor import tasks
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from tests.kit.clients import bmc_callers

NODES = 8


@pytest.mark.parametrize("is_parked", [True, False])
def test_callers_of_bmcs_that_keep_threads_are_noticed(tmp_path, monkeypatch, is_parked):
    nobody: ContextVar[Any] = ContextVar("nobody", default=None)
    settings = dataclasses.replace(
        Conf(), api=Api(port=0, threads=2), default=Default(enabled_hardware_types=("redfish",))
    )
    with (
        Rack(NODES, apart=True, rules=Rules(late_s=0.1)) as rack,
        bmc_callers.serving(tmp_path, settings) as caller,
    ):
        nodes = [caller.enrol(machine.driver_info) for machine in rack.machines]
        if is_parked:
            return bmc_callers.boot_devices_are_set_at_once(caller, nodes)
        monkeypatch.setattr(tasks, "PARKING", nobody)
        with pytest.raises(AssertionError):
            bmc_callers.boot_devices_are_set_at_once(caller, nodes)
    return None
