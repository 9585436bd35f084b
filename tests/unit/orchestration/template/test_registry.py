from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template import kinds, registry
from bloomery.orchestration.template.registry import Registry
from tests.kit import work

NAMES = ("OS::Heat::None", "OS::Heat::Value", "OS::Heat::Delay", "A::Known")
CLASSES = {name: type(name, (), {}) for name in NAMES}
KINDS = kinds.Kinds({name: lambda name=name: CLASSES[name] for name in NAMES})


def means(
    document: dict[str, Any],
    type_name: str,
    resource: str = "r",
    operators: dict[str, Any] | None = None,
) -> str:
    """Return the name of the kind, or that of the template."""
    above = None if operators is None else Registry(operators, KINDS)
    found = Registry(document, KINDS, above).find(type_name, resource)
    assert (found.kind is None) != (found.template is None)
    return found.template or found.kind.__name__


NONE, VALUE = "OS::Heat::None", "OS::Heat::Value"

# what the user's registry says, the type asked for, what it means
FINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing said": ({}, NONE, NONE),
    "a template by its name": ({}, "db.yaml", "db.yaml"),
    "a template, the other name": ({}, "db.template", "db.template"),
    "a template by address": ({}, "http://h/db", "http://h/db"),
    "a template by safe address": ({}, "https://h/db", "https://h/db"),
    "an alias": ({"A": VALUE}, "A", VALUE),
    "an alias of an alias": ({"A": "B", "B": "C", "C": VALUE}, "A", VALUE),
    "a template": ({"A": "a.yaml"}, "A", "a.yaml"),
    "a template elsewhere": ({"A": "https://h/a.yaml"}, "A", "https://h/a.yaml"),
    "a template as clients send it": ({"A": "file:///a.yaml"}, "A", "file:///a.yaml"),
    "a built-in type in other clothes": ({NONE: "a.yaml"}, NONE, "a.yaml"),
    "a wildcard carries the rest over": ({"A::*": "OS::Heat::*"}, "A::Value", VALUE),
    "a wildcard to one type": ({"A::*": NONE}, "A::Value", NONE),
    "a wildcard to one template": ({"A::*": "a.yaml"}, "A::Value", "a.yaml"),
    "a wildcard to its own kind": ({"OS::*": NONE}, NONE, NONE),
    "everything": ({"*": NONE}, "What::Ever", NONE),
    "everything, templates too": ({"*": NONE}, "db.yaml", NONE),
    "the target is a template and final": ({"*": NONE, "A": "a.yaml"}, "A", "a.yaml"),
    "exact before wildcard": ({"A::*": NONE, "A::B": VALUE}, "A::B", VALUE),
    "exact before wildcard, said first": ({"A::B": VALUE, "A::*": NONE}, "A::B", VALUE),
    "long before short": ({"A*": NONE, "A::B*": VALUE}, "A::Bc", VALUE),
    "long before short, said first": ({"A::B*": VALUE, "A*": NONE}, "A::Bc", VALUE),
    "short where the long does not fit": ({"A*": NONE, "A::B*": VALUE}, "A::c", NONE),
    "a wildcard on what an alias names": ({"A": "B::Value", "B::*": "OS::Heat::*"}, "A", VALUE),
    "a wildcard on what a wildcard names": (
        {"A::*": "B::*", "B::*": "OS::Heat::*"},
        "A::Value",
        VALUE,
    ),
    "the same wildcard at most once": ({"A*": "AA*"}, "A::Known", "A::Known"),
    "a dead alias is passed over": ({"A": "Dead", "A*": VALUE}, "A", VALUE),
    "a dead wildcard is passed over": ({"A::*": "Dead*", "A*": VALUE}, "A::x", VALUE),
    "dead ends of dead ends": ({"A": "B", "B": "Dead", "A*": VALUE}, "A", VALUE),
    "dead before a known type": ({NONE: "Dead"}, NONE, NONE),
    "a removed rule": ({"A*": VALUE, "A::B": "Dead", "C": NONE, "A::*": None}, "A::B", VALUE),
    "a removal of what is above": ({"A::B": "a.yaml", "A*": None, "A::*": VALUE}, "A::B", VALUE),
    "not what is below": ({"A*": None, "A::B": VALUE}, "A::B", VALUE),
    "not the kinds": ({NONE: None, "OS::*": None}, NONE, NONE),
    "for one resource": ({"A": NONE, "resources": {"r": {"A": VALUE}}}, "A", VALUE),
    "for another resource": ({"A": NONE, "resources": {"x": {"A": VALUE}}}, "A", NONE),
    "for exact names alone": ({"A": NONE, "resources": {"r*": {"A": VALUE}}}, "A", NONE),
    "a wildcard for one resource": ({"A": NONE, "resources": {"r": {"*": VALUE}}}, "A", VALUE),
    "one resource is let off": ({VALUE: "a.yaml", "resources": {"r": {VALUE: None}}}, VALUE, VALUE),
    "a target of one resource": (
        {"A": "B", "B": NONE, "resources": {"r": {"B": VALUE}}},
        "A",
        VALUE,
    ),
    "base_url is the client's": ({"base_url": "http://h/", "A": VALUE}, "A", VALUE),
}  # fmt: skip


