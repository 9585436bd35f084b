from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.orchestration.template import environment, kinds
from bloomery.orchestration.template.environment import Environment

NONE, VALUE = "OS::Heat::None", "OS::Heat::Value"
KINDS = kinds.Kinds({NONE: lambda: type(None), VALUE: lambda: int})


def of(document: Any, operators: Environment | None = None) -> Environment:
    return Environment.of(document, KINDS, operators=operators, sinks=("webhook", "log"))


WHOLE = {
    "parameters": {"size": 3, "secret": "x"},
    "parameter_defaults": {"colour": "red", "secret": "y"},
    "resource_registry": {"A": "a.yaml", "resources": {"n*": {"inner": {"hooks": "pre-create"}}}},
    "event_sinks": [{"type": "webhook", "url": "https://h/"}],
    "encrypted_param_names": ["secret"],
}


@pytest.mark.parametrize("document", [None, {}])
def test_an_environment_may_say_nothing(document: Any):
    found = of(document)
    assert found.parameters == {}
    assert found.parameter_defaults == {}
    assert found.registry.find(NONE).kind is type(None)
    assert found.event_sinks == []
    assert found.encrypted_param_names == []
    assert found.registry.hooks("r") == set()
    assert found.registry.restricted_actions("r") == set()
    assert found.document() == {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}},
        "event_sinks": [],
        "encrypted_param_names": [],
    }


def test_every_section_is_kept_as_it_was_sent():
    found = of(WHOLE)
    assert found.parameters == {"size": 3, "secret": "x"}
    assert found.parameter_defaults == {"colour": "red", "secret": "y"}
    assert found.registry.find("A").template == "a.yaml"
    assert found.document() == WHOLE
    assert of(found.document()).document() == WHOLE, "what is shown can be sent again"


def test_readers_see_the_values_of_public_parameters_only():
    shown = of(WHOLE).document(public={"size", "colour", "other"})
    assert shown["parameters"] == {"size": 3, "secret": "******"}
    assert shown["parameter_defaults"] == {"colour": "red", "secret": "******"}


def test_strategies_have_no_effect_outside_of_files():
    document = of({"parameter_merge_strategies": {"a": "x"}}).document()
    assert "parameter_merge_strategies" not in document


