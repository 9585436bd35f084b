"""Resource types as the API shows them: a schema, and a template that wraps one resource.

``schema_document`` makes the answer to ``GET resource_types/{type}``, ``template`` that to
``.../template``, where each property becomes a parameter and each attribute an output.  Two things
differ from Heat: a property of type any becomes a JSON parameter, and so does a list of maps.  Heat
fails on the first and garbles the second.
"""

from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.presence import Rule
from bloomery.orchestration.properties.schema import Attribute, Schema, Status, Support, Type

NO_DESCRIPTION: Final = "No description available"


class Kind(Protocol):
    """The interface of a resource class, or of a nested template that implements a type."""

    @property
    def properties_schema(self) -> Mapping[str, Schema]: ...
    @property
    def presence_rules(self) -> Sequence[Rule]: ...
    @property
    def attributes_schema(self) -> Mapping[str, Attribute]: ...
    @property
    def support(self) -> Support: ...


SHOW: Final = Attribute("The whole of the real thing, as its service shows it.", Type.MAP)


def schema_document(
    type_name: str, kind: Kind, *, with_description: bool = False
) -> dict[str, Any]:
    """Return the schema of a kind; hidden properties and attributes are left out."""
    attributes = {}
    for name, attribute in _attributes(kind).items():
        attributes[name] = {"description": attribute.description} if attribute.description else {}
        if attribute.type is not Type.ANY:
            attributes[name]["type"] = attribute.type.lower()
    document = {
        "resource_type": type_name,
        "properties": {name: _property(entry) for name, entry in _offered(kind).items()},
        "attributes": attributes,
        "support_status": _support(kind.support),
    }
    return document | ({"description": described(kind)} if with_description else {})


def described(kind: Kind) -> str:
    """Return the description of the kind: the docstring of the class and its rules."""
    text = inspect.cleandoc(kind.__doc__) if kind.__doc__ else NO_DESCRIPTION
    return "\n\n".join([text, *(rule.sentence() for rule in kind.presence_rules)])


def _offered(kind: Kind) -> dict[str, Schema]:
    return {
        name: schema
        for name, schema in kind.properties_schema.items()
        if schema.implemented and schema.support.status is not Status.HIDDEN
    }


def _attributes(kind: Kind) -> dict[str, Attribute]:
    own = {
        name: attribute
        for name, attribute in kind.attributes_schema.items()
        if attribute.support.status is not Status.HIDDEN
    }
    return own | {"show": own.get("show", SHOW)}


def _property(schema: Schema) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": schema.type.lower(),
        "required": schema.required,
        "update_allowed": schema.update_allowed,
        "immutable": schema.immutable,
    }
    if schema.default is not None:
        document["default"] = schema.default
    if schema.description:
        document["description"] = schema.description
    if schema.constraints:
        document["constraints"] = [rule.document() for rule in schema.constraints]
    if schema.schema is not None:
        inner = {"*": schema.schema} if isinstance(schema.schema, Schema) else schema.schema
        document["schema"] = {name: _property(entry) for name, entry in inner.items()}
    return document


def _support(support: Support | None) -> dict[str, Any] | None:
    if support is None:
        return None
    return {
        "status": support.status.value,
        "message": support.message,
        "version": support.version,
        "previous_status": _support(support.previous),
    }


class Dialect(enum.StrEnum):
    """The values of ``template_type``."""

    HOT = "hot"
    CFN = "cfn"


class _Spelling(NamedTuple):
    """The spelling of a dialect; three fields name the functions for references."""

    key: Callable[[str], str]
    version: Mapping[str, str]
    parameter: str
    resource: str
    attribute: str
    types: Mapping[Type, str]


_PARAMETER_TYPES: Final = {
    Type.STRING: ("string", "String"),
    Type.INTEGER: ("number", "Number"),
    Type.NUMBER: ("number", "Number"),
    Type.BOOLEAN: ("boolean", "Boolean"),
    Type.LIST: ("comma_delimited_list", "CommaDelimitedList"),
    Type.MAP: ("json", "Json"),
    Type.ANY: ("json", "Json"),
}  # in HOT, in CFN
_SPELLINGS: Final = {
    Dialect.HOT: _Spelling(
        str, {"heat_template_version": "2018-08-31"}, "get_param", "get_resource", "get_attr",
        {kind: hot for kind, (hot, _) in _PARAMETER_TYPES.items()},
    ),
    Dialect.CFN: _Spelling(
        str.capitalize, {"HeatTemplateFormatVersion": "2012-12-12"}, "Ref", "Ref", "Fn::GetAtt",
        {kind: cfn for kind, (_, cfn) in _PARAMETER_TYPES.items()},
    ),
}  # fmt: skip


def template(type_name: str, kind: Kind, dialect: Dialect = Dialect.CFN) -> dict[str, Any]:
    """Return a template that wraps one resource of the kind, with all properties and attributes."""
    spelling, name, offered = _SPELLINGS[dialect], type_name.rpartition("::")[2], _offered(kind)
    key, value = spelling.key, spelling.key("value")
    properties = {entry: {spelling.parameter: entry} for entry in offered}
    outputs = {
        entry: {key("description"): each.description, value: {spelling.attribute: [name, entry]}}
        for entry, each in _attributes(kind).items()
    }
    return {
        **spelling.version,
        key("description"): f"One resource of type {type_name}",
        key("parameters"): {entry: _parameter(each, dialect) for entry, each in offered.items()},
        key("resources"): {name: {key("type"): type_name, key("properties"): properties}},
        key("outputs"): outputs | {"OS::stack_id": {value: {spelling.resource: name}}},
    }


def _parameter(schema: Schema, dialect: Dialect) -> dict[str, Any]:
    """Return the declaration; that of CloudFormation has the constraints that it knows."""
    spelling, kind, default = _SPELLINGS[dialect], schema.type, schema.default
    if kind is Type.LIST and isinstance(schema.schema, Schema):
        kind = Type.MAP if schema.schema.type in {Type.MAP, Type.LIST, Type.ANY} else Type.LIST
    document: dict[str, Any] = {spelling.key("type"): spelling.types[kind]}
    if default is not None:
        is_json = kind is Type.ANY and isinstance(default, str)
        document[spelling.key("default")] = json.dumps(default) if is_json else default
    if schema.description:
        document[spelling.key("description")] = schema.description
    rules = [rule for rule in schema.constraints if kind in rule.fits]
    if dialect is Dialect.HOT:
        return document | ({"constraints": [rule.document() for rule in rules]} if rules else {})
    for rule in rules:
        if isinstance(rule, constraints.Length | constraints.Range):
            unit = "Length" if isinstance(rule, constraints.Length) else "Value"
            bounds = {f"Min{unit}": rule.min, f"Max{unit}": rule.max}
            document |= {key: bound for key, bound in bounds.items() if bound is not None}
        elif isinstance(rule, constraints.AllowedValues):
            document["AllowedValues"] = list(rule.values)
        elif isinstance(rule, constraints.AllowedPattern):
            document["AllowedPattern"] = rule.pattern
    return document