@pytest.mark.parametrize("case", FINDS)
def test_a_type_means_what_the_strongest_rule_says(case: str):
    document, type_name, expected = FINDS[case]
    assert means(document, type_name) == expected


# the user's, the operator's, the type asked for, what it means
LEVELS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "the operator's alone": ({}, {"A": VALUE}, "A", VALUE),
    "the operator's before kinds": ({}, {"OS::*": NONE}, VALUE, NONE),
    "the user's first": ({"A": NONE}, {"A": VALUE}, "A", NONE),
    "the user's wildcard before the operator's exact": ({"A*": NONE}, {"A": VALUE}, "A", NONE),
    "the user's dead end": ({"A": "Dead"}, {"A": VALUE}, "A", VALUE),
    "the user's target": ({"A": "B"}, {"B": VALUE}, "A", VALUE),
    "the operator's for one resource": (
        {},
        {"A": NONE, "resources": {"r": {"A": VALUE}}},
        "A",
        VALUE,
    ),
    "the user's before that": ({"A": NONE}, {"resources": {"r": {"A": VALUE}}}, "A", NONE),
    "the user takes the operator's rule away": ({VALUE: None}, {VALUE: "a.yaml"}, VALUE, VALUE),
    "by a wildcard": ({"OS::*": None}, {VALUE: "a.yaml", "OS*": NONE}, VALUE, NONE),
}


@pytest.mark.parametrize("case", LEVELS)
def test_the_users_rules_stand_before_the_operators(case: str):
    users, operators, type_name, expected = LEVELS[case]
    assert means(users, type_name, operators=operators) == expected


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown": ({}, "X", "The Resource Type (X) could not be found."),
    "misspelt": ({}, "OS::Heat::Valeu", "(OS::Heat::Valeu) could not be found. Did you mean 'OS::"),
    "hooks are no type": (
        {"resources": {"r": {"hooks": "pre-create", "base_url": "b"}}},
        "hooks",
        "The Resource Type (hooks) could not be found.",
    ),
    "a misspelt alias": ({"My::Server": NONE}, "My::Sever", "Did you mean 'My::Server'?"),
    "mapped to nothing": ({"A": "x.yml"}, "A", "maps it to 'x.yml', which is neither a type nor"),
    "a circle": ({"A": "B", "B": "A"}, "A", "leads in a circle, from A to B to A: take one rule"),
    "into a circle": ({"A": "B", "B": "C", "C": "B"}, "A", "in a circle, from B to C to B"),
    "itself": ({"A": "A"}, "A", "in a circle, from A to A"),
    "a known one itself": ({NONE: NONE}, NONE, f"in a circle, from {NONE} to {NONE}"),
    "wildcards in a circle": (
        {"A::*": "B::*", "B::*": "A::*"},
        "A::Known",
        "in a circle, from A::Known to B::Known to A::Known",
    ),
    "through an alias": ({"A*": "B*", "Bx": "Ax"}, "Ax", "in a circle, from Ax to Bx to Ax"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_type_that_means_nothing_is_refused_with_the_way_out(case: str):
    document, type_name, says = REFUSED[case]
    with pytest.raises(errors.StackValidationFailed) as refusal:
        means(document, type_name)
    assert says in str(refusal.value)
    assert refusal.value.path == ()


def test_the_operator_takes_kinds_away_for_everybody():
    assert means({}, VALUE, operators={NONE: None}) == VALUE
    for operators in ({NONE: None}, {"OS::*": None}):
        with pytest.raises(errors.StackValidationFailed, match="could not be found"):
            means({}, NONE, operators=operators)


def test_an_answer_is_the_same_each_time_and_belongs_to_its_resource():
    known = Registry({"A": NONE, "resources": {"r": {"A": VALUE}}}, KINDS)
    found = [known.find("A", name).kind for name in ("x", "r", "y", "r", "")]
    assert [kind.__name__ for kind in found if kind] == [NONE, VALUE, NONE, VALUE, NONE]
    assert known.find("A", "x") is known.find("A", "y")


SHAPES: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "a number": ({"A": 5}, ("A",), "map a type to a type, to the name of a .yaml"),
    "a boolean": ({"A": True}, ("A",), "map a type to a type"),
    "a list": ({"A": ["b"]}, ("A",), "map a type to a type"),
    "a map": ({"A": {"b": "c"}}, ("A",), "map a type to a type"),
    "empty text": ({"A": ""}, ("A",), "map a type to a type"),
    "base_url is text": ({"base_url": 5}, ("base_url",), "map a type to a type"),
    "a wildcard at the beginning": ({"*A": NONE}, ("*A",), "at the end of a type only"),
    "a wildcard inside": ({"A*B*": NONE}, ("A*B*",), "at the end of a type only"),
    "a key": ({5: NONE}, ("5",), "a type must be text: quote it"),
    "hooks for all": ({"hooks": "pre-create"}, ("hooks",), "this belongs to a resource: write"),
    "restrictions for all": (
        {"restricted_actions": "update"},
        ("restricted_actions",),
        "write resources: {NAME: {restricted_actions: ...}}",
    ),
    "too long a type": ({"A" * 256: NONE}, ("A" * 256,), "255 characters at most (type_chars)"),
    "resources null": ({"resources": None}, ("resources",), "write a map of names"),
    "resources a list": ({"resources": []}, ("resources",), "write a map of names"),
    "a resource is text": ({"resources": {"r": "x"}}, ("resources", "r"), "write a map with hooks"),
    "a resource is a list": ({"resources": {"r": []}}, ("resources", "r"), "write a map with"),
    "hooks as a resource": (
        {"resources": {"hooks": "pre-create"}},
        ("resources", "hooks"),
        "write a map with hooks",
    ),
    "a type of a resource": (
        {"resources": {"r": {"A": 5}}},
        ("resources", "r", "A"),
        "write a map with hooks",
    ),
    "an empty type of a resource": (
        {"resources": {"r": {"A": ""}}},
        ("resources", "r", "A"),
        "write a map with hooks",
    ),
    "deeper": (
        {"resources": {"r": {"s": {"t": {"A": []}}}}},
        ("resources", "r", "s", "t", "A"),
        "write a map with hooks",
    ),
    "a key of resources": ({"resources": {5: {}}}, ("resources",), "a key must be text, not 5"),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES)
