"""Fake hardware does what ``driver_info["fake"]`` says."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Fake
from bloomery.drivers.base import DriverTask
from bloomery.drivers.fake import behaviour
from bloomery.drivers.fake.hardware import FakeDeploy, FakeHardware, FakeManagement, FakePower
from bloomery.model.node import Node
from bloomery.outcome import DONE, Again, WaitForCall


def make_task(turn: int = 0, uuid: str = "node-1", **told: Any) -> DriverTask:
    info = {"fake": told} if told else {}
    node = Node(uuid=uuid, driver="fake-hardware", driver_info=info)
    found: Any = SimpleNamespace(node=node, driver_info=info, turn=turn)
    return found


def act(task: DriverTask, conf: Conf | None = None) -> Any:
    return FakeDeploy(conf or Conf()).act(task, "deploy")


def test_told_nothing_it_does_as_asked():
    assert act(make_task()) is None
    assert FakePower(Conf()).set_power_state(make_task(), "power on") == DONE


@pytest.mark.parametrize("name", ["deploy", "deploy.deploy"])
def test_a_delay_asks_for_another_turn_and_is_over_then(name: str):
    said = act(make_task(delay={name: 2.5}))
    assert isinstance(said, Again)
    assert said.after_s == 2.5
    assert "deploy.deploy takes 2.5 s" in said.reason
    assert act(make_task(turn=1, delay={name: 2.5})) is None


def test_a_method_beats_its_interface():
    assert act(make_task(delay={"deploy": 9, "deploy.deploy": 1})).after_s == 1


def test_other_interfaces_are_not_meant():
    assert act(make_task(delay={"power": 9}, fail=["raid", "deploy.prepare"])) is None


def test_the_option_delays_all_nodes():
    conf = Conf(fake=Fake(deploy_delay="3"))
    assert act(make_task(), conf).after_s == 3
    assert act(make_task(delay={"deploy": 1}), conf).after_s == 1


def test_a_range_is_drawn_from():
    conf = Conf(fake=Fake(deploy_delay="1,2"))
    drawn = [act(make_task(), conf).after_s for _ in range(50)]
    assert all(1 <= seconds <= 2 for seconds in drawn)
    assert len(set(drawn)) > 1


@pytest.mark.parametrize("name", ["deploy", "deploy.deploy"])
def test_it_fails_where_told_to_in_every_turn(name: str):
    for turn in (0, 1):
        with pytest.raises(errors.BmcRefused, match=r"deploy\.deploy was told to fail"):
            act(make_task(turn=turn, fail=[name]))


def test_it_flaps_every_so_many_calls():
    task = make_task(uuid="flapping", flap={"deploy": 3})
    said: list[bool] = []
    for _ in range(9):
        try:
            act(task)
            said.append(True)
        except errors.BmcRefused:
            said.append(False)
    assert said == [True, True, False] * 3


def test_it_is_silent_until_the_time_budget_is_spent(monkeypatch):
    monkeypatch.setattr(behaviour, "_SILENCE_S", 0.01)
    with pytest.raises(errors.BmcUnreachable, match="no answer"):
        act(make_task(silent=["deploy"]))


def test_it_waits_for_its_agent_and_goes_on_with_the_call():
    said = act(make_task(wait={"deploy.deploy": 1.5}))
    assert isinstance(said, WaitForCall)
    assert said.then == "same"
    assert act(make_task(turn=1, wait={"deploy.deploy": 1.5})) is None


@pytest.mark.parametrize(
    "told",
    [
        "slow", ["slow"], {"sleep": 1}, {"delay": 1}, {"delay": {"deploy": "1"}},
        {"fail": "deploy"}, {"flap": ["deploy"]}, {"wait": {"deploy": True}}, {"wait": "x"},
        {"delay": {"deplooy": 1}}, {"fail": ["deploy.deplooy"]}, {"wait": {"deploy": -2}},
        {"delay": {"deploy": -1}}, {"flap": {"power": -1}}, {"silent": ["network.add"]},
        {"delay": {"deploy": 1e12}}, {"wait": {"deploy": -1e300}}, {"silent": [["power"]]},
    ],
    ids=str,
)  # fmt: skip
def test_a_behaviour_that_nobody_could_follow_is_refused(told: Any):
    task: Any = SimpleNamespace(driver_info={"fake": told})
    with pytest.raises(errors.InvalidParameterValue, match="driver_info/fake"):
        FakeHardware().check_driver_info(task.driver_info)


@pytest.mark.parametrize(
    "told",
    [None, {}, {"delay": {"deploy": 0.5}, "fail": ["raid"], "flap": {"power": 3}},
     {"silent": ["management"], "wait": {"deploy.deploy": -1}}],
    ids=str,
)  # fmt: skip
def test_a_behaviour_that_makes_sense_is_accepted(told: Any):
    task: Any = SimpleNamespace(driver_info={} if told is None else {"fake": told})
    FakeHardware().check_driver_info(task.driver_info)


@pytest.mark.parametrize(
    ("asked", "ends"),
    [("power on", "power on"), ("power off", "power off"), ("soft power off", "power off"),
     ("rebooting", "power on"), ("soft rebooting", "power on")],
)  # fmt: skip
def test_power_lands_where_it_was_sent_however_often(asked: str, ends: str):
    task, power = make_task(), FakePower(Conf())
    for _ in range(2):
        assert power.set_power_state(task, asked) == DONE
        assert power.get_power_state(task) == ends


def test_every_target_is_supported():
    assert set(FakePower(Conf()).get_supported_power_states(make_task())) == {
        "power on", "power off", "rebooting", "soft rebooting", "soft power off",
    }  # fmt: skip


def test_a_boot_device_that_is_not_there_is_refused():
    management = FakeManagement(Conf())
    management.set_boot_device(make_task(), "pxe")
    with pytest.raises(errors.InvalidParameterValue, match="disk"):
        management.set_boot_device(make_task(), "disk")


STEPS: list[Callable[[DriverTask], Any]] = [
    FakeDeploy(Conf()).prepare, FakeDeploy(Conf()).deploy, FakeDeploy(Conf()).tear_down,
    FakeDeploy(Conf()).clean_up,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_step_that_is_called_again_lands_in_the_same_place(step: Callable[[DriverTask], Any]):
    task = make_task()
    assert step(task) == step(task)


@pytest.mark.parametrize("delay", ["soon", "", "1,2,3", "-1", "1,x", "nan", "1e99"])
def test_a_delay_that_no_clock_could_follow_stops_the_start(delay: str):
    with pytest.raises(errors.CannotStart, match=r"\[fake\]deploy_delay is"):
        FakeDeploy(Conf(fake=Fake(deploy_delay=delay)))