# what the API answers as HTTPBadRequest, before an engine sees it
UNREADABLE: dict[str, tuple[Any, str]] = {
    "a flat map of parameters": ({"size": 3}, 'environment has wrong section "size". It may have'),
    "misspelt": ({"parameter": {}}, "Did you mean 'parameters'?"),
    "of a template": ({"resources": {}}, 'wrong section "resources"'),
    "no text": ({5: {}}, 'wrong section "5"'),
    "null parameters": ({"parameters": None}, 'environment has empty section "parameters": fill'),
    "null registry": ({"resource_registry": None}, "empty section"),
    "null sinks": ({"event_sinks": None}, "empty section"),
    "null names": ({"encrypted_param_names": None}, "empty section"),
    "null defaults": ({"parameter_defaults": None}, "empty section"),
    "null strategies": ({"parameter_merge_strategies": None}, "empty section"),
    "parameters, a list": ({"parameters": []}, 'section "parameters" must be a map'),
    "parameters, text": ({"parameters": "x"}, 'section "parameters" must be a map'),
    "defaults, a list": ({"parameter_defaults": []}, "must be a map"),
    "registry, a list": ({"resource_registry": []}, "must be a map"),
    "sinks, a map": ({"event_sinks": {}}, 'section "event_sinks" must be a list'),
    "names, text": ({"encrypted_param_names": "x"}, "must be a list"),
    "strategies, text": ({"parameter_merge_strategies": "merge"}, "must be a map"),
    "a list": ([], "the environment must be a map of sections"),
    "text": ("parameters", "the environment must be a map of sections"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_section_is_a_bad_request(case: str):
    document, says = UNREADABLE[case]
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        of(document)
    assert says in str(refusal.value)


# document, error, path, message
WRONG: dict[str, tuple[Any, type[errors.Failure], tuple[Any, ...], str]] = {
    "hooks": (
        {"resource_registry": {"resources": {"r": {"hooks": "foo"}}}},
        errors.InvalidBreakPointHook,
        (),
        'resource_registry.resources.r.hooks: "foo" is not known',
    ),
    "restricted actions": (
        {"resource_registry": {"resources": {"r": {"restricted_actions": "foo"}}}},
        errors.InvalidRestrictedAction,
        (),
        'resource_registry.resources.r.restricted_actions: "foo" is not known',
    ),
    "a type": (
        {"resource_registry": {"resources": {"r": {"A": 5}}}},
        errors.StackValidationFailed,
        ("resource_registry", "resources", "r", "A"),
        "write a map with hooks",
    ),
    "a rule": (
        {"resource_registry": {"A": 5}},
        errors.StackValidationFailed,
        ("resource_registry", "A"),
        "map a type to a type",
    ),
    "an unknown sink": (
        {"event_sinks": [{"type": "log"}, {"type": "webhok"}]},
        errors.StackValidationFailed,
        ("event_sinks", 1),
        "'webhok' is no type of sink: known are log, webhook. Did you mean 'webhook'?",
    ),
    "a sink without type": (
        {"event_sinks": [{"url": "x"}]},
        errors.StackValidationFailed,
        ("event_sinks", 0),
        "needs a type: known are log, webhook.",
    ),
    "a sink of a strange type": (
        {"event_sinks": [{"type": {}}]},
        errors.StackValidationFailed,
        ("event_sinks", 0),
        "is no type of sink",
    ),
    "a sink that is text": (
        {"event_sinks": ["log"]},
        errors.StackValidationFailed,
        ("event_sinks", 0),
        "needs a type",
    ),
    "a name that is none": (
        {"encrypted_param_names": ["a", 5]},
        errors.StackValidationFailed,
        ("encrypted_param_names", 1),
        "write the name of a parameter",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_section_holds_is_refused_with_its_place(case: str):
    document, error, path, says = WRONG[case]
    with pytest.raises(error) as refusal:
        of(document)
    assert getattr(refusal.value, "path", ()) == path
    assert says in str(refusal.value)
    assert refusal.value.status == 400


def test_a_sink_where_none_is_installed_is_told_so():
    assert environment.installed_sinks() == environment.installed_sinks()
    with pytest.raises(errors.StackValidationFailed, match="none is installed"):
        Environment.of({"event_sinks": [{"type": "log"}]}, KINDS, sinks=())


def test_kinds_and_sinks_are_those_installed_unless_said():
    found = Environment.of({"resource_registry": {"A": NONE}})
    assert found.registry.kinds is kinds.installed()
    assert found.registry.find("A").kind is kinds.installed().find(NONE)
    with pytest.raises(errors.StackValidationFailed, match="no type of sink"):
        Environment.of({"event_sinks": [{"type": "no such sink"}]})


# heat-hot.md 14.4: the rows on hooks and on child environments


def test_a_hook_on_a_pattern_is_set_for_what_it_names_and_nothing_else():
    found = of({"resource_registry": {"resources": {"*_db": {"hooks": "pre-create"}}}})
    assert found.registry.hooks("my_db") == {"pre-create"}
    assert found.registry.hooks("my_web") == set()


def test_a_child_environment_joins_what_the_patterns_say():
    resources = {
        "n*": {"inner": {"hooks": "pre-create"}},
        "nested": {"inner": {"restricted_actions": "update"}, "other": {"hooks": "post-create"}},
    }
    child = of({"resource_registry": {"resources": resources}}).child("nested")
    assert child.registry.hooks("inner") == {"pre-create"}
    assert child.registry.restricted_actions("inner") == {"update"}
    assert child.registry.hooks("other") == {"post-create"}


def test_a_child_has_its_own_parameters_and_the_defaults_sinks_and_rules_of_its_parent():
    parent = of(WHOLE)
    child = parent.child("nested", {"colour": "blue"}, parent.registry.find("A", "nested"))
    assert child.document() == {
        "parameters": {"colour": "blue"},
        "parameter_defaults": WHOLE["parameter_defaults"],
        "resource_registry": {"resources": {"inner": {"hooks": "pre-create"}}},
        "event_sinks": WHOLE["event_sinks"],
        "encrypted_param_names": [],
    }
    assert of(child.document()).registry.hooks("inner") == {"pre-create"}, "it can be read again"


def test_a_child_of_a_child_goes_on_below():
    resources = {"a": {"b": {"c": {"hooks": "pre-delete"}}}}
    found = of({"resource_registry": {"resources": resources, "A": "a.yaml"}})
    below = found.child("a").child("b")
    assert below.registry.hooks("c") == {"pre-delete"}
    assert below.registry.find("A").template == "a.yaml"
    assert found.registry.hooks("c") == found.child("a").registry.hooks("c") == set()


OPERATORS = of(
    {
        "parameters": {"region": "north", "size": 9},
        "parameter_defaults": {"region": "south", "colour": "green", "shape": "round"},
        "resource_registry": {
            "B": VALUE,
            "resources": {"r": {"restricted_actions": "replace", "hooks": "pre-create"}},
        },
        "event_sinks": [{"type": "log"}],
    }
)


def test_the_operators_environment_stands_below_the_users():
    found = of(WHOLE, OPERATORS)
    assert found.parameters == WHOLE["parameters"], "the operator's are defaults"
    assert found.parameter_defaults == {
        "region": "north",
        "size": 9,
        "colour": "red",
        "shape": "round",
        "secret": "y",
    }
    assert found.registry.find("B").kind is int
    assert found.registry.restricted_actions("r") == {"replace"}
    assert found.registry.hooks("r") == {"pre-create"}
    assert found.all_sinks() == [*WHOLE["event_sinks"], {"type": "log"}]
    assert found.document() == WHOLE, "what users see is what they sent"


def test_the_operators_environment_reaches_every_child():
    child = of(WHOLE, OPERATORS).child("nested", {"size": 1})
    assert child.registry.find("B").kind is int
    assert child.parameter_defaults["region"] == "north"
    assert child.all_sinks() == [*WHOLE["event_sinks"], {"type": "log"}]
    assert child.document()["parameter_defaults"] == WHOLE["parameter_defaults"]


def test_without_an_operator_the_sinks_are_the_users():
    assert of(WHOLE).all_sinks() == WHOLE["event_sinks"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*environment.SECTIONS, "x"]), ANYTHING) | ANYTHING)
def test_any_environment_gives_one_or_a_named_failure(document: Any):
    try:
        found = of(document)
    except errors.Failure:
        return
    assert of(found.document()).document() == found.document()
    found.child("r").document()
