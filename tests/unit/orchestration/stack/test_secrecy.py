"""Which properties a hidden parameter has reached, and which it has not."""

from __future__ import annotations

import importlib.metadata
import itertools

import pytest

from bloomery.orchestration.engine import definitions
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.resources import base, groups
from bloomery.orchestration.stack import children
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template import parse
from tests.kit.stacks import trees

VERSION = "heat_template_version"
HEAD = """
heat_template_version: 2021-04-16
parameters:
  key: {type: string, hidden: true, default: correct horse}
  size: {type: string, default: big}
conditions:
  is_long: {equals: [{get_param: key}, correct horse]}
  is_odd: {not: is_long}
  is_big: {equals: [{get_param: size}, big]}
resources:
"""
INNER = """
heat_template_version: 2021-04-16
parameters:
  word: {type: string}
  size: {type: string, default: small}
resources:
  secret: {type: OS::Heat::Value, properties: {value: {digest: [md5, {get_param: word}]}}}
  plain: {type: OS::Heat::Value, properties: {value: {get_param: size}}}
outputs:
  it: {value: {get_attr: [secret, value]}}
"""


def value(tree):
    return f"{{type: OS::Heat::Value, properties: {{value: {tree}, type: string}}}}"


def stack(**resources):
    lines = "".join(f"  {name}: {body}\n" for name, body in resources.items())
    template = trees.template(
        "t", files={"inner.yaml": INNER}, template=parse.document(HEAD + lines)
    )
    return definitions.stack_of(
        template, definitions.identity_of("web", "1", "p"), EngineRuntime(), timeout_s=60
    )


def shown(name="a", **resources):
    made = stack(**resources)
    return Secrecy(made).serialized(name, {"value": "text", "type": "string"})["value"]


@pytest.mark.parametrize(
    "tree",
    [
        "{get_param: key}",
        "{digest: [md5, {get_param: key}]}",
        "{str_replace: {template: x, params: {x: {get_param: key}}}}",
        "{if: [is_long, 1, 2]}",
        "{if: [is_odd, 1, 2]}",
        "{get_param: {list_join: ['', [k, ey]]}}",
        "{if: [is_big, 1, {get_param: key}]}",
    ],
)
def test_what_a_hidden_parameter_has_reached_is_not_shown(tree):
    assert shown(a=value(tree)) == "******"


@pytest.mark.parametrize(
    "tree", ["text", "{get_param: size}", "{if: [is_big, 1, 2]}", "{get_attr: [other, value]}",
             "{get_resource: hidden}"],
)  # fmt: skip
def test_what_it_has_not_reached_is_shown(tree):
    hidden = value("{digest: [md5, {get_param: key}]}")
    assert shown(a=value(tree), other=value("x"), hidden=hidden) == "text"


def test_an_attribute_hands_a_secret_on():
    chain = {
        "c": value("{digest: [md5, {get_param: key}]}"),
        "b": value("{digest: [md5, {get_attr: [c, value]}]}"),
        "a": value("{digest: [md5, {get_attr: [b, value]}]}"),
    }
    assert shown(**chain) == "******"


def test_one_property_hides_no_other():
    made = stack(a=value("{get_param: key}"))
    assert Secrecy(made).serialized("a", {"type": "string"}) == {"type": "string"}


def below(made, name):
    resource = children.preview(made, name, made.properties(name, made.view), {})
    return Secrecy(children.child_stack(made, resource), parent=(Secrecy(made), name))


def nested(word, size="big"):
    return f"{{type: inner.yaml, properties: {{word: {word}, size: {size}}}}}"


def test_a_parameter_is_hidden_below_if_it_is_given_a_secret():
    inner = below(stack(n=nested("{digest: [md5, {get_param: key}]}")), "n")
    assert inner.serialized("secret", {"value": "text"}) == {"value": "******"}
    assert inner.serialized("plain", {"value": "text"}) == {"value": "text"}
    inner = below(stack(n=nested("open")), "n")
    assert inner.serialized("secret", {"value": "text"}) == {"value": "text"}


