"""Whole stacks as hypothesis draws them: template, environments, files, values; valid and broken.

    @given(cases())
    def test(case): ...

How wrong a case is is drawn first: about a third are as they should be, so that what lies behind
validation is reached; the rest has a wrong part here and there, or everywhere.  ``Case.texts`` says
whether the template is handed over as text, as objects, or as something nobody should send.

Hidden parameters are given values that hold SECRET, and nothing else does.
"""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.template import kinds, versions
from bloomery.orchestration.template.dialect import Key, Section, Template
from tests.kit.stacks import template_texts
from tests.kit.stacks.template_calls import Calls, Dice, Names

SECRET: Final = "hunter2zq"
SECRET_NUMBER: Final = 918273645
SHOWN_CHARS: Final = 10_000  # of a case that is told
WRONG: Final = (0, 0, 0, 1, 2, 5, 25)  # of a hundred places, in one case
TYPES: Final = ("string", "number", "comma_delimited_list", "json", "boolean")
CFN_TYPES: Final = ("String", "Number", "CommaDelimitedList", "Json", "Boolean")
HOLDS: Final = dict(zip(TYPES, ("text", "number", "list", "map", "bool"), strict=True))
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "string": ("", "a", "abc", "10.0.0.1", "x y", "ü" * 9, "5"),
    "number": (0, 1, "2", 1.5, -3, "1e3", 80),
    "comma_delimited_list": ("a,b", ["a", "b"], "", "a, b,,", []),
    "json": ({"k": [1, {"z": "q"}]}, '{"a": "b"}', [1, 2], "[]", {}),
    "boolean": (True, "off", "yes", 0, "t"),
}
JSON_TEXTS: Final = (  # values of JSON parameters are read after the document is
    "[" * 90 + "]" * 90, "[" * 300 + "]" * 300, "[" * 900 + "]" * 900,
    '{"a":' * 500 + "1" + "}" * 500, "NaN", "[Infinity]", "1e999", "9" * 4000, "9" * 5000,
    '"\\ud800"', '["\\u0000"]', '{"\\ud800": 1}', "null", '"x"', "5", "[" + "1," * 200_000 + "1]",
    '{"a": 1, "a": 2}', "{", "",
)  # fmt: skip
SECRETS: Final[dict[str, Any]] = {
    "string": SECRET,
    "number": SECRET_NUMBER,
    "comma_delimited_list": f"{SECRET},{SECRET}",
    "json": {"k": SECRET},
    "boolean": True,
}
CONSTRAINTS: Final[dict[str, tuple[Any, ...]]] = {
    "string": (
        {"length": {"min": 0, "max": 20}}, {"allowed_pattern": ".*"},
        {"allowed_pattern": "[a-z0-9]*"}, {"allowed_values": ["", "a", "abc", "5"]},
    ),
    "number": ({"range": {"min": -9, "max": 10**9}}, {"range": {"max": 2}}),
    "comma_delimited_list": ({"length": {"max": 5}},),
    "json": ({"length": {"min": 0}},),
    "boolean": ({"allowed_values": [True, False]},),
}  # fmt: skip
BAD_CONSTRAINTS: Final[tuple[Any, ...]] = (
    {"length": {"max": 0}}, {"range": {"min": 5, "max": 1}},
    {"allowed_values": ["a", "abc", 1, True]}, {"modulo": {"step": 2, "offset": 0}},
    {"modulo": {"step": 0, "offset": 0}}, {"allowed_pattern": "(a+)+$"}, {"allowed_pattern": "("},
    {"custom_constraint": "ip_addr"}, {"custom_constraint": "cron_expression"},
    {"custom_constraint": "nope"}, {"custom_constraint": "json_string"},
    {"custom_constraint": "timezone"}, {"custom_constraint": "iso_8601"},
    {"custom_constraint": "net_cidr"}, {"custom_constraint": "dns_name"}, {"allowed_values": []},
    {"length": {}}, {"range": {"min": "a"}}, {},
)  # fmt: skip
NESTED: Final = "child.yaml"
CHILD: Final = """\
heat_template_version: 2018-08-31
parameters:
  label: {type: string, default: ""}
  size: {type: number, default: 1, constraints: [{range: {min: 0, max: 9}}]}
  secret: {type: string, default: "", hidden: true}
resources:
  inner: {type: OS::Heat::Value, properties: {value: {get_param: label}}}
  told: {type: OS::Heat::TestResource, properties: {value: {get_param: secret}}}
  facade: {type: OS::Heat::Value, properties: {value: {resource_facade: metadata}}}
outputs:
  told: {value: {get_attr: [inner, value]}}
  outputs: {value: {get_attr: [told, output]}}
"""
LOOP: Final = """\
heat_template_version: 2018-08-31
parameters: {{label: {{type: string, default: a}}}}
resources:
  one: {{type: {to}, properties: {{label: {{get_param: label}}}}}}
  more: {{type: OS::Heat::ResourceGroup, properties: {{count: 2, resource_def: {{type: {to}}}}}}}
outputs: {{told: {{value: {{get_attr: [one, told]}}}}}}
"""
FILES: Final = {
    NESTED: CHILD,
    "loop.yaml": LOOP.format(to="other.yaml"),
    "other.yaml": LOOP.format(to="loop.yaml"),
    "deep.yaml": LOOP.format(to=NESTED),
    "there.txt": "text %index% of a file",
    "empty.yaml": "",
    "bomb.yaml": str(template_texts.TEXTS[17]),
}
COMPOSED: Final = ("OS::Heat::ResourceGroup", "OS::Heat::ResourceChain")
TYPE_RULES: Final = (
    "My::Thing",
    "My::*",
    "My::Other",
    "*",
    "OS::Heat::Value",
    "OS::Heat::V*",
    NESTED,
)
TARGETS: Final = (
    "OS::Heat::Value", NESTED, "OS::Heat::None", "OS::Heat::TestResource", "My::Other",
    "OS::Heat::*", None, "deep.yaml", "loop.yaml",
)  # fmt: skip
RULES: Final[tuple[Any, ...]] = (
    {"hooks": "pre-create"}, {"hooks": ["post-create", "pre-update", "pre-delete"]},
    {"restricted_actions": "update"}, {"restricted_actions": ["replace"]}, {"My::Thing": NESTED},
    {"r*": {"hooks": "pre-create"}}, {"inner": {"OS::Heat::Value": "OS::Heat::None"}},
)  # fmt: skip
BAD_RULES: Final[tuple[Any, ...]] = (
    {"hooks": "clear"},
    {"hooks": 5},
    {"restricted_actions": "x"},
    [],
    {"a": 5},
)


