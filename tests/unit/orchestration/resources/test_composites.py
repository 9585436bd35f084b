"""Groups and chains over child stacks, and what fails below them."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.resources import composite, states
from bloomery.orchestration.resources.resource_chain import ResourceChain
from bloomery.orchestration.resources.resource_group import ResourceGroup
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Children, Clock, is_complete, made

DEFINITION = {"type": "T", "properties": {"value": "a%index%"}, "metadata": None}


@pytest.fixture
def children():
    return Children()


def group(children, policy=None, clock=None, **properties):
    given = {"count": 3, "resource_def": DEFINITION, **properties}
    return made(ResourceGroup, given, children=children, policy=policy, clock=clock)


def created(children, **given):
    resource = group(children, **given)
    token = resource.handle_create()
    children.end()
    assert resource.check_create_complete(token) == DONE
    return resource


def changed(resource, **properties):
    """The same resource in a new action, its memory as another engine would read it."""
    resource.properties = {**resource.properties, **properties}
    resource.record.data = json.loads(json.dumps(resource.record.data))
    return resource


def told(resource, name, path=()):
    """An attribute; groups have used the path already, and say so."""
    answer = resource.resolve_attribute(name, path)
    assert isinstance(answer, Walked)
    return answer.value


def shown(children):
    resources = children.only.document["resources"]
    return " ".join(f"{name}={each['properties']['value']}" for name, each in resources.items())


def test_a_group_is_a_stack_of_its_members(children):
    resource = group(children)
    assert resource.get_reference_id() == "a"
    token = resource.handle_create()
    assert children.names == [resource.physical_resource_name()]
    assert shown(children) == "0=a0 1=a1 2=a2"
    assert children.only.blueprint.owner == "a"
    assert not is_complete(resource.check_create_complete, token)
    children.end()
    assert resource.check_create_complete(token) == DONE
    assert resource.get_reference_id() == children.only.id


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("refs", [], ["id-0", "id-1", "id-2"]),
        ("refs", [1], "id-1"),
        ("refs", [-1], "id-2"),
        ("refs", [9], None),
        ("refs", ["x"], None),
        ("refs", [1, 0], "i"),
        ("refs_map", [], {"0": "id-0", "1": "id-1", "2": "id-2"}),
        ("refs_map", ["2"], "id-2"),
        ("refs_map", ["2", 0], "i"),
        ("removed_rsrc_list", [], []),
        ("attributes", ["value"], {"0": "a0", "1": "a1", "2": "a2"}),
        ("attributes", ["value", 1], {"0": "0", "1": "1", "2": "2"}),
        ("value", [], ["a0", "a1", "a2"]),
        ("value", [1], ["0", "1", "2"]),
        ("resource.1", [], "id-1"),
        ("resource.1.value", [], "a1"),
        ("resource.1", ["value"], "a1"),
        ("resource.1", ["value", 0], "a"),
        ("resource.1.value", [0], "a"),
    ],
)
def test_a_group_tells_of_its_members(children, name, path, value):
    resource = created(children)
    assert resource.offers_attribute(name)
    assert told(resource, name, path) == value


@pytest.mark.parametrize("name", ["other", "resource.1.other"])
def test_an_attribute_that_no_member_has_is_refused(children, name):
    with pytest.raises(errors.InvalidTemplateAttribute, match="other"):
        told(created(children), name, [])


def test_members_are_listed_in_the_order_of_their_indices(children):
    resource = created(children, count=12)
    found = told(resource, "value")
    assert found == [f"a{index}" for index in range(12)]


def test_all_attributes_of_all_members_are_not_told_at_once(children):
    with pytest.raises(errors.StackValidationFailed, match="name one"):
        created(children).resolve_attribute("attributes")


def test_a_map_of_all_attributes_leaves_out_what_needs_a_path(children):
    assert created(children, count=1).all_attributes() == {
        "refs": ["id-0"],
        "refs_map": {"0": "id-0"},
        "removed_rsrc_list": [],
    }


def test_a_member_that_is_not_there_is_not_found(children):
    with pytest.raises(errors.NotFound, match="cannot find member '9' of a; it has 0, 1, 2"):
        created(children).resolve_attribute("resource.9.value")


def test_a_group_of_nobody_tells_nothing(children):
    resource = created(children, count=0)
    assert shown(children) == ""
    assert told(resource, "refs") == []
    assert told(resource, "attributes", ["x"]) == {}
    with pytest.raises(errors.NotFound, match="it has none"):
        resource.resolve_attribute("resource.0")


def test_before_there_is_a_child_nobody_is_there():
    resource = group(None)
    assert told(resource, "refs") == []
    with pytest.raises(errors.NotSupported, match="A stack below a"):
        resource.handle_create()


# ------------------------------------------------------------------------------------- removal


def test_removed_names_are_never_used_again(children):
    resource = created(children)
    removal = [{"resource_list": ["1"]}]
    for properties, members in (
        ({"removal_policies": removal}, "0=a0 2=a2 3=a3"),
        ({"removal_policies": []}, "0=a0 2=a2 3=a3"),
        ({"count": 2}, "0=a0 2=a2"),
        ({"removal_policies": [{"resource_list": ["id-0"]}]}, "2=a2 3=a3"),
        ({"removal_policies": removal, "removal_policies_mode": "update"}, "0=a0 2=a2"),
    ):
        token = changed(resource, **properties).handle_update(None, {}, properties)
        children.end()
        assert resource.check_update_complete(token) == DONE
        assert shown(children) == members
    assert told(resource, "removed_rsrc_list") == ["1"]


def test_a_new_group_may_skip_any_name(children):
    resource = created(children, removal_policies=[{"resource_list": ["1", 7]}])
    assert told(resource, "removed_rsrc_list") == ["1", "7"]
    assert shown(children) == "0=a0 2=a2 3=a3"


# ------------------------------------------------------------------------------------- batches


def rolling(least=0, most=1, pause_s=0):
    pace = {"min_in_service": least, "max_batch_size": most, "pause_time": pause_s}
    return {"rolling_update": pace}


def walked(resource, children, check, token):
    """Let each batch end; return what the child looked like in each."""
    seen = []
    while not is_complete(check, token):
        if children.only.status is Status.IN_PROGRESS:
            seen.append(shown(children))
            children.end()
        resource.record.data = json.loads(json.dumps(resource.record.data))
    return seen


def test_members_are_made_in_batches(children):
    policy = {"batch_create": {"max_batch_size": 2, "pause_time": 0}}
    resource = group(children, policy=policy)
    seen = walked(resource, children, resource.check_create_complete, resource.handle_create())
    assert seen == ["", "0=a0 1=a1", "0=a0 1=a1 2=a2"]
    assert resource.record.data == {"skipped": []}


def test_a_new_definition_rolls_through_the_members(children):
    resource = created(children, policy=rolling(least=3))
    definition = {**DEFINITION, "properties": {"value": "b%index%"}}
    removal = [{"resource_list": ["1"]}]
    changed(resource, resource_def=definition, removal_policies=removal)
    token = resource.handle_update(None, {}, {"resource_def": definition})
    seen = walked(resource, children, resource.check_update_complete, token)
    assert seen == [
        "0=a0 2=a2 3=b3",
        "0=a0 2=a2 3=b3 4=b4",
        "0=a0 2=b2 3=b3 4=b4",
        "0=b0 2=b2 3=b3 4=b4",
        "0=b0 2=b2 3=b3",
    ]


def test_another_count_alone_does_not_roll(children):
    resource = created(children, policy=rolling())
    token = changed(resource, count=5).handle_update(None, {}, {"count": 5})
    children.end()
    assert resource.check_update_complete(token) == DONE
    assert shown(children) == "0=a0 1=a1 2=a2 3=a3 4=a4"


def test_an_empty_group_grows_in_batches_too_when_its_definition_changes(children):
    resource = created(children, policy=rolling(), count=0)
    changed(resource, count=2)
    token = resource.handle_update(None, {}, {"count": 2, "resource_def": {}})
    seen = walked(resource, children, resource.check_update_complete, token)
    assert seen == ["0=a0", "0=a0 1=a1"]


def test_a_group_that_stays_empty_has_no_batches(children):
    resource = created(children, policy=rolling(), count=0)
    token = resource.handle_update(None, {}, {"resource_def": {}})
    assert walked(resource, children, resource.check_update_complete, token) == [""]


def test_the_last_batch_leaves_nobody_out(children):
    """As Heat did it: two removed names take the turns of others."""
    resource = created(children, policy=rolling(least=3, most=2), count=5)
    definition = {**DEFINITION, "properties": {"value": "b%index%"}}
    removal = [{"resource_list": ["0", "3"]}]
    changed(resource, count=4, resource_def=definition, removal_policies=removal)
    token = resource.handle_update(None, {}, {"resource_def": definition})
    seen = walked(resource, children, resource.check_update_complete, token)
    assert seen == ["1=a1 2=a2 4=a4 5=b5 6=b6", "1=a1 2=b2 4=b4 5=b5 6=b6", "1=b1 2=b2 4=b4 5=b5"]


def test_a_name_to_remove_that_is_no_member_may_come_while_the_group_grows(children):
    resource = created(children, policy=rolling(least=1), count=1)
    definition = {**DEFINITION, "properties": {"value": "b%index%"}}
    changed(resource, resource_def=definition, removal_policies=[{"resource_list": ["1"]}])
    token = resource.handle_update(None, {}, {"resource_def": definition})
    seen = walked(resource, children, resource.check_update_complete, token)
    assert seen == ["0=a0 1=b1", "0=b0 1=b1", "0=b0"]


def test_batches_wait_for_their_pause_and_share_the_time(children):
    clock = Clock()
    resource = created(children, policy=rolling(pause_s=100), clock=clock)
    definition = {**DEFINITION, "properties": {"value": "b"}}
    changed(resource, resource_def=definition)
    token = resource.handle_update(None, {}, {"resource_def": definition})
    assert children.only.blueprint.timeout_s == 3420  # 3600 - 2 * 100, in whole minutes
    children.end()
    assert not is_complete(resource.check_update_complete, token)
    clock.now_s = 99
    assert not is_complete(resource.check_update_complete, token)
    assert children.only.status is Status.COMPLETE
    clock.now_s = 100
    assert not is_complete(resource.check_update_complete, token)
    assert children.only.status is Status.IN_PROGRESS


def test_a_batch_that_fails_ends_the_sequence_and_the_next_update_starts_anew(children):
    resource = created(children, policy=rolling())
    definition = {**DEFINITION, "properties": {"value": "b"}}
    changed(resource, resource_def=definition)
    token = resource.handle_update(None, {}, {"resource_def": definition})
    children.end(Status.FAILED, "Resource UPDATE failed: ValueError: resources.2: no")
    with pytest.raises(states.ChildFailed):
        resource.check_update_complete(token)
    changed(resource, count=1)
    token = resource.handle_update(None, {}, {"count": 1})
    children.end()
    assert resource.check_update_complete(token) == DONE


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        (ResourceGroup, {"count": 11, "resource_def": DEFINITION}),
        (ResourceChain, {"resources": ["T"] * 11}),
    ],
)
def test_more_members_than_a_stack_may_have_are_refused(kind, properties):
    with pytest.raises(errors.RequestLimitExceeded, match="11 members"):
        made(kind, properties, limits=Limits(resources=10)).validate()
    made(kind, properties, limits=Limits(resources=11)).validate()
    made(kind, properties, limits=Limits(resources=-1)).validate()


def test_pauses_longer_than_the_stack_may_take_are_refused():
    policy = {"batch_create": {"max_batch_size": 1, "pause_time": 1800}}
    resource = group(None, policy=policy)
    with pytest.raises(errors.StackValidationFailed, match="pauses"):
        resource.validate()
    changed(resource, count=2).validate()


# -------------------------------------------------------------------------------------- chains


def test_a_chain_gives_its_properties_to_each_member(children):
    given = {"resources": ["A", "B"], "resource_properties": {"value": "q"}}
    chain = made(ResourceChain, given, children=children)
    chain.handle_create()
    assert children.only.document["resources"] == {
        "0": {"type": "A", "properties": {"value": "q"}},
        "1": {"type": "B", "properties": {"value": "q"}, "depends_on": ["0"]},
    }
    assert told(chain, "value") == ["q", "q"]


def test_a_concurrent_chain_is_as_wide_as_there_are_engines(children):
    given = {"resources": ["A"] * 4, "concurrent": True}
    chain = made(ResourceChain, given, children=children, engines=2)
    waits = [each.get("depends_on") for each in chain.child_document()["resources"].values()]
    assert waits == [None, None, ["0"], ["1"]]
    assert made(ResourceChain, {"resources": None}).child_document()["resources"] == {}


# ----------------------------------------------------------------------------- the child's ways


class Nested(composite.Composite):
    def child_document(self):
        return {"heat_template_version": "2021-04-16", "resources": {}}


def test_a_composite_follows_its_child_to_the_end(children):
    resource = made(Nested, children=children)
    assert resource.handle_delete() is None
    assert resource.check_delete_complete(None) == DONE
    resource.cancel_child()
    assert children.cancelled == []
    resource.handle_create()
    resource.handle_create_cancel(None)
    children.end()
    token = resource.handle_update(None, {}, {})
    assert token == Action.UPDATE
    resource.handle_update_cancel(token)
    assert children.cancelled == [children.only.id] * 2
    children.end()
    assert resource.check_update_complete(token) == DONE
    resource.handle_delete()
    assert not is_complete(resource.check_delete_complete, None)
    children.stacks.clear()
    assert resource.check_delete_complete(None) == DONE


@pytest.mark.parametrize("verb", ["suspend", "resume", "check", "snapshot"])
def test_a_composite_hands_on_what_is_asked_of_it(children, verb):
    resource = made(Nested, children=children)
    with pytest.raises(states.ChildFailed, match="gone"):
        getattr(resource, f"handle_{verb}")()
    resource.handle_create()
    children.end()
    token = getattr(resource, f"handle_{verb}")()
    check = getattr(resource, f"check_{verb}_complete")
    assert children.only.action == verb.upper()
    assert not is_complete(check, token)
    children.end()
    assert is_complete(check, token)
    children.end(Status.FAILED, "Resource CHECK failed: ValueError: resources.b: no")
    with pytest.raises(states.ChildFailed, match="no"):
        check(token)


def test_a_composite_is_adopted_as_a_stack_of_what_was_left(children):
    resource, left = made(Nested, children=children), {"resources": {"b": {"resource_id": "17"}}}
    left["resource_data"] = {"skipped": ["1"]}
    token = resource.handle_adopt(left)
    assert children.only.blueprint.adopt == left
    assert resource.record.data == {"skipped": ["1"]}
    children.end()
    assert is_complete(resource.check_adopt_complete, token)


def test_a_child_is_made_once_however_often_its_creation_begins(children):
    """An engine that dies before it has stored anything is followed by one that knows nothing."""
    resource, again = made(Nested, children=children), made(Nested, children=children)
    resource.handle_create()
    again.handle_create()
    assert children.only.id == again.record.physical_id == resource.record.physical_id


def test_a_child_after_a_child_has_another_id(children):
    resource = made(Nested, children=children)
    resource.handle_create()
    first = children.only.id
    children.stacks.clear()
    resource.handle_create()
    assert children.only.id == resource.record.physical_id != first


def test_a_child_that_is_gone_is_made_by_an_update(children):
    resource = made(Nested, children=children)
    token = resource.handle_update(None, {}, {})
    assert token == Action.CREATE
    children.end()
    assert resource.check_update_complete(token) == DONE
    children.stacks.clear()
    with pytest.raises(states.ChildFailed, match="gone"):
        resource.check_update_complete(token)


def test_what_a_child_did_before_is_not_taken_for_what_it_does_now(children):
    resource = made(Nested, children=children)
    resource.handle_create()
    children.end()
    assert not is_complete(resource.check_update_complete, Action.UPDATE)


# ------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (ValueError("it broke"), "ValueError: resources.a: it broke"),
        (errors.NotFound(reason="no"), "NotFound: resources.a: no"),
        (errors.StackValidationFailed(reason="no"), "StackValidationFailed: resources.a: no"),
        (
            errors.StackValidationFailed(reason="no", path=["resources", "a"], error="Bad"),
            "StackValidationFailed: resources.a: Bad: resources.a: no",
        ),
        (
            states.ChildFailed("Resource CREATE failed: ValueError: resources.b: x: y"),
            "ValueError: resources.a.resources.b: x: y",
        ),
        (
            states.ChildFailed("Resource UPDATE failed: resources.b: Timed out"),
            "resources.a.resources.b: Timed out",
        ),
        (states.ChildFailed("Timed out"), "resources.a: Timed out"),
        (ValueError(), "ValueError: resources.a"),
    ],
)
def test_a_failure_names_its_error_and_its_place(exc, text):
    assert str(states.fault_of("a", exc)) == text


def test_a_real_thing_in_error_says_its_status():
    from bloomery.orchestration.resources import base

    said = str(base.ResourceInError("ERROR", "no host"))
    assert said == 'Went to status ERROR due to "no host"'
