"""One resource's properties: read, translated, checked against a schema, converted.

    properties = Properties(kind.properties_schema, definition.properties, reader)
    try:
        properties.validate()  # before creation: values that are not ready are not checked
        properties.resolved()  # {"length": 32, "salt": None, ...}: every property of the schema
    except errors.StackValidationFailed as exc:
        raise exc.under("resources", name, "properties", error="Property error") from exc

Paths of errors begin below ``properties``; a missing or unknown key is an error of its container.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from bloomery import errors
from bloomery.orchestration.properties import constraints, translation
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.properties.presence import NOTHING, Path, Pending
from bloomery.orchestration.properties.scalars import (
    expected,
    integer_of,
    is_number,
    number_of,
    quoted,
)
from bloomery.orchestration.properties.schema import Schema, Schemas, Type


class Reader(Protocol):
    """The interface of readers of trees; see ``TreeReader`` in template/functions/base.py."""

    def resolve(self, tree: Any) -> Any:
        """Return the value of ``tree``."""

    def settled(self, tree: Any) -> bool:
        """Return whether all resources that ``tree`` refers to are ready: its value is final."""


class Literal:
    """Reads trees without function calls: stored values, and those of tests."""

    def resolve(self, tree: Any) -> Any:
        return tree

    def settled(self, tree: Any) -> bool:
        return True


LITERAL: Final = Literal()
_SHOWN: Final = 100  # characters of a name in a message
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, slots=True)
class Conversion:
    """How strictly a value is converted.

    ``check``: apply constraints and refuse unknown keys.  ``pending``: null is no value yet.
    """

    check: bool
    context: ConstraintContext
    pending: bool = False


class Properties:
    """The properties of one resource, from a schema, a tree and its reader."""

    __slots__ = ("_context", "_description", "_reader", "_rules", "_schemas", "_tree")

    def __init__(
        self,
        schemas: Schemas,
        tree: Any,
        reader: Reader = LITERAL,
        *,
        rules: Sequence[translation.Rule] = (),
        context: ConstraintContext = CONSTRAINT_CONTEXT,
        description: str = "",
    ) -> None:
        """``description``: the resource's, as the default of a property of this name."""
        self._schemas = schemas
        self._tree = tree
        self._reader = reader
        self._rules = rules
        self._context = context
        self._description = description

    def validate(self, *, with_values: bool = True) -> None:
        """Refuse unknown names and, ``with_values``, invalid values as far as they are known."""
        if with_values:
            self.resolved(check=True)
        elif isinstance(tree := self._tree, Mapping):
            self._check_names(tree)

    def resolved(self, *, check: bool = False) -> dict[str, Any]:
        """Return every property of the schema, converted; ``check`` also applies constraints."""
        raw = self._tree
        if not isinstance(raw, Mapping) and raw is not None:
            raw = self._reader.resolve(raw)
        if raw is None:
            raw = {}
        if not isinstance(raw, Mapping):
            raise _fault(f"properties must be a map, and {quoted(raw)} is none")
        if check:
            self._check_names(raw)
        strict = Conversion(check, self._context)
        lax = Conversion(False, self._context, pending=True)
        paths = self.pending().written if check else ()
        unsettled = {path[0] for path in paths if path}
        if () in paths:
            strict = lax
        values: dict[str, Any] = {}
        for name, tree in raw.items():
            if type(tree) in _SCALARS:
                values[name] = tree
                continue
            try:
                values[name] = self._reader.resolve(tree)
            except errors.Misplaced as exc:
                raise exc.under(name) from exc
        if self._rules:
            values = translation.translated(self._rules, values)
        properties = {}
        for name, schema in self._schemas.items():
            if name == "description" and self._description and name not in values:
                properties[name] = self._description
            else:
                conversion = lax if name in unsettled else strict
                properties[name] = _member(name, schema, values, conversion)
        return properties

    def pending(self) -> Pending:
        """Return the paths of calls whose values are not final."""
        tree, settled = self._tree, self._reader.settled
        if not isinstance(tree, Mapping):
            return NOTHING if tree is None or settled(tree) else Pending(frozenset({()}))
        names = {
            name for name, each in tree.items() if type(each) not in _SCALARS and not settled(each)
        }
        if not names:
            return NOTHING
        calls = {path for name in names for path in _calls(tree[name], settled, (name,))}
        moved = translation.spread(self._rules, names) - names
        return Pending(frozenset({*calls, *((name,) for name in moved)}))

    def _check_names(self, raw: Iterable[str]) -> None:
        _refuse_unknown(raw, self._schemas)
        for name in raw:
            if not self._schemas[name].implemented:
                raise _fault(f"Property {name} is not implemented yet: leave it out")


def _calls(tree: Any, settled: Callable[[Any], bool], path: Path) -> Iterator[Path]:
    """Yield the paths of the calls below ``path`` whose values are not final."""
    if isinstance(tree, Mapping | list):
        for key, inner in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
            yield from _calls(inner, settled, (*path, key))
    elif type(tree) not in _SCALARS and not settled(tree):
        yield path


def _member(name: str, schema: Schema, values: Mapping[str, Any], conversion: Conversion) -> Any:
    """Return one entry of a map with a schema, or null if it is absent and has no default."""
    if name not in values and schema.default is None:
        if schema.required:
            raise _fault(f"Property {name} not assigned: it is required")
        return None
    try:
        return converted(schema, values.get(name), conversion)
    except errors.StackValidationFailed as exc:
        raise exc.under(name) from exc


