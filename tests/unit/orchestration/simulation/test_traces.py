"""The event traces of Heat's convergence engine, as simulations tell them."""

from __future__ import annotations

import pytest

from bloomery.orchestration import simulation
from tests.kit.stacks.simulations import expand, lines, stack

CHAIN = """
resources:
  a: {type: OS::Heat::TestResource, properties: {value: x}}
  b: {type: OS::Heat::TestResource, depends_on: a, properties: {PROPERTIES}}
  c: {type: OS::Heat::TestResource, depends_on: b}
"""
GOOD = CHAIN.replace("PROPERTIES", "")
BAD = CHAIN.replace("PROPERTIES", "fail: true")

UPDATED = """
resources:
  a: {type: OS::Heat::TestResource, properties: {value: VALUE}}
  b:
    type: OS::Heat::TestResource
    properties: {value: {get_attr: [a, output]}, update_replace_value: "SALT"}
  c: {type: OS::Heat::TestResource, properties: {value: {get_resource: b}, fail: FAIL}}
outputs:
  c: {value: {get_attr: [c, output]}}
  b: {value: {get_resource: b}}
"""


def updated(value="x", salt="1", fail="false", more="", without=()):
    text = UPDATED.replace("VALUE", value).replace("SALT", salt).replace("FAIL", fail)
    kept = [line for line in text.splitlines() if not line.strip().startswith(tuple(without))]
    return stack("\n".join(kept).replace("resources:", f"resources:{more}"))


CREATES = [
    (GOOD, False, "CREATE_COMPLETE", "S C>, a C+, b C+, c C+, S C."),
    (BAD, False, "CREATE_FAILED", "S C>, a C+, b C!, S Cx"),
    (BAD, True, "ROLLBACK_COMPLETE", "S C>, a C+, b C!, S Cx, S R>, b D+, a D+, S R."),
    ("resources: {}", False, "CREATE_COMPLETE", "S C+"),
    ("resources:", True, "CREATE_COMPLETE", "S C+"),
]


@pytest.mark.parametrize(("text", "rollback", "status", "trace"), CREATES)
def test_creations_go_as_heat_tells_them(text, rollback, status, trace):
    result = simulation.run(stack(text), rollback=rollback)
    assert result.status == status
    assert lines(result.events) == expand(trace)


def test_reasons_are_those_of_heat():
    result = simulation.run(stack(BAD), rollback=True)
    assert [event.reason for event in result.events] == [
        "Stack CREATE started",
        "state changed",
        "state changed",
        "state changed",
        "ValueError: resources.b: Test Resource failed b",
        "Resource CREATE failed: ValueError: resources.b: Test Resource failed b",
        "Stack ROLLBACK started",
        "state changed",
        "state changed",
        "state changed",
        "state changed",
        "Stack ROLLBACK completed successfully",
    ]
    assert result.reason == "Stack ROLLBACK completed successfully"
    assert result.error == simulation.Error(
        type="ResourceFailure",
        message="Resource CREATE failed: ValueError: resources.b: Test Resource failed b",
    )


def test_after_a_failure_nothing_more_begins_and_the_next_update_makes_what_is_missing():
    life = simulation.Lifecycle()
    failed = life.create(stack(BAD))
    assert [each.state for each in failed.resources] == [
        "CREATE_COMPLETE",
        "CREATE_FAILED",
        "INIT_COMPLETE",
    ]
    assert failed.resources[2].physical_id is None
    result = life.update(stack(GOOD))
    assert lines(result.events)[len(failed.events) :] == expand("S U>, b C+, c C+, b D+, S U.")


def test_what_had_begun_when_another_failed_is_let_finish():
    text = """
resources:
  a: {type: OS::Heat::TestResource, properties: {fail: true, wait_secs: 2}}
  b: {type: OS::Heat::TestResource, properties: {wait_secs: 4}}
  c: {type: OS::Heat::TestResource, depends_on: a}
"""
    result = simulation.run(stack(text))
    assert lines(result.events) == expand("S C>, a C>, b C>, a Cx, S Cx, b C.")
    assert [event.at_s for event in result.events] == [0, 0, 0, 2, 2, 4]
    result = simulation.run(stack(text), rollback=True)
    assert lines(result.events)[5:] == expand("S R>, a D>, b C., b D>, a D., b D., S R.")


