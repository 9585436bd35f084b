"""Plug-ins that are called before and after each action of a stack."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import pytest

from bloomery.orchestration.engine.lifecycle_plugins import LifecyclePlugins
from tests.kit.clock import EnteredClock
from tests.kit.stacks.simulations import stack
from tests.kit.stacks.stack_lives import Life, StoredSimulation


@dataclass
class Plugin:
    """Writes down what it hears."""

    name: str = "p"
    refuses: str | None = None  # which action
    breaks: bool = False
    calls: list[str] = field(default_factory=list)

    def do_pre_op(self, context, stack, current_stack=None, action=None):
        assert context == {"project_id": stack.project, "user": None}
        self.calls.append(f"{self.name} before {stack.name} {action} {stack.status}")
        if action == self.refuses:
            raise ValueError(f"no {action} on Sundays")

    def do_post_op(self, context, stack, current_stack=None, action=None, is_stack_failure=False):
        ended = "failed" if is_stack_failure else "done"
        self.calls.append(f"{self.name} after {stack.name} {action} {ended}")
        if self.breaks:
            raise ValueError("nobody cares")


@dataclass
class Ordered(Plugin):
    ordinal: int = 100

    def get_ordinal(self):
        return self.ordinal


class Plugged(StoredSimulation):
    plugins = LifecyclePlugins()

    def runtime(self):
        return dataclasses.replace(super().runtime(), plugins=self.plugins)


def life_of(*plugins):
    simulation = Plugged(clock=EnteredClock())
    Plugged.plugins = LifecyclePlugins(plugins)
    return Life(simulation)


VALUE = "resources: {v: {type: OS::Heat::TestResource, properties: {fail: FAIL}}}"


def template(fail="false"):
    return stack(VALUE.replace("FAIL", fail))


def test_plug_ins_hear_of_each_action():
    plugin = Plugin()
    life = life_of(plugin)
    life.create(template())
    for verb in ("suspend", "resume", "check", "delete"):
        getattr(life, verb)()
    actions = ("CREATE", "SUSPEND", "RESUME", "CHECK", "DELETE")
    assert plugin.calls == [
        line
        for action in actions
        for line in (f"p before S {action} IN_PROGRESS", f"p after S {action} done")
    ]


def test_plug_ins_hear_of_failures_and_of_the_way_back():
    plugin = Plugin()
    assert life_of(plugin).create(template("true"), rollback=True).status == "ROLLBACK_COMPLETE"
    assert plugin.calls == [
        "p before S CREATE IN_PROGRESS",
        "p after S CREATE failed",
        "p before S ROLLBACK IN_PROGRESS",
        "p after S ROLLBACK done",
    ]


def test_plug_ins_hear_of_an_action_that_is_cancelled():
    plugin = Plugin()
    life = life_of(plugin)

    def cancel():
        life.tree.cancel()

    life.simulation.clock.call_at(5, cancel)
    life.create(stack("resources: {v: {type: OS::Heat::TestResource, properties: {wait_secs: 9}}}"))
    assert plugin.calls[-1] == "p after S CREATE failed"


@pytest.mark.parametrize("action", ["CREATE", "SUSPEND", "DELETE"])
def test_a_plug_in_may_refuse_an_action(action):
    life = life_of(Plugin(refuses=action))
    result = life.create(template())
    if action != "CREATE":
        result = getattr(life, action.lower())()
    assert result.status == f"{action}_FAILED"
    assert result.reason == f"Resource {action} failed: ValueError: no {action} on Sundays"


def test_those_that_were_called_hear_that_another_refused_and_the_order_is_theirs():
    calls = []
    first, second, last = (
        Ordered(name="b", calls=calls, ordinal=2),
        Ordered(name="a", calls=calls, ordinal=1, breaks=True),
        Plugin(name="c", calls=calls, refuses="CREATE"),
    )
    life_of(last, first, second).create(template())
    assert calls == [
        "a before S CREATE IN_PROGRESS",
        "b before S CREATE IN_PROGRESS",
        "c before S CREATE IN_PROGRESS",
        "a after S CREATE failed",
        "b after S CREATE failed",
    ]


def test_what_a_plug_in_raises_afterwards_changes_nothing(caplog):
    assert life_of(Plugin(breaks=True)).create(template()).status == "CREATE_COMPLETE"
    assert "plug-in Plugin fails after CREATE" in caplog.text
