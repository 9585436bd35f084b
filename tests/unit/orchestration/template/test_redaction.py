"""No message tells the value of a hidden parameter, wherever it was found wrong."""

from __future__ import annotations

import traceback

import pytest

from bloomery import errors
from bloomery.orchestration import foresight, simulation
from bloomery.orchestration.stack import ValidationLevel, validate
from bloomery.orchestration.template.redaction import Redaction
from tests.kit.stacks.simulations import stack

SECRET = "correct horse\nbattery"
SPELT = ("correct", "horse", "battery")
HEAD = """
parameters:
  secret: {type: string, hidden: true}
  more: {type: json, hidden: true, default: {}}
"""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", ""),
        ("nothing of it", "nothing of it"),
        (f"the text {SECRET} is wrong", "the text ****** is wrong"),
        (f"the text {SECRET!r} is wrong", "the text '******' is wrong"),
        ('"correct horse\\nbattery" is wrong', '"******" is wrong'),
        (f"{SECRET}{SECRET}", "************"),
        ("correct horse\nbat...", "******..."),
        ("correct horse\nb", "correct horse\nb"),  # too little of it to be sure
        ("it is 12345, or 123", "it is ******, or 123"),
        ("abc is too short to be known again", "abc is too short to be known again"),
        ("naïve", "******"),
        ("na\\u00efve", "******"),
    ],
)
def test_each_spelling_of_a_value_is_masked(said, shown):
    assert Redaction([SECRET, {"k": [12345, True, None, "abc"]}, "naïve"]).masked(said) == shown


@pytest.mark.parametrize(
    ("hidden", "said", "shown"),
    [
        ("TopSekret", "no algorithm is called 'topsekret'", "no algorithm is called '******'"),
        ("TopSekret", "TOPSEKRET; topsekret", "******; ******"),
        ("\u0130stanbul", "\u0130STANBUL", "******"),  # small letters would be one more
        ("Stra\xdfe 12", "stra\xdfe 12 is no port", "****** is no port"),
        ("  hunter2\n", "hunter2 is no number", "****** is no number"),
        ("one, twelve,three", "twelve is odd", "****** is odd"),
        ("user=hunter2", "'hunter2' is odd", "'******' is odd"),
        ("user=hunter2", '"hunter2..." is odd', '"******" is odd'),
        ("user=hunter2", "hunter2 is odd", "hunter2 is odd"),  # it may be a word of the sentence
        ("user=hunter2", "'use' and 'hunt'", "'use' and '******'"),
        ("the port is odd", "the port is odd?", "******?"),
        ("the port is odd", "the port of 'x' is odd", "the port of 'x' is odd"),
        ("31_337", "31337 is too large", "****** is too large"),
        ("3.1337e4", "31337 or 31337.0", "****** or ******"),
        (31337.0, "31337", "******"),
        ("1e999", "inf", "inf"),
        ("9" * 401, "9" * 401, "******"),
        ("nan", "nan", "nan"),
    ],
)
def test_what_functions_make_of_a_value_is_masked_too(hidden, said, shown):
    assert Redaction([hidden]).masked(said) == shown


def test_a_fault_keeps_its_class_and_its_place():
    fault = errors.StackValidationFailed(
        reason="no hunter2 here", path=["a", 0, "hunter2"], error="Property error", log="hunter2"
    )
    masked = Redaction(["hunter2"]).fault(fault)
    assert type(masked) is type(fault)
    assert str(masked) == "Property error: a[0].******: no ****** here"
    assert masked.log == "******"
    assert Redaction(["other"]).fault(fault) is fault


def test_two_mask_what_either_masks():
    both = Redaction(["first"]) | Redaction(["second"])
    assert both.masked("first, second, third") == "******, ******, third"
    alone = Redaction(["first"])
    assert (alone | Redaction()) is alone


