from __future__ import annotations

import json
from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.constraints import (
    AllowedPattern,
    AllowedValues,
    ConstraintContext,
    Custom,
    Length,
    Modulo,
    Range,
)

VERDICTS = [  # rule, values that it lets pass, values that it refuses
    (Length(2), ["ab", [1, 2], {"a": 1, "b": 2}, "abc"], ["", "a", [], [1], {"a": 1}, 5, None]),
    (Length(max=2), ["", "ab", []], ["abc", [1, 2, 3], {"a": 1, "b": 2, "c": 3}]),
    (Length(2, 2), ["ab"], ["a", "abc"]),
    (Length(0, 0), ["", []], ["a"]),
    (Range(1, 512), [1, 512, 1.5], [0, 513, 0.99, 512.01, "5", None, [], {}]),
    (Range(min=-1), [-1, 10**30], [-2]),
    (Range(max=0), [0, -5.5], [0.1]),
    (Range(5, 1), [], [0, 1, 3, 5, 6]),
    (Range(1.5, 2.5), [1.5, 2, 2.5], [1, 3]),
    (Modulo(2, 1), [1, 5, -3, 7.0], [0, 4, 4.5, "5", None]),
    (Modulo(5, 0), [0, 5, -10], [1, 4]),
    (Modulo(-2, -1), [-3, 3], [4, -2]),
    (Modulo(3, 2), [2, 5, -1], [1, 3, -2]),
    (AllowedValues(["a", "b"]), ["a", ["a", "b", "a"], []], ["c", "", None, ["a", "c"], {"a": 1}]),
    (AllowedValues([1, 2.5]), [1, 1.0, 2.5], [2, "1"]),
    (AllowedValues([{"a": 1}, [2]]), [{"a": 1}, [[2]], [{"a": 1}]], [{"a": 2}, [2], "a"]),
    (AllowedValues([]), [[]], ["a"]),
    (AllowedValues(["1"], compared=[1]), [1], ["1"]),
    (AllowedPattern("a|abc"), ["a", "abc"], ["ab", "abcd", "xa", "abc\n", "", 5, None]),
    (AllowedPattern(""), [""], ["a"]),
    (AllowedPattern("("), [], ["("]),
    (Custom("ip_addr"), ["192.0.2.1"], ["nowhere", 5, ["192.0.2.1"]]),
    (Custom("nope"), [], ["anything"]),
]


@pytest.mark.parametrize(
    ("rule", "value", "passes"),
    [(rule, value, True) for rule, good, _ in VERDICTS for value in good]
    + [(rule, value, False) for rule, _, bad in VERDICTS for value in bad],
)
def test_a_rule_lets_pass_what_keeps_to_it_and_nothing_else(rule: Any, value: Any, passes: bool):
    why = rule.refusal(value)
    assert (why is None) is passes
    assert passes or (isinstance(why, str) and why)


SHOWN = [
    (Length(1, 9), {"length": {"min": 1, "max": 9}}),
    (Length(max=0), {"length": {"max": 0}}),
    (Range(0), {"range": {"min": 0}}),
    (Range(1, 2, description="D"), {"range": {"min": 1, "max": 2}, "description": "D"}),
    (Modulo(2, 0), {"modulo": {"step": 2, "offset": 0}}),
    (AllowedValues(("a", 1)), {"allowed_values": ["a", 1]}),
    (AllowedValues(["1"], compared=[1]), {"allowed_values": ["1"]}),
    (AllowedPattern("x"), {"allowed_pattern": "x"}),
    (Custom("ip_addr"), {"custom_constraint": "ip_addr"}),
]


@pytest.mark.parametrize(("rule", "shown"), SHOWN)
def test_a_rule_is_shown_as_resource_types_show_it(rule: Any, shown: dict[str, Any]):
    assert rule.document() == shown


