from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.ramdisk import RamdiskDeploy
from bloomery.outcome import DONE, Again
from tests.kit.machines.driver_task import FakeTask, walk

ISO = "https://images.test/rescue.iso"


class Boot:
    name = "made-up"
    capabilities = frozenset({"ramdisk_boot"})

    def __init__(self, log) -> None:
        self.log = log

    def validate(self, task):
        self.log.append("validate")

    def check_machine(self, task):
        self.log.append("look")

    def prepare_instance(self, task):
        self.log.append("prepare")

    def clean_up_instance(self, task):
        self.log.append("clean up")


class Network:
    def __init__(self, log) -> None:
        self.log = log

    def connect(self, task, role):
        self.log.append(role)


class Power:
    """Each change takes one more turn."""

    def __init__(self, log) -> None:
        self.log = log

    def set_power_state(self, task, state, timeout_s=None):
        self.log.append(state)
        if self.log.count(state) == 1:
            return Again(after_s=1, reason=state)
        task.node.power_state = state
        return DONE


@pytest.fixture
def log():
    return []


@pytest.fixture
def task(log):
    made = FakeTask({}, instance_info={"boot_iso": ISO}, power_state="power on")
    made.driver = SimpleNamespace(boot=Boot(log), power=Power(log), network=Network(log))
    return made


@pytest.fixture
def deploy():
    return RamdiskDeploy(Conf())


def test_it_switches_off_prepares_the_boot_and_switches_on(deploy, task, log):
    walk(task, lambda: deploy.deploy(task))
    assert log == ["look", "power off", "power off", "tenant", "prepare", "power on", "power on"]
    assert task.node.power_state == "power on"
    assert task.node.driver_internal_info == {}


def test_tear_down_switches_off_and_takes_the_iso_away(deploy, task, log):
    walk(task, lambda: deploy.tear_down(task))
    assert log == ["power off", "power off", "idle", "clean up"]
    assert task.node.power_state == "power off"


def test_the_step_may_be_repeated(deploy):
    (step,) = deploy.steps("deploy")
    assert (step.step, step.priority, step.resumable) == ("deploy", 100, True)
    assert deploy.steps("clean") == ()


def test_the_iso_must_be_named(deploy, task):
    task.node.instance_info = {}
    with pytest.raises(errors.MissingParameterValue, match="instance_info/boot_iso is missing"):
        deploy.validate(task)


def test_an_image_is_led_to_the_interface_that_writes_it(deploy, task):
    task.node.name, task.node.instance_info = "web-1", {"image_source": "http://images.test/os.img"}
    with pytest.raises(errors.MissingParameterValue) as refusal:
        deploy.validate(task)
    assert str(refusal.value).endswith(
        "its deploy interface is ramdisk, which boots an ISO; an image needs direct: "
        "baremetal node set web-1 --deploy-interface direct"
    )


@pytest.mark.parametrize("iso", ["rescue.iso", "ftp://images.test/x", 5, ["x"]])
def test_the_iso_must_be_a_url(deploy, task, iso):
    task.node.instance_info = {"boot_iso": iso}
    with pytest.raises(errors.InvalidParameterValue, match="must be a URL of http, https, file"):
        deploy.validate(task)


def test_the_boot_interface_must_be_able_to(deploy, task, log):
    deploy.validate(task)
    assert log == ["validate"]
    task.driver.boot.capabilities = frozenset()
    with pytest.raises(errors.InvalidParameterValue, match="made-up cannot"):
        deploy.validate(task)
