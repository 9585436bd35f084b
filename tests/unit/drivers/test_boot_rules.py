"""Whether a boot device is set for one boot or for each."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers import boot_rules
from tests.kit.machines.driver_task import FakeTask


@pytest.mark.parametrize(
    ("value", "once", "for_good"),
    [
        (None, False, True), ("Default", False, True), ("Always", True, True),
        ("Never", False, False), (True, True, True), ("true", True, True), (False, False, True),
    ],
)  # fmt: skip
def test_the_node_overrides_what_the_flow_asks_for(value: Any, once: bool, for_good: bool) -> None:
    task = FakeTask({"force_persistent_boot_device": value})
    assert boot_rules.is_persistent(task, False) is once
    assert boot_rules.is_persistent(task, True) is for_good


def test_another_value_is_refused_with_those_that_are_taken() -> None:
    with pytest.raises(errors.InvalidParameterValue, match="takes Always, Never, Default"):
        boot_rules.is_persistent(FakeTask({"force_persistent_boot_device": "Sometimes"}), True)
