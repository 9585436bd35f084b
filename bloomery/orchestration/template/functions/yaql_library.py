"""The functions that yaql expressions may use: the library's, filtered, some replaced, all metered.

Imported when the first expression is evaluated, because the library loads slowly.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import yaql
from yaql.language import contexts, conventions, exceptions, specs, yaqltypes
from yaql.standard_library import collections, math, strings
from yaql.standard_library import regex as expressions

from bloomery import errors, patterns
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.functions.yaql_meter import Meter

_Result = TypeVar("_Result")

_LEFT_OUT: Final = frozenset({"call", "random"})
_BITS: Final = 4096  # of a power or a shift
_DIGITS: Final = 400  # to which a number may be rounded
_ELEMENTS: Final = 10_000  # of a list that is multiplied


def faults() -> tuple[type[BaseException], ...]:
    """Return the exceptions of the library, which passes on those of Python."""
    return (
        exceptions.YaqlException,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RuntimeError,  # recursion, and StopIteration in a generator
        StopIteration,
        TypeError,
        ValueError,
        MemoryError,
    )


def context(meter: Meter) -> Any:
    """Return the context in which one expression is evaluated."""
    return _Run(_library(meter.limits), meter=meter)


@functools.lru_cache(maxsize=4)
def _library(limits: Limits) -> Any:
    return yaql.create_context(
        context=_Library(replaced=_Bounded(limits).functions()),
        datetime=False,
        yaqlized=False,
        delegates=False,
        group_by_agg_fallback=True,
    )


class _Library(contexts.Context):  # type: ignore[misc]
    """Registers the functions of the library; some are left out, some replaced."""

    def __init__(self, parent: Any = None, *, replaced: Mapping[Any, Any] | None = None) -> None:
        super().__init__(parent, convention=conventions.CamelCaseConvention())
        self.replaced: Mapping[Any, Any] = replaced or parent.replaced

    def register_function(self, spec: Any, *args: Any, **more: Any) -> None:
        function = specs.get_function_definition(spec, *args, convention=self.convention, **more)
        if function.name in _LEFT_OUT:
            return
        function = function.clone()
        function.payload = self.replaced.get(spec, function.payload)
        for parameter in function.parameters.values():
            kind = parameter.value_type
            if (
                isinstance(kind, yaqltypes.PythonType)
                and kind.python_type is expressions.REGEX_TYPE
            ):
                parameter.value_type = yaqltypes.PythonType(Regex, nullable=False)
        super().register_function(function)


class _Run(contexts.Context):  # type: ignore[misc]
    """The context of one evaluation; the contexts of its calls are children and share its meter."""

    def __init__(self, parent: Any, *args: Any, meter: Meter | None = None) -> None:
        super().__init__(parent, *args)
        self.meter: Meter = meter or parent.meter

    def collect_functions(self, *args: Any, **more: Any) -> Any:
        self.meter.tick()
        layers = super().collect_functions(*args, **more)
        return [{_Metered(function, self.meter) for function in layer} for layer in layers]


class _Metered:
    """A definition of a function whose results are measured."""

    __slots__ = ("definition", "map_args", "meter", "no_kwargs")

    def __init__(self, definition: Any, meter: Meter) -> None:
        self.definition = definition
        self.meter = meter
        self.no_kwargs = definition.no_kwargs
        self.map_args = definition.map_args

    def get_delegate(self, *args: Any) -> Callable[[], Any]:
        delegate = self.definition.get_delegate(*args)
        return lambda: self.meter.measure(delegate())


# ---------------------------------------------------------------------------------- replacements


class Regex:
    """The result of ``regex()``: the methods of a compiled pattern that the library uses."""

    __slots__ = ("limits", "pattern")

    def __init__(self, pattern: str, limits: Limits) -> None:
        self.pattern = pattern
        self.limits = limits
        patterns.compiled(pattern, limits)

    def search(self, text: str) -> Any:
        return self._bounded(text, lambda regex, s: regex.search(text, timeout=s))

    def finditer(self, text: str) -> list[Any]:
        return self._bounded(text, lambda regex, s: list(regex.finditer(text, timeout=s)))

    def split(self, text: str, most: int = 0) -> list[Any]:
        return self._bounded(text, lambda regex, s: regex.split(text, most, timeout=s))

    def _bounded(self, text: str, use: Callable[[Any, float], _Result]) -> _Result:
        return patterns.bounded(self.pattern, text, self.limits, use)

    def sub(self, put: Any, text: str, count: int = 0) -> str:
        """Replace matches one by one, to stop before the result is too long."""
        pieces, at, length = [], 0, len(text)
        for match in itertools.islice(self.finditer(text), count or None):
            piece = put(match) if callable(put) else match.expand(put)
            pieces += [text[at : match.start()], piece]
            at, length = match.end(), length + len(piece)
            _short(length, self.limits)
        return "".join([*pieces, text[at:]])


def _short(length: int, limits: Limits) -> None:
    if length > limits.yaql_bytes:
        raise exceptions.MemoryQuotaExceededException


class _Bounded:
    """Replacements of library functions that could take too long in a single call.

    Their arguments have the library's names, because expressions may use them.
    """

    __slots__ = ("limits",)

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def functions(self) -> dict[Any, Callable[..., Any]]:
        """Return the replacements by function of the library."""
        return {
            expressions.regex: self.regex,
            expressions.matches_: self.matches,
            expressions.matches_operator_string: self.matches,
            expressions.not_matches_operator_string: self.not_matches,
            collections.list_by_int: self.list_by_int,
            collections.int_by_list: lambda left, right, engine: self.list_by_int(right, left),
            strings.str_: self.str_,
            strings.replace: self.replace,
            strings.replace_with_dict: self.replace_with_dict,
            math.pow_: self.pow_,
            math.shift_bits_left: self.shift_bits_left,
            math.round_: self.round_,
        }

    def regex(
        self,
        pattern: str,
        ignore_case: bool = False,
        multi_line: bool = False,
        dot_all: bool = False,
    ) -> Regex:
        switches = {"i": ignore_case, "m": multi_line, "s": dot_all}
        flags = "".join(flag for flag, is_set in switches.items() if is_set)
        return Regex(f"(?{flags}){pattern}" if flags else pattern, self.limits)

    def matches(self, string: str, regexp: str) -> bool:
        return Regex(regexp, self.limits).search(string) is not None

    def not_matches(self, string: str, regexp: str) -> bool:
        return not self.matches(string, regexp)

    def list_by_int(self, left: Any, right: int, engine: Any = None) -> Any:
        if len(left) * right > _ELEMENTS:
            raise exceptions.CollectionTooLargeException(_ELEMENTS)
        return left * right

    def str_(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, Iterator):
            raise TypeError("a lazy collection has no text; use toList() first")
        return str(value)

    def replace(self, string: str, old: str, new: str, count: int = -1) -> str:
        occurrences = string.count(old)
        times = occurrences if count < 0 else min(occurrences, count)
        _short(len(string) + times * (len(new) - len(old)), self.limits)
        return string.replace(old, new, count)

    def replace_with_dict(
        self,
        string: str,
        str_func: Callable[[Any], str],
        replacements: Mapping[Any, Any],
        count: int = -1,
    ) -> str:
        for key, value in replacements.items():
            string = self.replace(string, str_func(key), str_func(value), count)
        return string

    def pow_(self, a: Any, b: Any, c: Any = None) -> Any:
        if isinstance(a, int) and isinstance(b, int) and c is None:
            _few_bits(a.bit_length() * max(b, 0))
        return pow(a, b, c)

    def shift_bits_left(self, value: int, bits_number: int) -> int:
        _few_bits(value.bit_length() + bits_number)
        return value << bits_number

    def round_(self, number: Any, ndigits: int = 0) -> Any:
        if abs(ndigits) > _DIGITS:
            raise errors.StackValidationFailed(reason=f"round to {_DIGITS} digits or fewer")
        return round(number, ndigits)


def _few_bits(bits: int) -> None:
    if bits > _BITS:
        raise errors.StackValidationFailed(reason=f"a number would have over {_BITS} bits")
