"""Whole templates for the side-by-side: drawn valid, then most of them broken in one named way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

Case = dict[str, Any]
Break = Callable[[Case, random.Random], None]

CHILD: Final = """\
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1, constraints: [{range: {min: 0, max: 9}}]}
  label: {type: string}
resources:
  inner: {type: OS::Heat::Value, properties: {value: {get_param: label}}}
outputs:
  told: {value: {get_attr: [inner, value]}}
  size: {value: {get_param: size}}
"""


def templates(seed: int, count: int) -> Iterator[Case]:
    """Yield ``count`` cases: every break at least once, the rest valid or broken at random."""
    chance = random.Random(seed)
    names = list(BREAKS)
    for number in range(count):
        case = _valid(chance)
        name = names[number] if number < len(names) else chance.choice([*names, *["none"] * 30])
        if name != "none":
            BREAKS[name](case, chance)
        yield {"id": f"template-{number}-{name}", **case}


def _valid(chance: random.Random) -> Case:
    names = [f"r{number}" for number in range(chance.randint(2, 7))]
    resources = {name: _resource(chance, names[:at]) for at, name in enumerate(names)}
    resources["v"] = {"type": "OS::Heat::Value", "properties": {"value": {"k": ["x", "y"]}}}
    resources["nest"] = {
        "type": "child.yaml",
        "properties": {"label": {"get_param": "s"}, "size": chance.randint(0, 9)},
    }
    resources["group"] = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": chance.randint(0, 3),
            "resource_def": {"type": "OS::Heat::Value", "properties": {"value": "m%index%"}},
        },
    }
    template: dict[str, Any] = {
        "heat_template_version": chance.choice(("2016-10-14", "2018-08-31", "2021-04-16")),
        "parameters": _parameters(),
        "conditions": {"on": {"equals": [{"get_param": "n"}, 7]}, "off": {"not": "on"}},
        "resources": resources,
        "outputs": {
            "value": {"value": {"get_attr": ["v", "value", "k", 1]}},
            "nested": {"value": {"get_attr": ["nest", "told"]}},
            "members": {"value": {"get_attr": ["group", "value"]}},
            "gone": {"value": {"get_attr": ["nowhere", "x"]}, "condition": "off"},
        },
    }
    return {
        "template": template,
        "environment": {"parameters": {"s": "given"}, "parameter_defaults": {"unknown": "x"}},
        "files": {"child.yaml": CHILD},
    }


def _parameters() -> dict[str, Any]:
    return {
        "s": {"type": "string", "constraints": [{"length": {"min": 1, "max": 10}}]},
        "n": {"type": "number", "default": 7, "constraints": [{"range": {"min": 1, "max": 9}}]},
        "l": {"type": "comma_delimited_list", "default": "a,b"},
    }


def _resource(chance: random.Random, before: list[str]) -> dict[str, Any]:
    kind = chance.choice(("Value", "TestResource", "RandomString", "None"))
    made: dict[str, Any] = {"type": f"OS::Heat::{kind}"}
    if kind == "Value":
        made["properties"] = {
            "value": chance.choice(("a", 1, {"get_param": "l"}, [None], {"a": 1}))
        }
    elif kind == "TestResource":
        made["properties"] = {"value": chance.choice(("t", {"get_param": "s"})), "wait_secs": 0}
    elif kind == "RandomString":
        made["properties"] = {"length": chance.randint(1, 40)}
    if before and chance.random() < 0.5:
        made["depends_on"] = chance.choice((chance.choice(before), [chance.choice(before)]))
    if chance.random() < 0.2:
        made["condition"] = chance.choice(("on", "off"))
    if chance.random() < 0.2:
        made["metadata"] = {"note": {"get_param": "n"}}
    if chance.random() < 0.2:
        made["deletion_policy"] = chance.choice(("Delete", "Retain", "retain"))
    return made


def _put(*path: str, value: Any) -> Break:
    """A break that writes ``value`` at a place of the case; the last key may be new."""

    def broken(case: Case, chance: random.Random) -> None:
        at = case
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = json.loads(json.dumps(value))

    return broken


def _drop(*path: str) -> Break:
    def broken(case: Case, chance: random.Random) -> None:
        at = case
        for key in path[:-1]:
            at = at[key]
        at.pop(path[-1], None)

    return broken


def _section(name: str, value: Any) -> Break:
    return _put("template", name, value=value)


def _new_resource(body: Any, name: str = "new") -> Break:
    return _put("template", "resources", name, value=body)


def _new_parameter(body: Any) -> Break:
    return _put("template", "parameters", "new", value=body)


def _new_output(body: Any) -> Break:
    return _put("template", "outputs", "new", value=body)


def _value(value: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": value}}


def _child(old: str, new: str) -> Break:
    def broken(case: Case, chance: random.Random) -> None:
        assert old in CHILD
        case["files"]["child.yaml"] = CHILD.replace(old, new)

    return broken


def _old(version: str, then: Break) -> Break:
    def broken(case: Case, chance: random.Random) -> None:
        small = {"heat_template_version": version, "resources": {"a": _value(1)}, "parameters": {}}
        case.update(template=small, environment={})
        then(case, chance)

    return broken


def _text(name: str, constraint: Any, value: Any = None, kind: str = "string") -> Break:
    """A parameter ``name`` with a constraint, and perhaps a value for it."""

    def broken(case: Case, chance: random.Random) -> None:
        body = {"type": kind, "default": "a", "constraints": [constraint]}
        if value is not None:
            del body["default"]
            case["environment"]["parameters"][name] = value
        case["template"]["parameters"][name] = body

    return broken


NESTED: Final = ("template", "resources", "nest", "properties")
GROUP: Final = ("template", "resources", "group", "properties")
BREAKS: Final[dict[str, Break]] = {
    "no version": _drop("template", "heat_template_version"),
    "unknown version": _section("heat_template_version", "2013-05-24"),
    "version is no text": _section("heat_template_version", 20130523),
    "two versions": _section("AWSTemplateFormatVersion", "2010-09-09"),
    "unknown section": _section("resourses", {}),
    "null resources": _section("resources", None),
    "resources is a list": _section("resources", []),
    "outputs is text": _section("outputs", "x"),
    "parameters is a list": _section("parameters", ["s"]),
    "conditions is a list": _section("conditions", ["on"]),
    "description is a map": _section("description", {"a": 1}),
    "groups are a map": _section("parameter_groups", {"label": "x"}),
    "group without parameters": _section("parameter_groups", [{"label": "x"}]),
    "group of unknown": _section("parameter_groups", [{"parameters": ["nope"]}]),
    "group twice": _section("parameter_groups", [{"parameters": ["s"]}, {"parameters": ["s"]}]),
    "group is fine": _section("parameter_groups", [{"label": "x", "parameters": ["s", "n"]}]),
    "no type": _new_resource({"properties": {}}),
    "null type": _new_resource({"type": None}),
    "type is a list": _new_resource({"type": ["OS::Heat::None"]}),
    "empty type": _new_resource({"type": ""}),
    "resource is text": _new_resource("OS::Heat::None"),
    "resource is null": _new_resource(None),
    "unknown key": _new_resource({"type": "OS::Heat::None", "propertys": {}}),
    "unknown type": _new_resource({"type": "OS::Heat::Valu"}),
    "slash in name": _new_resource({"type": "OS::Heat::None"}, "a/b"),
    "name of a parameter": _new_resource({"type": "OS::Heat::None"}, "s"),
    "name of a pseudo parameter": _new_resource({"type": "OS::Heat::None"}, "OS::stack_id"),
    "properties is a list": _new_resource({"type": "OS::Heat::Value", "properties": []}),
    "properties is null": _new_resource({"type": "OS::Heat::None", "properties": None}),
    "metadata is text": _new_resource({"type": "OS::Heat::None", "metadata": "x"}),
    "update policy is a list": _new_resource({"type": "OS::Heat::None", "update_policy": []}),
    "depends on a map": _new_resource({"type": "OS::Heat::None", "depends_on": {"a": 1}}),
    "depends on unknown": _new_resource({"type": "OS::Heat::None", "depends_on": "nope"}),
    "depends on itself": _new_resource({"type": "OS::Heat::None", "depends_on": "new"}),
    "depends on null": _new_resource({"type": "OS::Heat::None", "depends_on": None}),
    "depends on a number": _new_resource({"type": "OS::Heat::None", "depends_on": [1]}),
    "bad policy": _new_resource({"type": "OS::Heat::None", "deletion_policy": "Keep"}),
    "policy is a list": _new_resource({"type": "OS::Heat::None", "deletion_policy": ["Retain"]}),
    "snapshot policy": _new_resource({"type": "OS::Heat::None", "deletion_policy": "Snapshot"}),
    "external and depends": _new_resource(
        {"type": "OS::Heat::TestResource", "external_id": "x", "depends_on": "v"}
    ),
    "unknown property": _new_resource({"type": "OS::Heat::Value", "properties": {"valu": 1}}),
    "required missing": _new_resource({"type": "OS::Heat::Value", "properties": {}}),
    "constraint of a property": _new_resource(
        {"type": "OS::Heat::RandomString", "properties": {"length": 0}}
    ),
    "property of a wrong type": _new_resource(
        {"type": "OS::Heat::RandomString", "properties": {"length": "many"}}
    ),
    "nested property wrong": _new_resource(
        {
            "type": "OS::Heat::RandomString",
            "properties": {"character_classes": [{"class": "vowels", "min": 1}]},
        }
    ),
    "nested property unknown": _new_resource(
        {
            "type": "OS::Heat::RandomString",
            "properties": {"character_sequences": [{"sequence": "ab", "most": 1}]},
        }
    ),
    "mins over length": _new_resource(
        {
            "type": "OS::Heat::RandomString",
            "properties": {"length": 3, "character_classes": [{"class": "digits", "min": 5}]},
        }
    ),
    "value type json as text": _new_resource(
        {"type": "OS::Heat::Value", "properties": {"type": "json", "value": "{}"}}
    ),
    "value type list as text": _new_resource(
        {"type": "OS::Heat::Value", "properties": {"type": "comma_delimited_list", "value": "a,b"}}
    ),
    "value type number as text": _new_resource(
        {"type": "OS::Heat::Value", "properties": {"type": "number", "value": "5"}}
    ),
    "value type boolean as text": _new_resource(
        {"type": "OS::Heat::Value", "properties": {"type": "boolean", "value": "true"}}
    ),
    "value type string of a map": _new_resource(
        {"type": "OS::Heat::Value", "properties": {"type": "string", "value": {}}}
    ),
    "fails": _new_resource({"type": "OS::Heat::TestResource", "properties": {"fail": True}}),
    "get_resource unknown": _new_resource(_value({"get_resource": "nope"})),
    "get_attr unknown resource": _new_resource(_value({"get_attr": ["nope", "value"]})),
    "get_attr unknown attribute": _new_resource(_value({"get_attr": ["v", "nope"]})),
    "get_attr of itself": _new_resource(_value({"get_attr": ["new", "value"]})),
    "get_attr missing path": _new_resource(_value({"get_attr": ["v", "value", "x", "y"]})),
    "get_param unknown": _new_resource(_value({"get_param": "nope"})),
    "get_file missing": _new_resource(_value({"get_file": "nope.txt"})),
    "cycle": _section(
        "resources",
        {"a": _value({"get_resource": "b"}), "b": _value({"get_attr": ["a", "value"]})},
    ),
    "condition unknown": _new_resource({"type": "OS::Heat::None", "condition": "nope"}),
    "condition is text of a boolean": _new_resource(
        {"type": "OS::Heat::None", "condition": "true"}
    ),
    "condition inline": _new_resource(
        {"type": "OS::Heat::None", "condition": {"not": {"equals": [1, 1]}}}
    ),
    "condition uses get_attr": _section("conditions", {"on": {"equals": [{"get_attr": ["v"]}, 1]}}),
    "condition is a name": _section("conditions", {"on": True, "off": "on"}),
    "condition circular": _section("conditions", {"on": {"not": "off"}, "off": {"not": "on"}}),
    "and of one": _section("conditions", {"on": {"and": [True]}, "off": False}),
    "get_resource of a disabled": _section(
        "resources",
        {
            "a": {"type": "OS::Heat::None", "condition": {"equals": [1, 2]}},
            "b": _value({"get_resource": "a"}),
        },
    ),
    "depends on a disabled": _section(
        "resources",
        {
            "a": {"type": "OS::Heat::None", "condition": {"equals": [1, 2]}},
            "b": {"type": "OS::Heat::None", "depends_on": "a"},
        },
    ),
    "output without value": _new_output({"description": "x"}),
    "output is text": _new_output("x"),
    "output of null": _new_output({"value": None}),
    "output with unknown key": _new_output({"value": 1, "valeu": 2}),
    "output of unknown resource": _new_output({"value": {"get_attr": ["nope", "value"]}}),
    "output of unknown attribute": _new_output({"value": {"get_attr": ["v", "nope"]}}),
    "output of unknown parameter": _new_output({"value": {"get_param": "nope"}}),
    "output of unknown reference": _new_output({"value": {"get_resource": "nope"}}),
    "output of removed function": _new_output({"value": {"Fn::Join": [",", ["a"]]}}),
    "output of two arms less one": _new_output({"value": {"if": ["on", 1, 2, 3]}}),
    "parameter without type": _new_parameter({"default": 1}),
    "parameter of unknown type": _new_parameter({"type": "String"}),
    "parameter is text": _new_parameter("string"),
    "parameter with unknown key": _new_parameter({"type": "string", "defualt": "x"}),
    "parameter without value": _new_parameter({"type": "string"}),
    "parameter default null": _new_parameter({"type": "string", "default": None}),
    "parameter default of wrong type": _new_parameter({"type": "number", "default": "x"}),
    "parameter default breaks constraint": _new_parameter(
        {"type": "number", "default": 1, "constraints": [{"range": {"min": 5}}]}
    ),
    "parameter tags not a list": _new_parameter({"type": "string", "default": "", "tags": "a"}),
    "constraint empty": _new_parameter({"type": "string", "default": "a", "constraints": [{}]}),
    "constraints a map": _new_parameter({"type": "string", "default": "a", "constraints": {}}),
    "constraint for another type": _text("new", {"range": {"min": 1}}),
    "constraint unknown": _text("new", {"size": {"min": 1}}),
    "length without bounds": _text("new", {"length": {}}),
    "length of text": _text("new", {"length": {"min": "a"}}),
    "allowed values no list": _text("new", {"allowed_values": "a"}),
    "pattern invalid": _text("new", {"allowed_pattern": "("}),
    "pattern must match whole": _text("new", {"allowed_pattern": "b"}, "abc"),
    "value not allowed": _text("new", {"allowed_values": ["x"], "description": "be x"}, "y"),
    "custom constraint unknown": _text("new", {"custom_constraint": "nope.nope"}, "y"),
    "custom constraint ip": _text("new", {"custom_constraint": "ip_addr"}, "10.0.0.300"),
    "custom constraint mac": _text("new", {"custom_constraint": "mac_addr"}, "52:54:00:00:00:01"),
    "custom constraint cidr": _text("new", {"custom_constraint": "net_cidr"}, "10.0.0.0/33"),
    "modulo": _text("new", {"modulo": {"step": 2, "offset": 0}}, 3, "number"),
    "value for undeclared": _put("environment", "parameters", "nope", value=1),
    "value too long": _put("environment", "parameters", "s", value="x" * 11),
    "value null": _put("environment", "parameters", "s", value=None),
    "value of wrong type": _put("environment", "parameters", "n", value="x"),
    "value out of range": _put("environment", "parameters", "n", value=10),
    "alias": _put("environment", "resource_registry", value={"OS::Heat::Value": "OS::Heat::None"}),
    "alias to unknown": _put(
        "environment", "resource_registry", value={"OS::Heat::Value": "No::Where"}
    ),
    "alias wild": _put(
        "environment", "resource_registry", value={"OS::Heat::V*": "OS::Heat::None"}
    ),
    "hook unknown": _put(
        "environment", "resource_registry", value={"resources": {"v": {"hooks": "pre-everything"}}}
    ),
    "child out of range": _put(*NESTED, "size", value=10),
    "child unknown property": _put(*NESTED, "colour", value="red"),
    "child without label": _put(*NESTED, value={"size": 1}),
    "child gone": _put("files", value={}),
    "child is broken": _child("resources:", "resurces:"),
    "child is no map": _child(CHILD, "- a\n"),
    "child contains itself": _child("type: OS::Heat::Value", "type: child.yaml"),
    "child attribute unknown": _new_output({"value": {"get_attr": ["nest", "nope"]}}),
    "child reach-through": _new_output(
        {"value": {"get_attr": ["nest", "resource.inner", "value"]}}
    ),
    "group of unknown type": _put(*GROUP, "resource_def", "type", value="No::Where"),
    "group negative": _put(*GROUP, "count", value=-1),
    "group index short": _put(*GROUP, "index_var", value="%"),
    "group external": _put(*GROUP, "resource_def", "external_id", value="x"),
    "group empty of unknown": _put(
        *GROUP, value={"count": 0, "resource_def": {"type": "No::Where", "properties": {}}}
    ),
    "group refs_map": _new_output({"value": {"get_attr": ["group", "attributes", "value"]}}),
    "conditions too early": _old("2015-10-15", _section("conditions", {})),
    "condition key too early": _old(
        "2015-10-15", _new_resource({"type": "OS::Heat::None", "condition": True})
    ),
    "retain too early": _old(
        "2016-04-08", _new_resource({"type": "OS::Heat::None", "deletion_policy": "retain"})
    ),
    "tags too early": _old(
        "2017-09-01", _new_parameter({"type": "string", "default": "", "tags": []})
    ),
    "modulo too early": _old(
        "2016-10-14",
        _new_parameter(
            {"type": "number", "default": 2, "constraints": [{"modulo": {"step": 2, "offset": 0}}]}
        ),
    ),
    "two arms too early": _old("2018-08-31", _new_output({"value": {"if": [True, 1]}})),
}
