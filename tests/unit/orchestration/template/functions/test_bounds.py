"""What is too large is refused before it is made, and long inputs cost their length."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import view
from bloomery.orchestration.template.functions import base, shapes
from tests.kit import work
from tests.kit.stacks.function_vectors import AWS, Vector, parsed

TINY = Limits(
    result_nodes=100, result_chars=1000, url_chars=50, replaced_chars=10_000, yaql_chars=40
)
THOUSAND = [str(number) for number in range(1000)]


def resolve(snippet, limits=LIMITS, version="2021-04-16", **parameters):
    seen = view.Plain(parameters=parameters, limits=limits)
    return base.resolve(parsed(Vector("", snippet, None, version), seen), seen)


def repeat(template, **for_each):
    return {"repeat": {"template": template, "for_each": for_each}}


def nested(times):
    made = "x"
    for _ in range(times):
        made = repeat(made, k=["a"] * 200)
    return made


P = {"get_param": "p"}

TOO_LARGE = [
    (repeat("a-b-c", a=THOUSAND, b=THOUSAND, c=THOUSAND), LIMITS, None),
    (nested(5), LIMITS, None),
    (repeat("a" * 1000, a=["a" * 100_000]), LIMITS, None),
    (repeat("ab", a=["b" * 5000], b=["c" * 5000]), LIMITS, None),
    (repeat("", **{"": ["a"]}, k=["b"] * 101), TINY, None),
    (repeat(["x" * 100], k=["a"] * 11), TINY, None),
    (repeat(["k" * 60, "k" * 60], k=["b" * 9]), TINY, None),
    (repeat("k", k=["x" * 100] * 11), TINY, None),
    (repeat("x", **{f"k{number}": ["a"] for number in range(1100)}), TINY, None),
    (repeat("x" * 900, **{f"k{number}": ["a"] for number in range(20)}), TINY, None),
    ({"list_concat": [P, P]}, TINY, list(range(60))),
    ({"list_concat_unique": [P, P]}, TINY, list(range(60))),
    ({"map_merge": [P, P]}, TINY, {str(number): 1 for number in range(30)}),
    ({"list_join": ["x" * 100, P]}, TINY, [""] * 12),
    ({"list_join": [",", [P, P]]}, TINY, ["x" * 501]),
    ({"str_replace": {"template": "a" * 100, "params": {"a": "x" * 11}}}, TINY, None),
    ({"str_replace": {"template": "a" * 100_000, "params": {"a": "x" * 100_000}}}, LIMITS, None),
    ({"str_replace": {"template": "x" * 600, "params": P}}, TINY, {str(n): "" for n in range(20)}),
    ({"str_split": [",", P]}, TINY, "," * 100),
    ({"str_split": [None, P]}, TINY, "a " * 101),
    ({"make_url": {"host": "h" * 51}}, TINY, None),
    ({"make_url": {"query": P}}, TINY, {"k": "v" * 50}),
    ({"equals": [P, P]}, TINY, list(range(60))),
    ([P, {"a": P}], TINY, list(range(60))),
    ([[P], [P]], TINY, "x" * 501),
    ([repeat("x", a=P, b=P)] * 3, Limits(result_nodes=25_000), ["a"] * 100),
    ({"contains": [P, [P]]}, TINY, list(range(60))),
    ({"filter": [P, P]}, TINY, list(range(60))),
    ({"yaql": {"expression": "1 +" * 20 + "1"}}, TINY, None),
    ({"yaql": {"expression": "$.data", "data": P}}, TINY, [[1] * 50, [2] * 51]),
]


@pytest.mark.parametrize(("snippet", "limits", "given"), TOO_LARGE)
def test_what_would_be_too_large_is_refused_before_it_is_made(snippet, limits, given):
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(errors.StackValidationFailed):
            resolve_anywhere(snippet, limits, p=given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 5  # what is refused late takes minutes
    assert peak < 32 * 2**20


def resolve_anywhere(snippet, limits, **parameters):
    deciding = isinstance(snippet, dict) and "equals" in snippet
    seen = view.Plain(parameters=parameters, limits=limits)
    base.resolve(parsed(Vector("", snippet, None, deciding=deciding), seen), seen)


WITHIN = [
    (repeat("k", k=["a"] * 50), ["a"] * 50),
    ({"list_concat": [P, [1]]}, [*range(30), 1]),
    ({"str_replace": {"template": "a" * 10, "params": {"a": "x" * 99}}}, "x" * 990),
    ({"make_url": {"host": "h" * 50}}, "//" + "h" * 50),
]


@pytest.mark.parametrize(("snippet", "expected"), WITHIN)
def test_what_is_large_enough_is_taken(snippet, expected):
    assert resolve(snippet, TINY, p=list(range(30))) == expected


def test_text_of_json_may_be_as_large_as_its_limit():
    snippet = {"Fn::Select": [0, "[" + "1," * 200 + "1]"]}
    assert resolve(snippet, Limits(document_nodes=210), AWS) == 1
    with pytest.raises(errors.RequestLimitExceeded):
        resolve(snippet, Limits(document_nodes=190), AWS)


def test_ten_thousand_copies_take_a_few_calls_each():
    template = {"name-%i%": ["%i%", {"port": "80-%i%"}]}
    values = [str(number) for number in range(10_000)]
    snippet = repeat(template, **{"%i%": P})
    copies: list[object] = []
    assert work.calls(lambda: copies.extend(resolve(snippet, p=values))) < 900_000  # 45 for each
    assert len(copies) == 10_000


@pytest.mark.parametrize(
    "snippet",
    [
        {"filter": [P, P]},
        {"list_concat_unique": [P, P]},
        {"str_replace": {"template": {"list_join": [",", P]}, "params": {"7": "x", "77": "y"}}},
        {"map_merge": repeat({"k": 1}, k=P)},
    ],
)
def test_long_lists_cost_their_length(snippet):
    values = [str(number) for number in range(50_000)]
    began = time.process_time()
    resolve(snippet, p=values)
    assert time.process_time() - began < 5  # a square takes minutes


def test_shared_parts_count_as_often_as_they_would_be_written():
    shared = ["x"]
    for _ in range(20):
        shared = [shared, shared]
    with pytest.raises(errors.StackValidationFailed):
        shapes.size(shared, LIMITS)


def test_values_are_called_by_their_kind():
    called = [shapes.described(value) for value in ({}, [], "t", None, 5, "x" * 99)]
    assert called == [
        "a map",
        "a list",
        "the text 't'",
        "null",
        "5",
        f"the text {'x' * 60 + '...'!r}",
    ]


def deep(levels, made="x"):
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "snippet",
    [
        {"filter": [[1], P]},
        {"repeat": {"template": P, "for_each": {"k": ["a"]}}},
        {"list_join": ["", P]},
        {"yaql": {"expression": "$.data", "data": P}},
    ],
)
def test_values_too_deep_for_a_function_are_refused(snippet):
    with pytest.raises(errors.StackValidationFailed, match="deep"):
        resolve_anywhere(snippet, LIMITS, p=[deep(20_000)])


@pytest.mark.parametrize(
    ("snippet", "meant"),
    [
        ({"make_url": {"hots": "h"}}, "host"),
        ({"yaql": {"expresion": "1", "expression": "1"}}, "expression"),
        ({"map_replace": [{}, {"key": {}}]}, "keys"),
        ({"digest": ["sha265", "a"]}, "sha256"),
        ({"resource_facade": "metdata"}, "metadata"),
    ],
)
def test_a_misspelt_word_is_told_what_was_meant(snippet, meant):
    with pytest.raises(errors.StackValidationFailed, match=f"Did you mean '{meant}'"):
        resolve(snippet)
