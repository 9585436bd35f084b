"""yaql: a query over data, in the language of the library of that name.

    {yaql: {expression: $.data.ports.where($.up).select($.name), data: {ports: ...}}}

How it is kept from harm stands in ``evaluator``.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template.functions import base, evaluator, shapes
from bloomery.orchestration.template.functions.calls import Call
from bloomery.orchestration.template.view import StackView

_KEYS: Final = ("expression", "data")


class Yaql(Call):
    __slots__ = ()
    says = "The value of a yaql expression over some data."

    def check(self) -> None:
        if not isinstance(self.args, dict) or "expression" not in self.args:
            raise self.fault(f"{self.name} takes a map of expression and data")
        if odd := [key for key in self.args if key not in _KEYS]:
            raise self.fault(
                f"{self.name} knows expression and data, not {shapes.called(odd[0])}."
                f"{errors.nearest(odd[0], _KEYS)}"
            )
        expression = self.args["expression"]
        if not isinstance(expression, base.Function):
            evaluator.parsed(self._text(expression))

    def result(self, args: Any, view: StackView) -> Any:
        expression = self._text(args["expression"])
        try:
            return evaluator.evaluated(expression, args.get("data", {}), view.limits)
        except errors.StackValidationFailed as exc:
            reason = f"{exc.facts['reason']} (in {shapes.shortened(expression)!r})"
            raise self.fault(reason) from exc

    def _text(self, expression: Any) -> str:
        if not isinstance(expression, str):
            raise self.fault(
                f"the expression of {self.name} is text, not {shapes.called(expression)}"
            )
        return expression
