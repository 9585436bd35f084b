"""What POST validate looks at, and what it leaves to create (heat-api.md, section 3.3)."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.stack import ValidationLevel, validate
from tests.unit.orchestration.stack import kit

ACCEPTED = {
    "parameter without value": "parameters: {p: {type: string}}",
    "default of another type": "parameters: {p: {type: number, default: x}}",
    "missing property": "resources: {a: {type: OS::Heat::Value}}",
    "property out of range": (
        "resources: {a: {type: OS::Heat::RandomString, properties: {length: 0}}}"
    ),
    "unknown parameter in a property": (
        "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: nobody}}}}"
    ),
    "missing file": (
        "resources: {a: {type: OS::Heat::Value, properties: {value: {get_file: nothing}}}}"
    ),
    "check of the type itself": (
        "resources: {a: {type: OS::Heat::RandomString,"
        " properties: {length: 3, character_classes: [{min: 4}]}}}"
    ),
    "unknown type of a group's members": (
        "resources: {a: {type: OS::Heat::ResourceGroup,"
        " properties: {resource_def: {type: nobody}}}}"
    ),
    "condition of a missing value": (
        "parameters: {p: {type: boolean}}\nconditions: {c: {get_param: p}}"
    ),
    "nested template that is wrong inside": "resources: {a: {type: a.yaml}}",
}
REFUSED = {
    "unknown property": (
        "resources: {a: {type: OS::Heat::RandomString, properties: {lenth: 0}}}",
        errors.StackValidationFailed,
        "Property error: resources.a.properties: Unknown Property lenth. Did you mean 'length'?",
    ),
    "unknown type": (
        "resources: {a: {type: nobody}}",
        errors.StackValidationFailed,
        "resources.a.type: The Resource Type (nobody) could not be found",
    ),
    "shape of a function": (
        "resources: {a: {type: OS::Heat::Value, properties: {value: {list_join: 4}}}}",
        errors.StackValidationFailed,
        "resources.a.properties.value.list_join: ",
    ),
    "unknown attribute": (
        (
            "resources: {a: {type: OS::Heat::RandomString}}\n"
            "outputs: {o: {value: {get_attr: [a, x]}}}"
        ),
        errors.StackValidationFailed,
        "outputs.o.value.get_attr: The Referenced Attribute (a x) is incorrect",
    ),
    "reference to nobody": (
        "resources: {a: {type: OS::Heat::None, depends_on: b}}",
        errors.InvalidTemplateReference,
        "resources.a.depends_on: ",
    ),
    "cycle": (
        "resources: {a: {type: OS::Heat::None, depends_on: a}}",
        errors.CircularDependencyException,
        "Circular Dependency Found: a -> a",
    ),
    "declaration of a parameter": (
        "parameters: {p: {type: foo}}",
        errors.InvalidSchemaError,
        "parameters.p.type: ",
    ),
    "wrong function in a condition": (
        "conditions: {c: {equals: [1]}}",
        errors.StackValidationFailed,
        "conditions.c.equals: ",
    ),
    "update policy": (
        "resources: {a: {type: OS::Heat::Value, update_policy: {x: 1}}}",
        errors.StackValidationFailed,
        "Property error: resources.a.update_policy: Unknown Property x",
    ),
    "unknown property of a nested template": (
        "resources: {a: {type: a.yaml, properties: {x: 1}}}",
        errors.StackValidationFailed,
        "Property error: resources.a.properties: Unknown Property x",
    ),
    "missing template": (
        "resources: {a: {type: b.yaml}}",
        errors.StackValidationFailed,
        'resources.a.type: Could not fetch remote template "b.yaml"',
    ),
}
FILES = {"a.yaml": "heat_template_version: 2018-08-31\nresources: {x: {type: nobody}}"}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED)
def test_it_is_left_to_create(body):
    kit.validate(kit.hot(body), strict=False, files=FILES)


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED)
def test_create_refuses_it(body):
    with pytest.raises(errors.Failure):
        kit.validate(kit.hot(body), files=FILES)


@pytest.mark.parametrize(("body", "kind", "begins"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused(body, kind, begins):
    with pytest.raises(errors.Failure) as told:
        kit.validate(kit.hot(body), strict=False, files=FILES)
    assert type(told.value) is kind
    assert str(told.value).startswith(begins)


def test_a_value_for_an_undeclared_parameter_is_refused():
    with pytest.raises(errors.UnknownUserParameter):
        kit.validate(kit.hot("resources: {}"), strict=False, user_parameters={"p": 1})


def test_looking_at_the_shape_leaves_the_stack_as_it_is():
    made = kit.stack(kit.hot("parameters: {p: {type: string}}"))
    validate(made, ValidationLevel.SHAPE)
    with pytest.raises(errors.UserParameterMissing):
        validate(made)
    assert made.relaxed().relaxed().definition.lenient
