"""Autoscaling: what a group is made of, how it takes a definition, what a signal makes of it."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.resources import base, batches, scaling
from bloomery.orchestration.resources.autoscaling_group import AutoScalingGroup
from bloomery.orchestration.resources.scaling import Adjustment
from bloomery.orchestration.resources.scaling_policy import ScalingPolicy
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.resources.value import Value
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Children, Clock, Siblings, is_complete, made

MEMBER = {"type": "T", "properties": {"value": "x"}}


@pytest.fixture
def children():
    return Children()


def group(children, **properties):
    given = {"resource": MEMBER, "min_size": 1, "max_size": 5, **properties}
    return made(AutoScalingGroup, given, name="g", children=children)


def created(children, **properties):
    resource = group(children, **properties)
    resource.validate()
    token = resource.handle_create()
    children.end()
    assert resource.check_create_complete(token) == DONE
    return resource


def members(children):
    return children.only.document["resources"]


def changed(resource, /, **properties):
    """The same resource in a new action, its memory as another engine would read it."""
    resource.properties = {**resource.properties, **properties}
    resource.record.data = json.loads(json.dumps(resource.record.data))
    return resource.handle_update(None, {}, properties)


def walked(resource, children, token):
    """Let each batch end; return the values of the members in each, oldest first."""
    seen = []
    while not is_complete(resource.check_update_complete, token):
        if children.only.status is Status.IN_PROGRESS:
            seen.append([one["properties"]["value"] for one in resource.aged().values()])
            children.end()
    return seen


# ---------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize(
    ("current", "amount", "kind", "step", "after"),
    [
        (2, 1, Adjustment.CHANGE, None, 3),
        (2, -1, Adjustment.CHANGE, None, 1),
        (2, 9, Adjustment.CHANGE, None, 5),
        (2, -9, Adjustment.CHANGE, None, 1),
        (2, 4, Adjustment.EXACT, None, 4),
        (2, 9, Adjustment.EXACT, None, 5),
        (3, 50, Adjustment.PERCENT, None, 4),
        (3, -50, Adjustment.PERCENT, None, 2),
        (3, 10, Adjustment.PERCENT, None, 4),
        (3, -10, Adjustment.PERCENT, None, 2),
        (2, 10, Adjustment.PERCENT, 2, 4),
        (4, -10, Adjustment.PERCENT, 3, 1),
        (3, 0, Adjustment.PERCENT, 2, 3),
        (0, 50, Adjustment.PERCENT, None, 1),
    ],
)
def test_an_adjustment_stays_within_the_bounds(current, amount, kind, step, after):
    capacity = scaling.capacity_after(current, amount, kind, least=1, most=5, min_step=step)
    assert capacity == after


@pytest.mark.parametrize(
    ("present", "batch", "after"),
    [
        ("a0 b0", (2, 0), "a0 b0"),
        ("a0 b0", (3, 0), "a0 b0 n1"),
        ("a0 b0", (3, 1), "a0 b0 n1"),
        ("a0 b0", (2, 1), "a1 b0"),
        ("a0 b0 c0", (2, 1), "b1 c0"),
        ("a1 b0 c0", (2, 0), "a1 c0"),
        ("a1 b0 c1", (1, 0), "c1"),
        ("", (2, 2), "n1 m1"),
    ],
)
def test_the_oldest_of_the_old_definition_is_the_first_to_go(present, batch, after):
    before = {one[0]: {"v": one[1]} for one in present.split()}
    names = iter("nm")
    members = scaling.after_batch(before, batches.Resize(*batch), {"v": "1"}, names)
    assert " ".join(name + body["v"] for name, body in members.items()) == after


# --------------------------------------------------------------------------------------- group


@pytest.mark.parametrize(("properties", "size"), [({}, 1), ({"desired_capacity": 3}, 3)])
def test_a_group_begins_with_what_is_desired_or_with_the_least(children, properties, size):
    resource = created(children, **properties)
    assert list(members(children).values()) == [MEMBER] * size
    assert all(len(name) == 12 for name in members(children))
    assert resource.get_reference_id() == resource.physical_resource_name()
    assert group(None).get_reference_id() == "g"


def test_a_group_made_twice_is_made_once(children):
    first, again = group(children, min_size=2), group(children, min_size=2)
    first.handle_create()
    before = dict(members(children))
    again.handle_create()
    assert (dict(members(children)), again.record) == (before, first.record)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"min_size": 6}, "min_size is greater"),
        ({"desired_capacity": 6}, r"between min_size \(1\) and max_size \(5\)"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(properties, text):
    with pytest.raises(errors.StackValidationFailed, match=text):
        group(None, **properties).validate()
    group(None, **properties, max_size=None).validate()


def test_more_members_than_a_stack_may_have_are_refused():
    given = {"resource": MEMBER, "min_size": 11, "max_size": 20}
    with pytest.raises(errors.RequestLimitExceeded, match="11 members"):
        made(AutoScalingGroup, given, limits=Limits(resources=10)).validate()


def test_a_signal_asks_for_no_more_members_than_a_stack_may_have(children):
    given = {"resource": MEMBER, "min_size": 1, "max_size": 10**12}
    resource = made(AutoScalingGroup, given, children=children, limits=Limits(resources=7))
    resource.handle_create()
    children.end()
    assert resource.adjust(10**12, Adjustment.EXACT) == (1, 7)


def told(resource, name, path=()):
    answer = resource.resolve_attribute(name, path)
    assert isinstance(answer, Walked)
    return answer.value


def test_a_group_tells_of_its_members_in_the_order_of_their_ages(children):
    resource = created(children, desired_capacity=3)
    names = resource.record.data["ages"]
    child = children.only.blueprint.document["resources"]
    children.only.blueprint.document["resources"] = dict(sorted(child.items()))
    assert told(resource, "current_size") == 3
    assert told(resource, "refs") == [f"id-{name}" for name in names]
    assert told(resource, "refs_map", [names[1]]) == f"id-{names[1]}"
    assert list(told(resource, "outputs", ["value"]).items()) == [(name, "x") for name in names]
    assert told(resource, "outputs_list", ["value"]) == ["x"] * 3
    assert told(resource, "resource.1") == f"id-{names[1]}"
    assert told(resource, f"resource.{names[2]}.value") == "x"
    assert set(resource.all_attributes()) == {"current_size", "refs", "refs_map"}
    assert not resource.offers_attribute("other")
    with pytest.raises(errors.NotFound):
        resource.resolve_attribute("resource.7")
    with pytest.raises(errors.StackValidationFailed, match="name one"):
        resource.resolve_attribute("outputs")


def test_a_new_definition_rolls_from_the_oldest_on(children):
    resource = created(children, desired_capacity=3)
    before = list(members(children))
    new = {"type": "T", "properties": {"value": "y"}}
    token = changed(resource, resource=new, rolling_updates={"max_batch_size": 2})
    assert walked(resource, children, token) == [["y", "y", "x"], ["y", "y", "y"]]
    assert list(members(children)) == before
    assert sorted(resource.record.data) == ["ages", "serial"]


def test_who_must_stay_in_service_is_stood_in_for(children):
    resource = created(children, desired_capacity=2)
    new = {"type": "T", "properties": {"value": "y"}}
    token = changed(resource, resource=new, rolling_updates={"min_in_service": 2})
    assert walked(resource, children, token) == [
        ["x", "x", "y"],
        ["y", "x", "y"],
        ["y", "y", "y"],
        ["y", "y"],
    ]


@pytest.mark.parametrize(
    ("properties", "size"),
    [
        ({}, 3),
        ({"desired_capacity": 4}, 4),
        ({"min_size": 5}, 5),
        ({"max_size": 2}, 2),
        ({"cooldown": 5}, 3),
    ],
)
def test_an_update_leaves_what_signals_have_made_of_the_group(children, properties, size):
    resource = created(children, desired_capacity=1)
    resource.adjust(2, Adjustment.CHANGE)
    children.end()
    token = changed(resource, **properties)
    children.end()
    assert resource.check_update_complete(token) == DONE
    assert len(members(children)) == size


def test_a_name_is_never_used_again(children):
    resource = created(children, desired_capacity=2)
    names = set(members(children))
    for amount in (-1, 1, -1, 1):
        resource.adjust(amount, Adjustment.CHANGE)
        children.end()
        names |= set(members(children))
    assert len(names) == 4


# -------------------------------------------------------------------------------------- policy


def policy(resource, clock=None, **properties):
    given = {
        "auto_scaling_group_id": resource.get_reference_id(),
        "scaling_adjustment": 1,
        "adjustment_type": "change_in_capacity",
        **properties,
    }
    found = made(ScalingPolicy, given, name="p", siblings=Siblings(resource), clock=clock)
    found.validate()
    found.handle_create()
    return found


def test_a_signal_makes_the_group_larger(children):
    resource = created(children)
    assert policy(resource).handle_signal(None) == "g turns from 1 to 2 members"
    assert children.only.action is Action.UPDATE
    assert len(members(children)) == 2
    assert resource.record.data["ages"] == list(members(children))


@pytest.mark.parametrize(
    "signal",
    [{"current": "ok"}, {"state": "insufficient data"}, {"current": "OK", "state": "alarm"}],
)
def test_an_alarm_that_has_ended_changes_nothing(children, signal):
    scaled = policy(created(children))
    with pytest.raises(base.NoActionRequired):
        scaled.handle_signal(signal)
    assert scaled.handle_signal({"current": "ALARM"})


def refuses(scaled):
    try:
        scaled.handle_signal({})
    except base.NoActionRequired:
        return True
    return False


def test_a_group_that_changes_is_left_alone(children):
    resource = created(children)
    scaled = policy(resource)
    assert [refuses(scaled), refuses(scaled)] == [False, True]
    children.end()
    assert not refuses(scaled)
    children.end()
    children.suspend(children.only.id)
    children.end()
    assert refuses(scaled)
    children.resume(children.only.id)
    children.end()
    resource.record.status = Status.IN_PROGRESS
    assert refuses(scaled)


@pytest.mark.parametrize(("of_policy", "of_group"), [(60, 5), (60, None), (None, 60)])
def test_after_a_change_the_group_cools_down(children, of_policy, of_group):
    resource = created(children, cooldown=of_group)
    clock = resource.context.utc
    assert isinstance(clock, Clock)
    scaled = policy(resource, cooldown=of_policy)
    answers = []
    for now_s in (0, 59, 60):
        clock.now_s = now_s
        answers.append(refuses(scaled))
        children.end()
    assert answers == [False, True, False]


def test_a_group_at_its_bound_stays(children):
    assert refuses(policy(created(children, max_size=1)))


def test_a_policy_has_an_address_with_and_without_a_token(children):
    scaled = policy(created(children))
    plain = scaled.resolve_attribute("signal_url")
    assert plain == "/p/stacks/s/1/resources/p/signal"
    assert scaled.resolve_attribute("alarm_url") == f"{plain}?token={scaled.token()}"
    assert scaled.get_reference_id() == scaled.resolve_attribute("alarm_url")
    assert scaled.handle_update(None, {}, {"cooldown": 1}) is None
    assert made(ScalingPolicy).resolve_attribute("alarm_url") is None


@pytest.mark.parametrize("kind", [Adjustment.CHANGE, Adjustment.EXACT])
def test_a_step_is_for_percentages_alone(kind):
    given = {"adjustment_type": kind.value, "min_adjustment_step": 1}
    with pytest.raises(errors.StackValidationFailed, match="min_adjustment_step"):
        made(ScalingPolicy, given).validate()
    made(ScalingPolicy, {**given, "adjustment_type": Adjustment.PERCENT.value}).validate()


def test_a_policy_needs_a_group_of_its_stack():
    scaled = policy(made(Value, name="v"))
    with pytest.raises(errors.NotFound, match="cannot find the group 'v' of the policy p"):
        scaled.handle_signal({})