def _refuse_unknown(raw: Iterable[str], schemas: Schemas) -> None:
    for name in raw:
        if name not in schemas:
            short = str(name)[:_SHOWN]
            raise _fault(f"Unknown Property {short}.{errors.nearest(name, schemas)}")


def converted(schema: Schema, raw: Any, conversion: Conversion) -> Any:
    """Convert ``raw`` to the schema's type.  Null becomes the default or the empty value."""
    if raw is None:
        if conversion.pending and isinstance(schema.schema, Mapping) and not schema.default:
            return dict.fromkeys(schema.schema)
        raw = schema.default if schema.default is not None else _EMPTY[schema.type]
    value = _CONVERTERS[schema.type](schema, raw, conversion)
    if conversion.check and schema.constraints and not (schema.takes_text and isinstance(raw, str)):
        why = constraints.refusal(schema.constraints, value, conversion.context)
        if why is not None:
            raise _fault(why)
    return value


def _fault(reason: str) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=reason)


def _string(schema: Schema, raw: Any, conversion: Conversion) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int) and is_number(raw, conversion.context.limits):
        return str(raw)
    raise _fault(f"{quoted(raw)} is not text: quote it")


def _integer(schema: Schema, raw: Any, conversion: Conversion) -> int:
    limits = conversion.context.limits
    if is_number(raw, limits):
        return int(raw)
    try:
        return integer_of(raw if isinstance(raw, str) else "", limits)
    except ValueError as exc:
        raise _fault(f"{quoted(raw)} is not {expected('a whole number', raw, limits)}") from exc


def _number(schema: Schema, raw: Any, conversion: Conversion) -> int | float:
    limits = conversion.context.limits
    if is_number(raw, limits):
        return raw  # type: ignore[no-any-return]
    try:
        return number_of(raw if isinstance(raw, str) else "", limits)
    except ValueError as exc:
        raise _fault(f"{quoted(raw)} is not {expected('a number', raw, limits)}") from exc


def _boolean(schema: Schema, raw: Any, conversion: Conversion) -> bool:
    if isinstance(raw, bool):
        return raw
    text = raw.lower() if isinstance(raw, str) else ""
    if text not in {"true", "false"}:
        raise _fault(f"{quoted(raw)} is not a boolean: write true or false")
    return text == "true"


def _map(schema: Schema, raw: Any, conversion: Conversion) -> Any:
    if schema.takes_text and isinstance(raw, str | list):
        return raw  # the parameter behind it reads JSON, and takes any document
    if not isinstance(raw, Mapping):
        raise _fault(f"{quoted(raw)} is not a map")
    members = schema.schema
    if not isinstance(members, Mapping):
        return dict(raw)
    if conversion.check:
        _refuse_unknown(raw, members)
    return {name: _member(name, inner, raw, conversion) for name, inner in members.items()}


def _list(schema: Schema, raw: Any, conversion: Conversion) -> list[Any]:
    if schema.takes_text and isinstance(raw, str):
        return raw.split(",") if raw else []
    if not isinstance(raw, list | tuple):
        raise _fault(f"{quoted(raw)} is not a list")
    element = schema.schema
    if not isinstance(element, Schema):
        return list(raw)
    items = []
    for index, item in enumerate(raw):
        try:
            items.append(converted(element, item, conversion))
        except errors.StackValidationFailed as exc:
            raise exc.under(index) from exc
    return items


def _any(schema: Schema, raw: Any, conversion: Conversion) -> Any:
    return raw


_Converter: TypeAlias = Callable[[Schema, Any, Conversion], Any]
_CONVERTERS: Final[Mapping[Type, _Converter]] = {
    Type.STRING: _string,
    Type.INTEGER: _integer,
    Type.NUMBER: _number,
    Type.BOOLEAN: _boolean,
    Type.MAP: _map,
    Type.LIST: _list,
    Type.ANY: _any,
}
_EMPTY: Final[Mapping[Type, Any]] = {
    Type.STRING: "",
    Type.INTEGER: 0,
    Type.NUMBER: 0,
    Type.BOOLEAN: False,
    Type.MAP: {},
    Type.LIST: [],
    Type.ANY: None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The changes of an update; ``changed`` has the new values, null for a removed one."""

    changed: Mapping[str, Any]
    immutable: tuple[str, ...] = ()  # changed, and the kind refuses it
    replacing: tuple[str, ...] = ()  # changed, and needs a replacement

    def check(self) -> None:
        """Raise NotSupported if an immutable property changed."""
        if self.immutable:
            names = ", ".join(self.immutable)
            raise errors.NotSupported(feature=f"Update to properties {names}, which are immutable,")


def differences(
    schemas: Schemas, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Differences:
    """Compare two sets of resolved properties."""
    changed = {}
    for name in schemas:
        old, new = before.get(name), after.get(name)
        if old != new or isinstance(old, bool) != isinstance(new, bool):  # true and 1 differ
            changed[name] = new
    return Differences(
        changed=changed,
        immutable=tuple(name for name in changed if schemas[name].immutable),
        replacing=tuple(
            name
            for name in changed
            if not schemas[name].update_allowed and not schemas[name].immutable
        ),
    )
