"""yaql: a query over data, in the language of the library of that name.

    {yaql: {expression: $.data.ports.where($.up).select($.name), data: {ports: ...}}}

Expressions come from users and are not trusted.  The library has two limits: elements taken from an
iterator, and the size of one result.  They bound neither the time of an expression nor growth by
sharing (``let(a => [$a, $a])``, forty times over).  So every call of a function, an operator or a
lambda goes through a ``Meter`` (yaql_meter.py).  It counts the call, ends the expression at its
time limit, measures each container as if written out, watches each iterator, and keeps numbers
short.  Functions that could take too long in a single call are replaced (yaql_library.py).

The language has all of the library's functions for text, numbers, lists, maps, sets, queries,
regular expressions, branches and contexts.  It lacks access to attributes of Python objects
(the lexer refuses names with two underscores, and no function gives access), dates, times and
random numbers (a template must give the same result each time), and ``call``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parse
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.functions.yaql_meter import Meter
from bloomery.orchestration.template.view import StackView

_LIMIT_NAMES: Final = {  # names in Limits, by the error of the library
    "CollectionTooLargeException": " (yaql_elements)",
    "MemoryQuotaExceededException": " (yaql_bytes)",
}
_KEYS: Final = ("expression", "data")


class Yaql(Call):
    __slots__ = ()
    summary = "The value of a yaql expression over some data."

    def check(self) -> None:
        if not isinstance(self.args, dict) or "expression" not in self.args:
            raise self.fault(f"{self.name} takes a map of expression and data")
        if odd := [key for key in self.args if key not in _KEYS]:
            raise self.fault(
                f"{self.name} knows expression and data, not {shapes.described(odd[0])}."
                f"{errors.nearest(odd[0], _KEYS)}"
            )
        expression = self.args["expression"]
        if not isinstance(expression, base.Function):
            parsed(self._text(expression))

    def result(self, args: Any, view: StackView) -> Any:
        expression = self._text(args["expression"])
        try:
            return evaluated(expression, args.get("data", {}), view.limits)
        except errors.StackValidationFailed as exc:
            reason = f"{exc.facts['reason']} (in {shapes.shortened(expression)!r})"
            raise self.fault(reason) from exc

    def _text(self, expression: Any) -> str:
        if not isinstance(expression, str):
            raise self.fault(
                f"the expression of {self.name} is text, not {shapes.described(expression)}"
            )
        return expression


def parsed(expression: str, limits: Limits = LIMITS) -> Any:
    """Parse ``expression``.  Raises StackValidationFailed if it is invalid."""
    if len(expression) > limits.yaql_chars:
        raise errors.StackValidationFailed(
            reason=f"a yaql expression has at most {limits.yaql_chars} characters (yaql_chars)"
        )
    return _parsed(expression)


@functools.lru_cache(maxsize=256)
def _parsed(expression: str) -> Any:
    from yaql.language import exceptions

    engine = _engine()
    try:
        return engine.parser.parse(expression, lexer=engine.lexer.clone())
    except (exceptions.YaqlException, ValueError) as exc:
        raise errors.StackValidationFailed(
            reason=f"Bad expression {shapes.shortened(expression)!r}: {_printable(str(exc))}"
        ) from exc


@functools.cache
def _engine() -> Any:
    import yaql

    return yaql.YaqlFactory().create()


def evaluated(expression: str, data: Any, limits: Limits) -> Any:
    """Return the value of ``expression``, where ``$.data`` is ``data``."""
    from yaql.language import utils

    from bloomery.orchestration.template.functions import yaql_library as library

    tree = parsed(expression, limits)
    meter = Meter(limits)
    engine = _engine().copy(
        {"yaql.limitIterators": limits.yaql_elements, "yaql.memoryQuota": limits.yaql_bytes}
    )
    context = library.context(meter)
    try:
        context["$"] = utils.convert_input_data({"data": data})
        return _Output(meter, limits).value(tree(utils.NO_VALUE, context, engine))
    except library.faults() as exc:
        cause = getattr(exc, "wrapped", exc)
        if isinstance(exc, RecursionError):
            reason = "the expression is nested too deep, or calls itself too often"
        elif isinstance(cause, StopIteration):
            reason = "the collection has no such element"
        else:
            kind, message = type(cause).__name__, _printable(shapes.shortened(str(cause), 200))
            reason = f"{kind}: {message}{_LIMIT_NAMES.get(kind, '')}"
        raise errors.StackValidationFailed(reason=reason) from exc


def _printable(message: str) -> str:
    """Return a message of the library with NUL characters and lone surrogates escaped."""
    return message.replace("\0", r"\0").encode(errors="backslashreplace").decode()


class _Output:
    """Turns a result into maps, lists and scalars, and evaluates its lazy parts."""

    __slots__ = ("limits", "meter", "nodes")

    def __init__(self, meter: Meter, limits: Limits) -> None:
        self.meter = meter
        self.limits = limits
        self.nodes = 0

    def value(self, result: Any) -> Any:
        if isinstance(result, str):
            # an expression can write NUL characters and lone surrogates as escapes
            if "\0" in result or (not result.isascii() and parse.SURROGATE.search(result)):
                raise errors.StackValidationFailed(
                    reason="the result holds a NUL or half of a character (a lone surrogate): "
                    "leave it out"
                )
            return result
        if isinstance(result, float) and not math.isfinite(result):
            raise errors.StackValidationFailed(
                reason=f"the result holds {result}, which is no number that a template can hold"
            )
        if result is None or isinstance(result, bool | int | float):
            return self.meter.measure(result)
        if isinstance(result, Mapping):
            return {
                self.value(key): self.value(item) for key, item in self._limited(result.items())
            }
        if isinstance(result, Iterable):
            return [self.value(item) for item in self._limited(result)]
        raise errors.StackValidationFailed(
            reason=f"the result is a {type(result).__name__}; make text or a number of it"
        )

    def _limited(self, items: Iterable[Any]) -> Iterator[Any]:
        for count, item in enumerate(items):
            self.meter.tick()
            self.nodes += 1
            shapes.bound_nodes(self.nodes, self.limits)
            if count >= self.limits.yaql_elements:
                raise errors.StackValidationFailed(
                    reason=f"a collection has more than {self.limits.yaql_elements} elements "
                    "(yaql_elements)"
                )
            yield item
