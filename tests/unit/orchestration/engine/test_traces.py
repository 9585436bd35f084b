"""The traces of Heat's convergence engine, from stored values."""

from __future__ import annotations

import pytest

from bloomery.model.stacks import OrderKind
from tests.kit.stacks import tree_world
from tests.kit.stacks.simulations import expand

CHAIN = """
resources:
  a: {type: Test::Thing, properties: {value: VALUE}}
  b: {type: Test::Thing, properties: {value: {get_attr: [a, value]}, salt: "SALT", fail: BAD}}
  c: {type: Test::Thing, properties: {value: {get_resource: b}, fail: FAIL}}
"""


def chain(value="x", salt="1", *, bad="false", fail="false", more="", without=""):
    text = CHAIN.replace("VALUE", value).replace("SALT", salt)
    text = text.replace("BAD", bad).replace("FAIL", fail) + more
    lines = text.splitlines()
    return "\n".join(line for line in lines if not (without and line.startswith(f"  {without}:")))


@pytest.fixture
def store():
    """In memory; whoever has another store runs these tests on it by another fixture."""
    return tree_world.Strict()


@pytest.fixture
def world(store):
    return tree_world.World(store)


CREATES = [
    ({}, False, "CREATE_COMPLETE", "S C>, a C+, b C+, c C+, S C."),
    ({"bad": "true"}, False, "CREATE_FAILED", "S C>, a C+, b C!, S Cx"),
    (
        {"bad": "true"},
        True,
        "ROLLBACK_COMPLETE",
        "S C>, a C+, b C!, S Cx, S R>, b D+, a D+, S R.",
    ),
]


@pytest.mark.parametrize(("text", "rollback", "state", "trace"), CREATES)
def test_creations(world, text, rollback, state, trace):
    world.create(chain(**text), rollback=rollback)
    world.run()
    assert world.state == state
    assert world.lines() == expand(trace)


GONE = "  d: {type: Test::Thing}\n"
RETAINED = "  d: {type: Test::Thing, deletion_policy: Retain}\n"
UPDATES = [
    ({}, {}, "S U>, S U."),
    ({}, {"value": "y"}, "S U>, a U+, b U+, S U."),
    ({}, {"salt": "2"}, "S U>, b U+, b C+, c U+, b D+, S U."),
    ({}, {"without": "c"}, "S U>, c D+, S U."),
    ({}, {"more": GONE}, "S U>, d C+, S U."),
    ({"more": RETAINED}, {}, "S U>, d D+, S U."),
]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("before", "after", "trace"), UPDATES)
def test_updates(world, before, after, trace, restart):
    """With ``restart`` every turn is another engine's."""
    world.kill = lambda when, _number: restart and when == "after"
    world.create(chain(**before))
    world.run(lambda: world.state == "CREATE_COMPLETE")
    begun = len(world.lines())
    world.update(chain(**after))
    world.run(lambda: world.state == "UPDATE_COMPLETE")
    assert world.lines()[begun:] == expand(trace)


def test_a_failed_update_is_rolled_back(world):
    """What was replaced is taken back without an event, what was removed is made again."""
    world.create(chain(more=GONE))
    world.run()
    ids = {name: world.row(name).physical_id for name in "abcd"}
    begun = len(world.lines())
    world.update(chain("y", "2", fail="true"), rollback=True)
    world.run()
    seen = world.lines()[begun:]
    failed = "S U>, a U+, b U+, b C+, c U!, S Ux"
    back = "S R>, a U+, d C+, c C+, c D+, b D+, S R."
    assert sorted(seen) == sorted(expand(f"{failed}, d D+, {back}"))
    after = {name: world.row(name).physical_id for name in "abcd"}
    assert {name for name in ids if ids[name] == after[name]} == {"a", "b"}
    assert world.state == "ROLLBACK_COMPLETE"
    assert world.root.previous_template_uuid is None


