"""The driver in doc/contributing/adding-a-driver.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bloomery import errors, plugins
from bloomery.conf import Conf
from bloomery.model.node import INTERFACES
from tests.kit.machines.driver_task import FakeTask, walk

PAGE = Path(__file__).parents[3] / "doc/contributing" / "adding-a-driver.md"


@pytest.fixture(scope="module")
def relay():
    [text] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(compile(text, str(PAGE), "exec"), names)
    return names


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "relay"
    file.write_text("power off")
    return FakeTask({"relay_file": str(file)})


@pytest.fixture
def power(relay):
    return relay["RelayPower"](Conf())


def test_its_type_names_interfaces_that_are_there(relay):
    supported = relay["RelayHardware"]().supported
    assert sorted(supported) == sorted(INTERFACES)
    own = {kind for kind, names in supported.items() if "relay" in names}
    assert own == {"power", "management", "vendor"}
    for kind, names in supported.items():
        installed = plugins.loaders(f"bloomery.hardware.interfaces.{kind}")
        assert set(names) - {"relay"} <= set(installed)


def test_the_page_shows_an_entry_point_for_each_of_its_classes(relay):
    shown = set(re.findall(r"relay = relay_driver\.\w+:(\w+)$", PAGE.read_text(), re.MULTILINE))
    assert shown == {name for name in relay if name.startswith("Relay")}


def test_its_machine_goes_on_off_and_through_a_reboot(power, task):
    power.validate(task)
    walk(task, lambda: power.set_power_state(task, "power on"))
    assert power.get_power_state(task) == task.node.power_state == "power on"
    writes = []
    ask = power._ask
    power._ask = lambda task, work, *, write=False: (
        (writes.append(1) if write else None) or ask(task, work, write=write)
    )
    walk(task, lambda: power.reboot(task))
    assert power.get_power_state(task) == task.node.power_state == "power on"
    assert len(writes) == 2


def test_a_relay_that_is_stuck_ends_the_step(power, task):
    relay = Path(task.driver_info["relay_file"])
    power._ask = lambda task, work, *, write=False: None if write else relay.read_text()
    with pytest.raises(errors.PowerStateFailure, match="stuck"):
        walk(task, lambda: power.set_power_state(task, "power on", 1e-9))


def test_a_relay_that_is_gone_is_told_of_in_why(power, task):
    Path(task.driver_info["relay_file"]).unlink()
    with pytest.raises(errors.BmcUnreachable):
        power.get_power_state(task)
    assert "No such file" in power.describe_bmc(task)["last_error"]


def test_its_step_is_offered(relay, task):
    vendor = relay["RelayVendor"](Conf())
    [click] = vendor.steps("clean")
    assert [said.reason for said in walk(task, lambda: vendor.run_step(task, click))] == ["click"]