def test_a_registry_of_the_wrong_shape_is_refused_with_its_place(case: str):
    document, path, says = SHAPES[case]
    with pytest.raises(errors.StackValidationFailed) as refusal:
        Registry(document, KINDS)
    assert refusal.value.path == path
    assert says in str(refusal.value)


# -------------------------------------------------------------------------------- by resource

MARKED = {
    "resources": {
        "*_db": {"hooks": "pre-create"},
        "my_db": {"hooks": ["post-create", "pre-delete"], "restricted_actions": "update"},
        "my*": {"restricted_actions": ["replace"]},
        "db[0-9]": {"hooks": "post-update"},
        "db?": {"hooks": None, "restricted_actions": []},
        "other": None,
        "plain": {"A": "B", "inner": {"hooks": "pre-update"}},
        "base_url": "http://h/",
    }
}


@pytest.mark.parametrize(
    ("name", "hooks", "restricted"),
    [
        ("my_db", {"pre-create", "post-create", "pre-delete"}, {"update", "replace"}),
        ("your_db", {"pre-create"}, set()),
        ("my_web", set(), {"replace"}),
        ("MY_DB", set(), set()),
        ("db7", {"post-update"}, set()),
        ("dbx", set(), set()),
        ("db[0-9]", {"post-update"}, set()),  # a pattern is also the name that it spells
        ("other", set(), set()),
        ("plain", set(), set()),
        ("inner", set(), set()),
    ],
)
def test_hooks_and_restrictions_are_given_by_every_pattern_that_fits(
    name: str, hooks: set[str], restricted: set[str]
):
    marked = Registry(MARKED, KINDS)
    assert (marked.hooks(name), marked.restricted_actions(name)) == (hooks, restricted)


def test_the_operators_hooks_and_restrictions_are_added():
    operators = Registry(MARKED, KINDS)
    document = {"resources": {"your_db": {"hooks": "pre-update", "restricted_actions": "update"}}}
    marked = Registry(document, KINDS, operators)
    assert marked.hooks("your_db") == {"pre-create", "pre-update"}
    assert marked.restricted_actions("your_db") == {"update"}
    assert marked.restricted_actions("my_db") == {"update", "replace"}


