from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template import environment, merging
from bloomery.orchestration.template.parameter_types import ParameterType
from tests.kit import work

KINDS = {
    "s": ParameterType.STRING,
    "n": ParameterType.NUMBER,
    "b": ParameterType.BOOLEAN,
    "l": ParameterType.LIST,
    "j": ParameterType.JSON,
}


def merge(*documents: Any, limits: Limits = Limits()) -> dict[str, Any]:  # noqa: B008  it is frozen
    texts = {
        f"{index}.yaml": document if isinstance(document, str) else json.dumps(document)
        for index, document in enumerate(documents)
    }
    return merging.merged(list(texts), texts, KINDS, limits)


def says(strategies: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    """Return one file."""
    document: dict[str, Any] = {"parameters": values}
    return document | ({"parameter_merge_strategies": strategies} if strategies else {})


MERGE, DEEP = {"default": "merge"}, {"default": "deep_merge"}

# the files in their order, and what the parameters come to; rows of heat-hot.md 14.4 first
MERGED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "overwrite": (
        [says(s="a", j={"x": 1}), says(s="b", j={"y": 2})],
        {"s": "b", "j": {"y": 2}},
    ),
    "merge": (
        [
            says(MERGE, s="a", l="1,2", j={"x": {"a": 1}, "z": 0}),
            says(MERGE, s="b", l="3", j={"x": {"b": 2}}),
        ],
        {"s": "ab", "l": "1,2,3", "j": {"x": {"b": 2}, "z": 0}},
    ),
    "deep_merge": (
        [says(DEEP, j={"x": {"p": [1], "q": "s"}}), says(DEEP, j={"x": {"p": [2], "q": "t"}})],
        {"j": {"x": {"p": [1, 2], "q": "st"}}},
    ),
    "default merge only in the second": ([says(s="a"), says(MERGE, s="b")], {"s": "b"}),
    "merge only in the first": ([says({"s": "merge"}, s="a"), says(s="b")], {"s": "ab"}),
    "default merge only in the first": ([says(MERGE, s="a"), says(s="b")], {"s": "ab"}),
    "the second's default changes nothing": (
        [says(MERGE, s="a"), says({"default": "overwrite"}, s="b")],
        {"s": "ab"},
    ),
    "the second says the same by name": (
        [says(MERGE, s="a"), says({"s": "merge"}, s="b")],
        {"s": "ab"},
    ),
    "the name before the default": (
        [says({"default": "merge", "s": "overwrite"}, s="a", l="1"), says(s="b", l="2")],
        {"s": "b", "l": "1,2"},
    ),
    "an unknown word is the file's default": (
        [says({"default": "merge", "s": "foo"}, s="a"), says(s="b")],
        {"s": "ab"},
    ),
    "an unknown word by name in the second": (
        [says(MERGE, s="a"), says({"s": "foo"}, s="b")],
        {"s": "ab"},
    ),
    "an unknown default": ([says({"default": "foo"}, s="a"), says(s="b")], {"s": "b"}),
    "a strategy that is no word": ([says({"s": ["merge"]}, s="a"), says(s="b")], {"s": "b"}),
    "the first file that gives a value settles it": (
        [says({"s": "merge"}, n=1), says({"s": "overwrite"}, s="b"), says(s="c")],
        {"n": 1, "s": "c"},
    ),
    "three files": ([says(MERGE, s="a"), says(s="b"), says(MERGE, s="c")], {"s": "abc"}),
    "null says nothing": ([says(s="a"), says(s=None)], {"s": "a"}),
    "null settles nothing": (
        [says({"s": "merge"}, s=None), says({"s": "overwrite"}, s="b")],
        {"s": "b"},
    ),
    "null before a merge": ([says(MERGE, s=None), says(MERGE, s="b")], {"s": "b"}),
    "unknown names of the first": ([says(x="a", s="q"), says(s="b")], {"x": "a", "s": "b"}),
    "unknown names that are there": ([says(x="a"), says(x="b")], {"x": "a"}),
    "unknown names of the second": ([says(s="q"), says(MERGE, x="b")], {"s": "q"}),
    "unknown names where nothing was said": ([{}, says(x="b")], {"x": "b"}),
    "numbers are added": ([says(MERGE, n=1), says(n=2)], {"n": 3}),
    "numbers as text too": ([says(MERGE, n="1"), says(n="2.5")], {"n": 3.5}),
    "numbers, mixed": ([says(DEEP, n=1.5), says(n="2")], {"n": 3.5}),
    "from zero": ([says(MERGE, n=0), says(n=2)], {"n": 2}),
    "text with numbers": ([says(MERGE, s="a"), says(s=2)], {"s": "a2"}),
    "empty text": ([says(MERGE, s=""), says(s="b")], {"s": "b"}),
    "deep_merge of text": ([says(DEEP, s="a"), says(s="b")], {"s": "ab"}),
    "lists": ([says(MERGE, l=["a"]), says(l=["b", 5])], {"l": ["a", "b", "5"]}),
    "deep_merge of lists": ([says(DEEP, l=["a"]), says(l=["b"])], {"l": ["a", "b"]}),
    "a list and text": ([says(MERGE, l=["a"]), says(l="b,c")], {"l": ["a", "b", "c"]}),
    "text and a list": ([says(MERGE, l="a,b"), says(l=["c"])], {"l": ["a", "b", "c"]}),
    "empty lists": ([says(MERGE, l=""), says(l="c")], {"l": "c"}),
    "json as text": ([says(MERGE, j='{"x": 1}'), says(j={"y": 1})], {"j": {"x": 1, "y": 1}}),
    "json as text, deep": (
        [says(DEEP, j='{"x": {"p": [1]}}'), says(j='{"x": {"p": [2]}}')],
        {"j": {"x": {"p": [1, 2]}}},
    ),
    "empty json": ([says(MERGE, j=""), says(j={"a": 1})], {"j": {"a": 1}}),
    "json, then empty": ([says(MERGE, j={"a": 1}), says(j="")], {"j": {"a": 1}}),
    "lists of json": ([says(MERGE, j=[1]), says(j="[2]")], {"j": [1, 2]}),
    "null inside says nothing": ([says(MERGE, j={"a": 1}), says(j={"a": None})], {"j": {"a": 1}}),
    "null deep inside": (
        [says(DEEP, j={"a": 2, "b": {"c": 1}, "d": None}), says(j={"a": None, "d": [1]})],
        {"j": {"a": 2, "b": {"c": 1}, "d": [1]}},
    ),
    "of other values deep inside the later wins": (
        [says(DEEP, j={"a": 1, "b": True, "c": "x"}), says(j={"a": 2.5, "b": False, "c": 5})],
        {"j": {"a": 2.5, "b": False, "c": 5}},
    ),
    "a boolean is overwritten": ([says(b=True), says(b=False)], {"b": False}),
    "a boolean given once": ([says(MERGE, b=True), says(s="x")], {"b": True, "s": "x"}),
    "empty files": (["", "# nothing", says(s="a"), "{}"], {"s": "a"}),
}


