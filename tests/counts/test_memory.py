"""What a machine leaves in memory once a conductor has asked its BMC, in bytes."""

from __future__ import annotations

import dataclasses
import gc
import sys
import types
from datetime import UTC, datetime, timedelta
from typing import Any

from bloomery.conductor.sensor_history import Measurement, SensorHistory
from bloomery.conf import Conf
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import access
from bloomery.lab.rack import Rack
from tests.kit.clock import HandClock
from tests.kit.machines.driver_task import FakeTask

_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_STATE, _LOGIN = 1900, 2700  # of the BMC, with all of its latencies; of a login
_HOURS = 10_500  # of 20 sensors, with their names


def _bytes_of(record: Any, *shared: Any) -> int:
    """Return the size of an object and of all that only it refers to."""
    seen, todo, size = {id(each) for each in (None, True, False, *shared)}, [record], 0
    while todo:
        each = todo.pop()
        if id(each) not in seen and not isinstance(each, _SHARED):
            seen.add(id(each))
            size += sys.getsizeof(each)
            todo += gc.get_referents(each)
    return size


def test_the_last_hours_of_twenty_sensors_stay_small() -> None:
    began, history = datetime(2026, 1, 2, tzinfo=UTC), SensorHistory()
    for number in range(100):
        measurements = [
            Measurement("Fan", f"SystemBoard Fan {fan}@1", "rpm", "OK", 3000.0 + number)
            for fan in range(20)
        ]
        history.add(measurements, began + timedelta(minutes=number))
    assert _bytes_of(history) <= _HOURS


def test_a_bmc_that_is_left_alone_keeps_facts_and_no_objects_of_sushy() -> None:
    way = access.of(conf := dataclasses.replace(Conf(), redfish=Redfish(connection_idle_time=60)))
    clock = way.gateway.clock = HandClock()
    shared = (conf, *(getattr(conf, group.name) for group in dataclasses.fields(conf)), clock)
    with Rack(2, apart=True) as rack:
        first, other = (FakeTask(machine.driver_info) for machine in rack.machines)
        for _ in range(40):
            first.reads = {}
            way.change(first, lambda system: system.power_state)
        clock.now += 61
        way.document(other)  # closes what is idle for too long
        [login, _] = way._logins.values()
        assert _bytes_of(way.bmc(first), *shared) <= _STATE
        assert _bytes_of(login, *shared) <= _LOGIN
        first.reads = {}
        way.document(first)
        [_, login] = way._logins.values()
        assert _bytes_of(login, *shared) > 2 * _LOGIN  # the connection is open again
        way.close()