@pytest.mark.parametrize("value", ["foo", "Pre-create", "", 5, {}, ["pre-create", "foo"], [["x"]]])
@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("hooks", errors.InvalidBreakPointHook),
        ("restricted_actions", errors.InvalidRestrictedAction),
    ],
)
def test_unknown_hooks_and_restrictions_are_refused_at_every_depth(
    key: str, error: type[errors.Failure], value: Any
):
    for resources in ({"r": {key: value}}, {"r": {"s": {"t*": {key: value}}}}):
        with pytest.raises(error) as refusal:
            Registry({"resources": resources}, KINDS)
        assert "is not known: write one or a list of" in str(refusal.value)
        assert refusal.value.status == 400


def test_a_misspelt_hook_is_told_its_place_and_what_may_be_meant():
    with pytest.raises(errors.InvalidBreakPointHook) as refusal:
        Registry({"resources": {"r": {"hooks": ["pre_create"]}}}, KINDS)
    assert str(refusal.value).startswith('resource_registry.resources.r.hooks: "pre_create" is not')
    assert str(refusal.value).endswith("Did you mean 'pre-create'?")


def test_all_hooks_and_restrictions_are_known():
    hooks = [
        f"{when}-{what}" for when in ("pre", "post") for what in ("create", "update", "delete")
    ]
    document = {"resources": {"r": {"hooks": hooks, "restricted_actions": ["update", "replace"]}}}
    marked = Registry(document, KINDS)
    assert marked.hooks("r") == set(hooks)
    assert marked.restricted_actions("r") == {"update", "replace"}


# ------------------------------------------------------------------------------- nested stacks

NESTED = {
    "A": "a.yaml",
    "My::*": "my.yaml",
    "resources": {
        "nested": {
            "inner": {"hooks": "pre-create", "A": "x.yaml", "deep": {"hooks": "pre-update"}},
            "T": "y.yaml",
            "hooks": "pre-update",
        },
        "n*": {
            "inner": {"restricted_actions": "update", "A": "z.yaml", "hooks": ["post-create"]},
            "other": {"hooks": "pre-delete"},
        },
        "x": {"inner": {"hooks": "post-delete"}},
    },
}


def test_a_nested_stack_gets_what_all_patterns_of_its_resource_say_and_the_exact_name_wins():
    document = Registry(NESTED, KINDS).child_registry("nested")
    assert document == {
        "A": "a.yaml",
        "My::*": "my.yaml",
        "resources": {
            "inner": {
                "restricted_actions": "update",
                "A": "x.yaml",
                "hooks": ["post-create", "pre-create"],
                "deep": {"hooks": "pre-update"},
            },
            "other": {"hooks": "pre-delete"},
        },
    }
    below = Registry(document, KINDS)
    assert below.hooks("inner") == {"pre-create", "post-create"}
    assert below.find("A", "inner").template == "x.yaml"
    assert Registry(below.child_registry("inner"), KINDS).hooks("deep") == {"pre-update"}


def test_a_nested_stack_that_nobody_names_gets_the_types_alone():
    document = Registry(NESTED, KINDS).child_registry("unnamed")
    assert document == {"A": "a.yaml", "My::*": "my.yaml", "resources": {}}


@pytest.mark.parametrize(
    ("type_name", "left"),
    [("A", {"My::*"}), ("My::Server", {"A"}), ("B.yaml", {"A", "My::*"})],
)
def test_the_rule_that_made_a_nested_stack_is_not_handed_down(type_name: str, left: set[str]):
    known = Registry(NESTED, KINDS)
    document = known.child_registry("r", known.find(type_name, "r"))
    assert document.keys() - {"resources"} == left


def test_a_template_may_stand_for_a_type_and_use_the_original_inside():
    known = Registry({"Alias": VALUE, VALUE: "value.yaml"}, KINDS)
    found = known.find("Alias", "r")
    assert found.template == "value.yaml"
    below = Registry(known.child_registry("r", found), KINDS)
    assert below.find("Alias", "r").kind is CLASSES[VALUE]


@pytest.mark.parametrize("rule", [VALUE, "OS::*"])
def test_that_holds_for_the_operators_rules_too(rule: str):
    operators = Registry({rule: "value.yaml"}, KINDS)
    for document in ({}, {"Z": NONE}, {rule: "Dead"}):
        known = Registry(document, KINDS, operators)
        below = Registry(known.child_registry("r", known.find(VALUE, "r")), KINDS, operators)
        assert below.find(VALUE, "r").kind is CLASSES[VALUE]
        assert below.document.get("Z") == document.get("Z")


