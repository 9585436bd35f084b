"""Measures a yaql expression, and ends it when it runs too long or grows too large."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.functions import shapes

_BITS: Final = 4096  # of an integer; Python writes no more than 4300 digits
_DEPTH: Final = 200  # of containers inside each other
_WATCHED: Final = 100  # times the limit of elements: what any iterator may yield


class Meter:
    """The calls, time and sizes of one evaluation."""

    __slots__ = ("calls", "limits", "measured", "until")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.calls = 0
        self.until = time.thread_time() + limits.yaql_s
        self.measured: dict[int, tuple[Any, int, int, int]] = {}  # by id: itself, and its size

    def tick(self) -> None:
        """Count one call or element; raise StackValidationFailed over the call or time limit."""
        self.calls += 1
        if self.calls > self.limits.yaql_calls:
            raise errors.StackValidationFailed(
                reason=f"the expression makes more than {self.limits.yaql_calls} calls (yaql_calls)"
            )
        if time.thread_time() > self.until:
            raise errors.StackValidationFailed(
                reason=f"the expression takes longer than {self.limits.yaql_s} s (yaql_s)"
            )

    def measure(self, value: Any) -> Any:
        """Return the result of one call if it is small enough; an iterator is watched."""
        if isinstance(value, int):
            if value.bit_length() > _BITS:
                raise errors.StackValidationFailed(reason=f"a number has over {_BITS} bits")
        elif isinstance(value, list | tuple | Mapping | AbstractSet):
            self._size(value, _DEPTH)
        elif isinstance(value, Iterator) and type(value).__module__ != "yaql.language.utils":
            return self._watched(value)  # those of the library can be restarted
        return value

    def _size(self, value: Any, levels: int) -> tuple[int, int]:
        """Return nodes and characters of ``value`` written out; each container is measured once."""
        if isinstance(value, str):
            return 1, len(value)
        if not isinstance(value, list | tuple | Mapping | AbstractSet):
            return 1, 0
        measure = self.measured.get(id(value))
        if levels < (1 if measure is None else measure[3]):
            raise errors.StackValidationFailed(
                reason=f"lists and maps are nested over {_DEPTH} deep"
            )
        if measure is not None:
            return measure[1], measure[2]
        nodes = chars = 1
        deepest = 0
        pairs = value.items() if isinstance(value, Mapping) else (value,)
        for part in itertools.chain.from_iterable(pairs):
            more_nodes, more_chars = self._size(part, levels - 1)
            nodes, chars = nodes + more_nodes, chars + more_chars
            deepest = max(deepest, self.measured.get(id(part), (None, 0, 0, 0))[3])
        shapes.bound_nodes(nodes, self.limits)
        shapes.bound_chars(chars, self.limits)
        self.measured[id(value)] = value, nodes, chars, deepest + 1
        return nodes, chars

    def _watched(self, items: Iterator[Any]) -> Iterator[Any]:
        most = self.limits.yaql_elements * _WATCHED
        for count, item in enumerate(items):
            self.tick()
            if count >= most:
                raise errors.StackValidationFailed(
                    reason=f"a collection has more than {most} elements (yaql_elements)"
                )
            yield item
