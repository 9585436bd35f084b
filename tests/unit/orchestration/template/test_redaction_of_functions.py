"""No function tells a hidden value that it cannot use, nor what it made of one."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration import simulation
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.template import parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.environment import Environment
from tests.kit.stacks.simulations import stack

HIDDEN = """
parameters:
  h: {type: string, hidden: true}
"""
WORDS = ("topsekret", "alphabet", "bravissimo", "31337")  # what values are made of
VALUES = {
    "a text": "TOPSEKRET",
    "capitals and blanks": "  TopSekret\n",
    "quotes": 'it\'s "TopSekret"',
    "a backslash": "Top\\TopSekret",
    "a letter beyond ASCII": "TopSekret\u20ac\u0130",
    "a list": "Alphabet,BravissimO",
    "pairs": "user=Alphabet;key=BravissimO",
    "a URL": "http://Alphabet:BravissimO@TOPSEKRET/31337",
    "a long text": "TopSekret" * 40,
    "JSON": '{"k": ["TopSekret"]}',
    "a number": "31337000",
    "another spelling of it": " 31_337_000 ",
    "a third": "3.1337e7",
}
CALLS = {
    "digest of a bad algorithm": "{digest: [H, x]}",
    "digest of no text": "{digest: [md5, [H]]}",
    "digest by a part": "{digest: [{str_split: ['=', H, 0]}, x]}",
    "digest by the last part": "{digest: [{str_split: [',', H, -1]}, x]}",
    "digest by what yaql made": "{digest: [{yaql: {expression: $.data.toUpper(), data: H}}, x]}",
    "digest by some of it": (
        "{digest: [{yaql: {expression: '$.data.substring(3, 12)', data: H}}, x]}"
    ),
    "list_join by a list": "{list_join: [[H], [a]]}",
    "list_join of text": "{list_join: [',', H]}",
    "str_split of a list": "{str_split: [',', [H]]}",
    "str_split by a list": "{str_split: [[H], x]}",
    "str_split at an index": "{str_split: [',', 'a,b', H]}",
    "repeat for text": "{repeat: {template: a, for_each: H}}",
    "repeat for a value of text": "{repeat: {template: a, for_each: {a: H}}}",
    "repeat of a map": "{repeat: {template: a, for_each: {a: [{k: H}]}}}",
    "map_merge": "{map_merge: [H]}",
    "map_merge of a part": "{map_merge: [{str_split: [',', H]}]}",
    "map_merge of text": "{map_merge: H}",
    "map_replace": "{map_replace: [H, {}]}",
    "map_replace by": "{map_replace: [{}, H]}",
    "map_replace a key": "{map_replace: [{a: 1, b: 2}, {keys: {a: H, b: H}}]}",
    "map_replace a key by a map": "{map_replace: [{a: 1, b: 2}, {keys: {a: {k: H}}}]}",
    "map_replace what": "{map_replace: [{}, {map_replace: [{a: {}}, {keys: {a: H}}]}]}",
    "filter": "{filter: [H, []]}",
    "filter of": "{filter: [[], H]}",
    "contains": "{contains: [[H], H]}",
    "list_concat": "{list_concat: [H]}",
    "list_concat_unique": "{list_concat_unique: [{str_split: [',', H]}]}",
    "make_url port": "{make_url: {host: a, port: H}}",
    "make_url query": "{make_url: {host: a, query: H}}",
    "make_url scheme": "{make_url: {host: a, scheme: [H]}}",
    "str_replace": "{str_replace: {template: [H], params: {}}}",
    "str_replace by": "{str_replace: {template: a, params: H}}",
    "str_replace_strict": (
        "{str_replace_strict: {template: a, "
        "params: {map_replace: [{a: b, c: d}, {keys: {c: {str_split: [',', H, -1]}}}]}}}"
    ),
    "str_replace_vstrict": (
        "{str_replace_vstrict: {template: a, "
        "params: {map_replace: [{c: ''}, {keys: {c: {str_split: [',', H, -1]}}}]}}}"
    ),
    "get_param": "{get_param: H}",
    "get_param with a path": "{get_param: [H, a]}",
    "get_file": "{get_file: H}",
    "yaql": "{yaql: {expression: H, data: 1}}",
    "yaql of an odd name": "{yaql: {expression: int($.data), data: H}}",
    "yaql of a part": "{yaql: {expression: 'int($.data.split(\",\")[-1])', data: H}}",
    "yaql of keys": "{yaql: {expression: 'dict($.data => 1).get(x).foo($.data)', data: H}}",
    "yaql of a number": "{yaql: {expression: 'int($.data) + \"x\"', data: H}}",
    "yaql of a regular expression": '{yaql: {expression: regex($.data + "(").matches(a), data: H}}',
    "if": "{if: [H, 1, 2]}",
    "if not": "{if: [{not: H}, 1, 2]}",
    "if and": "{if: [{and: [{equals: [1, 1]}, H]}, 1, 2]}",
    "a property": "H",
    "a part of a property": "{str_split: [',', H, -1]}",
    "a part in a list": "[{str_split: [',', H, -1]}]",
}  # fmt: skip
OF_CLOUDFORMATION = {
    "Fn::Join": "{'Fn::Join': [[H], [a]]}",
    "Fn::Split": "{'Fn::Split': [',', [H]]}",
    "Fn::Select": "{'Fn::Select': [H, [a]]}",
    "Fn::Select of text": "{'Fn::Select': [0, H]}",
    "Fn::Select of a part": "{'Fn::Select': [0, {'Fn::Select': [-1, {'Fn::Split': [',', H]}]}]}",
    "Fn::Replace": "{'Fn::Replace': [{a: b}, [H]]}",
    "Fn::Replace by": "{'Fn::Replace': [H, a]}",
    "Fn::Base64": "{'Fn::Base64': [H]}",
    "Fn::MemberListToMap": "{'Fn::MemberListToMap': [a, b, [H]]}",
    "Fn::MemberListToMap of text": "{'Fn::MemberListToMap': [a, b, H]}",
    "Fn::FindInMap": "{'Fn::FindInMap': [H, a, b]}",
    "Fn::FindInMap of a key": "{'Fn::FindInMap': [M, H, b]}",
    "Fn::If": "{'Fn::If': [H, 1, 2]}",
}
VALUE = "resources: {a: {type: OS::Heat::Value, properties: {value: CALL}}}"
NUMBER = "resources: {a: {type: OS::Heat::TestResource, properties: {wait_secs: CALL}}}"
OUTPUT = "outputs: {o: {value: CALL}}"
GIVEN, LATE = "{get_param: h}", "{get_attr: [v, value]}"
OF_V = "resources: {v: {type: OS::Heat::Value, properties: {value: {get_param: h}}}}\n"
IN_CLOUDFORMATION = """
AWSTemplateFormatVersion: 2010-09-09
Parameters: {h: {Type: String, NoEcho: true}}
Mappings: {M: {a: {b: c}}}
Resources: {a: {Type: OS::Heat::Value, Properties: {value: CALL}}}
"""


def validated(stack):
    try:
        validate(stack)
    except errors.Failure as exc:
        return f"{exc} {exc.facts} {exc.log}"
    return ""


def simulated(stack):
    life = simulation.Lifecycle()
    try:
        result = life.create(stack)
    except errors.Failure as exc:
        return f"{exc} {exc.facts} {exc.log}"
    wrong = [result.error, *(output.error for output in result.outputs.values())]
    reasons = [event.reason for event in life.simulation.events]
    return " ".join([*reasons, *(error.message for error in wrong if error)])


def of_cloudformation(text, given):
    template = versions.template_class(document := parse.document(text))(document, {})
    definition = Definition(
        template=template, environment=Environment.of(None), user_parameters=given
    )
    return Stack(definition)


def parts(value, said):
    """The words of a value, and any eight characters of it, that a message has in any case."""
    eights = (value[at : at + 8] for at in range(len(value) - 7))
    wanted = {*eights, *(word for word in WORDS if word in value.lower())}
    return [part for part in wanted if part.lower().strip() in said.lower()]


EACH_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def told_of_any_value(say):
    """Return what ``say`` tells of each value that may be hidden, by the value's name."""
    return {name: found for name, value in VALUES.items() if (found := parts(value, say(value)))}