def test_a_rule_for_one_resource_takes_none_away_from_the_nested_stack():
    known = Registry({"A": "a.yaml", "resources": {"r": {"A": "own.yaml"}}}, KINDS)
    assert known.child_registry("r", known.find("A", "r")) == {"A": "a.yaml", "resources": {}}


# -------------------------------------------------------------------------------------- limits


def test_a_type_may_lead_through_so_many_names_and_no_more():
    limits = Limits(registry_names=4)
    chain = {"A": "B", "B": "C", "C": VALUE}
    assert Registry(chain, KINDS, limits=limits).find("A").kind is CLASSES[VALUE]
    longer = chain | {"0": "A"}
    with pytest.raises(errors.RequestLimitExceeded, match=r"resource type 0: .*registry_names"):
        Registry(longer, KINDS, limits=limits).find("0")


def test_dead_ends_count_so_that_a_search_ends():
    bush = {"a" * size + "*": f"{'a' * size}b{size}*" for size in range(1, 200)}

    def search() -> None:
        with pytest.raises(errors.RequestLimitExceeded, match="registry_names"):
            Registry(bush, KINDS).find("a" * 250)

    assert work.calls(search) < 10_000


def test_patterns_have_a_number_and_a_length():
    limits = Limits(registry_patterns=3, pattern_chars=10)
    fits = {f"n{i}*": {} for i in range(3)} | {f"n{i}": {} for i in range(9)}
    Registry({"resources": fits}, KINDS, limits=limits)
    with pytest.raises(errors.RequestLimitExceeded, match="registry_patterns"):
        Registry({"resources": fits | {"x?": {}}}, KINDS, limits=limits)
    Registry({"resources": {"x" * 10: {}}}, KINDS, limits=limits)
    with pytest.raises(errors.RequestLimitExceeded, match="pattern_chars"):
        Registry({"resources": {"x" * 11: {}}}, KINDS, limits=limits)


def test_types_have_a_length():
    limits = Limits(type_chars=3)
    Registry({"A" * 3: NONE}, KINDS, limits=limits)
    with pytest.raises(errors.StackValidationFailed, match="type_chars"):
        Registry({"A" * 4: NONE}, KINDS, limits=limits)


def test_names_inside_of_names_end_somewhere():
    resources: dict[str, Any] = {}
    for _ in range(5):
        resources = {"r": resources}
    Registry({"resources": resources}, KINDS, limits=Limits(document_depth=5))
    with pytest.raises(errors.RequestLimitExceeded, match="document_depth"):
        Registry({"resources": {"r": resources}}, KINDS, limits=Limits(document_depth=5))


def test_many_rules_cost_no_more_than_few():
    many = {f"T{i}::*": "OS::Heat::*" for i in range(20_000)}
    many |= {f"N{i}": None for i in range(2_000)} | {f"P{i}*": None for i in range(2_000)}
    known = Registry(many, KINDS)

    def search() -> None:
        for i in range(1_000):
            assert known.find(f"T{i}::Value", f"r{i}").kind is CLASSES[VALUE]

    assert work.calls(search) < 160_000  # 82 for each; there are 20,000 rules
    assert known.level._wild._lengths == [8, 7, 6, 5, 4], "a question costs as much as that"


TYPES = st.sampled_from(["A", "AB", "A::B", "A*", "A::*", "*", NONE, "OS::*", "x.yaml", "B", "B*"])
LINES = st.dictionaries(TYPES, st.none() | TYPES, max_size=6)
RESOURCES = st.recursive(
    st.none() | st.text(max_size=3) | st.sampled_from(["pre-create", "update", ["x"], 5]),
    lambda inner: st.dictionaries(
        st.sampled_from(["r", "r*", "hooks", "restricted_actions", "A", "base_url"]), inner
    ),
    max_leaves=8,
)


@given(LINES, LINES, RESOURCES, TYPES)
def test_any_registry_gives_an_answer_or_a_named_failure(
    lines: dict[str, Any], operators: dict[str, Any], resources: Any, type_name: str
):
    try:
        above = Registry(operators, KINDS)
        known = Registry({**lines, "resources": resources}, KINDS, above)
        known.hooks("r")
        found = known.find(type_name, "r")
        Registry(known.child_registry("r", found), KINDS, above).find(type_name, "r")
    except errors.Failure:
        return
    assert (found.kind is None) != (found.template is None)


def test_what_is_a_template_is_told_by_its_name():
    names = ["a.yaml", "a.template", "http://h/a", "https://h/a", "file:///a", "a.yml", "A::B"]
    assert [registry.is_template(name) for name in names] == [True] * 5 + [False] * 2
