"""What becomes of a wrong template: the class, the place and the beginning of the sentence.

Each row of heat-hot.md, section 14.2, stands in outcomes.yaml, with those of its sections on
resources, outputs and conditions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery import errors
from bloomery.orchestration.template import parse
from tests.unit.orchestration.stack import kit

ROWS = parse.document((Path(__file__).parent / "outcomes.yaml").read_text())
VERSION = "2018-08-31"


def rows(section):
    return [pytest.param(row, id=row["it"]) for row in ROWS[section]]


def document(row):
    return {"heat_template_version": row.get("version", VERSION)} | row["template"]


def cfn(row):
    return {"AWSTemplateFormatVersion": "2010-09-09"} | row["template"]


def beginning(row):
    at = row.get("at")
    return (f"{at}: " if at else "") + row.get("says", "")


@pytest.mark.parametrize("row", rows("accepted"))
def test_it_is_accepted(row):
    kit.validate(document(row))


@pytest.mark.parametrize("row", rows("refused"))
def test_it_is_refused_with_its_place_and_the_way_out(row):
    with pytest.raises(errors.Failure) as told:
        kit.validate(document(row))
    assert type(told.value).__name__ == row["raises"]
    assert str(told.value).startswith(beginning(row))


@pytest.mark.parametrize("row", rows("cfn_accepted"))
def test_the_other_dialect_accepts_it(row):
    kit.validate(cfn(row), arn="arn:openstack:heat::p:stacks/web/17")


@pytest.mark.parametrize("row", rows("cfn_refused"))
def test_the_other_dialect_refuses_it_in_its_own_words(row):
    with pytest.raises(errors.StackValidationFailed) as told:
        kit.validate(cfn(row))
    assert str(told.value).startswith(beginning(row))


def test_the_form_of_heat_has_no_conditions():
    with pytest.raises(errors.StackValidationFailed, match="section is invalid: Conditions"):
        kit.validate(kit.cfn("Conditions: {}", heat=True))
    kit.validate(kit.cfn("Resources: {a: {Type: OS::Heat::None, Condition: x}}", heat=True))


def test_of_a_key_that_comes_twice_the_later_wins():
    made = kit.validate(kit.hot("resources: {a: {}}\nresources: {b: {type: OS::Heat::None}}"))
    assert list(made.definitions) == ["b"]


def test_a_value_for_an_undeclared_parameter_is_refused():
    declared = kit.hot("parameters: {size: {type: number, default: 1}}")
    with pytest.raises(errors.UnknownUserParameter, match="Did you mean 'size'"):
        kit.validate(declared, user_parameters={"sise": 1})
    with pytest.raises(errors.UnknownUserParameter, match=r"Parameter \(sise\) was not defined"):
        kit.validate(declared, {"parameters": {"sise": 1}})


def test_an_undeclared_name_in_parameter_defaults_is_accepted():
    kit.validate(kit.hot("resources: {}"), {"parameter_defaults": {"size": 1}})


def test_what_is_given_with_the_request_comes_before_what_files_say():
    template = kit.hot("parameters: {a: {type: string}, b: {type: string}, c: {type: string}}")
    made = kit.validate(
        template,
        {"parameters": {"a": "file", "b": "file"}, "parameter_defaults": {"c": "default"}},
        user_parameters={"a": "request"},
    )
    assert [made.view.parameter(name) for name in "abc"] == ["request", "file", "default"]
