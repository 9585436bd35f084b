"""Functions that make and take apart text."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView


class ListJoinOne(Call):
    """Before 2015-10-15: one list of texts."""

    __slots__ = ()
    summary = "The texts of a list, joined by a delimiter."
    takes_several: ClassVar[bool] = False

    def check(self) -> None:
        count = len(self.args) if isinstance(self.args, list) else 0
        if count < 2 or (count > 2 and not self.takes_several):
            lists = "one or more lists" if self.takes_several else "one list of texts"
            raise self.fault(f"{self.name} takes a delimiter and {lists}")

    def result(self, args: Any, view: StackView) -> Any:
        delimiter, *lists = args
        if not isinstance(delimiter, str):
            raise self.fault(
                f"the delimiter of {self.name} is text, not {shapes.described(delimiter)}"
            )
        items = [self._text(item) for each in lists for item in self._items(each)]
        length = sum(map(len, items)) + len(delimiter) * max(len(items) - 1, 0)
        shapes.bound_chars(length, view.limits)
        return delimiter.join(items)

    def _items(self, value: Any) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(f"{self.name} joins lists, not {shapes.described(value)}")
        return value

    def _text(self, item: Any) -> str:
        if item is None:
            return ""
        if not isinstance(item, str):
            raise self.fault(f"{self.name} joins texts, not {shapes.described(item)}")
        return item


class ListJoin(ListJoinOne):
    __slots__ = ()
    summary = (
        "The elements of one or more lists, joined by a delimiter; maps and lists become JSON."
    )
    takes_several = True

    def _text(self, item: Any) -> str:
        return shapes.json_text(item) if isinstance(item, dict | list) else super()._text(item)


class StrSplit(Call):
    """``[delimiter, text]`` or ``[delimiter, text, index]``; more is not looked at [quirk]."""

    __slots__ = ()
    summary = "A text split at a delimiter: the list, or the one part at an index."

    def check(self) -> None:
        if isinstance(self.args, dict | str):  # a number or nothing is found later [quirk]
            raise self._form()

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, list) or len(args) < 2:
            raise self._form()
        delimiter, text, *index = args
        if text is None:
            return None
        if not isinstance(text, str):
            raise self.fault(f"{self.name} splits text, not {shapes.described(text)}")
        if delimiter is not None and (not isinstance(delimiter, str) or not delimiter):
            raise self.fault(
                f"the delimiter of {self.name} is text that is not empty, "
                f"not {shapes.described(delimiter)}"
            )
        # null splits as in Python: at white space [quirk]
        most = len(text) // 2 if delimiter is None else text.count(delimiter) + 1
        shapes.bound_nodes(most, view.limits)
        parts = text.split(delimiter)
        return self._part(parts, index[0]) if index else parts

    def _form(self) -> Exception:
        return self.fault(f"{self.name} takes a list: a delimiter, a text and maybe an index")

    def _part(self, parts: list[str], index: Any) -> str:
        try:
            return parts[int(index)]
        except IndexError:
            raise self.fault(
                f"index {index} of {self.name} is out of range: it is between 0 and "
                f"{len(parts) - 1} here"
            ) from None
        except (TypeError, ValueError, OverflowError):
            raise self.fault(
                f"the index of {self.name} is a whole number, not {shapes.described(index)}"
            ) from None


class Digest(Call):
    __slots__ = ()
    summary = "The digest of a text as hexadecimal digits, by the algorithm that is named."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, list) or len(args) != 2:
            raise self.fault(f"{self.name} takes a list: the name of an algorithm and a text")
        algorithm, text = args
        if not isinstance(algorithm, str) or not isinstance(text, str):
            odd = text if isinstance(algorithm, str) else algorithm
            raise self.fault(
                f"algorithm and value of {self.name} are text, not {shapes.described(odd)}"
            )
        return self._digest(algorithm, text)

    def _digest(self, algorithm: str, text: str) -> str:
        try:
            content = text.encode("latin-1")
        except UnicodeEncodeError as exc:
            raise self.fault(
                f"{self.name} takes text of Latin-1 characters; number {exc.start + 1} is none"
            ) from exc
        try:
            return hashlib.new(algorithm.lower(), content, usedforsecurity=False).hexdigest()
        except (ValueError, TypeError) as exc:  # unknown, or of variable length (shake)
            names = sorted(hashlib.algorithms_guaranteed - {"shake_128", "shake_256"})
            raise self.fault(
                f"{self.name} does not know the algorithm {shapes.shortened(algorithm)!r}; "
                f"take one of {', '.join(names)}.{errors.nearest(algorithm.lower(), names)}"
            ) from exc
