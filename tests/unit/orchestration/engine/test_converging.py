"""Updates that compare with what is really there."""

from __future__ import annotations

import dataclasses

import pytest

from tests.kit.stacks import tree_world
from tests.kit.stacks.memory_machines import MemorySoftware

PAIR = """
resources:
  a: {type: Test::Thing, properties: {value: x}}
  b: {type: Test::Thing, properties: {value: {get_resource: a}}}
"""
MEMBERS = """
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: Test::Thing, properties: {value: m}}}
"""
SOFTWARE = """
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {config: text}}
"""


@pytest.fixture
def world():
    return tree_world.World()


def converge(world, text):
    before = len(world.lines())
    world.update(text, converge=True)
    world.run()
    assert world.state == "UPDATE_COMPLETE"
    return world.lines()[before + 1 : -1]


@pytest.fixture
def pair(world):
    world.create(PAIR)
    world.run()
    return world


def test_what_is_as_it_should_be_is_left_alone(pair):
    assert converge(pair, PAIR) == []


def test_what_was_changed_behind_our_back_is_changed_again(pair):
    pair.reality.values["a"] = "other"
    assert converge(pair, PAIR) == ["a UPDATE_IN_PROGRESS", "a UPDATE_COMPLETE"]
    assert pair.reality.called("update", "a") == 1


def test_without_being_asked_an_update_compares_with_what_is_stored(pair):
    pair.reality.values["a"] = "other"
    pair.reality.things.clear()
    pair.update(PAIR)
    pair.run()
    assert pair.reality.called("update", "a") == 0
    assert pair.reality.called("create", "a") == 1


def test_what_is_gone_is_made_anew_and_whoever_refers_to_it_follows(pair):
    old = pair.row("a")
    del pair.reality.things[old.physical_id]
    told = converge(pair, PAIR)
    assert told[:4] == [
        "a UPDATE_IN_PROGRESS", "a UPDATE_COMPLETE", "a CREATE_IN_PROGRESS", "a CREATE_COMPLETE",
    ]  # fmt: skip
    assert "b UPDATE_COMPLETE" in told
    assert pair.row("a").replaces_uuid == old.uuid
    assert pair.row("a").physical_id in pair.reality.things
    assert pair.picture()["missing"] == []


def test_a_real_thing_that_cannot_be_asked_counts_as_it_is_stored(pair):
    def refuse(_self):
        raise ValueError("no connection")

    pair.runtime.kinds.find("Test::Thing").get_live_resource_data = refuse
    assert converge(pair, PAIR) == []


def test_a_crash_does_not_forget_that_an_update_converges(pair):
    del pair.reality.things[pair.row("b").physical_id]
    pair.kill = lambda when, _number: when == "after"
    told = converge(pair, PAIR)
    assert "b CREATE_COMPLETE" in told


def test_members_of_a_group_are_looked_at_too(world):
    world.create(MEMBERS)
    world.run()
    world.reality.things.clear()
    converge(world, MEMBERS)
    assert world.reality.called("create", "0") == 2
    assert len(world.reality.things) == 1


def test_a_child_that_is_gone_is_replaced_with_its_resource(world):
    world.create(MEMBERS)
    world.run()
    old = world.row("group")
    child = world.store.stacks[old.physical_id]
    world.store.stacks[child.uuid] = dataclasses.replace(child, deleted_at=world.utc())
    told = converge(world, MEMBERS)
    assert "group CREATE_COMPLETE" in told
    assert world.row("group").replaces_uuid == old.uuid


def test_a_config_that_was_deleted_by_itself_is_made_anew():
    software = MemorySoftware()
    world = tree_world.World(software=lambda _project: software)
    world.create(SOFTWARE)
    world.run()
    software.configs.clear()
    assert "config CREATE_COMPLETE" in converge(world, SOFTWARE)
    assert list(software.configs) == [world.row("config").physical_id]