SENSELESS = [
    Length,
    lambda: Length(min=1.5),
    lambda: Length(max=2.0),
    Range,
    lambda: Modulo(0, 0),
    lambda: Modulo(2, 2),
    lambda: Modulo(-2, 2),
    lambda: Modulo(2, -1),
    lambda: Modulo(-2, 1),
    lambda: Modulo(2.5, 0),
    lambda: Modulo(2, 0.5),
    lambda: AllowedValues("ab"),
    lambda: AllowedValues(None),
    lambda: AllowedValues({"a": 1}),
    lambda: AllowedPattern(5),
    lambda: Custom(None),
]


@pytest.mark.parametrize("build", SENSELESS)
def test_a_body_without_sense_is_a_fault_of_the_schema(build: Any):
    with pytest.raises(errors.InvalidSchemaError):
        build()


def test_the_first_rule_that_is_broken_speaks():
    rules = [Range(1, 9), Modulo(2, 0), AllowedValues([4])]
    assert constraints.refusal(rules, 6) == rules[2].refusal(6)
    assert constraints.refusal(rules, 5) == rules[1].refusal(5)
    assert constraints.refusal(rules, 11) == rules[0].refusal(11)
    assert constraints.refusal(rules, 4) is None
    assert constraints.refusal([], object()) is None


def test_the_description_of_a_rule_is_its_sentence():
    rules = [Range(max=5, description="five is enough"), AllowedValues([1], description="only one")]
    assert constraints.refusal(rules, 6) == "five is enough"
    assert constraints.refusal(rules, 5) == "only one"
    assert constraints.refusal([Custom("ip_addr", description="an address")], "x") == "an address"


def test_a_sentence_names_the_value_and_the_bounds():
    assert Range(1, 5).refusal(9) == "9 is not between 1 and 5"
    assert Range(min=1).refusal(0) == "0 is not 1 or more"
    assert Range(max=1).refusal(2) == "2 is not 1 or less"
    assert Range(1, 1).refusal(2) == "2 is not between 1 and 1"
    assert Length(max=1).refusal("abc") == "its length is 3, which is not 1 or less"
    assert "[1]" in AllowedValues([1]).refusal(2)
    assert '"nope"' in Custom("nope").refusal("x")


@pytest.mark.parametrize("rule", [Range(5, 2), Length(5, 2)])
def test_bounds_that_nothing_keeps_to_are_taken_and_told(rule):
    value = 3 if isinstance(rule, Range) else "abc"
    said = rule.refusal(value)
    assert said.endswith("between 5 and 2; nothing is: the min of this constraint exceeds its max")


@pytest.mark.parametrize("value", ["x" * 10**6, ["x" * 10**6] * 5, ["y"] * 10**6, {"k": 10**5000}])
def test_a_sentence_stays_short_whatever_it_is_about(value: Any):
    assert len(Range(1, 2).refusal(value)) < 200


def test_patterns_keep_to_the_limits():
    context = ConstraintContext(
        limits=Limits(pattern_chars=5, pattern_text_chars=5, pattern_s=0.05)
    )
    assert "5 characters" in AllowedPattern("a" * 6).refusal("a", context)
    assert "5 characters" in AllowedPattern("a*").refusal("a" * 6, context)
    slow = ConstraintContext(limits=Limits(pattern_s=0.05))
    assert "0.05 s" in AllowedPattern("(a|aa)+").refusal("a" * 60 + "b", slow)


def test_many_values_among_many_allowed_ones_cost_little():
    many = [str(number) for number in range(100_000)]
    assert AllowedValues(many).refusal(many) is None


def test_custom_rules_are_found_where_the_means_say():
    asked = []

    def check(value: Any, context: ConstraintContext) -> str | None:
        asked.append((value, context.service))
        return None if value == "known" else "there is no such node"

    context = ConstraintContext(find={"ironic.node": check}.get, service="project")
    assert Custom("ironic.node").refusal("known", context) is None
    assert "there is no such node" in Custom("ironic.node").refusal("other", context)
    assert "not known here" in Custom("ip_addr").refusal("192.0.2.1", context)
    assert asked == [("known", "project"), ("other", "project")]


def test_what_is_shown_can_be_sent():
    for rule, _ in SHOWN:
        json.dumps(rule.document())