def test_a_rolled_back_creation_leaves_an_empty_stack_that_can_be_updated():
    life = simulation.Lifecycle()
    result = life.create(stack(BAD), rollback=True)
    assert (result.outputs, list(result.resources)) == ({}, [])
    before = len(result.events)
    result = life.update(stack(GOOD))
    assert lines(result.events)[before:] == expand("S U>, a C+, b C+, c C+, S U.")
    assert result.error is None


# ------------------------------------------------------------------------------------- time-outs


def test_a_time_out_fails_the_resource_and_the_stack():
    text = """
resources:
  a: {type: OS::Heat::TestResource, properties: {wait_secs: -1, action_wait_secs: {delete: 0}}}
  b: {type: OS::Heat::TestResource, depends_on: a}
"""
    result = simulation.run(stack(text, timeout_s=60), rollback=True)
    trace = "S C>, a C!, S Cx, S R>, a D+, S R."
    assert lines(result.events) == expand(trace)
    assert result.events[3].reason == "Timed out"
    aborted = result.events[2].reason
    assert aborted.startswith('CREATE aborted (Task create from TestResource "a" Stack "S" [')
    assert aborted.endswith("] Timed out): its wait_secs are not over")
    assert result.events[3].at_s == 60
    assert (result.error.type, result.error.message) == ("StackTimedOut", "Timed out")


def test_what_becomes_ready_when_time_is_up_is_not_begun():
    text = """
resources:
  a: {type: OS::Heat::TestResource, properties: {wait_secs: 60}}
  b: {type: OS::Heat::TestResource, depends_on: a}
"""
    result = simulation.run(stack(text, timeout_s=60))
    assert result.status == "CREATE_FAILED"
    assert result.resources[1].state == "INIT_COMPLETE"


# --------------------------------------------------------------------------------------- updates

UPDATES = [
    ({}, {}, "S U>, S U."),
    ({}, {"value": "y"}, "S U>, a U+, b U+, S U."),
    ({}, {"salt": "2"}, "S U>, b U+, b C+, c U+, b D+, S U."),
    ({}, {"without": ["c:"]}, "S U>, c D+, S U."),
    ({}, {"more": "\n  d: {type: OS::Heat::None}"}, "S U>, d C+, S U."),
    (
        {"more": "\n  d: {type: OS::Heat::None, deletion_policy: Retain}"},
        {},
        "S U>, d D+, S U.",
    ),
    (
        {"more": "\n  d: {type: OS::Heat::None}"},
        {"more": "\n  d: {type: OS::Heat::Delay}"},
        "S U>, d C+, d D+, S U.",
    ),
]


@pytest.mark.parametrize(("before", "after", "trace"), UPDATES)
def test_updates_go_as_heat_tells_them(before, after, trace):
    life = simulation.Lifecycle()
    created = life.create(updated(**before))
    result = life.update(updated(**after))
    assert result.status == "UPDATE_COMPLETE", result.error
    assert lines(result.events)[len(created.events) :] == expand(trace)


def test_a_replaced_resource_says_so_and_its_dependants_turn_to_the_new_one():
    life = simulation.Lifecycle()
    created = life.create(updated())
    result = life.update(updated(salt="2"))
    reasons = [event.reason for event in result.events if event.resource == "b"]
    assert "The Resource b requires replacement." in reasons
    assert result.outputs["c"].value == result.outputs["b"].value != created.outputs["b"].value


def test_what_stays_keeps_its_id():
    life = simulation.Lifecycle()
    before = {each.name: each.physical_id for each in life.create(updated()).resources}
    after = {each.name: each.physical_id for each in life.update(updated(salt="2")).resources}
    assert {name for name in after if after[name] == before[name]} == {"a", "c"}


FAILING = {"value": "y", "salt": "2", "fail": "true"}
TRACE = "S U>, a U+, b U+, b C+, c U!, S Ux"