@pytest.mark.parametrize("case", MERGED)
@pytest.mark.parametrize("section", ["parameters", "parameter_defaults"])
def test_values_are_merged_as_the_files_say(case: str, section: str):
    files, expected = MERGED[case]
    files = [
        {section if key == "parameters" else key: value for key, value in file.items()}
        if isinstance(file, dict)
        else file
        for file in files
    ]
    assert merge(*files)[section] == expected


CONFLICTS: dict[str, list[Any]] = {
    "two words": [says({"s": "merge"}, s="a"), says({"s": "overwrite"}, s="b")],
    "merge only in the second, by name": [says(s="a"), says({"s": "merge"}, s="b")],
    "overwrite, then merge": [says({"s": "overwrite"}, s="a"), says({"s": "merge"}, s="b")],
    "an unknown word, then merge": [says({"s": "foo"}, s="a"), says({"s": "merge"}, s="b")],
    "merge, then deep": [says(MERGE, s="a"), says({"s": "deep_merge"}, s="b")],
    "across sections": [
        says({"s": "merge"}, s="a"),
        {"parameter_defaults": {"s": "b"}, "parameter_merge_strategies": {"s": "overwrite"}},
    ],
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_another_strategy_for_a_parameter_in_a_later_file_is_a_conflict(case: str):
    with pytest.raises(errors.ConflictingMergeStrategyForParam) as refusal:
        merge(*CONFLICTS[case])
    assert "for parameter 's' in file '1.yaml'" in str(refusal.value)
    assert refusal.value.status == 400


UNMERGEABLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "booleans": (says(MERGE, b=True), says(b=False)),
    "booleans as text": (says(MERGE, b="true"), says(b="false")),
    "booleans, deep": (says(DEEP, b=True), says(b=False)),
    "a boolean for a number": (says(MERGE, n=1), says(n=True)),
    "a boolean for text": (says(MERGE, s=True), says(s="x")),
    "a map for text": (says(MERGE, s={"a": 1}), says(s="x")),
    "a list for text": (says(MERGE, s="x"), says(s=["a"])),
    "no number": (says(MERGE, n=1), says(n="x")),
    "numbers beyond all bounds": (says(MERGE, n=1e308), says(n=1e308)),
    "no list": (says(MERGE, l="a"), says(l={"a": 1})),
    "no json": (says(MERGE, j={"a": 1}), says(j="{")),
    "a map and a list": (says(MERGE, j={"a": 1}), says(j=[1])),
    "a map and a number": (says(MERGE, j={"a": 1}), says(j="5")),
    "a list and a map, deep": (says(DEEP, j={"a": [1]}), says(j={"a": {"b": 1}})),
    "text and a list, deep": (says(DEEP, j={"a": "x"}), says(j={"a": [1]})),
    "a map and a number, deep": (says(DEEP, j={"a": {}}), says(j={"a": 5})),
}


