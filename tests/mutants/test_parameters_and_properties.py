"""Each edge of parameters and properties is blunted in turn, and a probe should notice.

MUTANTS is the table: what is done to which name, and the probe.  Each probe is first seen to pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bloomery import errors
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.properties import constraints, translation, values
from bloomery.orchestration.properties.constraints import AllowedPattern, Length, Range
from bloomery.orchestration.properties.presence import NOTHING
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.properties.values import Properties
from bloomery.orchestration.template import parameter_schemas, parameter_types
from bloomery.orchestration.template.parameter_schemas import hot_schema
from bloomery.orchestration.template.parameter_types import ParameterType
from bloomery.orchestration.template.parameters import Parameters

# ------------------------------------------------------------------------------------ the probes


def bounds_are_inclusive() -> None:
    assert Range(1, 5).refusal(1) is None
    assert Range(1, 5).refusal(5) is None
    assert Length(max=2).refusal("ab") is None


def patterns_match_all_of_a_text() -> None:
    assert AllowedPattern("b").refusal("abc") is not None
    assert AllowedPattern("abc").refusal("abc\n") is not None


def a_description_speaks_for_its_rule() -> None:
    assert constraints.refusal([Range(5, description="D")], 1) == "D"


def the_first_rule_speaks() -> None:
    rules = [Range(max=5, description="first"), Range(max=4, description="second")]
    assert constraints.refusal(rules, 6) == "first"


def a_rule_keeps_to_its_types() -> None:
    _refused(errors.InvalidSchemaError, _length_of_a_number)


def _length_of_a_number() -> Any:
    return hot_schema("p", {"type": "number", "constraints": [{"length": {"max": 1}}]})


def a_default_keeps_to_the_rules() -> None:
    body = {"type": "string", "default": "ab", "constraints": [{"length": {"max": 1}}]}
    _refused(errors.InvalidSchemaError, lambda: hot_schema("p", body))


def lists_are_not_trimmed() -> None:
    assert _value("comma_delimited_list", "a, b,") == ["a", " b", ""]


def empty_text_is_an_empty_list() -> None:
    assert _value("comma_delimited_list", "") == []


def numbers_keep_their_form() -> None:
    assert repr(_value("number", "5")) == "5"
    assert repr(_value("number", "5.0")) == "5.0"


def scalar_json_is_read() -> None:
    assert _value("json", "5") == 5


def the_stack_beats_the_environment() -> None:
    assert _given({"p": "stack"}, {"p": "env"}).value("p") == "stack"


def null_is_not_given() -> None:
    assert _given({"p": None}, {"p": "env"}).value("p") == "env"


def undeclared_values_are_refused() -> None:
    _refused(errors.UnknownUserParameter, _given({"p": "x", "q": 1}, {}).check)


def hidden_values_are_masked() -> None:
    declared = hot_schema("p", {"type": "string", "hidden": True})
    assert Parameters({"p": declared}, {"p": "secret"}).texts() == {"p": "******"}


def immutable_values_stay() -> None:
    schemas = {"p": hot_schema("p", {"type": "string", "immutable": True})}
    after, before = Parameters(schemas, {"p": "b"}), Parameters(schemas, {"p": "a"})
    _refused(errors.ImmutableParameterModified, lambda: after.check_immutable(before))


def what_is_not_ready_is_not_judged() -> None:
    schema = {"c": Schema(Type.ANY, constraints=[Range(9)])}
    Properties(schema, {"c": _Call()}, _Waiting()).validate()


def null_is_the_empty_value() -> None:
    assert Properties({"i": Schema(Type.INTEGER)}, {"i": None}).resolved() == {"i": 0}


def null_is_the_default() -> None:
    schema = {"i": Schema(Type.INTEGER, default=7)}
    assert Properties(schema, {"i": None}).resolved() == {"i": 7}


def unknown_keys_are_refused_inside_too() -> None:
    schema = {"m": Schema(Type.MAP, schema={"a": Schema(Type.STRING)})}
    _refused(errors.StackValidationFailed, Properties(schema, {"m": {"b": 1}}).validate)


def required_keys_are_missed() -> None:
    schema = {"a": Schema(Type.STRING, required=True)}
    _refused(errors.StackValidationFailed, Properties(schema, {}).validate)


def faults_name_their_place() -> None:
    schema = {"l": Schema(Type.LIST, schema=Schema(Type.INTEGER))}
    with pytest.raises(errors.StackValidationFailed) as caught:
        Properties(schema, {"l": [1, "x"]}).validate()
    assert caught.value.path == ("l", 1)


def whole_numbers_have_no_point() -> None:
    schema = {"i": Schema(Type.INTEGER)}
    _refused(errors.StackValidationFailed, Properties(schema, {"i": "5.0"}).validate)


def booleans_of_properties_are_two_words() -> None:
    schema = {"b": Schema(Type.BOOLEAN)}
    _refused(errors.StackValidationFailed, Properties(schema, {"b": "on"}).validate)


def true_is_another_value_than_one() -> None:
    schema = {"a": Schema(Type.ANY)}
    assert values.differences(schema, {"a": 1}, {"a": True}).changed == {"a": True}


def rules_run_in_their_order() -> None:
    rules: list[Any] = [translation.Delete(("o",)), translation.Replace(("a",), source=("o",))]
    assert translation.translated(rules, {"o": 1}) == {"a": 1}


def _refused(error: type[Exception], ask: Callable[[], Any]) -> None:
    with pytest.raises(error):
        ask()


def _value(kind: str, given: Any) -> Any:
    return hot_schema("p", {"type": kind}).value(given)


def _given(given: Any, defaults: Any) -> Parameters:
    return Parameters({"p": hot_schema("p", {"type": "string"})}, given, defaults)


class _Call:
    """A function call of a template: neither a map, a list nor a scalar."""


class _Waiting(values.Literal):
    """Reads calls whose resource is not made yet: each value is one that a check refuses."""

    def resolve(self, tree: Any) -> Any:
        return [1] if isinstance(tree, _Call) else tree

    def settled(self, tree: Any) -> bool:
        return False


# ----------------------------------------------------------------------------------- the mutants


def _last_refusal(
    rules: Any, value: Any, context: Any = constraints.CONSTRAINT_CONTEXT
) -> str | None:
    """Ask the rules from behind, and keep the descriptions to ourselves."""
    found = [rule.refusal(value, context) for rule in rules]
    return next((why for why in reversed(found) if why), None)


def _raw(first: str, second: str, *, null: bool = False) -> Callable[[Parameters, str], Any]:
    def raw(self: Parameters, name: str) -> Any:
        for source in (getattr(self, first), getattr(self, second)):
            if name in source and (null or source[name] is not None):
                return source[name]
        return self.schemas[name].default

    return raw


def _converters(module: Any, kind: Any, convert: Callable[[Any], Any]) -> dict[Any, Any]:
    return {**module._CONVERTERS, kind: lambda *told: convert(told[-2])}


def _trimmed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


class Mutant(NamedTuple):
    where: Any
    name: str
    instead: Any
    probe: Callable[[], None]


MUTANTS = (
    Mutant(
        constraints,
        "_within",
        lambda value, a, b: (a or 0) < value < (b or 9),
        bounds_are_inclusive,
    ),
    Mutant(
        constraints.patterns,
        "fullmatch",
        lambda pattern, text, _: re.search(pattern, text),
        patterns_match_all_of_a_text,
    ),
    Mutant(
        constraints.patterns,
        "fullmatch",
        lambda pattern, text, _: re.match(f"{pattern}$", text),
        patterns_match_all_of_a_text,
    ),
    Mutant(constraints, "refusal", _last_refusal, a_description_speaks_for_its_rule),
    Mutant(constraints, "refusal", _last_refusal, the_first_rule_speaks),
    Mutant(Length, "fits", frozenset(Type), a_rule_keeps_to_its_types),
    Mutant(
        parameter_schemas, "_finished", lambda declared, key: declared, a_default_keeps_to_the_rules
    ),
    Mutant(
        parameter_types,
        "_CONVERTERS",
        _converters(parameter_types, ParameterType.LIST, _trimmed),
        lists_are_not_trimmed,
    ),
    Mutant(
        parameter_types,
        "_CONVERTERS",
        _converters(parameter_types, ParameterType.LIST, lambda text: text.split(",")),
        empty_text_is_an_empty_list,
    ),
    Mutant(
        parameter_types,
        "_CONVERTERS",
        _converters(parameter_types, ParameterType.NUMBER, float),
        numbers_keep_their_form,
    ),
    Mutant(
        parameter_types,
        "_CONVERTERS",
        _converters(parameter_types, ParameterType.JSON, str),
        scalar_json_is_read,
    ),
    Mutant(Parameters, "raw", _raw("_defaults", "_user_values"), the_stack_beats_the_environment),
    Mutant(Parameters, "raw", _raw("_user_values", "_defaults", null=True), null_is_not_given),
    Mutant(Parameters, "check", lambda self: None, undeclared_values_are_refused),
    Mutant(parameter_schemas, "MASK", "secret", hidden_values_are_masked),
    Mutant(Parameters, "changed_immutables", lambda self, before: [], immutable_values_stay),
    Mutant(Properties, "pending", lambda self: NOTHING, what_is_not_ready_is_not_judged),
    Mutant(values, "_EMPTY", dict.fromkeys(Type, 1), null_is_the_empty_value),
    Mutant(
        values,
        "_CONVERTERS",
        _converters(values, Type.INTEGER, lambda _: 0),
        null_is_the_default,
    ),
    Mutant(
        values, "_refuse_unknown", lambda raw, schemas: None, unknown_keys_are_refused_inside_too
    ),
    Mutant(
        values,
        "_member",
        lambda name, schema, given, job: given.get(name),
        required_keys_are_missed,
    ),
    Mutant(
        errors.StackValidationFailed, "under", lambda self, *path: self, faults_name_their_place
    ),
    Mutant(
        values, "integer_of", lambda text, limits: int(float(text)), whole_numbers_have_no_point
    ),
    Mutant(
        values,
        "_CONVERTERS",
        _converters(
            values,
            Type.BOOLEAN,
            lambda said: parameter_types.convert(ParameterType.BOOLEAN, said, LIMITS),
        ),
        booleans_of_properties_are_two_words,
    ),
    Mutant(
        values,
        "differences",
        lambda schemas, before, after: values.Differences(changed=after if after != before else {}),
        true_is_another_value_than_one,
    ),
    Mutant(translation.Delete, "priority", -1, rules_run_in_their_order),
)
PROBES = sorted({mutant.probe for mutant in MUTANTS}, key=lambda probe: probe.__name__)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_a_probe_is_green_while_every_edge_is_sharp(probe: Callable[[], None]):
    probe()


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda mutant: f"{mutant.name}-{mutant.probe.__name__}"
)
def test_a_blunted_edge_is_noticed(monkeypatch: pytest.MonkeyPatch, mutant: Mutant):
    monkeypatch.setattr(mutant.where, mutant.name, mutant.instead)
    with pytest.raises((AssertionError, errors.Failure, pytest.fail.Exception)):
        mutant.probe()
