"""repeat: one copy of a template for each element of a list, or for each combination of several.

The template's own calls are resolved once, before anything is repeated.  In each text the
placeholders are replaced one after the other in the order of ``for_each``, so that a later one is
also found in the value of an earlier one [quirk].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView


class Repeat(Call):
    """2015-04-30: lists alone."""

    __slots__ = ()
    summary = "A list of copies of a template, one for each combination of the values of for_each."
    values_are: ClassVar[str] = "lists"
    takes_maps: ClassVar[bool] = False

    def check(self) -> None:
        if not isinstance(self.args, dict):
            raise self.fault(f"{self.name} takes a map of template and for_each")
        for key in ("template", "for_each"):
            if key not in self.args:
                raise self.fault(f"{self.name} needs template and for_each; {key} is missing")
        if not isinstance(self.args["for_each"], dict | base.Function):
            raise self._no_map(self.args["for_each"])

    def result(self, args: Any, view: StackView) -> Any:
        for_each = args["for_each"]
        if not isinstance(for_each, dict) or not for_each:
            raise self._no_map(for_each)
        lists = [self._values(value) for value in for_each.values()]
        count = self._count([len(values) for values in lists], for_each)
        copier = _Copier(self, list(for_each), view.limits)
        copier.expect(args["template"], count)
        if not count:
            return []
        copier.refuse_odd(args["template"], lists)
        return copier.copies(args["template"], self._combinations(lists))

    def _no_map(self, for_each: Any) -> Exception:
        problem = "an empty one" if for_each == {} else shapes.described(for_each)
        return self.fault(
            f"for_each of {self.name} is a map of placeholders and their {self.values_are}, "
            f"not {problem}"
        )

    def _values(self, value: Any) -> Sequence[Any]:
        if value is None:
            return ()
        if isinstance(value, dict) and self.takes_maps and not self._is_parallel():
            return list(value)
        if not isinstance(value, list):
            raise self.fault(
                f"the values of for_each of {self.name} are {self.values_are}, "
                f"not {shapes.described(value)}"
            )
        return value

    def _is_parallel(self) -> bool:
        return False

    def _count(self, lengths: list[int], for_each: dict[Any, Any]) -> int:
        return math.prod(lengths)

    def _combinations(self, lists: list[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
        return itertools.product(*lists)


class RepeatMaps(Repeat):
    """From 2016-10-14: a map stands for the list of its keys."""

    __slots__ = ()
    values_are = "lists or maps"
    takes_maps = True


class RepeatPermutations(RepeatMaps):
    """From 2017-09-01: ``permutations: false`` takes all lists in parallel."""

    __slots__ = ()
    summary = "A list of copies of a template, one for each combination or each place of the lists."

    def check(self) -> None:
        super().check()
        if not isinstance(self.args.get("permutations", True), bool):
            raise self.fault(f"permutations of {self.name} is true or false, and no call")

    def _is_parallel(self) -> bool:
        return not self.args.get("permutations", True)

    def _count(self, lengths: list[int], for_each: dict[Any, Any]) -> int:
        if not self._is_parallel():
            return super()._count(lengths, for_each)
        if None in for_each.values():  # before lengths are compared [quirk]
            return 0
        if len(set(lengths)) > 1:
            raise self.fault(
                f"without permutations the lists of {self.name} have one length, "
                f"not {', '.join(map(str, lengths))}"
            )
        return lengths[0]

    def _combinations(self, lists: list[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
        return zip(*lists, strict=True) if self._is_parallel() else super()._combinations(lists)


class _Copier:
    """Copies one template many times, and stops before the copies get too large."""

    __slots__ = ("call", "limits", "placeholders", "room")

    def __init__(self, call: base.Function, placeholders: list[Any], limits: Limits) -> None:
        self.call = call
        self.placeholders = placeholders
        self.limits = limits
        self.room = limits.result_chars

    def expect(self, template: Any, count: int) -> None:
        """Refuse copies that would be too many, or too much work, before one is made."""
        nodes, chars = shapes.size(template, self.limits)
        shapes.bound_nodes(count * (nodes + 1), self.limits)
        shapes.bound_chars(count * chars, self.limits)
        work = count * len(self.placeholders)
        shapes.bound_nodes(work * (nodes + 1) // 10, self.limits)
        if work * chars > self.limits.replaced_chars:
            raise self.call.fault(
                f"{self.call.name} would look for too many placeholders in too much text "
                "(replaced_chars)"
            )

    def copies(self, template: Any, combinations: Iterable[tuple[Any, ...]]) -> list[Any]:
        names = self.placeholders
        return [
            self._copy(template, list(zip(names, values, strict=True))) for values in combinations
        ]

    def refuse_odd(self, template: Any, lists: list[Sequence[Any]]) -> None:
        """Refuse placeholders and values that are no text, if the template has any text."""
        if shapes.has_text(template):
            for value in itertools.chain(self.placeholders, *lists):
                if not isinstance(value, str):
                    raise self.call.fault(
                        f"{self.call.name} puts texts in place of texts; {shapes.described(value)} "
                        "is none, quote it"
                    )

    def _copy(self, template: Any, pairs: list[tuple[Any, Any]]) -> Any:
        if isinstance(template, str):
            return self._text(template, pairs)
        if isinstance(template, dict):
            return {
                self._copy(key, pairs): self._copy(value, pairs) for key, value in template.items()
            }
        if isinstance(template, list):
            return [self._copy(item, pairs) for item in template]
        return template

    def _text(self, text: str, pairs: list[tuple[str, str]]) -> str:
        for placeholder, value in pairs:
            if placeholder in text:
                if (len(text) + 1) * (len(value) + 1) > self.room:  # maybe too long: count
                    growth = (len(value) - len(placeholder)) * text.count(placeholder)
                    if growth > self.room - len(text):
                        shapes.bound_chars(self.limits.result_chars + 1, self.limits)
                text = text.replace(placeholder, value)
        self.room -= len(text)
        if self.room < 0:
            shapes.bound_chars(self.limits.result_chars - self.room, self.limits)
        return text
