from __future__ import annotations

from bloomery.model import stacks as model
from bloomery.orchestration.engine import definitions, runtime
from bloomery.orchestration.stack import validate

DOCUMENT = {
    "heat_template_version": "2021-04-16",
    "parameters": {"size": {"type": "number"}},
    "resources": {
        "a": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "size"}}}
    },
}


def test_a_stored_template_becomes_a_stack_with_its_parameters_and_its_names():
    template = model.Template(
        uuid="t", template=DOCUMENT, environment={"parameters": {"size": 12}}, files={"f": "text"}
    )
    stack = definitions.stack_of(
        template, definitions.identity_of("web", "17", "p"), runtime.EngineRuntime(), timeout_s=60
    )
    validate(stack)
    assert stack.definition.parameters.value("size") == 12
    assert stack.definition.parameters.value("OS::stack_id") == "17"
    assert stack.definition.identity.arn == "arn:openstack:heat::p:stacks/web/17"
    assert (stack.timeout_s, stack.definition.template.files) == (60, {"f": "text"})


def test_what_is_left_of_a_rolled_back_creation_keeps_its_version():
    before = model.Template(uuid="t", template=DOCUMENT)
    empty = definitions.empty_template("u", before)
    assert empty.template == {"heat_template_version": "2021-04-16", "resources": {}}
    old = {"HeatTemplateFormatVersion": "2012-12-12", "Resources": {"a": {"Type": "x"}}}
    empty = definitions.empty_template("u", model.Template(uuid="t", template=old))
    assert empty.template == {"HeatTemplateFormatVersion": "2012-12-12", "Resources": {}}