def test_a_parameter_below_that_is_given_a_secret_is_not_told():
    assert "word" in below(stack(n=nested("{get_param: key}")), "n").parameters()
    assert "size" not in below(stack(n=nested("{get_param: key}")), "n").parameters()
    assert "word" not in below(stack(n=nested("open")), "n").parameters()


def of_text(text):
    return f"{{type: OS::Heat::Stack, properties: {{template: {text}}}}}"


MADE = (
    "{str_replace: {params: {KEY: {get_param: key}}, template: '{heat_template_version: "
    "2021-04-16, description: KEY, resources: {a: {type: OS::Heat::Value, properties: "
    "{value: KEY}}}}'}}"
)


def test_a_template_that_was_made_with_a_secret_shows_names_and_types():
    made = below(stack(s=of_text(MADE)), "s")
    document = made._sides[0].definition.template.document
    assert "correct horse" in str(document)
    assert made.serialized_template(document, VERSION) == {
        "heat_template_version": "2021-04-16",
        "description": "******",
        "resources": {"a": {"type": "OS::Heat::Value", "properties": "******"}},
    }


def test_a_template_without_secrets_is_shown_as_it_was_written():
    made = below(stack(s=of_text(MADE.replace("get_param: key", "get_param: size"))), "s")
    document = made._sides[0].definition.template.document
    assert made.serialized_template(document, VERSION) == document
    inner = below(stack(n=nested("{get_param: key}")), "n")
    document = inner._sides[0].definition.template.document
    assert inner.serialized_template(document, VERSION) == document


def test_an_output_of_a_nested_stack_hands_a_secret_on():
    given = nested("{digest: [md5, {get_param: key}]}")
    assert shown(n=given, a=value("{get_attr: [n, it]}")) == "******"
    assert shown(n=nested("open"), a=value("{get_attr: [n, it]}")) == "text"


def test_members_of_a_group_that_was_given_a_secret_are_hidden_whole():
    member = value("{digest: [md5, {get_param: key}]}")
    group = f"{{type: OS::Heat::ResourceGroup, properties: {{count: 1, resource_def: {member}}}}}"
    assert below(stack(g=group), "g").serialized("0", {"type": "string"}) == {"type": "******"}
    group = group.replace(member, value("open"))
    assert below(stack(g=group), "g").serialized("0", {"type": "string"}) == {"type": "string"}


def test_members_of_a_group_show_no_secret_of_theirs():
    drive = {"user_data": "#!", "name": "web"}
    group = '{type: OS::Ironic::InstanceGroup, properties: {count: 1, member: {user_data: "#!"}}}'
    values = {"member": drive, "member_overrides": {"0": drive}, "count": 1}
    starred = {"user_data": "******", "name": "web"}
    shown = Secrecy(stack(g=group)).serialized("g", values)
    assert shown == {"member": starred, "member_overrides": {"0": starred}, "count": 1}
    group = "{type: OS::Heat::ResourceGroup, properties: {resource_def: {type: OS::Heat::Value}}}"
    values = {"resource_def": {"type": "OS::Ironic::Node", "properties": {"driver_info": {"a": 1}}}}
    shown = Secrecy(stack(g=group)).serialized("g", values)
    assert shown["resource_def"]["properties"] == {"driver_info": "******"}
    assert shown["resource_def"]["type"] == "OS::Ironic::Node"


def test_groups_know_the_secrets_of_every_kind():
    kinds = [each.load() for each in importlib.metadata.entry_points(group="bloomery.resources")]
    names = {name for kind in kinds for name in kind.secret_properties}
    assert names >= {"user_data", "driver_info", "properties"}
    groups_of = [("resource_def", "properties"), ("resource_properties",)]
    for group, name in itertools.product(groups_of, names):
        value = {group[-1]: {name: "x"}}
        assert list(base.ending(groups.SECRETS, value, group[:-1])) == [(*group, name)]
