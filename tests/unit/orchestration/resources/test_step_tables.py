"""The tables of steps: each step has a row and a function, and can be come to."""

from __future__ import annotations

import importlib.metadata
import inspect
import re

import pytest

from bloomery.orchestration.resources import stepwise
from bloomery.orchestration.resources.base import Resource
from tests.kit.stacks.kinds import made

ALL = [each.load() for each in importlib.metadata.entry_points(group="bloomery.resources")]
KINDS: list[type[stepwise.Stepwise]] = [each for each in ALL if issubclass(each, stepwise.Stepwise)]
BEGINS = re.compile(r'\bbegin\(\s*"(\w+)"')
RECORD = "create update delete"
STORED = {  # names that rows of earlier releases may have: none may go, or change what it means
    "Allocation": "post await_node renew update delete",
    "DeployTemplate": RECORD,
    "HardwareConfiguration": "look manage run ran await_deployment",
    "Instance":
        "reserve await_node await_former withdraw_former prepare before order_before deploy "
        "deployed look_after run_after ran_after check_power switch switched come_up replace_node "
        "replaced_node quarantine renew rebuild release shut_down is_shut_down undeploy undeployed "
        "cleaned end_service free reserve_again drain",
    "InstanceGroup": "look choose change settle judge rest pause resume revert reverted",
    "Node": "enroll add_ports steer set_boot boot_set order patch leave remove",
    "Port": RECORD,
    "PortGroup": RECORD,
    "Runbook": RECORD,
    "RunbookExecution": "look manage run ran",
    "VolumeConnector": f"{RECORD} power_off is_off power_on is_on",
    "VolumeTarget": f"{RECORD} power_off is_off power_on is_on",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_has_one_row_and_one_function(kind: type[stepwise.Stepwise]) -> None:
    methods = {name[5:] for name in dir(kind) if re.match("step_[a-z]", name)}
    own = {name for name, step in kind.steps.items() if step.run is None}
    assert own - methods == set()
    assert methods - {*kind.steps} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_come_to_and_leads_to_steps(kind: type[stepwise.Stepwise]) -> None:
    sources = [inspect.getsource(each) for each in kind.__mro__ if each.__module__ != "builtins"]
    begun = {name for source in sources for name in BEGINS.findall(source)}
    if '"look" if' in " ".join(sources):  # the group of machines begins with one of two
        begun |= {"look", "choose"}
    following = {name for step in kind.steps.values() for name in step.then.split()}
    following.discard(stepwise.END)
    assert following <= kind.steps.keys()
    assert kind.steps.keys() <= begun | following


def test_a_step_that_goes_on_against_the_table_is_refused() -> None:
    class Lamp(stepwise.Stepwise):
        steps = stepwise.MARKS | {"find": stepwise.Step("find the lamp")}

        def step_find(self) -> str | None:
            return "switch"

    lamp = made(Lamp, {})
    lamp.begin("find")
    with pytest.raises(LookupError, match="find cannot go on with switch"):
        lamp.advance()


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_are_stored_are_understood(kind: type[stepwise.Stepwise]) -> None:
    stored = STORED[kind.__name__].split()
    assert {*stored, "mark", "unmark"} <= kind.steps.keys()


def depth(kind: type[Resource]) -> int:
    """Return how many classes deep a kind is below Resource."""
    bases = [each for each in kind.__bases__ if issubclass(each, Resource)]
    return 1 + max(depth(each) for each in bases) if bases else 0


DEEPEST = 4  # StepRun and Volume are two kinds each


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_three_deep(kind: type[Resource]) -> None:
    assert depth(kind) <= DEEPEST
