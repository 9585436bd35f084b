"""Deadlines are kept on a clock that nobody sets."""

from __future__ import annotations

import ast
import inspect
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from bloomery import clock
from bloomery.drivers.ipmi import power as ipmi_power
from bloomery.drivers.ipmi import power_sequence
from bloomery.drivers.redfish import bmc_write, power

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_setting_the_wall_clock_changes_nothing() -> None:
    wall, own_s = [NOON], [100.0]
    steady = clock.Steady(lambda: wall[0], lambda: own_s[0])
    wall[0] -= timedelta(hours=1)
    own_s[0] += 30
    assert steady.now() == NOON + timedelta(seconds=30)


def test_it_begins_with_what_the_wall_says() -> None:
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=10)


@pytest.mark.parametrize(
    "module", [power, bmc_write, power_sequence, ipmi_power], ids=lambda m: m.__name__
)
def test_what_waits_for_a_bmc_does_not_ask_the_wall(module: ModuleType) -> None:
    """With its clock an hour back, power would be waited for an hour, and looked at in a loop."""
    tree = ast.parse(inspect.getsource(module))
    asked = [
        ast.unparse(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("datetime.now", "datetime.utcnow", "time.time")
    ]
    assert asked == []
