"""Declarations of parameters, in either dialect.

Both spellings become one ``Schema``::

    hot_schema("size", {"type": "number", "constraints": [{"range": {"min": 1}}]}, {"modulo"})
    cfn_schema("Size", {"Type": "Number", "MinValue": "1"})

An invalid declaration, or a default that breaks a constraint, raises InvalidSchemaError.  Values
are checked later by ``Schema.value``, which raises StackValidationFailed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from bloomery import errors, patterns
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.properties import constraints, schema
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.properties.scalars import number_of, quoted
from bloomery.orchestration.properties.schema import Constraint
from bloomery.orchestration.template.parameter_types import (
    CFN_NAMES,
    PROPERTY_TYPES,
    ParameterType,
    convert,
    text,
)

MASK: Final = "******"
DEFAULT_KEYS: Final = ("default", "Default")
HIDDEN: Final = "the value is hidden and not shown"
WITH_BODY: Final = ("length", "range", "modulo", "allowed_pattern", "custom_constraint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The declaration of a parameter.  ``default`` is as written; None means no default."""

    name: str
    kind: ParameterType
    label: Any = None
    description: Any = ""
    default: Any = None
    hidden: bool = False
    immutable: bool = False
    constraints: tuple[Constraint, ...] = ()
    tags: tuple[Any, ...] = ()

    def value(self, raw: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> Any:
        """Return ``raw`` converted and checked; StackValidationFailed if it is invalid."""
        try:
            value = convert(self.kind, raw, context.limits)
        except errors.StackValidationFailed as exc:
            raise self._refused(self.unfit(str(exc.facts["reason"]))) from exc
        if (why := constraints.refusal(self.constraints, value, context)) is not None:
            raise self._refused(self.broken(value, why, context))
        return value

    def unfit(self, why: str) -> str:
        """Return why a value is not of the type; for a hidden parameter without the value."""
        return f"it is no {self.kind}; {HIDDEN}" if self.hidden else why

    def broken(self, value: Any, why: str, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str:
        """Return why a value breaks a constraint; for a hidden parameter only the constraint."""
        if not self.hidden:
            return why
        rule = constraints.broken(self.constraints, value, context)
        assert rule is not None
        body = f": {json.dumps(rule.document()[rule.key])}" if rule.key in WITH_BODY else ""
        described = f" ({rule.description})" if rule.description else ""
        return f"it breaks the constraint {rule.key}{body}{described}; {HIDDEN}"

    def lenient(self, raw: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> Any:
        """Return ``raw`` converted, without constraints; None if it is not of the type."""
        try:
            return convert(self.kind, raw, context.limits)
        except errors.StackValidationFailed:
            return None

    def text(self, value: Any) -> str:
        """Return a value of this parameter as text, as a stack shows it."""
        if self.hidden:
            return MASK
        return (
            "" if value is None and self.kind is not ParameterType.JSON else text(self.kind, value)
        )

    def as_property(self) -> schema.Schema:
        """Return the schema of the property that sets this parameter of a nested template."""
        return schema.Schema(
            PROPERTY_TYPES[self.kind],
            str(self.description or ""),
            required=self.default is None,
            update_allowed=True,
            constraints=self.constraints,
            takes_text=True,
        )

    def _refused(self, why: str) -> errors.StackValidationFailed:
        return errors.StackValidationFailed(reason=f"Parameter {self.name!r} is invalid: {why}")


def document(declared: Schema, raw: Any = None) -> dict[str, Any]:
    """Return one entry of ``Parameters`` as ``POST validate`` answers; ``raw``: the given value."""
    facts = {
        "Type": CFN_NAMES[declared.kind],
        "Description": declared.description or "",
        "NoEcho": "true" if declared.hidden else "false",
        "Label": declared.label or declared.name,
        "Default": declared.default,
        "Value": raw,
        "Tags": list(declared.tags) or None,
    }
    entry = {key: value for key, value in facts.items() if value is not None}
    for rule in declared.constraints:
        body, keys = rule.document()[rule.key], _VALIDATED_KEYS[rule.key]
        if isinstance(keys, str):
            entry[keys] = body
        else:
            entry |= {keys[key]: value for key, value in body.items()}
    described = dict.fromkeys(rule.description for rule in declared.constraints if rule.description)
    return entry | ({"ConstraintDescription": " ".join(described)} if described else {})


_VALIDATED_KEYS: Final[Mapping[str, str | Mapping[str, str]]] = {
    "length": {"min": "MinLength", "max": "MaxLength"},
    "range": {"min": "MinValue", "max": "MaxValue"},
    "modulo": {"step": "Step", "offset": "Offset"},
    "allowed_values": "AllowedValues",
    "allowed_pattern": "AllowedPattern",
    "custom_constraint": "CustomConstraint",
}


# -------------------------------------------------------------------------------------- HOT


OPTIONAL_KEYS: Final = frozenset({"tags", "modulo"})  # not in every version
_HOT_KEYS: Final = frozenset(
    {"type", "label", "description", "default", "hidden", "constraints", "immutable"}
)
HOT_PSEUDO: Final = frozenset({"OS::stack_name", "OS::stack_id", "OS::project_id", "OS::region"})
_HOT_KINDS: Final = {kind.value: kind for kind in ParameterType}


def hot_schema(name: str, body: Any, offered: Collection[str] = OPTIONAL_KEYS) -> Schema:
    """Read one entry of ``parameters``; ``offered``: which of OPTIONAL_KEYS the version has."""
    _check_name(name, HOT_PSEUDO)
    keys = _HOT_KEYS | ({"tags"} & set(offered))
    body = _checked_map(body, keys, f"parameter {name!r}")
    kind = _kind(body, "type", _HOT_KINDS, name)
    tags = body.get("tags", [])
    if not isinstance(tags, list):
        raise _fault(f"tags of parameter {name!r} must be a list").under("tags")
    return _finished(
        Schema(
            name=name,
            kind=kind,
            label=body.get("label"),
            description=body.get("description"),
            default=body.get("default"),
            hidden=bool(body.get("hidden")),
            immutable=bool(body.get("immutable")),
            constraints=tuple(_hot_rules(body.get("constraints"), kind, set(offered))),
            tags=tuple(tags),
        ),
        "default",
    )


def unused_default(read: Callable[[str, Any], Schema], name: str, body: Any) -> Schema:
    """Read a declaration whose default is not checked, because another value is given."""
    keys = [key for key in DEFAULT_KEYS if isinstance(body, Mapping) and key in body]
    if not keys:
        return read(name, body)
    rest = {key: value for key, value in body.items() if key not in keys}
    return dataclasses.replace(read(name, rest), default=body[keys[0]])


def _hot_rules(rules: Any, kind: ParameterType, offered: set[str]) -> Iterator[Constraint]:
    if rules is None:
        return
    if not isinstance(rules, list):
        raise _fault("constraints must be a list of maps with one constraint each")
    keys = {key for key in _RULES if key not in OPTIONAL_KEYS or key in offered}
    for index, rule in enumerate(rules):
        path: list[str | int] = ["constraints", index]
        try:
            _checked_map(rule, keys | {"description"}, "a constraint")
            named = [key for key in rule if key != "description"]
            if len(named) != 1:
                listed = ", ".join(sorted(keys))
                raise _fault(f"a constraint is one of {listed}, here are {len(named)}")
            path += named
            yield _rule(named[0], rule[named[0]], kind, rule.get("description"))
        except errors.InvalidSchemaError as exc:
            raise exc.under(*path) from exc


# -------------------------------------------------------------------------- CloudFormation


class _Spelling(NamedTuple):
    key: str
    keys: Mapping[str, str]  # from the declaration's keys to the rule's; "": the whole body


_CFN_RULES: Final = (
    _Spelling("range", {"MinValue": "min", "MaxValue": "max"}),
    _Spelling("length", {"MinLength": "min", "MaxLength": "max"}),
    _Spelling("allowed_values", {"AllowedValues": ""}),
    _Spelling("allowed_pattern", {"AllowedPattern": ""}),
)
_CFN_KEYS: Final = {
    "Type",
    "Default",
    "NoEcho",
    "Description",
    "ConstraintDescription",
    "Label",
} | {key for spelling in _CFN_RULES for key in spelling.keys}
CFN_PSEUDO: Final = frozenset({"AWS::StackName", "AWS::StackId", "AWS::Region"})
_CFN_KINDS: Final = {name: kind for kind, name in CFN_NAMES.items()}


def cfn_schema(name: str, body: Any) -> Schema:
    """Read one entry of CloudFormation's ``Parameters``."""
    _check_name(name, CFN_PSEUDO)
    body = _checked_map(body, _CFN_KEYS, f"parameter {name!r}")
    kind = _kind(body, "Type", _CFN_KINDS, name)
    rules = []
    for spelling in _CFN_RULES:
        for key in sorted(spelling.keys.keys() & body.keys())[:1]:
            bounds = {ours: body.get(theirs) for theirs, ours in spelling.keys.items()}
            rule = body[key] if spelling.keys[key] == "" else bounds
            try:
                rules.append(_rule(spelling.key, rule, kind, body.get("ConstraintDescription")))
            except errors.InvalidSchemaError as exc:
                raise exc.under(key) from exc
    return _finished(
        Schema(
            name=name,
            kind=kind,
            label=body.get("Label"),
            description=body.get("Description"),
            default=body.get("Default"),
            hidden=str(body.get("NoEcho")).lower() == "true",
            constraints=tuple(rules),
        ),
        "Default",
    )


# ------------------------------------------------------------------------------------ both


def _check_name(name: Any, pseudo: Collection[str]) -> None:
    if not isinstance(name, str):
        raise _fault("the name of a parameter must be text: quote it")
    if name in pseudo:
        raise _fault(f"every template has the parameter {name} already: choose another name")


def _finished(declared: Schema, key: str) -> Schema:
    """Return ``declared`` if its default keeps to the constraints, else raise InvalidSchemaError.

    Custom constraints may call a service, and check values only.  As in Heat, a default of the
    wrong type fails here for a list or a parameter with constraints, and on use for others.  Text
    that is no JSON always fails on use.
    """
    rules = [rule for rule in declared.constraints if not isinstance(rule, constraints.Custom)]
    if declared.default is None or not (rules or declared.kind is ParameterType.LIST):
        return declared
    try:
        value = convert(declared.kind, declared.default, LIMITS)
        why = constraints.refusal(rules, value)
        why = None if why is None else declared.broken(value, why)
    except errors.StackValidationFailed as exc:
        why = declared.unfit(str(exc.facts["reason"]))
        if declared.kind is ParameterType.JSON:
            return declared
    if why is None:
        return declared
    raise _fault(f"the default of parameter {declared.name!r} is invalid: {why}").under(key)


def _kind(
    body: Mapping[str, Any], key: str, kinds: Mapping[str, ParameterType], name: str
) -> ParameterType:
    if key not in body:
        raise _fault(f"parameter {name!r} needs a {key}: one of {', '.join(kinds)}")
    written = body[key]
    if isinstance(written, str) and written in kinds:
        return kinds[written]
    raise _fault(
        f"{quoted(written)} is no type of a parameter: write one of {', '.join(kinds)}"
    ).under(key)


def _rule(key: str, body: Any, kind: ParameterType, description: Any) -> Constraint:
    make, of_type = _RULES[key]
    if PROPERTY_TYPES[kind] not in of_type.fits:
        raise _fault(f"a {kind} parameter cannot have a constraint {key}")
    return make(body, kind, None if description is None else str(description))


def _length(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    return constraints.Length(*_numbers(body, ("min", "max")), description=description)


def _range(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    return constraints.Range(*_numbers(body, ("min", "max")), description=description)


def _modulo(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    step, offset = _numbers(body, ("step", "offset"))
    if step is None or offset is None:
        raise _fault("a modulo needs both step and offset")
    return constraints.Modulo(step, offset, description=description)


def _allowed_values(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    if not isinstance(body, list):
        raise _fault("allowed_values must be a list")
    compared = []  # values converted to the type: ``"1"`` allows the number 1, ``"x"`` none
    for value in body:
        with contextlib.suppress(errors.StackValidationFailed):
            one_kind = ParameterType.STRING if kind is ParameterType.LIST else kind
            compared.append(convert(one_kind, value, LIMITS))
    return constraints.AllowedValues(body, description=description, compared=compared)


def _allowed_pattern(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    rule = constraints.AllowedPattern(body, description=description)
    if (why := patterns.refusal(rule.pattern, LIMITS)) is not None:
        raise _fault(why)
    return rule


def _custom(body: Any, kind: ParameterType, description: str | None) -> Constraint:
    return constraints.Custom(body, description=description)


def _numbers(body: Any, keys: tuple[str, str]) -> list[Any]:
    body, numbers = _checked_map(body, keys, "this constraint"), []
    for key in keys:
        number = body.get(key)
        if number is not None and not isinstance(number, int | float):
            try:
                number = number_of(number if isinstance(number, str) else "", LIMITS)
            except ValueError as exc:
                raise _fault(f"{quoted(number)} is not a number").under(key) from exc
        numbers.append(number)
    return numbers


def _checked_map(body: Any, keys: Collection[str], what: str) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise _fault(f"{what} must be a map of {', '.join(sorted(keys))}")
    for key in body:
        if key not in keys:
            quoted_key = quoted(key)
            raise _fault(f"{quoted_key} is not a key of {what}.{errors.nearest(key, sorted(keys))}")
    return body


def _fault(reason: str) -> errors.InvalidSchemaError:
    return errors.InvalidSchemaError(reason=reason)


_Make: TypeAlias = Callable[[Any, ParameterType, str | None], Constraint]
_RULES: Final[Mapping[str, tuple[_Make, type[Constraint]]]] = {
    "length": (_length, constraints.Length),
    "range": (_range, constraints.Range),
    "modulo": (_modulo, constraints.Modulo),
    "allowed_values": (_allowed_values, constraints.AllowedValues),
    "allowed_pattern": (_allowed_pattern, constraints.AllowedPattern),
    "custom_constraint": (_custom, constraints.Custom),
}
