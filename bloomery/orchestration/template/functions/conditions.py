"""``if``, and the condition functions: equals, not, and, or.

A condition is true, false, the name of a condition, or a call that gives one of these; null counts
as true [quirk].  ``if`` is allowed anywhere, the others in conditions alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.functions.parser import Macro, Parser
from bloomery.orchestration.template.view import StackView


def decided(value: Any, view: StackView) -> bool:
    """Return the boolean value of a resolved operand of a condition."""
    if value is None:
        return True
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return view.condition(value)
    raise errors.StackValidationFailed(
        reason=f'Invalid condition "{shapes.shortened(str(value))}": '
        "it is true, false, or the name of a condition"
    )


class If(Macro):
    """Expands to the branch that is taken; the other one is never parsed."""

    summary = "One of two values, as a condition decides."
    lengths: ClassVar[tuple[int, ...]] = (3,)
    form: ClassVar[str] = "a condition, the value if it is true and the value if it is false"

    @classmethod
    def expand(cls, name: str, args: Any, parser: Parser) -> Any:
        if not isinstance(args, list) or len(args) not in cls.lengths:
            raise errors.StackValidationFailed(reason=f"{name} takes a list: {cls.form}")
        deciding = Parser(
            functions=parser.conditions, conditions=parser.conditions, view=parser.view
        )
        index = 0
        try:
            condition = base.resolve(deciding.parse(args[0]), parser.view)
            index = 1 if decided(condition, parser.view) else 2
            return base.ABSENT if index == len(args) else parser.parse(args[index])
        except errors.Misplaced as exc:
            raise exc.under(index) from exc


class IfWithoutElse(If):
    """From 2021-04-16: a false condition without a third argument drops its key or index."""

    summary = "One of two values, or a value or nothing at all, as a condition decides."
    lengths = (2, 3)
    form = f"{If.form}, which may be left out"


class Equals(Call):
    __slots__ = ()
    summary = "Whether two values are equal; nothing is converted."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list of two values")

    def result(self, args: Any, view: StackView) -> Any:
        return bool(args[0] == args[1])


class Not(Call):
    __slots__ = ()
    summary = "Whether a condition is false."

    def check(self) -> None:
        if self.args is None or self.args == "":
            raise self.fault(f"{self.name} takes a condition")

    def result(self, args: Any, view: StackView) -> Any:
        return not decided(args, view)


class _Several(Call):
    __slots__ = ()

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) < 2:
            raise self.fault(f"{self.name} takes a list of two conditions or more")

    def operand(self, index: int, view: StackView) -> bool:
        try:
            return decided(base.resolve(self.args[index], view), view)
        except errors.Misplaced as exc:
            raise exc.under(index) from exc


class And(_Several):
    __slots__ = ()
    summary = "Whether all conditions are true."

    def resolve(self, view: StackView) -> Any:
        return all(self.operand(index, view) for index in range(len(self.args)))


class Or(_Several):
    __slots__ = ()
    summary = "Whether one condition or more is true."

    def resolve(self, view: StackView) -> Any:
        return any(self.operand(index, view) for index in range(len(self.args)))