@pytest.mark.parametrize("case", UNMERGEABLE)
def test_what_cannot_be_joined_is_refused(case: str):
    first, second = UNMERGEABLE[case]
    with pytest.raises(errors.InvalidMergeStrategyForParam) as refusal:
        merge(first, second)
    strategy = first["parameter_merge_strategies"]["default"]
    name = next(iter(first["parameters"]))
    assert str(refusal.value) == f"Invalid merge strategy {strategy!r} for parameter {name!r}."
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("one", "other"), [(10**400, 0.5), (10**400, 1), (1e308, 1e308), (-1e308, -1e308)]
)
def test_a_sum_that_is_no_number_is_refused_where_long_ones_are_allowed(one: Any, other: Any):
    limits = Limits(scalar_digits=1000)
    with pytest.raises(errors.InvalidMergeStrategyForParam):
        merge(says(MERGE, n=one), says(n=other), limits=limits)


def test_other_sections_are_merged_key_by_key_and_null_says_nothing():
    found = merge(
        {
            "resource_registry": {
                "A": "a",
                "B": "b",
                "C": None,
                "resources": {"r": {"hooks": "pre-create"}},
            },
            "event_sinks": [{"type": "a"}],
            "encrypted_param_names": ["a", "b"],
        },
        {
            "resource_registry": {
                "A": "x",
                "B": None,
                "resources": {"q": {"hooks": "pre-update"}},
            },
            "event_sinks": [{"type": "b"}, {"type": "a"}],
            "encrypted_param_names": ["b", "c"],
        },
    )
    assert found == {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {
            "A": "x",
            "B": "b",
            "resources": {"q": {"hooks": "pre-update"}},
        },
        "event_sinks": [{"type": "a"}, {"type": "b"}],
        "encrypted_param_names": ["a", "b", "c"],
    }


def test_parameters_and_defaults_are_merged_each_by_itself():
    found = merge(
        {"parameter_defaults": {"s": "a", "n": 1}, "parameter_merge_strategies": MERGE},
        says(MERGE, s="c") | {"parameter_defaults": {"s": "b"}},
    )
    assert found["parameters"] == {"s": "c"}
    assert found["parameter_defaults"] == {"s": "ab", "n": 1}


def test_what_was_shared_inside_of_one_file_is_not_shared_afterwards():
    text = "{parameters: {j: &x {p: [1]}}, parameter_defaults: {j: *x}, %s}"
    first = text % "parameter_merge_strategies: {default: deep_merge}"
    found = merge(first, says(j={"p": [2]}))
    assert found["parameters"] == {"j": {"p": [1, 2]}}
    assert found["parameter_defaults"] == {"j": {"p": [1]}}


def test_no_files_give_every_section_empty():
    found = merge()
    assert found == environment.Environment.of({}).document() | {"resource_registry": {}}


