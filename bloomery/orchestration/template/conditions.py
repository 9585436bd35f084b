"""Conditions of a template: named ones, evaluated once each, and those of resources and outputs.

A condition is a boolean or a call of a condition function; a resource or an output may also name
one.  An error in nested conditions is reported at the innermost condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template import sections
from bloomery.orchestration.template.dialect import Section, Template
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function
from bloomery.orchestration.template.functions.parser import Parser
from bloomery.orchestration.template.view import StackView

CONDITION_ERROR: Final = "Condition validation error"


class Conditions:
    """The conditions of one stack; ``view`` knows its parameters and no resources."""

    __slots__ = ("_bodies", "_decided", "_deciding", "_fault", "_parser", "_view", "_word")

    def __init__(self, template: Template, view: StackView) -> None:
        functions = template.features.offered.conditions
        self._parser = Parser(functions=functions, conditions=functions, view=view)
        self._view = view
        self._word = template.features.sections.get(Section.CONDITIONS, "")
        self._bodies: Mapping[str, Any] = template.section(Section.CONDITIONS)
        self._fault: errors.Misplaced | None = None
        self._decided: dict[str, bool] = {}
        self._deciding: list[str] = []

    def value(self, name: Any) -> bool:
        """Return the value of a named condition.  Raise StackValidationFailed if it has none."""
        if isinstance(name, str) and name in self._decided:
            return self._decided[name]
        if not isinstance(name, str) or name not in self._bodies:
            near = errors.nearest(name, self._bodies)
            raise sections.fault(f'Invalid condition "{name}".{near}')
        if not self._deciding:
            self._fault = None
        try:
            self._decided[name] = self._decide(name, self._bodies[name])
        except errors.Misplaced as exc:
            if self._fault is None:
                self._fault = exc.under(self._word, name)
            raise self._fault from exc
        return self._decided[name]

    def _decide(self, name: str, body: Any) -> bool:
        """Return the value of a named condition's body: a boolean or a call, never a bare name."""
        if name in self._deciding:
            circle = " -> ".join([*self._deciding[self._deciding.index(name) :], name])
            reason = f'Circular definition for condition "{name}": {circle}'
            raise sections.fault(reason, error=CONDITION_ERROR)
        most = self._view.limits.condition_depth
        if len(self._deciding) >= most:
            reason = f"more than {most} conditions ask one for the other (condition_depth)"
            raise sections.fault(reason, error=CONDITION_ERROR)
        if isinstance(body, bool):
            return body
        self._deciding.append(name)
        try:
            tree = self._parser.parse(body)
            value = base.resolve(tree, self._view) if isinstance(tree, Function) else None
        except RecursionError:
            raise sections.fault("stands too deep in others", error=CONDITION_ERROR) from None
        finally:
            self._deciding.pop()
        if isinstance(value, bool):
            return value
        way_out = (
            f"write {{not: ...}} or {{and: [...]}} around the name {body!r}"
            if isinstance(body, str)
            else "write true, false or a condition function such as equals"
        )
        raise sections.fault(
            f'The definition of condition "{name}" is invalid: {way_out}', error=CONDITION_ERROR
        )

    def holds(self, condition: Any) -> bool:
        """Return the value of the key ``condition`` of a resource or an output."""
        if isinstance(condition, bool):
            return condition
        tree = self._parser.parse(condition)
        value = base.resolve(tree, self._view) if isinstance(tree, Function) else tree
        return value if isinstance(value, bool) else self.value(value)

    def check(self, *, lenient: bool) -> None:
        """Refuse invalid conditions, also those that are not used.

        ``lenient``: parameters may have no values, so that conditions are parsed but not evaluated.
        """
        for name, body in self._bodies.items():
            if not lenient:
                self.value(name)
                continue
            try:
                self._parser.parse(body)
            except errors.Misplaced as exc:
                raise exc.under(self._word, name) from exc
