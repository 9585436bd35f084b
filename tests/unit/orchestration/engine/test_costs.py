"""What turns cost: counted, not timed."""

from __future__ import annotations

import pytest

from bloomery.orchestration.engine import acts
from tests.kit.tree_world import World


def flat(count, changed="x"):
    values = {number: f"x{number}" for number in range(count)} | {count // 2: changed}
    body = "{{type: OS::Heat::Value, properties: {{value: {}}}}}"
    return "\n".join(["resources:", *(f"  r{i}: {body.format(values[i])}" for i in values)])


def chain(count):
    after = (f"  r{i}: {{type: Test::Thing, depends_on: r{i - 1}}}" for i in range(1, count))
    return "\n".join(["resources:", "  r0: {type: Test::Thing}", *after])


def waiting(count):
    lines = (
        f"  r{i}: {{type: Test::Thing, properties: {{wait_s: {50 + i}}}}}" for i in range(count)
    )
    return "\n".join(["resources:", *lines])


def test_a_flat_stack_takes_two_turns_however_large_it_is():
    world = World()
    world.create(flat(500))
    world.run()
    assert (len(world.turns), world.state) == (2, "CREATE_COMPLETE")


def test_a_chain_takes_one_turn_more_than_it_has_resources():
    world = World()
    world.create(chain(100))
    world.run()
    assert (len(world.turns), world.state) == (101, "CREATE_COMPLETE")


def test_an_update_of_one_writes_one_resource_in_each_of_two_turns():
    world = World()
    world.create(flat(500))
    world.run()
    world.turns.clear()
    world.update(flat(500, "y"))
    world.run()
    assert world.state == "UPDATE_COMPLETE"
    assert [len(turn.resources) for turn in world.turns] == [1, 1]
    assert [len(turn.stacks) for turn in world.turns] == [1, 1]


@pytest.fixture
def steps(monkeypatch):
    """The names of those that were stepped."""
    names, step = [], acts.step

    def counted(stack, row):
        names.append(row.name)
        step(stack, row)

    monkeypatch.setattr(acts, "step", counted)
    return names


def test_who_waits_for_a_child_is_woken_by_its_end_and_not_asked_before(steps):
    world = World()
    group = "OS::Heat::ResourceGroup"
    inner = "{type: Test::Thing, properties: {wait_s: 40}}"
    world.create(
        f"resources:\n  g: {{type: {group}, properties: {{count: 3, resource_def: {inner}}}}}"
    )
    world.run()
    assert world.state == "CREATE_COMPLETE"
    assert steps.count("g") == 2  # its handler, and the end of its child
    assert world.row("g").waits_for is None


@pytest.mark.parametrize("count", [10, 100])
def test_each_end_costs_the_same_however_many_wait(count, steps):
    """Each is looked at when it begins and when it asked to be; the others sleep."""
    world = World(poll_s=10_000)
    world.deadline_s = 1e6
    world.create(waiting(count))
    world.run()
    assert len(steps) == 2 * count