UNREADABLE: dict[str, tuple[str, tuple[str | int, ...], str]] = {
    "no map": ("- a", (), "environment file 1.yaml: the environment file 1.yaml is a list"),
    "no yaml": ("a: [", (), "environment file 1.yaml: line 2, column 1:"),
    "an octal": ("parameters: {a: 0644}", ("parameters", "a"), "file 1.yaml: parameters.a: line 1"),
    "a wrong section": ("foo: {}", (), 'environment has wrong section "foo"'),
    "an empty section": ("parameters:", (), 'environment has empty section "parameters"'),
    "a list for a map": ("parameter_merge_strategies: []", (), "must be a map"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_no_environment_is_named(case: str):
    text, path, words = UNREADABLE[case]
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        merge(says(s="a"), text)
    assert refusal.value.path == path
    assert words in str(refusal.value)


def test_a_file_that_did_not_come_is_named():
    with pytest.raises(errors.StackValidationFailed, match=r"no file 'b\.yaml' came"):
        merging.merged(["b.yaml"], {"a.yaml": ""}, {})


# -------------------------------------------------------------------------------------- limits


def test_files_have_a_number_and_a_size():
    limits = Limits(environment_files=2, environment_bytes=20)
    assert merging.merged(["a"] * 2, {"a": "#" * 10}, {}, limits)["parameters"] == {}
    with pytest.raises(errors.RequestLimitExceeded, match="environment_files"):
        merging.merged(["a"] * 3, {"a": ""}, {}, limits)
    with pytest.raises(errors.RequestLimitExceeded, match="environment_bytes"):
        merging.merged(["a", "b"], {"a": "#" * 10, "b": "#" * 11}, {}, limits)
    with pytest.raises(errors.RequestLimitExceeded, match=r"file a: 5 bytes.*template_bytes"):
        merging.merged(["a"], {"a": "#" * 6}, {}, Limits(template_bytes=5))


def test_the_same_file_again_and_again_costs_little():
    words = ",".join(f'"{index}"' for index in range(2_000))
    text = (
        f'{{"parameters": {{"j": [{words}]}}, "parameter_merge_strategies": {json.dumps(MERGE)}}}'
    )

    def merge() -> None:
        found = merging.merged(["a"] * 100, {"a": text}, KINDS)
        assert len(found["parameters"]["j"]) == 200_000

    assert work.calls(merge) < 800_000  # two for each word


# ---------------------------------------------------------------------------------------- PATCH


def test_an_environment_is_laid_over_the_stored_one():
    stored = {
        "parameters": {"a": 1, "b": {"x": 1}},
        "parameter_defaults": {"d": 1},
        "resource_registry": {"A": "a.yaml"},
        "encrypted_param_names": ["a"],
    }
    found = merging.over(stored, {"parameters": {"b": {"y": 2}, "c": 3, "a": None}})
    assert found == {
        **stored,
        "parameters": {"a": 1, "b": {"y": 2}, "c": 3},
        "event_sinks": [],
    }
    assert stored["parameters"] == {"a": 1, "b": {"x": 1}}


def test_what_is_laid_over_must_be_an_environment():
    with pytest.raises(errors.TemplateUnreadable, match="wrong section"):
        merging.over({}, {"a": 1})
    laid = merging.over({}, {"parameter_merge_strategies": {"a": "merge"}})
    assert "parameter_merge_strategies" not in laid


# ----------------------------------------------------------------------------- known parameters

HOT = "heat_template_version: 2021-04-16\nparameters: {p: {type: string}, n: {type: number}}"
CFN = "AWSTemplateFormatVersion: 2010-09-09\nParameters: {c: {Type: CommaDelimitedList}}"


def test_parameters_of_all_templates_are_known_and_the_root_counts_first():
    root = {"parameters": {"p": {"type": "json"}, "b": {"type": "boolean"}}}
    files = {"0.yaml": "heat_template_version: [", "a.yaml": HOT, "b.yaml": CFN, "c.sh": "#!"}
    assert merging.kinds_of(root, files) == {
        "p": ParameterType.JSON,
        "b": ParameterType.BOOLEAN,
        "n": ParameterType.NUMBER,
        "c": ParameterType.LIST,
    }


@pytest.mark.parametrize(
    "text",
    [
        "parameters: {p: {type: string}}",  # no template
        "heat_template_version: [",
        "heat_template_version: x\nparameters: []",
        "heat_template_version: x\nparameters: {p: string, q: {type: [a]}, r: {}, s: {type: Str}}",
        "- heat_template_version",
    ],
)
def test_what_is_no_template_declares_nothing(text: str):
    assert merging.kinds_of({}, {"a": text}) == {}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["1", "{}", "[1]", "a,b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "parameters": st.dictionaries(st.sampled_from([*KINDS, "x"]), VALUES),
        "parameter_defaults": st.dictionaries(st.sampled_from([*KINDS, "x"]), VALUES),
        "parameter_merge_strategies": st.dictionaries(
            st.sampled_from([*KINDS, "default"]),
            st.sampled_from([*merging.STRATEGIES, "foo", None, []]),
        ),
        "event_sinks": st.lists(VALUES, max_size=2),
        "resource_registry": st.dictionaries(st.text(max_size=3), VALUES),
    },
)


@given(st.lists(FILES, max_size=4))
def test_any_files_give_an_environment_or_a_named_failure(files: list[Any]):
    try:
        found = merge(*files)
    except errors.Failure:
        return
    assert environment.checked(found) is found
    assert set(found) == set(environment.SECTIONS) - {environment.STRATEGIES}
