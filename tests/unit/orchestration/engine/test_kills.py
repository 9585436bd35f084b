"""An engine is killed before and after each write; its successor ends as if nothing had been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bloomery.model.stacks import OrderKind
from tests.kit.sampling import some
from tests.kit.stacks.tree_world import World

CHILD = """
heat_template_version: 2021-04-16
parameters: {p: {type: string}, wait_s: {type: number, default: 5}}
resources:
  in: {type: Test::Thing, properties: {value: {get_param: p}, wait_s: {get_param: wait_s}}}
  beside: {type: Test::Thing, depends_on: in}
outputs:
  out: {value: {get_attr: [in, value]}}
"""
FILES = {"child.yaml": CHILD}
TWELVE = """
resources:
  a: {type: Test::Thing, properties: {value: VALUE, wait_s: 1}}
  b: {type: Test::Thing, properties: {value: {get_attr: [a, value]}, salt: "SALT"}}
  c: {type: Test::Thing, properties: {value: {get_resource: b}, wait_s: 2}}
  d: {type: Test::Thing, depends_on: c, properties: {fail: FAIL, value: VALUE}}
  e: {type: Test::Thing, properties: {wait_s: 3, value: VALUE}}
  g:
    type: OS::Heat::ResourceGroup
    depends_on: a
    properties:
      count: COUNT
      resource_def: {type: Test::Thing, properties: {value: "VALUE%index%", wait_s: 2}}
  n: {type: child.yaml, depends_on: b, properties: {p: VALUE}}
  r: {type: OS::Heat::RandomString}
MORE
outputs:
  c: {value: {get_attr: [c, value]}}
  n: {value: {get_attr: [n, out]}}
"""


def text(value="x", salt="1", fail="false", count="2", more="  z: {type: Test::Thing}") -> str:
    made = TWELVE.replace("VALUE", value).replace("SALT", salt).replace("FAIL", fail)
    return made.replace("COUNT", count).replace("MORE", more)


def create(world: World) -> None:
    world.create(text(), files=FILES)
    world.run()


def failing_create(world: World) -> None:
    world.create(text(fail="true"), files=FILES, rollback=True)
    world.run()


def replacement(world: World) -> None:
    create(world)
    world.update(text("y", "2", count="3", more=""), files=FILES)
    world.run()


def failing_update(world: World) -> None:
    create(world)
    world.update(text("y", "2", "true", "3", more=""), files=FILES, rollback=True)
    world.run()


def superseded_update(world: World) -> None:
    create(world)
    world.update(text("y", "2", count="3", more=""), files=FILES)
    world.run(before_s=world.clock.now() + 1.5)
    world.update(text("z", "3", count="1"), files=FILES)
    world.run()


def superseded_create(world: World) -> None:
    world.create(text(), files=FILES)
    world.run(before_s=1.5)
    world.update(text("z", "3", count="1"), files=FILES)
    world.run()


def deletion(world: World) -> None:
    create(world)
    world.delete()
    world.run()


def deletion_while_busy(world: World) -> None:
    world.create(text(), files=FILES)
    world.run(before_s=1.5)
    world.delete()
    world.run()


def suspension(world: World) -> None:
    create(world)
    for kind in (OrderKind.SUSPEND, OrderKind.RESUME, OrderKind.CHECK):
        world.order(kind)
        world.run()


def cancellation(world: World) -> None:
    create(world)
    world.update(text("y", "2", count="3", more=""), files=FILES)
    world.run(before_s=world.clock.now() + 1.5)
    world.cancel(rollback=True)
    world.run()


def late_sibling(world: World) -> None:
    """Whatever is at work when the walk has failed goes on."""
    world.create(text(fail="true"), files=FILES)
    world.run()
    world.delete()
    world.run()


SCENES: dict[str, tuple[Callable[[World], None], str]] = {
    each.__name__: (each, state)
    for each, state in (
        (create, "CREATE_COMPLETE"),
        (failing_create, "ROLLBACK_COMPLETE"),
        (replacement, "UPDATE_COMPLETE"),
        (failing_update, "ROLLBACK_COMPLETE"),
        (superseded_update, "UPDATE_COMPLETE"),
        (superseded_create, "UPDATE_COMPLETE"),
        (deletion, "DELETE_COMPLETE"),
        (deletion_while_busy, "DELETE_COMPLETE"),
        (suspension, "CHECK_COMPLETE"),
        (cancellation, "ROLLBACK_COMPLETE"),
        (late_sibling, "DELETE_COMPLETE"),
    )
}


def played(scene: Callable[[World], None], kill: Any = None) -> World:
    world = World()
    if kill is not None:
        world.kill = lambda when, number: (when, number) == kill
    scene(world)
    return world


@pytest.mark.parametrize(("scene", "state"), SCENES.values(), ids=SCENES)
def test_nothing_is_left_and_nothing_is_missing_when_nobody_is_killed(scene, state):
    world = played(scene)
    picture = world.picture()
    assert world.state == state
    assert (picture["orphans"], picture["missing"], picture["open"]) == ([], [], [])
    assert world.turns[-1].is_idle


@pytest.mark.sampled
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scene", [scene for scene, _state in SCENES.values()], ids=SCENES)
def test_a_successor_ends_as_if_nobody_had_been_killed(scene, when):
    """Each write of the scene is one kill, and each end is compared."""
    undisturbed = played(scene)
    expected = undisturbed.picture()
    assert undisturbed.writes > 4
    for number in some(range(1, undisturbed.writes + 1)):
        killed = played(scene, (when, number)).picture()
        assert killed == expected, f"killed {when} write {number}"


@pytest.mark.parametrize("scene", [scene for scene, _state in SCENES.values()], ids=SCENES)
def test_each_turn_may_be_another_engine_s(scene):
    expected = played(scene).picture()
    world = World()
    world.kill = lambda when, _number: when == "after" and not world.turns[-1].is_idle
    scene(world)
    assert world.picture() == expected