WRONG = {
    "a function": "  a: {type: OS::Heat::Value, properties: {value: {list_join: [X, X]}}}",
    "a property": "  a: {type: OS::Heat::TestResource, properties: {wait_secs: X}}",
    "a constraint": (
        "  a: {type: OS::Heat::SoftwareConfig, properties: {inputs: [{name: a, type: X}]}}"
    ),
    "a kind": "  a: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: X}}}",
    "a template below": "  a: {type: child.yaml, properties: {size: X}}",
    "a member": (
        "  a:\n    type: OS::Heat::ResourceGroup\n"
        "    properties: {resource_def: {type: child.yaml, properties: {size: X}}}"
    ),
    "a path": "  a: {type: OS::Heat::ResourceGroup, properties: {resource_def: M}}",
}
CHILD = """
heat_template_version: 2018-08-31
parameters: {size: {type: json}}
resources:
  inner: {type: OS::Heat::TestResource, properties: {wait_secs: {get_param: [size, k]}}}
"""


def made(resource, **more):
    body = resource.replace("X", "{get_param: secret}").replace("M", "{get_param: more}")
    return stack(
        f"{HEAD}resources:\n{body}\n",
        given={"secret": SECRET, "more": {"type": "OS::Heat::None", "other": SECRET}},
        files={"child.yaml": CHILD},
        **more,
    )


@pytest.mark.parametrize("resource", WRONG.values(), ids=WRONG)
def test_whoever_refuses_a_value_does_not_tell_it(resource):
    life = simulation.Lifecycle()
    result = life.create(made(resource))
    assert result.error is not None
    said = [
        result.error.message,
        result.reason,
        *(event.reason for event in life.simulation.events),
    ]
    assert not [text for text in said for part in SPELT if part in text]


@pytest.mark.parametrize("level", [ValidationLevel.VALUES, ValidationLevel.SHAPE])
@pytest.mark.parametrize("resource", WRONG.values(), ids=WRONG)
def test_validation_does_not_tell_it(resource, level):
    said = ""
    try:
        validate(made(resource), level)
    except errors.Failure as exc:
        said = "".join(traceback.format_exception(exc))
    assert not [part for part in SPELT if part in said]


def test_a_plan_that_cannot_be_made_does_not_tell_it():
    old = "  a: {type: OS::Heat::TestResource, properties: {wait_secs: 1}}"
    with pytest.raises(errors.StackValidationFailed) as caught:
        foresight.plan(made(old), made(WRONG["a property"]))
    assert "******" in str(caught.value)


def test_what_fails_while_a_stack_lives_does_not_tell_it():
    """A value that comes late: refused when the resource below is made, and in an output."""
    text = """
resources:
  v: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  a: {type: OS::Heat::TestResource, properties: {wait_secs: {get_attr: [v, value]}}}
outputs:
  o: {value: {map_merge: [{get_attr: [v, value]}]}}
"""
    life = simulation.Lifecycle()
    result = life.create(stack(HEAD + text, given={"secret": SECRET}))
    assert result.status == "CREATE_FAILED"
    said = [
        result.reason,
        result.error.message,
        result.outputs["o"].error.message,
        *(resource.reason for resource in result.resources),
        *(event.reason for event in life.simulation.events),
    ]
    assert "******" in result.reason
    assert "******" in result.outputs["o"].error.message
    assert not [text for text in said for part in SPELT if part in text]


def test_the_default_of_a_hidden_parameter_is_not_told():
    body = "type: string, hidden: true, default: hunter2, constraints: [{length: {max: 2}}]"
    text = f"parameters: {{p: {{{body}}}}}"
    with pytest.raises(errors.InvalidSchemaError, match="is hidden") as caught:
        validate(stack(text))
    assert "hunter2" not in str(caught.value)


def test_parameters_that_cannot_be_read_hide_nothing_and_break_nothing():
    with pytest.raises(errors.InvalidSchemaError, match="strange"):
        validate(stack("parameters: {p: {type: strange, hidden: true}}", given={"p": SECRET}))
