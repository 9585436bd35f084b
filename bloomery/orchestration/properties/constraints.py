"""The constraints of parameters and of properties.

A constraint is built once, from a template or from a kind of resource; an invalid body raises
InvalidSchemaError.  The constraint then checks values that have been converted to their type::

    rules = [Range(1, 512), Custom("ip_addr")]
    refusal(rules, 0)  # "0 is not between 1 and 512"

``ConstraintContext`` holds the service and the clock that custom constraints use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from bloomery import errors, patterns
from bloomery.orchestration.properties import custom
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.properties.scalars import quoted
from bloomery.orchestration.properties.schema import Constraint, Type

Number: TypeAlias = int | float


def refusal(
    rules: Iterable[Constraint], value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT
) -> str | None:
    """Return why ``value`` breaks a rule, or None: the rule's description, if it has one.

    An unknown custom constraint is named instead of described, because the value may be valid.
    """
    for rule in rules:
        why = rule.refusal(value, context)
        if why is not None:
            is_unknown = isinstance(rule, Custom) and context.find(rule.name) is None
            return why if is_unknown else rule.description or why
    return None


def broken(
    rules: Iterable[Constraint], value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT
) -> Constraint | None:
    """Return the first rule that ``value`` breaks."""
    return next((rule for rule in rules if rule.refusal(value, context) is not None), None)


def _fault(reason: str) -> errors.InvalidSchemaError:
    return errors.InvalidSchemaError(reason=reason)


@dataclass(frozen=True, slots=True)
class Length:
    """How many characters a text, elements a list or keys a map may have; inclusive."""

    key: ClassVar[str] = "length"
    fits: ClassVar[frozenset[Type]] = frozenset({Type.STRING, Type.LIST, Type.MAP})

    min: int | None = None
    max: int | None = None
    description: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for bound in _bounds(self):
            if not isinstance(bound, int):
                raise _fault(f"min and max of a length are whole numbers, not {bound}")

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        if not isinstance(value, str | Sequence | Mapping):
            return f"{quoted(value)} has no length"
        if _within(len(value), self.min, self.max):
            return None
        return f"its length is {len(value)}, which is not {_bounds_text(self.min, self.max)}"

    def document(self) -> dict[str, Any]:
        return _document(self, {"min": self.min, "max": self.max})


@dataclass(frozen=True, slots=True)
class Range:
    """The bounds of a number; inclusive."""

    key: ClassVar[str] = "range"
    fits: ClassVar[frozenset[Type]] = frozenset({Type.INTEGER, Type.NUMBER})

    min: Number | None = None
    max: Number | None = None
    description: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _bounds(self)

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        if isinstance(value, int | float) and _within(value, self.min, self.max):
            return None
        return f"{quoted(value)} is not {_bounds_text(self.min, self.max)}"

    def document(self) -> dict[str, Any]:
        return _document(self, {"min": self.min, "max": self.max})


@dataclass(frozen=True, slots=True)
class Modulo:
    """A number that is ``offset`` past a multiple of ``step``."""

    key: ClassVar[str] = "modulo"
    fits: ClassVar[frozenset[Type]] = Range.fits

    step: int
    offset: int
    description: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        step, offset = self.step, self.offset
        if int(step) != step or int(offset) != offset:
            raise _fault("step and offset of a modulo are whole numbers")
        if step == 0:
            raise _fault("step of a modulo cannot be 0")
        if abs(offset) >= abs(step):
            raise _fault(f"offset of a modulo must be smaller than its step {step}")
        if offset * step < 0:
            raise _fault("step and offset of a modulo have one sign")

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        if isinstance(value, int | float) and value % self.step == self.offset:
            return None
        return f"{quoted(value)} is not {self.offset} more than a multiple of {self.step}"

    def document(self) -> dict[str, Any]:
        return _document(self, {"step": self.step, "offset": self.offset})


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """A value, or each element of a list, from a list of allowed ones."""

    key: ClassVar[str] = "allowed_values"
    fits: ClassVar[frozenset[Type]] = frozenset(Type) - {Type.MAP, Type.ANY}

    values: Sequence[Any]
    description: str | None = field(default=None, kw_only=True)
    compared: Sequence[Any] | None = field(default=None, kw_only=True)  # converted to the type

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise _fault("allowed_values must be a list")

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        allowed = self.values if self.compared is None else self.compared
        elements = value if isinstance(value, list) else [value]
        try:
            is_allowed = frozenset(elements) <= frozenset(allowed)
        except TypeError:  # maps and lists, which have no hash
            is_allowed = all(element in allowed for element in elements)
        if is_allowed:
            return None
        return f"{quoted(value)} is not among the allowed values {quoted(list(self.values))}"

    def document(self) -> dict[str, Any]:
        return _document(self, list(self.values))


@dataclass(frozen=True, slots=True)
class AllowedPattern:
    """A text that a regular expression matches from end to end."""

    key: ClassVar[str] = "allowed_pattern"
    fits: ClassVar[frozenset[Type]] = frozenset({Type.STRING})

    pattern: str
    description: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise _fault("allowed_pattern must be text")

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        try:
            if isinstance(value, str) and patterns.fullmatch(self.pattern, value, context.limits):
                return None
        except errors.StackValidationFailed as exc:
            return str(exc.facts["reason"])
        return f"{quoted(value)} does not match the pattern {quoted(self.pattern)}"

    def document(self) -> dict[str, Any]:
        return _document(self, self.pattern)


@dataclass(frozen=True, slots=True)
class Custom:
    """A value that a plug-in accepts; the plug-in is looked up when a value is checked."""

    key: ClassVar[str] = "custom_constraint"
    fits: ClassVar[frozenset[Type]] = AllowedValues.fits

    name: str
    description: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise _fault("custom_constraint must be the name of one")

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        check = context.find(self.name)
        if check is None:
            near = errors.nearest(self.name, custom.names())
            return f"the custom constraint {quoted(self.name)} is not known here.{near}"
        why = check(value, context)
        return None if why is None else f"{quoted(value)} is refused by {self.name}: {why}"

    def document(self) -> dict[str, Any]:
        return _document(self, self.name)


def _document(rule: Constraint, body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        body = {key: value for key, value in body.items() if value is not None}
    document = {rule.key: body}
    return document | {"description": rule.description} if rule.description else document


def _bounds(rule: Length | Range) -> list[Number]:
    bounds = [bound for bound in (rule.min, rule.max) if bound is not None]
    if not bounds:
        raise _fault(f"a {rule.key} needs min, max or both")
    return bounds


def _within(value: Number, least: Number | None, most: Number | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _bounds_text(least: Number | None, most: Number | None) -> str:
    if most is None:
        return f"{least} or more"
    if least is None:
        return f"{most} or less"
    nothing = "; nothing is: the min of this constraint exceeds its max" if least > most else ""
    return f"between {least} and {most}{nothing}"
