"""What turns cost: counted, not timed."""

from __future__ import annotations

from collections import Counter

import pytest

from bloomery.orchestration.engine import resource_actions
from bloomery.orchestration.resources import base
from tests.kit.stacks.tree_world import ROOT, Thing, World


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
    names, step = [], resource_actions.step

    def counted(stack, row):
        names.append(row.name)
        step(stack, row)

    monkeypatch.setattr(resource_actions, "step", counted)
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


class Looks(dict):
    """Rows by name that count how many of them were looked at."""

    count = 0

    def values(self):
        self.count += len(self)
        return super().values()

    def items(self):
        self.count += len(self)
        return super().items()

    def get(self, *key):
        self.count += 1
        return super().get(*key)


def test_a_look_at_the_neighbours_of_one_kind_looks_at_no_others():
    world = World()
    world.create(flat(50) + "\n  thing: {type: Test::Thing, properties: {wait_s: 50}}")
    world.run(before_s=10)
    stack = world.tree.stacks[ROOT]
    row = stack.rows["thing"]
    row.physical_id = "machine"
    stack.current_rows = rows = Looks(stack.current_rows)
    (neighbour,) = stack.context().siblings.list(row.kind, "machine")
    assert neighbour.record is row
    assert rows.count == 1
    assert stack.context().siblings.list(row.kind, "another machine") == []


def test_neighbours_are_found_by_one_look_at_all():
    world = World()
    world.create(flat(50) + "\n  thing: {type: Test::Thing, properties: {wait_s: 50}}")
    world.run(before_s=10)
    stack = world.tree.stacks[ROOT]
    names, siblings = [f"r{number}" for number in range(50)], stack.context().siblings
    stack.current_rows = rows = Looks(stack.current_rows)
    for name in names:
        assert siblings.find(rows[name].reference_id()).record.name == name
    assert rows.count < 3 * 50
    rows["r7"], rows["r8"] = rows["r8"], rows["r7"]  # another one is called so now
    assert siblings.find(rows["r7"].reference_id()).record.name == "r8"
    assert siblings.find("nobody") is None


HOUR_S = 3600


@pytest.fixture
def elsewhere(monkeypatch):
    """Each thing waits an hour for what is no part of its stack."""
    end_s = World().utc().timestamp() + HOUR_S

    def waits(self, _token):
        left_s = end_s - self.context.utc()
        if left_s > 0:
            return base.wait_for(f"node of {self.record.name}", left_s)
        return True

    monkeypatch.setattr(Thing, "check_create_complete", waits)


def test_many_who_wait_for_what_is_elsewhere_are_looked_at_together_and_less_often(
    steps, elsewhere
):
    count, world = 300, World()
    world.deadline_s = 2 * HOUR_S
    world.create(waiting(count))
    world.run()
    assert world.state == "CREATE_COMPLETE"
    assert 2 * count < len(steps) < 5.5 * HOUR_S
    assert len(world.turns) < HOUR_S / 20


def test_who_is_woken_counts_as_waiting_until_it_is_looked_at(elsewhere):
    """Whoever watches for what a tree waits for would take it for news otherwise."""
    world = World()
    world.create(waiting(3))
    world.run(before_s=60)
    assert world.tree is not None
    waits = {f"node of r{number}" for number in range(3)}
    assert set(world.tree.waits()) == waits
    world.tree.wake(None)
    world.tree.wake("node of r1")
    assert set(world.tree.waits()) == waits


MEMBERS = {"resource_registry": {"OS::Ironic::Instance": "Test::Thing"}}


def group(count, value, batch):
    return f"""
resources:
  g:
    type: OS::Ironic::InstanceGroup
    properties: {{count: {count}, member: {{value: {value}}}}}
    update_policy:
      rolling_update:
        batch_size: {batch}
        max_unavailable: {batch}
        health_gate: {{check: false, settle_seconds: 0}}
"""


@pytest.fixture
def validated(monkeypatch):
    """How often the values of each member were validated."""
    times = Counter()
    monkeypatch.setattr(Thing, "validate", lambda self: times.update([self.record.name]))
    return times


def rolled_out(count, batch, **more):
    world = World()
    world.create(group(count, "old", batch), environment=MEMBERS)
    world.run()
    world.turns.clear()
    world.reality.calls.clear()
    world.update(group(count, "new", batch), environment=MEMBERS | more)
    return world


def test_a_batch_of_a_roll_out_looks_at_its_members_alone(validated):
    world = rolled_out(12, 3)
    validated.clear()
    world.run()
    assert world.state == "UPDATE_COMPLETE"
    assert Counter(name for _, name in world.reality.calls) == {str(n): 1 for n in range(12)}
    assert validated.total() == 12 + 4  # each with its values; alike ones once in each template
    vertices = [len(s.graph["vertices"]) for t in world.turns for s in t.stacks if s.graph]
    assert max(vertices) == 3


def test_all_members_are_looked_at_again_where_the_environment_has_changed(validated):
    world = rolled_out(12, 3, parameter_defaults={"any": "thing"})
    validated.clear()
    world.run()
    assert world.state == "UPDATE_COMPLETE"
    # the whole template is looked at for batch 1; alike members of it once
    vertices = [len(s.graph["vertices"]) for t in world.turns for s in t.stacks if s.graph]
    assert vertices.count(12) == 1
    assert Counter(name for _, name in world.reality.calls) == {str(n): 1 for n in range(12)}


def test_a_roll_out_leaves_the_templates_of_its_batches_and_one_of_the_whole():
    world = rolled_out(12, 3)
    world.run()
    child = next(each for each in world.store.stacks.values() if each.uuid != ROOT)
    members = world.store.templates[child.template_uuid].template["resources"]
    assert [each["properties"]["value"] for each in members.values()] == ["new"] * 12
    rows = [each for each in world.store.resources.values() if each.stack_uuid == child.uuid]
    parts = [world.store.templates[each.template_uuid].template["resources"] for each in rows]
    assert [len(part) for part in parts] == [3] * 12
    kept = [
        len(each.template["resources"])
        for u, each in world.store.templates.items()
        if not u.startswith("template-") and each.template.get("resources")
    ]
    assert sorted(kept)[:4] == [3] * 4
    assert len(kept) <= 4 + 3  # the parts; the first, the last and the one before as a whole


def test_an_engine_that_takes_over_within_a_batch_finishes_it():
    for number in range(1, 12):
        world = rolled_out(4, 2)
        world.kill = lambda when, writes, at=world.writes + number: (
            when == "before" and writes == at
        )
        world.run()
        assert world.state == "UPDATE_COMPLETE", number
        assert {name for _, name in world.reality.calls} == {"0", "1", "2", "3"}
        assert [n for n, e in world.reality.ever.items()] == list(world.reality.things)