BELOW = """
resources:
  below: {type: below.yaml, properties: {value: VALUE, fail: FAIL}}
"""
FILE = """
heat_template_version: 2021-04-16
parameters: {value: {type: string}, fail: {type: boolean}}
resources:
  well: {type: Test::Thing}
  ill:
    type: Test::Thing
    depends_on: well
    properties: {value: {get_param: value}, fail: {get_param: fail}}
"""


def below(value="x", fail="false"):
    return BELOW.replace("VALUE", value).replace("FAIL", fail)


def created_below(world, value="x"):
    """Create a stack below another; return the uuids of its resource and of what is well in it."""
    world.create(below(value), files={"below.yaml": FILE})
    world.run()
    return ids_below(world)


def ids_below(world):
    row = world.row("below")
    return row.uuid, world.row("well", row.physical_id or "").uuid


def test_what_failed_in_a_stack_below_is_all_that_the_next_update_makes_anew(world):
    before = created_below(world)
    world.update(below("y", "true"), files={"below.yaml": FILE})
    world.run()
    assert world.state == "UPDATE_FAILED"
    world.update(below("y"), files={"below.yaml": FILE})
    world.run()
    assert (world.state, ids_below(world)) == ("UPDATE_COMPLETE", before)
    assert world.reality.called("create", "well") == 1
    assert world.reality.called("create", "ill") == 2


def test_what_failed_a_check_in_a_stack_below_is_all_that_is_made_anew(world):
    before = created_below(world, "sick")
    world.order(OrderKind.CHECK)
    world.run()
    assert (world.state, world.row("below").status) == ("CHECK_FAILED", "FAILED")
    world.update(below("fine"), files={"below.yaml": FILE})
    world.run()
    assert (world.state, ids_below(world)) == ("UPDATE_COMPLETE", before)
    assert world.reality.called("create", "ill") == 2


def test_a_stack_below_that_was_marked_unhealthy_is_made_anew(world):
    before = created_below(world)
    world.ask(OrderKind.MARK_UNHEALTHY, "below", unhealthy=True, reason="smoke")
    world.update(below(), files={"below.yaml": FILE})
    world.run()
    assert world.state == "UPDATE_COMPLETE"
    assert not set(ids_below(world)) & set(before)


def test_a_rolled_back_creation_leaves_an_empty_stack_that_can_be_updated(world):
    world.create(chain(bad="true"), rollback=True)
    world.run()
    assert world.store.resources == {}
    template = world.store.templates[world.root.template_uuid]
    assert template.template == {"heat_template_version": "2021-04-16", "resources": {}}
    world.update(chain())
    world.run()
    assert world.state == "UPDATE_COMPLETE"


def test_time_that_is_up_aborts_what_runs_and_is_told_first_by_the_resource(world):
    world.deadline_s = 60
    world.create(chain(more="  d: {type: Test::Thing, properties: {wait_s: 90}}\n"), rollback=True)
    world.run()
    at = world.lines().index("d CREATE_FAILED")
    assert world.lines()[at : at + 3] == expand("d Cx, S Cx, S R>")
    aborted = world.reasons("d")[1]
    assert aborted.startswith('CREATE aborted (Task create from Own "d" Stack "S" [')
    assert world.reality.called("create_cancel", "d") == 1
    assert world.state == "ROLLBACK_COMPLETE"


HIDDEN = """
parameters: {secret: {type: string, hidden: true}}
resources:
  a: {type: OS::Heat::TestResource, properties: {value: {get_param: secret}, fail: FAIL}}
"""


def test_values_that_a_hidden_parameter_may_have_reached_are_marked(world):
    world.create(HIDDEN.replace("FAIL", "false"), given={"secret": "correct horse"})
    world.run()
    assert [each.has_secret for each in world.store.properties.values()] == [True]
    assert world.store.resources[world.row("a").uuid].has_secret


def test_no_reason_tells_a_hidden_value(world):
    world.create(HIDDEN.replace("FAIL", "{get_param: secret}"), given={"secret": "correct horse"})
    world.run()
    assert world.state == "CREATE_FAILED"
    told_of = [*(each.reason for each in world.store.events), world.root.reason]
    assert not any("horse" in reason for reason in [*told_of, world.row("a").reason])