def test_another_name_of_its_kind_keeps_a_resource():
    text = """
resources:
  key: {type: OS::Heat::RandomString}
outputs:
  key: {value: {get_attr: [key, value]}}
"""
    mapped = {"resource_registry": {"My::R": "OS::Heat::RandomString"}}
    life = simulation.Lifecycle()
    created = life.create(stack(text))
    result = life.update(stack(text.replace("OS::Heat::RandomString", "My::R"), environment=mapped))
    assert lines(result.events)[len(created.events) :] == expand("S U>, key U+, S U.")
    assert result.outputs == created.outputs
    assert result.resources[0].physical_id == created.resources[0].physical_id
    assert result.resources[0].type == "My::R"


def test_a_failed_update_without_rollback_stays_where_it_is():
    life = simulation.Lifecycle()
    created = life.create(updated())
    failed = life.update(updated(**FAILING))
    assert failed.status == "UPDATE_FAILED"
    assert lines(failed.events)[len(created.events) :] == expand(TRACE)
    result = life.update(updated(value="y", salt="2"))
    assert lines(result.events)[len(failed.events) :] == expand("S U>, c C+, c D+, b D+, S U.")


def test_a_failed_update_with_rollback_takes_the_old_ones_back():
    """What was replaced comes back with its id; what failed is made anew; removed is made again."""
    life = simulation.Lifecycle()
    gone = "\n  d: {type: OS::Heat::TestResource}"
    created = life.create(updated(more=gone))
    result = life.update(updated(**FAILING), rollback=True)
    assert result.status == "ROLLBACK_COMPLETE"
    back = "S R>, a U+, d C+, c C+, c D+, b D+, S R."
    seen = lines(result.events)[len(created.events) :]
    assert sorted(seen[: len(expand(TRACE)) + 2]) == sorted(expand(TRACE + ", d D+"))
    assert sorted(seen[len(expand(TRACE)) + 2 :]) == sorted(expand(back))
    before = {each.name: each.physical_id for each in created.resources}
    after = {each.name: each.physical_id for each in result.resources}
    assert {name for name in after if after[name] == before[name]} == {"a", "b"}
    assert result.outputs["c"].value == before["b"]
    assert result.error is not None
    again = life.update(updated(more=gone))
    assert lines(again.events)[len(result.events) :] == expand("S U>, S U.")


def test_a_change_seen_only_on_the_way_replaces_too():
    """What b is given is known when a was updated; b cannot change it in place."""
    text = """
resources:
  a: {type: OS::Heat::TestResource, properties: {value: VALUE}}
  b: {type: OS::Heat::TestResource, properties: {update_replace_value: {get_attr: [a, output]}}}
"""
    life = simulation.Lifecycle()
    life.create(stack(text.replace("VALUE", "x")))
    first = life.update(stack(text.replace("VALUE", "y")))
    assert lines(first.events)[6:] == expand("S U>, a U+, b U+, b C+, b D+, S U.")


# ------------------------------------------------------------------------------------ deletions


def test_a_deletion_goes_backwards():
    life = simulation.Lifecycle()
    created = life.create(stack(GOOD))
    result = life.delete()
    assert result.status == "DELETE_COMPLETE"
    assert lines(result.events)[len(created.events) :] == expand("S D>, c D+, b D+, a D+, S D.")
    assert list(result.resources) == []


def test_a_retained_resource_is_told_of_and_not_called():
    text = """
resources:
  a:
    type: OS::Heat::TestResource
    deletion_policy: Retain
    properties: {action_wait_secs: {delete: 100}}
  b: {type: OS::Heat::TestResource, properties: {action_wait_secs: {delete: 7}}}
"""
    life = simulation.Lifecycle()
    created = life.create(stack(text))
    result = life.delete()
    times = {event.resource: event.at_s for event in result.events[len(created.events) :]}
    assert times == {"S": 7, "a": 0, "b": 7}


# ------------------------------------------------------------- external ids, hooks, restrictions


def test_an_external_resource_is_adopted_looked_at_and_let_go():
    text = """
resources:
  a: {type: OS::Heat::TestResource, external_id: abc}
outputs:
  id: {value: {get_resource: a}}
"""
    life = simulation.Lifecycle()
    result = life.create(stack(text))
    assert lines(result.events) == expand("S C>, a A+, a K>, a K., S C.")
    assert result.outputs["id"].value == "abc"
    result = life.update(stack(text.replace("abc", "abd")))
    assert result.status == "UPDATE_FAILED"
    assert result.error.type == "ResourceFailure"
    assert "NotSupported: resources." in result.error.message
    assert "external_id" in result.error.message


