from __future__ import annotations

import copy
from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.properties.translation import (
    Add,
    Delete,
    Replace,
    Resolve,
    Rule,
    spread,
    translated,
)

CASES: dict[str, tuple[list[Rule], Any, Any]] = {
    "add to a list": ([Add(("l",), values=[2])], {"l": [1]}, {"l": [1, 2]}),
    "add to no list yet": ([Add(("l",), values=[2])], {}, {"l": [2]}),
    "add to null": ([Add(("l",), values=[2])], {"l": None}, {"l": [2]}),
    "add to what is no list": ([Add(("l",), values=[2])], {"l": "x"}, {"l": "x"}),
    "add from a source": ([Add(("l",), source=("o",))], {"l": [1], "o": 2}, {"l": [1, 2]}),
    "add from no source": ([Add(("l",), source=("o",))], {"s": 1}, {"s": 1}),
    "add within lists": (
        [Add(("ns", "ips"), values=[9])],
        {"ns": [{"ips": [1]}, {}, "odd"]},
        {"ns": [{"ips": [1, 9]}, {"ips": [9]}, "odd"]},
    ),
    "replace by a value": ([Replace(("a",), value=5)], {"a": 1}, {"a": 5}),
    "replace by a source": ([Replace(("a",), source=("o",))], {"o": 1}, {"a": 1}),
    "replace, source absent": ([Replace(("a",), source=("o",))], {"a": 1}, {"a": 1}),
    "replace, source null": ([Replace(("a",), source=("o",))], {"a": 1, "o": None}, {"a": 1}),
    "replace, target null": ([Replace(("a",), source=("o",))], {"a": None, "o": 1}, {"a": 1}),
    "replace, a deep source": (
        [Replace(("a",), source=("m", "o"))],
        {"m": {"o": 1}},
        {"a": 1, "m": {}},
    ),
    "replace, a neighbour": ([Replace(("a",), name="o")], {"o": 1}, {"a": 1}),
    "replace, neighbours in lists": (
        [Replace(("ns", "network"), name="uuid")],
        {"ns": [{"uuid": "1"}, {"network": "2"}, {"uuid": None, "network": "3"}, None]},
        {"ns": [{"network": "1"}, {"network": "2"}, {"network": "3"}, None]},
    ),
    "resolve": ([Resolve(("a",), str.upper)], {"a": "x"}, {"a": "X"}),
    "resolve a list": (
        [Resolve(("a",), str.upper)],
        {"a": ["x", None, ""]},
        {"a": ["X", None, ""]},
    ),
    "resolve null and empty": ([Resolve(("a",), str.upper)], {"a": None}, {"a": None}),
    "resolve nothing": ([Resolve(("a",), str.upper)], {"b": "x"}, {"b": "x"}),
    "resolve within lists": (
        [Resolve(("ns", "n"), str.upper)],
        {"ns": [{"n": "x"}, {}]},
        {"ns": [{"n": "X"}, {}]},
    ),
    "delete": ([Delete(("a",))], {"a": 1, "b": 2}, {"b": 2}),
    "delete what is not there": ([Delete(("a",))], {"b": 2}, {"b": 2}),
    "delete within lists": ([Delete(("ns", "n"))], {"ns": [{"n": 1, "m": 2}]}, {"ns": [{"m": 2}]}),
    "delete below what is no map": ([Delete(("s", "n"))], {"s": "x"}, {"s": "x"}),
    "in their order, however listed": (
        [
            Delete(("old",)),
            Resolve(("a",), str.upper),
            Replace(("a",), source=("old",)),
            Add(("l",), source=("a",)),
        ],
        {"a": "first", "old": "second"},
        {"l": ["first"], "a": "SECOND"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_rules_make_old_spellings_new(case: str):
    rules, given, expected = CASES[case]
    kept = copy.deepcopy(given)
    assert translated(rules, given) == expected
    assert given == kept


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (Replace(("a",), source=("o",)), {"a": 1, "o": 2}),
        (Replace(("ns", "a"), name="o"), {"ns": [{"a": 1, "o": 2}]}),
    ],
)
def test_both_spellings_at_once_are_refused(rule: Rule, given: Any):
    with pytest.raises(errors.StackValidationFailed, match="a and o cannot be used at once"):
        translated([rule], given)


def test_what_is_not_final_spreads_along_the_rules():
    rules: list[Rule] = [
        Resolve(("b",), str),
        Replace(("b",), source=("a",)),
        Add(("l",), source=("k",)),
        Replace(("y",), name="x"),
        Delete(("z",)),
    ]
    assert spread(rules, {"a"}) == {"a", "b"}
    assert spread(rules, {"k"}) == {"k", "l"}
    assert spread(rules, {"x"}) == {"x", "y"}
    assert spread(rules, {"z", "q"}) == {"z", "q"}
