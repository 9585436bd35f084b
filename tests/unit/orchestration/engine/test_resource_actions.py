"""Actions that fail, back off and are tried again, by one engine or by another each time."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.resources import base
from tests.kit.stacks.simulations import expand
from tests.kit.stacks.tree_world import World

ONE = "resources: {a: {type: Test::Thing}}"


@pytest.fixture(params=[False, True], ids=["one engine", "another for each turn"])
def world(request):
    world = World()
    world.kill = lambda when, _number: (
        request.param and when == "after" and not world.turns[-1].is_idle
    )
    return world


def conflict():
    return errors.Conflict(reason="busy")


def test_who_rests_when_the_stack_is_deleted_is_not_tried_again(world):
    world.reality.faults["create"] = [conflict()]
    world.create(ONE)
    world.run(before_s=1)
    world.delete()
    world.run()
    assert world.state == "DELETE_COMPLETE"
    assert world.reality.called("create", "a") == 1


def test_a_kind_may_ask_to_be_replaced_while_it_is_updated(world):
    world.create("resources: {a: {type: Test::Thing, properties: {value: x}}}")
    world.run()
    before, old = len(world.lines()), world.row("a").physical_id
    world.reality.faults["update"] = [base.UpdateReplace()]
    world.update("resources: {a: {type: Test::Thing, properties: {value: y}}}")
    world.run()
    assert world.lines()[before:] == expand("S U>, a U+, a C+, a D+, S U.")
    assert "The Resource a requires replacement." in world.reasons("a")
    assert list(world.reality.things) == [world.row("a").physical_id] != [old]


def test_an_update_that_fails_keeps_the_values_from_before(world):
    world.create("resources: {a: {type: Test::Thing, properties: {value: x}}}")
    world.run()
    old = world.row("a").properties_uuid
    world.reality.faults["update"] = [ValueError("no")]
    world.update("resources: {a: {type: Test::Thing, properties: {value: y}}}")
    world.run()
    assert world.row("a").properties_uuid == old
    assert world.store.properties[old].data["value"] == "x"


def test_a_resource_that_is_retained_stays_when_its_kind_asks_to_be_replaced(world):
    retained = (
        "resources: {a: {type: Test::Thing, deletion_policy: Retain, properties: {value: %s}}}"
    )
    world.create(retained % "x")
    world.run()
    old = world.row("a").physical_id
    world.reality.faults["update"] = [base.UpdateReplace()]
    world.update(retained % "y")
    world.run()
    assert list(world.reality.things) == [old, world.row("a").physical_id]