class Form(enum.StrEnum):
    YAML = "yaml"
    JSON = "json"
    OBJECT = "object"  # as a request's body holds it
    MANGLED = "mangled"  # text that was cut, or into which something was put
    NOWHERE = "nowhere"  # a text of template_texts


@dataclass(slots=True, kw_only=True)
class Case:
    """``template``: text, or a map; ``environments``: of several files, merged in this order."""

    form: Form
    template: Any
    environments: list[Any]
    more_files: dict[str, str] = field(default_factory=dict)  # beside FILES
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        return FILES | self.more_files

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Tell hypothesis a page at most: it warns of more, and the warning hides the fault."""
        said = repr(self)
        more = len(said) - SHOWN_CHARS
        printer.text(said if more <= 0 else f"{said[:SHOWN_CHARS]} and {more} characters more")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dice = Dice(draw, draw(st.sampled_from(WRONG)))
    if dice.chance(4):
        text = dice.of(template_texts.TEXTS)
        return Case(form=Form.NOWHERE, template=text, environments=[])
    names = sorted(versions.installed())
    name = names[-1 - dice.number(0, len(names) - 1)] if dice.chance(60) else _LATEST
    return _Writer(dice, name).case()


_LATEST: Final = "heat_template_version.2021-04-16"


class _Writer:
    """Writes one case in the words of one version."""

    def __init__(self, dice: Dice, version: str) -> None:
        self.dice = dice
        self.version = version
        self.template: type[Template] = versions.installed()[version]
        self.names = Names(files=[*FILES, "nope"] if dice.odd() else ["there.txt"])
        self.calls = Calls(dice, self.names, self.template)
        self.values: dict[str, Any] = {}  # of parameters, for the environment

    def case(self) -> Case:
        document = self.document()
        form = self.form()
        return Case(
            form=form,
            template=self.written(document, form),
            environments=self.environments(),
            more_files=self.files(),
            given=self.given(),
        )

    # ------------------------------------------------------------------------------ the template

    def document(self) -> Any:
        dice = self.dice
        key, _, value = self.version.partition(".")
        document: dict[str, Any] = {key: dice.of(template_texts.SCALARS) if dice.odd() else value}
        bodies = {
            Section.PARAMETERS: self.parameters,
            Section.MAPPINGS: lambda: {"M": {"a": {"a": "b", "b": ["c"]}, "5": {"a": 1}}},
            Section.CONDITIONS: self.conditions,
            Section.RESOURCES: self.resources,
            Section.OUTPUTS: self.outputs,
            Section.PARAMETER_GROUPS: self.groups,
            Section.DESCRIPTION: lambda: dice.of(("", "a stack", "é\u202e")),
        }
        for section, body in bodies.items():
            word = self.template.features.sections.get(section)
            if word is not None and dice.chance(90):
                document[word] = self.calls.junk(2) if dice.odd() else body()
        if dice.odd():
            document[str(dice.of(template_texts.SCALARS))] = self.calls.junk(2)
        return document

    def parameters(self) -> dict[str, Any]:
        return {
            self.name("p", at): self.parameter(f"p{at}") for at in range(self.dice.number(1, 5))
        }

    def name(self, prefix: str, at: int) -> Any:
        return self.dice.of(template_texts.SCALARS) if self.dice.odd() else f"{prefix}{at}"

    def parameter(self, name: str) -> Any:
        dice = self.dice
        if dice.odd():
            return self.calls.junk(2)
        kind = dice.of(TYPES)
        hidden = dice.chance(35)
        self.names.parameters[name] = HOLDS[kind]
        value = SECRETS[kind] if hidden else self._value(kind)
        has_default = dice.chance(60)
        if not has_default or dice.chance(30):
            self.values[name] = value
        body: dict[str, Any] = {"type": kind}
        if has_default:
            body["default"] = value
        if hidden:
            body["hidden"] = True
        if dice.chance(25):
            body["constraints"] = [
                dice.of(BAD_CONSTRAINTS if dice.chance(7) else CONSTRAINTS[kind])
            ]
        if dice.chance(10):
            body["immutable"] = True
        if self.template.features.type == "cfn":
            return self._cfn_parameter(body)
        if dice.odd():
            body["tags"] = dice.of((["a"], "a", [1]))
        return body | ({"label": "L", "description": "D"} if dice.chance(5) else {})

    def _value(self, kind: str) -> Any:
        if not self.dice.odd():
            return self.dice.of(VALUES[kind])
        return self.dice.of(JSON_TEXTS) if self.dice.chance(40) else self.calls.junk(2)

    def _cfn_parameter(self, body: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {"Type": CFN_TYPES[TYPES.index(body["type"])]}
        if "default" in body:
            made["Default"] = body["default"]
        if "hidden" in body:
            made["NoEcho"] = self.dice.of((True, "true", "True"))
        rules = {
            "MinLength": 1,
            "MaxValue": "9",
            "AllowedPattern": "[a-z]*",
            "AllowedValues": ["a"],
        }
        if "constraints" in body:
            rule = self.dice.of(list(rules))
            made[rule] = rules[rule]
        return made

    def groups(self) -> Any:
        names = self.dice.times(3, self.calls.parameter)
        if not self.dice.odd():
            names = sorted({*names} & {*self.names.parameters})
        return [{"label": "g", "parameters": names}]

    def conditions(self) -> dict[str, Any]:
        found = {}
        for at in range(self.dice.number(0, 4)):
            found[self.name("c", at)] = (
                self.calls.junk(2) if self.dice.odd() else self.calls.decision(2)
            )
            self.names.conditions.append(f"c{at}")
        return found

    def resources(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for at in range(self.dice.number(1, 6)):
            name, kind = self.name("r", at), self.kind()
            found[name] = self.calls.junk(2) if self.dice.odd() else self.resource(kind)
            if isinstance(name, str):
                self.names.resources[name] = kind
        if self.dice.odd():  # circles
            first = next(iter(found))
            if isinstance(first, str) and isinstance(found[first], dict):
                found[first][self.key(Key.DEPENDS_ON)] = self.calls.resource()
        return found

    def key(self, key: Key) -> str:
        return self.template.features.resource_keys.get(key, key.value)

    def kind(self) -> str:
        dice = self.dice
        if dice.odd():
            return dice.of(
                (
                    "No::Such",
                    "loop.yaml",
                    "other.yaml",
                    "deep.yaml",
                    "empty.yaml",
                    "bomb.yaml",
                    "nope.yaml",
                    "http://x/y.yaml",
                )
            )
        if dice.chance(35):
            return dice.of((*COMPOSED, NESTED, "deep.yaml", "My::Thing"))
        return dice.of((*("OS::Heat::Value", "OS::Heat::TestResource") * 3, *_kinds()))

    def resource(self, kind: str) -> dict[str, Any]:
        dice, calls = self.dice, self.calls
        body: dict[str, Any] = {self.key(Key.TYPE): kind}
        if kind != "OS::Heat::None" or dice.chance(30):
            body[self.key(Key.PROPERTIES)] = calls.junk(2) if dice.odd() else self.properties(kind)
        if dice.chance(10):
            body[self.key(Key.METADATA)] = calls.of("map", 2)
        if dice.chance(15) and self.names.resources:
            body[self.key(Key.DEPENDS_ON)] = dice.of((calls.resource(), [calls.resource()]))
        if dice.chance(8):
            body[self.key(Key.DELETION_POLICY)] = dice.of(
                ("Delete", "Retain", "Snapshot", "retain")
            )
        if dice.chance(20) and kind == COMPOSED[0]:
            body[self.key(Key.UPDATE_POLICY)] = self.update_policy()
        if Key.CONDITION in self.template.features.resource_keys and dice.chance(15):
            body[self.key(Key.CONDITION)] = calls.condition(1)
        if dice.odd():
            body[dice.of((self.key(Key.EXTERNAL_ID), "typ", "", "\ud800"))] = calls.junk(2)
        return body

    def update_policy(self) -> Any:
        pace: dict[str, Any] = {
            "max_batch_size": self.dice.of((1, 2)),
            "pause_time": self.dice.of((0, 1)),
        }
        if self.dice.odd():
            pace = {"max_batch_size": 0, "pause_time": 10**9}
        return {self.dice.of(("batch_create", "rolling_update")): pace}

    # -------------------------------------------------------------------------------- properties

    def properties(self, kind: str) -> Any:
        dice, calls = self.dice, self.calls
        if kind == COMPOSED[0]:
            return self.group()
        if kind == COMPOSED[1]:
            return {"resources": dice.times(3, self.member), "resource_properties": self._own({})}
        found = _kinds().get(kind)
        if found is None:
            return {key: calls.of("text", 2) for key in ("label", "secret") if dice.chance(50)}
        own = self._own(found)
        if "fail" in found and dice.chance(50):
            own["fail"] = True
        return own

    def _own(self, schemas: dict[str, Schema]) -> dict[str, Any]:
        made = {
            name: self.property(schema, 3)
            for name, schema in schemas.items()
            if schema.required or self.dice.chance(25)
        }
        if self.dice.odd():
            made[self.dice.of(("nope", "", "valeu"))] = self.calls.junk(2)
        return made

    def group(self) -> dict[str, Any]:
        dice = self.dice
        kind = self.member()
        property_ = "label" if kind == NESTED else "value"
        member = {"type": kind, "properties": {property_: self.calls.of("text", 2)}}
        if dice.odd():
            member["properties"] = self.calls.junk(2)
        made: dict[str, Any] = {
            "count": dice.of((0, 1, 2, 3)),
            "resource_def": self.calls.junk(2) if dice.odd() else member,
        }
        if dice.odd():
            made["count"] = dice.of((-1, 10**9, 1001, "x", 2**70, {"get_param": "p0"}))
        if dice.chance(10):
            made["index_var"] = dice.of(("%index%", "%i%", "", ":index:"))
        if dice.chance(10):
            made["removal_policies"] = [{"resource_list": dice.of((["0"], ["9", 1], []))}]
        return made

    def member(self) -> str:
        return self.dice.of(
            (
                "OS::Heat::Value",
                "OS::Heat::TestResource",
                "OS::Heat::None",
                NESTED,
                "No::Such",
                "loop.yaml",
            )[: 6 if self.dice.odd() else 4]
        )

    def property(self, schema: Schema, depth: int) -> Any:
        if schema.type is Type.LIST and isinstance(schema.schema, Schema) and self.dice.chance(70):
            return [self.property(schema.schema, depth - 1)]
        if schema.type is Type.MAP and isinstance(schema.schema, dict) and self.dice.chance(90):
            return self._own(schema.schema)
        kind = PROPERTY_KINDS.get(schema.type) or self.dice.of(tuple(HOLDS.values()))
        return self.calls.of(kind, depth)

    def outputs(self) -> dict[Any, Any]:
        words = self.template.features.output_keys
        return {
            self.name("o", at): self.calls.junk(2)
            if self.dice.odd()
            else {words[Key.VALUE]: self.calls.any(3)}
            for at in range(self.dice.number(0, 4))
        }

    # --------------------------------------------------------------------------------- around it

    def environments(self) -> list[Any]:
        dice = self.dice
        first: dict[str, Any] = {"parameters": dict(self.values)}
        if "My::Thing" in self.names.resources.values() or dice.chance(20):
            first["resource_registry"] = {"My::Thing": "OS::Heat::Value"} | self.registry()
        found: list[Any] = [first]
        while dice.chance(30) and len(found) < 4:
            found.append(self.another())
        return [self.calls.junk(2) if dice.odd() else each for each in found]

    def another(self) -> dict[str, Any]:
        """One more file; it must not give a secret to what may not be hidden."""
        dice = self.dice
        made: dict[str, Any] = {}
        if dice.chance(40):
            made["parameter_defaults"] = {"p0": dice.of(VALUES["string"]), "unknown": 1}
        if dice.chance(30):
            made["resource_registry"] = self.registry()
        if dice.chance(40):
            strategies = ("overwrite", "merge", "deep_merge", *(["nope"] if dice.odd() else []))
            made["parameter_merge_strategies"] = {
                dice.of(("default", "p0", "p1")): dice.of(strategies)
                for _ in range(dice.number(0, 2))
            }
        if dice.odd():
            word = dice.of(
                ("parameters", "event_sinks", "encrypted_param_names", "resource_registry", "nope")
            )
            made[word] = self.calls.junk(2)
        return made

    def registry(self) -> dict[str, Any]:
        dice = self.dice
        types, targets = (TYPE_RULES, TARGETS) if dice.odd() else (TYPE_RULES[:3], TARGETS[:4])
        made: dict[str, Any] = {dice.of(types): dice.of(targets) for _ in range(dice.number(0, 3))}
        if dice.chance(30):
            name = dice.of(("r0", "r*", "*", "[r]*", "r1"))
            made["resources"] = {name: dice.of(BAD_RULES if dice.odd() else RULES)}
        return made

    def files(self) -> dict[str, str]:
        if not self.dice.odd():
            return {}
        return {NESTED: self.mangled(CHILD)}

    def given(self) -> dict[str, Any]:
        if not self.dice.odd():
            return {}
        return {self.dice.of(("p0", "p1", "nope", "OS::stack_id")): self.calls.junk(2)}

    # --------------------------------------------------------------------------------- as text

    def form(self) -> Form:
        forms = (Form.OBJECT, Form.OBJECT, Form.JSON, Form.YAML)
        return Form.MANGLED if self.dice.odd() and self.dice.chance(30) else self.dice.of(forms)

    def written(self, document: Any, form: Form) -> Any:
        if form is Form.OBJECT:
            return document
        if form is Form.JSON:
            return json.dumps(document, default=repr, skipkeys=True)
        sound = json.dumps(document, default=repr, skipkeys=True, ensure_ascii=False)
        found = json.loads(sound.encode(errors="replace"))  # libyaml writes no lone surrogates
        text = yaml.dump(found, Dumper=yaml.CSafeDumper)
        return self.mangled(text) if form is Form.MANGLED else text

    def mangled(self, text: str) -> str:
        for _ in range(self.dice.number(1, 3)):
            at = self.dice.number(0, len(text))
            text = (
                text[:at]
                + self.dice.of(template_texts.BITS)
                + text[at + self.dice.of((0, 0, 1, 9)) :]
            )
        return text


PROPERTY_KINDS: Final = {
    Type.STRING: "text",
    Type.INTEGER: "number",
    Type.NUMBER: "number",
    Type.BOOLEAN: "bool",
    Type.MAP: "map",
    Type.LIST: "list",
}


@functools.cache
def _kinds() -> dict[str, dict[str, Schema]]:
    """The properties of every kind that is installed and has no stack below it."""
    return {
        name: dict(found.properties_schema)
        for name in kinds.installed()
        if name not in COMPOSED and (found := kinds.installed().find(name)) is not None
    }
