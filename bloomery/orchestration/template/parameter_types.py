"""The five types of parameters: conversion of values, and their text.

``convert(kind, value, limits)`` raises StackValidationFailed for a value of the wrong type.  The
quirks are Heat's, because templates rely on them: a map becomes text as Python prints it, a list is
split without trimming, ``"5"`` is a JSON document.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.properties.scalars import expected, is_number, number_of, quoted
from bloomery.orchestration.properties.schema import Type
from bloomery.orchestration.template import parse


class ParameterType(enum.StrEnum):
    """The type of a parameter; the value is HOT's word."""

    STRING = "string"
    NUMBER = "number"
    LIST = "comma_delimited_list"
    JSON = "json"
    BOOLEAN = "boolean"


CFN_NAMES: Final = {
    ParameterType.STRING: "String",
    ParameterType.NUMBER: "Number",
    ParameterType.LIST: "CommaDelimitedList",
    ParameterType.JSON: "Json",
    ParameterType.BOOLEAN: "Boolean",
}  # of CloudFormation, and of the answer to ``POST validate``

PROPERTY_TYPES: Final = {
    ParameterType.STRING: Type.STRING,
    ParameterType.NUMBER: Type.NUMBER,
    ParameterType.LIST: Type.LIST,
    ParameterType.JSON: Type.MAP,
    ParameterType.BOOLEAN: Type.BOOLEAN,
}  # of the properties that set the parameters of a nested template

TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
FALSE: Final = frozenset({"0", "f", "false", "off", "n", "no"})


def convert(kind: ParameterType, value: Any, limits: Limits) -> Any:
    """Return ``value`` converted to the type.  Raises StackValidationFailed."""
    return _CONVERTERS[kind](value, limits)


def text(kind: ParameterType, value: Any) -> str:
    """Return a converted value as text, as ``parameters`` of a stack shows it."""
    if kind is ParameterType.LIST:
        return ",".join(value)
    if kind is ParameterType.JSON:
        return json.dumps(value)
    return str(value)


def _refuse(value: Any, kind: str) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=f"{quoted(value)} is not {kind}")


def _string(value: Any, limits: Limits) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except (ValueError, RecursionError) as exc:  # a number of thousands of digits
        raise _refuse(value, "text") from exc


def _number(value: Any, limits: Limits) -> int | float:
    if is_number(value, limits):
        return value  # type: ignore[no-any-return]
    try:
        return number_of(value if isinstance(value, str) else "", limits)
    except ValueError as exc:
        raise _refuse(value, expected("a number", value, limits)) from exc


def _boolean(value: Any, limits: Limits) -> bool:
    if isinstance(value, bool):
        return value
    text = str(int(value == 1)) if value in (0, 1) and isinstance(value, int) else value
    text = text.strip().lower() if isinstance(text, str) else ""
    if text not in TRUE | FALSE:
        raise _refuse(value, "a boolean: write true or false")
    return text in TRUE


def _list(value: Any, limits: Limits) -> list[str]:
    if isinstance(value, list):
        return [_string(item, limits) for item in value]
    if not isinstance(value, str):
        raise _refuse(value, "a list, nor text with commas")
    return value.split(",") if value else []


def _json(value: Any, limits: Limits) -> Any:
    if not isinstance(value, str) or not value:
        return value
    if len(value) > limits.template_bytes:
        raise limits.exceeded("template_bytes", "bytes", "a JSON document")
    try:
        document = json.loads(value)
    except (ValueError, RecursionError) as exc:
        why = "it is nested too deep" if isinstance(exc, RecursionError) else str(exc)
        raise _refuse(value, f"a JSON document: {why}") from exc
    try:
        parse.check({"value": document}, limits, "a JSON document")
    except errors.TemplateUnreadable as exc:
        raise _refuse(value, f"a JSON document that can be used: {exc.facts['reason']}") from exc
    return document


_Converter: TypeAlias = Callable[[Any, Limits], Any]
_CONVERTERS: Final[Mapping[ParameterType, _Converter]] = {
    ParameterType.STRING: _string,
    ParameterType.NUMBER: _number,
    ParameterType.BOOLEAN: _boolean,
    ParameterType.LIST: _list,
    ParameterType.JSON: _json,
}
