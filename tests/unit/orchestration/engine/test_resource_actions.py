"""Actions that fail, back off and are tried again, by one engine or by another each time."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.resources import base
from tests.kit.stacks.simulations import told
from tests.kit.stacks.tree_world import World

ONE = "resources: {a: {type: Test::Thing}}"


@pytest.fixture(params=[False, True], ids=["one engine", "another for each turn"])
def world(request):
    world = World()
    world.kill = lambda when, _number: (
        request.param and when == "after" and not world.turns[-1].rests
    )
    return world


def conflict():
    return errors.Conflict(reason="busy")


def in_error():
    return base.ResourceInError("ERROR", "no host")


def test_a_creation_in_conflict_is_deleted_and_tried_again_after_a_rest(world):
    world.reality.faults["create"] = [conflict(), in_error()]
    world.create(ONE)
    world.run()
    assert world.lines() == told("S C>, a C!, a D+, a C!, a D+, a C+, S C.")
    assert world.clock.now() == (2**1 + 1) + (2**2 + 1)
    assert world.row("a").attempt == 0
    assert world.row("a").due_at is None


def test_after_six_attempts_the_first_failure_is_told(world):
    world.reality.faults["create"] = [in_error(), *(conflict() for _ in range(9))]
    world.create(ONE)
    world.run()
    assert world.reality.called("create", "a") == 6
    assert world.state == "CREATE_FAILED"
    said = 'ResourceInError: resources.a: Went to status ERROR due to "no host"'
    assert world.root.reason == f"Resource CREATE failed: {said}"


def test_a_deletion_in_conflict_is_tried_again_after_a_rest(world):
    world.create(ONE)
    world.run()
    before = len(world.lines())
    world.reality.faults["delete"] = [conflict(), conflict()]
    world.delete()
    world.run()
    assert world.lines()[before:] == told("S D>, a D!, a D!, a D+, S D.")
    assert world.clock.now() == (2**1 + 1) + (2**2 + 1)


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
    assert world.lines()[before:] == told("S U>, a U+, a C+, a D+, S U.")
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
