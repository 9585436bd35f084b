"""str_replace and its stricter variants: placeholders of a text become values.

The longest placeholder goes first over the whole text, placeholders of equal length in the order of
their text.  Inserted values are not searched again.  So ``abcd`` with ``ab`` and ``bcd`` gives
``a`` and the value of ``bcd``.  For that, each placeholder first becomes one character that occurs
nowhere else, and only at the end its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_FIRST = 0xF0000  # of the code points that stand for placeholders: a plane for private use


def replaced(text: str, values: Mapping[str, str], limits: Limits) -> tuple[str, list[str]]:
    """Return ``text`` with every placeholder replaced, and the placeholders that never occurred."""
    if len(text) * len(values) > limits.replaced_chars:
        raise errors.StackValidationFailed(
            reason=f"{len(values)} placeholders in {len(text)} characters are too many "
            "(replaced_chars)"
        )
    marks, unused, total = {}, [], len(text)
    free = _free_code_points(text, values)
    for placeholder in _longest_first(values):
        if count := text.count(placeholder):
            total += count * (len(values[placeholder]) - len(placeholder))
            mark = next(free)
            marks[mark] = values[placeholder]
            text = text.replace(placeholder, chr(mark))
        else:
            unused.append(placeholder)
    shapes.bound_chars(total, limits)
    return text.translate(marks), unused


def _longest_first(values: Mapping[str, str]) -> list[str]:
    return sorted(sorted(values), key=len, reverse=True)


def _free_code_points(text: str, values: Mapping[str, str]) -> Iterator[int]:
    used = {ord(char) for part in (text, *values) for char in set(part) if ord(char) >= _FIRST}
    return (point for point in range(_FIRST, 0x110000) if point not in used)


class StrReplaceScalars(Call):
    """Before 2015-10-15: maps and lists cannot be put into text."""

    __slots__ = ()
    summary = "A text in which placeholders are replaced by the values of a map."
    takes_structures: ClassVar[bool] = False
    is_strict: ClassVar[bool] = False  # a placeholder that does not occur is refused

    def check(self) -> None:
        if not isinstance(self.args, dict):
            raise self.fault(f"{self.name} takes a map of template and params")
        for key, other in (("template", "params"), ("params", "template")):
            if key not in self.args:
                raise self.fault(f"{self.name} needs {key!r} beside {other!r}")
        if not isinstance(self.args["params"], dict | base.Function):
            raise self._no_map(self.args["params"])

    def result(self, args: Any, view: StackView) -> Any:
        return self._replaced(args["template"], args["params"], view.limits)

    def _replaced(self, template: Any, params: Any, limits: Limits) -> str:
        if not isinstance(template, str):
            raise self.fault(
                f"the template of {self.name} is text, not {shapes.described(template)}"
            )
        if not isinstance(params, dict):
            raise self._no_map(params)
        values = {}
        for key, value in params.items():
            if not isinstance(key, str) or not key:
                raise self.fault(
                    f"a placeholder of {self.name} is text that is not empty, "
                    f"not {shapes.described(key)}"
                )
            values[key] = self._text(key, value)
        text, unused = replaced(template, values, limits)
        if unused and self.is_strict:
            listed = ", ".join(map(repr, sorted(unused)))
            raise self.fault(f"cannot find in the template of {self.name}: {listed}")
        return text

    def _no_map(self, params: Any) -> errors.StackValidationFailed:
        return self.fault(
            f"the params of {self.name} are a map of placeholders, not {shapes.described(params)}"
        )

    def _text(self, key: str, value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, dict | list):
            return str(value)
        if not self.takes_structures:
            raise self.fault(
                f"placeholder {key!r} of {self.name} stands for text or a number in this version, "
                f"not for {shapes.described(value)}"
            )
        return shapes.json_text(value)


class StrReplace(StrReplaceScalars):
    __slots__ = ()
    summary = "A text in which placeholders are replaced by values; maps and lists become JSON."
    takes_structures = True


class StrReplaceStrict(StrReplace):
    __slots__ = ()
    summary = "As str_replace, and every placeholder must occur in the template."
    is_strict = True


class StrReplaceVstrict(StrReplaceStrict):
    __slots__ = ()
    summary = "As str_replace_strict, and no value may be null or empty."

    def _text(self, key: str, value: Any) -> str:
        if value is None or value in ("", [], {}):
            raise self.fault(f"placeholder {key!r} of {self.name} has no value, or an empty one")
        return super()._text(key, value)
