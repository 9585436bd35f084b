"""Expressions of strangers end soon, stay small, and reach nothing but their data."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template.functions import yaql

DATA = {"s": "x" * 9000, "a": [1, 2, 3], "m": {"k": "v"}}
DOUBLING = "let(a => [1, 1], b => [1, 1]) -> " + "let(a => [$a, $a], b => [$b, $b]) -> " * 40

HOSTILE = [
    "repeat([]).flatten()",
    "[generate(0, true, 0)].flatten()",
    "[sequence()].flatten().where(false)",
    "sequence().where(false).first()",
    "generate(0, true, $ + 1).skipWhile(true)",
    "generateMany(1, sequence())",
    "generateMany(1, [1, 2])",
    "pow(10, 1000000000)",
    "pow(3, pow(2, 4000), pow(2, 4001) + 1)" + " + pow(2, 4095) * 4",
    "shiftBitsLeft(1, 1000000000000)",
    "round(5, -1000000000)",
    "'x' * 1000000000",
    "1000000000 * 'x'",
    "[1] * 1000000000",
    "1000000000 * [1]",
    "$.data.s.replace('x', $.data.s)",
    "$.data.s.replace({x => $.data.s, y => $.data.s})",
    "regex('x').replace($.data.s, $.data.s)",
    "regex('x').replaceBy($.data.s, 'xxxxxxxx')",
    "regex('(.*?,){12}P').matches(',' * 5000)",
    "',' * 5000 =~ '(.*?,){12}P'",
    "',' * 5000 !~ '(.*?,){12}P'",
    "regex('(.*?,){12}P').searchAll(',' * 5000)",
    "regex('(.*?,){12}P').split(',' * 5000)",
    "(',' * 5000).matches('(.*?,){12}P')",
    "regex('((a?){1000}){1000}')",
    "def(f, f($) + f($)) -> f(1)",
    "def(f, switch($ > 0 => f($ - 1) + f($ - 1), true => 0)) -> f(12)",
    DOUBLING + "$a = $b",
    DOUBLING + "$a",
    DOUBLING + "str($a)",
    DOUBLING + "set($a, $b)",
    DOUBLING + "{$a => 1}",
    "range(200).aggregate([$1], []).len()",
    "range(199).aggregate([$1], range(9).aggregate([$1], []))",
    "range(200).select(range(200).select(range(200).select($)))",
    "[1, 2].join(range(200), range(200).all(range(200).all(true)), 1)",
    "let(x => 10) -> " + "let(x => $x * $x) -> " * 30 + "$x",
    "[" * 3000 + "]" * 3000,
    "(" * 3000 + "1" + ")" * 3000,
    "1" + " + 1" * 2000,
    "$.data.a" + ".select($)" * 900,
    "$.data.s.toCharArray()",
]

ESCAPES = [
    "$.data.__class__",
    "''.__class__.__mro__",
    "$.__init__",
    "$.data.a.__len__()",
    "$.data.m.get_data()",
    "$._d",
    "$.data._d",
    "$.data.items",
    "$.data.m.keys",
    "'{0.__class__}'.format(1)",
    "$.data.s.encode()",
    "$.data.a.append",
    "call('#property#__class__', [1], {})",
    "call('#operator_.', [1, '__class__'], {})",
    "lambda($)",
    "let(a => 1).meter",
    "let(a => 1)._data",
    "regex('a').pattern",
    "import('os')",
    "env('HOME')",
    "open('x')",
    "now()",
    "random()",
    "datetime('2020-01-01')",
    "str(sequence())",
    "regex('a')",
    "let(a => 1)",
    "[let(a => 1)]",
    "def(f, 1)",
]


@pytest.mark.sampled
@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:50])
def test_an_expression_that_does_not_end_is_ended(expression):
    tracemalloc.start()
    try:
        with pytest.raises(errors.StackValidationFailed) as caught:
            yaql.evaluated(expression, DATA, Limits(yaql_calls=1000, pattern_s=0.05))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 48 * 2**20
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("expression", ESCAPES)
def test_nothing_but_the_data_can_be_reached(expression):
    with pytest.raises(errors.StackValidationFailed):
        yaql.evaluated(expression, DATA, LIMITS)


USEFUL = [
    ("$.data.a.select($ * 2)", [2, 4, 6]),
    ("$.data.a.where($ > 1).len()", 2),
    ("[[].cycle()].flatten()", []),
    ("$.data.a.groupBy($ mod 2)", [[1, [1, 3]], [0, [2]]]),
    ("$.data.a.join($.data.a, $1 = $2, [$1, $2])", [[1, 1], [2, 2], [3, 3]]),
    ("$.data.m + {b => 2}", {"k": "v", "b": 2}),
    ("set(1, 2).union(set(2))", [1, 2]),
    ("[2, 1].orderBy($).thenBy($)", [1, 2]),
    ("$.data.a.memorize()", [1, 2, 3]),
    ("[null, true, 1, 'a', [1]].select(str($))", ["null", "true", "1", "a", "(1,)"]),
    ("[1] * 3 + 2 * [2]", [1, 1, 1, 2, 2]),
    ("'ab' * 2", "abab"),
    ("'aab'.replace('a', 'x', 1)", "xab"),
    ("'aab'.replace({a => 'x', b => null})", "xxnull"),
    ("pow(2, 10) + pow(2, 3, 5) + shiftBitsLeft(1, 3)", 1035),
    ("[pow(2, -1), pow(2.0, 2), round(1.25, 1), round(15, -1)]", [0.5, 4.0, 1.2, 20]),
    ("regex('A', ignoreCase => true).matches('xa')", True),
    ("regex('^b.c$', multiLine => true, dotAll => true).matches('a\\nb\\nc')", True),
    ("regex('a(.)').search('xabc', $2.value)", "b"),
    ("regex('a(.)').searchAll('ab ac')", ["ab", "ac"]),
    ("regex(',').split('a,b,c', maxSplit => 1)", ["a", "b,c"]),
    ("'a,b'.split(regex(','))", ["a", "b"]),
    ("regex('a.').replaceBy('ab ac', $.value.toUpper())", "AB AC"),
    ("regex('a.').replace('ab ac', 'x', count => 1)", "x ac"),
    ("generateMany(3, switch($ > 0 => [$ - 1], true => []))", [3, 2, 1, 0]),
    ("{1 => {2 => [3]}}", {1: {2: [3]}}),
    ("range(3)", [0, 1, 2]),
    ("$.data.m.keys()", ["k"]),
    ("'abc' in ['abc']", True),
    ("float(1)", 1.0),
]


@pytest.mark.parametrize(("expression", "expected"), USEFUL)
def test_what_is_of_use_is_there(expression, expected):
    found = yaql.evaluated(expression, DATA, LIMITS)
    assert found == expected
    json.dumps(found)


def test_results_are_plain_values_and_data_stays_as_it_was():
    data = {"a": [{"b": [1]}]}
    found = yaql.evaluated("$.data", data, LIMITS)
    assert found == data == {"a": [{"b": [1]}]}
    assert type(found) is dict
    assert type(found["a"]) is list
    found["a"].append(2)
    assert data == {"a": [{"b": [1]}]}


def nested(levels):
    made = []
    for _ in range(levels):
        made = [made]
    return made


def test_the_rows_of_the_table_of_limits_are_kept():
    with pytest.raises(errors.StackValidationFailed, match="3 elements"):
        yaql.evaluated("[1, 2, 3, 4]", {}, Limits(yaql_elements=3))
    with pytest.raises(errors.StackValidationFailed, match="memory"):
        yaql.evaluated("'x' * 500", {}, Limits(yaql_bytes=200))
    with pytest.raises(errors.StackValidationFailed, match=r"longer than 0\.05 s"):
        yaql.evaluated("range(200).all(range(200).all($ >= 0))", {}, Limits(yaql_s=0.05))
    with pytest.raises(errors.StackValidationFailed, match="more than 300 calls"):
        yaql.evaluated("range(200).all($ >= 0)", {}, Limits(yaql_calls=300))
    with pytest.raises(errors.StackValidationFailed, match="10 characters"):
        yaql.parsed("1 + 1 + 1 + 1", Limits(yaql_chars=10))
    with pytest.raises(errors.StackValidationFailed, match="nested over 200"):
        yaql.evaluated(
            "let(a => range(150).aggregate([$1], [])) -> range(60).aggregate([$1], $a)",
            {},
            LIMITS,
        )
    with pytest.raises(errors.StackValidationFailed, match="nested over 200"):
        yaql.evaluated("$.data.a", {"a": nested(201)}, LIMITS)
    with pytest.raises(errors.StackValidationFailed, match="no such element"):
        yaql.evaluated("$.data.where($ > 3).first()", [1], LIMITS)
    with pytest.raises(errors.StackValidationFailed, match="300 elements"):
        yaql.evaluated("[range(400)].flatten().len()", {}, Limits(yaql_elements=3))
    with pytest.raises(errors.StackValidationFailed, match="50 keys"):
        yaql.evaluated("range(8).select(range(8))", {}, Limits(result_nodes=50))


@pytest.mark.parametrize(
    "expression", ["1 +", "'", "'\\U99999999'", "9" * 5000, "\0", "a b", "$.("]
)
def test_what_is_no_expression_is_refused(expression):
    with pytest.raises(errors.StackValidationFailed, match="Bad expression"):
        yaql.parsed(expression)


def test_an_expression_is_read_once():
    assert yaql.parsed("$.data.once") is yaql.parsed("$.data.once")


@pytest.mark.parametrize("expression", ["'\\ud800'", "['a', '\\x00']", "dict('\\udfff' => 1)"])
def test_characters_that_no_document_holds_are_refused(expression):
    with pytest.raises(errors.StackValidationFailed, match="half of a character"):
        yaql.evaluated(expression, None, LIMITS)


@pytest.mark.parametrize(
    "expression", ["'\\ud800'.select($)", "['\\x00\\udfff'].first().nothing()"]
)
def test_what_is_said_of_such_characters_holds_none(expression):
    with pytest.raises(errors.StackValidationFailed) as refused:
        yaql.evaluated(expression, DATA, LIMITS)
    message = str(refused.value)
    assert "\0" not in message
    assert message.encode().decode() == message


@pytest.mark.parametrize(
    "expression", ["float('nan')", "[float('1e308') * 10]", "dict(a => float('inf'))"]
)
def test_numbers_that_no_document_holds_are_refused(expression):
    with pytest.raises(errors.StackValidationFailed, match="no number that a template can hold"):
        yaql.evaluated(expression, None, LIMITS)