def test_hooks_are_announced_and_not_waited_for():
    hooks = {"a": {"hooks": ["pre-create", "post-create", "pre-update", "pre-delete"]}}
    environment = {"resource_registry": {"resources": hooks}}
    life = simulation.Lifecycle()
    result = life.create(stack(GOOD, environment=environment))
    said = [(event.state, event.reason) for event in result.events if event.resource == "a"]
    assert said == [
        ("INIT_COMPLETE", "CREATE paused until Hook pre-create is cleared"),
        ("INIT_COMPLETE", "Hook pre-create is cleared"),
        ("CREATE_IN_PROGRESS", "state changed"),
        ("CREATE_COMPLETE", "state changed"),
        ("CREATE_COMPLETE", "CREATE paused until Hook post-create is cleared"),
        ("CREATE_COMPLETE", "Hook post-create is cleared"),
    ]
    before = len(result.events)
    result = life.update(stack(GOOD, environment=environment))  # nothing has changed
    said = [event.reason for event in result.events[before:] if event.resource == "a"]
    assert said == [
        "UPDATE paused until Hook pre-update is cleared",
        "Hook pre-update is cleared",
    ]
    before = len(result.events)
    patterns = {"*": {"hooks": ["pre-create", "pre-delete"]}}
    environment = {"resource_registry": {"resources": {**hooks, **patterns}}}
    more = f"{GOOD}  d: {{type: OS::Heat::None}}\n"
    result = life.update(stack(more, environment=environment))  # that creates
    assert not any(event.reason.startswith("CREATE paused") for event in result.events[before:])
    before = len(result.events)
    result = life.delete()
    said = [event.reason for event in result.events[before:] if event.resource == "a"]
    assert said[0] == "DELETE paused until Hook pre-delete is cleared"


@pytest.mark.parametrize(
    ("word", "after", "refused"),
    [
        ("update", {"value": "y"}, "a"),
        ("replace", {"salt": "2"}, "b"),
        ("replace", {"value": "y"}, None),
        ("update", {"salt": "2"}, None),
    ],
)
def test_restricted_actions_fail_the_update(word, after, refused):
    environment = {"resource_registry": {"resources": {"[ab]": {"restricted_actions": word}}}}
    text = UPDATED.replace("FAIL", "false")
    life = simulation.Lifecycle()
    first = text.replace("VALUE", "x").replace("SALT", "1")
    created = life.create(stack(first, environment=environment))
    value, salt = after.get("value", "x"), after.get("salt", "1")
    second = text.replace("VALUE", value).replace("SALT", salt)
    result = life.update(stack(second, environment=environment))
    if refused is None:
        assert result.status == "UPDATE_COMPLETE"
        return
    assert result.status == "UPDATE_FAILED"
    said = f"ResourceActionRestricted: resources.{refused}: {word} is restricted for resource."
    assert result.reason == f"Resource UPDATE failed: {said}"
    seen = lines(result.events)[len(created.events) :]
    assert seen == expand(f"S U>, {refused} Ux, S Ux")


def test_a_condition_that_turns_false_deletes():
    text = """
parameters: {use: {type: boolean}}
conditions: {wanted: {get_param: use}}
resources:
  a: {type: OS::Heat::None, condition: wanted}
  b: {type: OS::Heat::None, depends_on: a}
"""
    life = simulation.Lifecycle()
    created = life.create(stack(text, given={"use": True}))
    result = life.update(stack(text, given={"use": False}))
    assert lines(result.events)[len(created.events) :] == expand("S U>, a D+, S U.")


def test_what_was_feared_to_be_replaced_may_turn_out_unchanged():
    text = """
resources:
  a: {type: OS::Heat::TestResource, properties: {wait_secs: WAIT}}
  b: {type: OS::Heat::TestResource, properties: {update_replace_value: {get_attr: [a, output]}}}
"""
    life = simulation.Lifecycle()
    created = life.create(stack(text.replace("WAIT", "0")))
    result = life.update(stack(text.replace("WAIT", "1")))
    assert lines(result.events)[len(created.events) :] == expand("S U>, a U+, S U.")