@pytest.mark.sampled
@EACH_CALL
def test_no_message_of_validation_has_any_of_it(call):
    text = HIDDEN + VALUE.replace("CALL", call.replace("H", GIVEN))
    assert not told_of_any_value(lambda value: validated(stack(text, given={"h": value})))


@pytest.mark.sampled
@EACH_CALL
def test_no_message_of_what_fails_late_has_any_of_it(call):
    text = HIDDEN + OF_V + OUTPUT.replace("CALL", call.replace("H", LATE))
    assert not told_of_any_value(lambda value: simulated(stack(text, given={"h": value})))


@pytest.mark.sampled
@pytest.mark.parametrize("call", OF_CLOUDFORMATION.values(), ids=OF_CLOUDFORMATION)
def test_no_message_of_cloudformation_has_any_of_it(call):
    text = IN_CLOUDFORMATION.replace("CALL", call.replace("H", "{Ref: h}"))
    assert not told_of_any_value(lambda value: validated(of_cloudformation(text, {"h": value})))


@EACH_CALL
def test_each_of_these_calls_is_refused(call):
    text = HIDDEN + NUMBER.replace("CALL", call.replace("H", GIVEN))
    assert validated(stack(text, given={"h": VALUES["a text"]}))


@pytest.mark.parametrize("call", OF_CLOUDFORMATION.values(), ids=OF_CLOUDFORMATION)
def test_each_of_these_calls_of_cloudformation_is_refused(call):
    text = IN_CLOUDFORMATION.replace("CALL", call.replace("H", "{Ref: h}"))
    assert validated(of_cloudformation(text, {"h": VALUES["a text"]}))
