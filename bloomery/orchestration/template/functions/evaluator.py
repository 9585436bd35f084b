"""Evaluate yaql expressions that nobody has looked at.

The library brings two limits: elements taken from an iterator, and the size of one result.  They
leave open how long an expression runs and what grows by sharing (``let(a => [$a, $a])``, forty
times over).  So every call of a function, an operator or a lambda goes through a ``Meter``, which
ends the expression when its time is over, measures each container by what it would be written out
as, watches each iterator, and keeps numbers short.  What one call alone could do in too much time
is replaced (see ``evaluator_library``).

In the language are all of the library's functions for text, numbers, lists, maps, sets, queries,
regular expressions, branches and contexts.  Not in it: access to attributes of Python objects
(the lexer refuses names with two underscores, and nothing else offers any), dates and times and
random numbers (a template must mean the same each time it is read), and ``call``.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parse
from bloomery.orchestration.template.functions import shapes

_BITS: Final = 4096  # of an integer; Python writes no more than 4300 digits
_DEPTH: Final = 200  # of containers inside each other
_ROWS: Final = {  # of Limits, by the error of the library that tells of it
    "CollectionTooLargeException": " (yaql_elements)",
    "MemoryQuotaExceededException": " (yaql_bytes)",
}
_WATCHED: Final = 100  # times the limit of elements: what any iterator may yield


def parsed(expression: str, limits: Limits = LIMITS) -> Any:
    """Return ``expression`` ready to be evaluated; StackValidationFailed for one that is none."""
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
            reason=f"Bad expression {shapes.shortened(expression)!r}: {exc}"
        ) from exc


@functools.cache
def _engine() -> Any:
    import yaql

    return yaql.YaqlFactory().create()


def evaluated(expression: str, data: Any, limits: Limits) -> Any:
    """Return the value of ``expression``, where ``$.data`` is ``data``."""
    from yaql.language import utils

    from bloomery.orchestration.template.functions import evaluator_library as library

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
        raise errors.StackValidationFailed(reason=_said(exc)) from exc


def _said(exc: BaseException) -> str:
    if isinstance(exc, RecursionError):
        return "the expression is nested too deep, or calls itself too often"
    exc = getattr(exc, "wrapped", exc)
    if isinstance(exc, StopIteration):
        return "the collection has no such element"
    row = _ROWS.get(type(exc).__name__, "")
    return f"{type(exc).__name__}: {shapes.shortened(str(exc), 200)}{row}"


class Meter:
    """What one evaluation has used."""

    __slots__ = ("limits", "measured", "until")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.until = time.thread_time() + limits.yaql_s
        self.measured: dict[int, tuple[Any, int, int, int]] = {}  # by id: itself, and its size

    def tick(self) -> None:
        """End the expression when its time is over."""
        if time.thread_time() > self.until:
            raise errors.StackValidationFailed(
                reason=f"the expression takes longer than {self.limits.yaql_s} s (yaql_s)"
            )

    def taken(self, value: Any) -> Any:
        """Return the result of one call, once it is found small enough."""
        if isinstance(value, int):
            if value.bit_length() > _BITS:
                raise errors.StackValidationFailed(reason=f"a number has over {_BITS} bits")
        elif isinstance(value, list | tuple | Mapping | AbstractSet):
            self._size(value, _DEPTH)
        elif isinstance(value, Iterator) and type(value).__module__ != "yaql.language.utils":
            return self._watched(value)  # those of the module itself can be started again
        return value

    def _size(self, value: Any, levels: int) -> tuple[int, int]:
        """Return nodes and characters of ``value`` written out; each container is walked once."""
        if isinstance(value, str):
            return 1, len(value)
        if not isinstance(value, list | tuple | Mapping | AbstractSet):
            return 1, 0
        known = self.measured.get(id(value))
        if known is None:
            known = self._measure(value, levels)
            self.measured[id(value)] = known
        elif known[3] > levels:
            raise _too_deep()
        return known[1], known[2]

    def _measure(self, value: Any, levels: int) -> tuple[Any, int, int, int]:
        if not levels:
            raise _too_deep()
        nodes = chars = 1
        deepest = 0
        for part in _parts(value):
            more_nodes, more_chars = self._size(part, levels - 1)
            nodes, chars = nodes + more_nodes, chars + more_chars
            deepest = max(deepest, self.measured.get(id(part), (None, 0, 0, 0))[3])
        shapes.bound_nodes(nodes, self.limits)
        shapes.bound_chars(chars, self.limits)
        return value, nodes, chars, deepest + 1

    def _watched(self, items: Iterator[Any]) -> Iterator[Any]:
        most = self.limits.yaql_elements * _WATCHED
        for count, item in enumerate(items):
            self.tick()
            if count >= most:
                raise errors.StackValidationFailed(
                    reason=f"a collection has more than {most} elements (yaql_elements)"
                )
            yield item


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        for pair in value.items():
            yield from pair
    else:
        yield from value


def _sound(text: str) -> str:
    """Refuse what no document could hold, and an expression can write as an escape."""
    if "\0" in text or (not text.isascii() and parse.SURROGATE.search(text)):
        raise errors.StackValidationFailed(
            reason="the result holds a NUL or half of a character (a lone surrogate): leave it out"
        )
    return text


def _too_deep() -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=f"lists and maps are nested over {_DEPTH} deep")


class _Output:
    """Turns a result into maps, lists and scalars, running what is still lazy in it."""

    __slots__ = ("limits", "meter", "nodes")

    def __init__(self, meter: Meter, limits: Limits) -> None:
        self.meter = meter
        self.limits = limits
        self.nodes = 0

    def value(self, found: Any) -> Any:
        if isinstance(found, str):
            return _sound(found)
        if isinstance(found, float) and not math.isfinite(found):
            raise errors.StackValidationFailed(
                reason=f"the result holds {found}, which is no number that a template can hold"
            )
        if found is None or isinstance(found, bool | int | float):
            return self.meter.taken(found)
        if isinstance(found, Mapping):
            return {self.value(key): self.value(item) for key, item in self._limited(found.items())}
        if isinstance(found, Iterable):
            return [self.value(item) for item in self._limited(found)]
        raise errors.StackValidationFailed(
            reason=f"the result is a {type(found).__name__}; make text or a number of it"
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
