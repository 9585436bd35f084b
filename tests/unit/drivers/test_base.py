"""Marked steps, and what an interface does with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base, noop, steps
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again


class Marked(base.Deploy):
    @steps.deploy_step(priority=10)
    def write(self, task: base.DriverTask, image: str = "none") -> Any:
        return Again(after_s=1, reason=image)

    @steps.clean_step(priority=5, abortable=True, resumable=True)
    @steps.service_step()
    def erase(self, task: base.DriverTask) -> None:
        """Return nothing: done."""

    @steps.verify_step(priority=1)
    def look(self, task: base.DriverTask) -> None:
        """Look."""


class Heir(Marked):
    @steps.deploy_step(priority=99)
    def write(self, task: base.DriverTask, image: str = "none") -> Any:
        return DONE


def steps_of(interface: base.Interface) -> dict[str, list[str]]:
    return {phase: [step.step for step in interface.steps(phase)] for phase in steps.PHASES}


def test_marked_methods_are_offered_in_their_phases():
    assert steps_of(Marked(Conf())) == {
        "clean": ["erase"], "deploy": ["write"], "service": ["erase"], "verify": ["look"],
    }  # fmt: skip


def test_a_step_carries_what_was_said_of_it():
    [erase] = Marked(Conf()).steps("clean")
    assert erase == Step(
        interface="deploy", step="erase", priority=5, abortable=True, resumable=True,
    )  # fmt: skip


def test_steps_are_repeated_only_where_it_was_said():
    [write] = Marked(Conf()).steps("deploy")
    assert not write.resumable


def test_verify_steps_only_read_and_may_be_repeated():
    [look] = Marked(Conf()).steps("verify")
    assert look.resumable


def test_an_heir_marks_anew_what_it_overrides():
    [write] = Heir(Conf()).steps("deploy")
    assert write.priority == 99
    assert [step.step for step in Heir(Conf()).steps("clean")] == ["erase"]
    assert Marked(Conf()).steps("deploy")[0].priority == 10


def test_a_step_is_run_with_its_arguments():
    task: Any = SimpleNamespace()
    step = Step(interface="deploy", step="write", args={"image": "debian"})
    assert Marked(Conf()).run_step(task, step) == Again(after_s=1, reason="debian")


def test_a_step_that_returns_nothing_is_done():
    task: Any = SimpleNamespace()
    assert Marked(Conf()).run_step(task, Step(interface="deploy", step="erase")) == DONE


def test_an_interface_without_steps_does_not_speak_for_the_others():
    task: Any = SimpleNamespace(node=SimpleNamespace(uuid="n", name=None))
    with pytest.raises(errors.StepNotFound, match="it offers no steps of network"):
        noop.NoopNetwork(Conf()).run_step(task, Step(interface="network", step="nope"))


@pytest.mark.parametrize("absent", [noop.NoBios, noop.NoRescue, noop.NoRaid, noop.NoConsole])
def test_an_interface_that_is_not_there_says_so(absent: type[base.Interface]):
    task: Any = SimpleNamespace(node=SimpleNamespace(driver="fake-hardware"))
    with pytest.raises(errors.UnsupportedDriverExtension, match=absent.kind):
        absent(Conf()).validate(task)


def test_the_noop_network_takes_any_vif():
    network, task = noop.NoopNetwork(Conf()), SimpleNamespace()
    network.vif_attach(task, {"id": "vif"})
    network.vif_detach(task, "vif")
    assert network.vif_list(task) == []


PAGE = [
    kind
    for kind in vars(base).values()
    if isinstance(kind, type) and kind.__module__ == base.__name__
]


@pytest.mark.parametrize("kind", PAGE, ids=lambda kind: kind.__name__)
def test_the_page_says_of_every_method_what_it_is_for(kind: type):
    """Others write drivers from it: a method without a word is one that they must guess at."""
    methods = {name: m for name, m in vars(kind).items() if callable(m) and name[0] != "_"}
    assert [name for name, method in methods.items() if not method.__doc__] == []


def test_no_agent_is_booted_by_an_interface_that_does_not_say_so():
    task: Any = SimpleNamespace(node=SimpleNamespace(driver="odd"))
    boot = noop.NoBoot(Conf())
    boot.name = "no-boot"
    for validate in (boot.validate_ramdisk, boot.validate_inspection):
        with pytest.raises(errors.UnsupportedDriverExtension, match=r"odd .* interface no-boot"):
            validate(task)
