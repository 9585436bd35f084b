"""The core kinds: what each takes, does and tells."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import re
import string
import uuid

import pytest

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.delay import Delay
from bloomery.orchestration.resources.none import NoneResource
from bloomery.orchestration.resources.random_string import RandomString, choose, draw, shuffle
from bloomery.orchestration.resources.software_config import SoftwareConfig
from bloomery.orchestration.resources.test_resource import TestResource
from bloomery.orchestration.resources.value import Value
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Clock, is_complete, made
from tests.kit.stacks.memory_machines import MemorySoftware


def test_every_core_kind_is_offered_as_a_plug_in():
    names = {point.name for point in importlib.metadata.entry_points(group="bloomery.resources")}
    said = "Delay None RandomString ResourceChain ResourceGroup SoftwareConfig TestResource Value"
    assert names >= {f"OS::Heat::{name}" for name in said.split()}


@pytest.mark.parametrize("kind", [NoneResource, SoftwareConfig])
def test_these_are_known_by_an_id_of_their_own(kind):
    software = MemorySoftware()
    resource = made(kind, software=software)
    other = made(kind, uuid=str(uuid.UUID(int=2)), software=software)
    assert resource.get_reference_id() == "a"
    resource.handle_create()
    other.handle_create()
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", resource.get_reference_id())
    assert resource.get_reference_id() != other.get_reference_id()


@pytest.mark.parametrize("kind", [Value, TestResource])
def test_these_are_known_by_their_physical_name(kind):
    resource = made(kind, {"value": "x"})
    token = resource.handle_create()
    if kind is TestResource:
        resource.check_create_complete(token)
    assert re.fullmatch(r"s-a-[a-z2-7]{12}", resource.get_reference_id())


def test_what_an_abandoned_stack_left_is_taken_over():
    left = {"resource_id": "17", "resource_data": {"value": "s3cret"}, "metadata": {"m": 1}}
    resource = made(RandomString)
    resource.handle_adopt(left)
    record = resource.record
    assert (record.physical_id, record.data, record.metadata) == (
        "17",
        {"value": "s3cret"},
        {"m": 1},
    )
    assert record.redacted == {"value"}
    with pytest.raises(errors.NotFound, match="cannot adopt a: its resource_id is missing"):
        made(Value).handle_adopt({"resource_id": None})


def test_none_takes_everything_and_answers_null():
    resource = made(NoneResource)
    assert resource.ignores_properties
    assert resource.offers_attribute("anything")
    assert resource.resolve_attribute("anything") is None
    assert resource.handle_update(None, {}, {"x": 1}) is None


@pytest.mark.parametrize("value", [5, None, "x", 2**70, 1.5, {"a": [1]}, [], False])
def test_a_value_comes_back_unchanged(value):
    resource = made(Value, {"value": value})
    assert resource.resolve_attribute("value") == value
    assert resource.resolve_attribute("show") is None
    assert resource.handle_update(None, {}, {"value": 6}) is None


@pytest.mark.parametrize(
    ("kind", "value", "accepted"),
    [
        ("number", "5", True),
        ("number", 5.5, True),
        ("number", "x", False),
        ("boolean", "true", True),
        ("boolean", False, True),
        ("boolean", "maybe", False),
        ("string", 5, True),
        ("string", {"a": 1}, False),
        ("json", {"a": 1}, True),
        ("json", '{"a": 1}', False),
        ("comma_delimited_list", ["a"], True),
        ("comma_delimited_list", "a,b", False),
        (None, object, True),
        ("json", None, True),
    ],
)
def test_the_type_of_a_value_refuses_and_converts_nothing(kind, value, accepted):
    resource = made(Value, {"value": value, "type": kind})
    if accepted:
        resource.validate()
        assert resource.resolve_attribute("value") is value
        return
    with pytest.raises(errors.StackValidationFailed, match="value"):
        resource.validate()


def test_a_software_config_is_its_text():
    resource = made(SoftwareConfig, {"config": "#!/bin/sh"})
    assert resource.resolve_attribute("config") == "#!/bin/sh"
    assert resource.resolve_attribute("show") is None
    with pytest.raises(base.UpdateReplace):
        resource.handle_update(None, {}, {"config": "other"})


# ------------------------------------------------------------------------------- random texts

ANY = string.ascii_letters + string.digits


@pytest.mark.parametrize(
    ("properties", "pattern"),
    [
        ({}, r"[A-Za-z0-9]{32}"),
        ({"length": 1}, r"[A-Za-z0-9]"),
        ({"length": 512}, r"[A-Za-z0-9]{512}"),
        ({"character_classes": [{"class": "letters", "min": 1}]}, r"[A-Za-z]{32}"),
        ({"character_classes": [{"class": "lowercase", "min": 1}]}, r"[a-z]{32}"),
        ({"character_classes": [{"class": "uppercase", "min": 1}]}, r"[A-Z]{32}"),
        ({"character_classes": [{"class": "digits", "min": 1}]}, r"[0-9]{32}"),
        ({"character_classes": [{"class": "hexdigits", "min": 1}]}, r"[0-9A-F]{32}"),
        ({"character_classes": [{"class": "octdigits", "min": 1}]}, r"[0-7]{32}"),
        ({"character_classes": [], "length": 9}, r"[A-Za-z0-9]{9}"),
        (
            {"character_classes": [], "character_sequences": [{"sequence": "!?", "min": 1}]},
            r"[!?]{32}",
        ),
    ],
)
def test_a_random_text_has_its_length_and_its_characters(properties, pattern):
    numbers = itertools.cycle(n / 97 for n in range(97))
    properties = {"character_classes": [{"class": "lettersdigits", "min": 1}], **properties}
    resource = made(RandomString, properties, random=lambda: next(numbers))
    resource.validate()
    assert resource.get_reference_id() == "a"
    resource.handle_create()
    text = resource.resolve_attribute("value")
    assert re.fullmatch(pattern, text)
    assert text == resource.get_reference_id()
    assert resource.resolve_attribute("show") is None
    assert resource.record.redacted == {"value"}


@pytest.mark.parametrize("random", [lambda: 0.0, lambda: 0.3, lambda: 1 - 2**-53])
def test_the_least_of_every_class_and_sequence_is_in_the_text(random):
    text = draw([(string.digits, 3), ("!", 2), (string.ascii_lowercase, 1)], 8, random)
    assert len(text) == 8
    assert sum(c.isdigit() for c in text) >= 3
    assert text.count("!") >= 2
    assert any(c.islower() for c in text)


def test_every_character_and_every_order_can_come():
    assert {choose("abc", lambda n=n: n / 30) for n in range(30)} == {"a", "b", "c"}
    orders = set()
    for numbers in itertools.product((0.1, 0.5, 0.9), repeat=2):
        given = iter(numbers)
        orders.add("".join(shuffle(list("abc"), lambda given=given: next(given))))
    assert orders == {"".join(order) for order in itertools.permutations("abc")}


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"length": 2, "character_classes": [{"class": "digits", "min": 3}]}, "raise length"),
        (
            {
                "length": 3,
                "character_classes": [{"class": "digits", "min": 2}],
                "character_sequences": [{"sequence": "!", "min": 2}],
            },
            "4 characters",
        ),
        (
            {"character_classes": [], "character_sequences": [{"sequence": "", "min": 1}]},
            "empty sequence",
        ),
    ],
)
def test_a_random_text_that_cannot_be_is_refused(properties, says):
    with pytest.raises(errors.StackValidationFailed, match=says):
        made(RandomString, properties).validate()


def test_a_length_that_is_not_known_yet_refuses_nothing():
    made(RandomString, {"length": None, "character_classes": []}).validate()


def test_every_change_of_a_random_text_makes_a_new_one():
    assert not any(schema.update_allowed for schema in RandomString.properties_schema.values())


# ----------------------------------------------------------------------------- test resources


@pytest.mark.parametrize(
    ("properties", "action", "ends_s"),
    [
        ({}, "create", 0),
        ({"wait_secs": 3}, "create", 3),
        ({"wait_secs": 3}, "update", 3),
        ({"wait_secs": 3}, "delete", 3),
        ({"wait_secs": 3, "action_wait_secs": {"create": 5}}, "create", 5),
        ({"wait_secs": 3, "action_wait_secs": {"create": 5}}, "delete", 3),
        ({"wait_secs": 3, "action_wait_secs": {"delete": 0, "create": None}}, "delete", 0),
        ({"wait_secs": 3, "action_wait_secs": {"delete": 0, "create": None}}, "create", 3),
        ({"wait_secs": -1}, "create", None),
        ({"wait_secs": 1, "action_wait_secs": {"update": -1}}, "update", None),
    ],
)
def test_a_test_resource_waits_as_long_as_it_is_told(properties, action, ends_s):
    clock = Clock()
    resource = made(TestResource, properties, clock=clock)
    given = (None, {}, {}) if action == "update" else ()
    token = json.loads(json.dumps(getattr(resource, f"handle_{action}")(*given)))
    check = getattr(resource, f"check_{action}_complete")
    if ends_s is None:
        clock.now_s = 1e9
        assert not is_complete(check, token)
        return
    if ends_s:
        clock.now_s = ends_s - 0.1
        assert not is_complete(check, token)
    clock.now_s = ends_s
    assert is_complete(check, token)


@pytest.mark.parametrize(
    ("action", "fails"), [("create", True), ("update", True), ("delete", False)]
)
def test_a_test_resource_fails_after_its_wait_but_never_in_a_delete(action, fails):
    clock = Clock()
    resource = made(TestResource, {"fail": True, "wait_secs": 2}, clock=clock)
    given = (None, {}, {}) if action == "update" else ()
    token = getattr(resource, f"handle_{action}")(*given)
    check = getattr(resource, f"check_{action}_complete")
    assert not is_complete(check, token)
    clock.now_s = 2
    if not fails:
        assert is_complete(check, token)
        return
    with pytest.raises(ValueError, match="Test Resource failed a"):
        check(token)


def test_a_check_of_a_test_resource_fails_until_it_was_created():
    resource = made(TestResource)
    token = resource.handle_create()
    with pytest.raises(ValueError, match="Resource not created"):
        resource.handle_check()
    assert resource.check_create_complete(token) == DONE
    resource.handle_check()


def test_output_is_the_value_of_the_last_create_or_update():
    resource = made(TestResource, {"value": "x"})
    assert resource.resolve_attribute("output") is None
    resource.handle_create()
    assert resource.resolve_attribute("output") == "x"
    resource.properties = {**resource.properties, "value": "y"}
    assert resource.resolve_attribute("output") == "x"
    resource.handle_update(None, {}, {"value": "y"})
    assert resource.resolve_attribute("output") == "y"
    assert resource.resolve_attribute("show") is None


@pytest.mark.parametrize(
    ("diff", "after", "replaced"),
    [
        ({"value": "y"}, {"update_replace": True}, True),
        ({"value": "y"}, {"update_replace": False}, False),
        ({"update_replace": True}, {"update_replace": True}, False),
        ({"wait_secs": 1}, {"update_replace": True}, False),
    ],
)
def test_a_new_value_replaces_where_update_replace_says_so(diff, after, replaced):
    assert TestResource.needs_replace({}, after, diff) is replaced
    allowed = TestResource.properties_schema["update_replace_value"].update_allowed
    assert not allowed


# ------------------------------------------------------------------------------------- delays


@pytest.mark.parametrize(
    ("properties", "random", "action", "ends_s"),
    [
        ({}, 0.5, "create", 0),
        ({"min_wait": 3}, 0.5, "create", 3),
        ({"min_wait": 3, "max_jitter": 4}, 0.5, "create", 5),
        ({"min_wait": 3, "max_jitter": 4, "jitter_multiplier": 0.5}, 0.5, "create", 4),
        ({"min_wait": 3, "max_jitter": 4}, 0, "create", 3),
        ({"min_wait": 3, "actions": ["DELETE"]}, 0.5, "create", 0),
        ({"min_wait": 3}, 0.5, "delete", 0),
        ({"min_wait": 3, "actions": ["DELETE", "SUSPEND"]}, 0.5, "delete", 3),
        ({"min_wait": 3, "actions": ["SUSPEND"]}, 0.5, "suspend", 3),
        ({"min_wait": 3, "actions": ["RESUME"]}, 0.5, "resume", 3),
        ({"min_wait": 3, "actions": None}, 0.5, "create", 0),
    ],
)
def test_a_delay_waits_in_the_actions_it_is_told(properties, random, action, ends_s):
    clock = Clock(100)
    resource = made(Delay, properties, clock=clock, random=lambda: random)
    token = getattr(resource, f"handle_{action}")()
    check = getattr(resource, f"check_{action}_complete")
    if ends_s:
        clock.now_s = 100 + ends_s - 0.1
        assert not is_complete(check, token)
    clock.now_s = 100 + ends_s
    assert is_complete(check, token)
    assert resource.get_reference_id() == "a"


def test_a_changed_delay_is_another_one():
    assert Delay.needs_replace({"min_wait": 1}, {"min_wait": 3}, {"min_wait": 3})
    assert not Delay.needs_replace({}, {}, {})
    assert all(schema.update_allowed for schema in Delay.properties_schema.values())


@pytest.mark.parametrize(
    ("properties", "fits"),
    [
        ({"min_wait": 60}, True),
        ({"min_wait": 60.1}, False),
        ({"min_wait": 30, "max_jitter": 30}, True),
        ({"min_wait": 30, "max_jitter": 11, "jitter_multiplier": 3}, False),
        ({"min_wait": None, "max_jitter": 61}, False),
        ({"min_wait": None, "max_jitter": None}, True),
    ],
)
def test_a_delay_must_fit_into_the_time_of_the_stack(properties, fits):
    resource = made(Delay, properties, timeout_s=60)
    if fits:
        resource.validate()
    else:
        with pytest.raises(errors.StackValidationFailed, match="lower min_wait"):
            resource.validate()


@pytest.mark.parametrize(
    "properties",
    [
        {"character_classes": [{"class": "name-of-another", "min": 1}]},
        {"character_classes": [{"class": None, "min": None}]},
        {"character_classes": [None]},
        {"character_sequences": [{"sequence": None, "min": 1}, None]},
    ],
)
def test_a_random_text_is_not_refused_for_what_is_not_known_yet(properties):
    """Before what it refers to is made, a value is null, or a name."""
    found = RandomString(
        StoredResource(name="a", type="OS::Heat::RandomString", uuid="u"),
        {"length": 3, "character_classes": None, "character_sequences": None, **properties},
        base.ResourceContext(stack_name="s", stack_id="i", utc=lambda: 0.0, random=lambda: 0.0),
    )
    found.validate()
