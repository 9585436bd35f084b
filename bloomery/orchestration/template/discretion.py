"""What no message may tell: values of hidden parameters, wherever a message came by them.

    discretion = Discretion(["correct horse"])
    discretion.masked('"correct horse" is not a number')  # "****** is not a number"
    raise discretion.fault(exc)

A function, a property or a kind that refuses a value says which, and cannot know that it came from
a hidden parameter.  So whoever hands a message on (a stack that is validated, an event that is
told) masks it with what the definition knows.  What was made of a value, a digest of it or a part,
is not recognised; nor are texts below LEAST characters, which stand in any sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from bloomery import errors

MASK: Final = "******"
LEAST: Final = 4  # characters of what is masked
_PREFIX: Final = 16  # characters by which a longer text is found, for messages shorten texts

F = TypeVar("F", bound=errors.Failure)


class Discretion:
    """Masks the texts and numbers in ``values``, in each spelling that messages have of them."""

    __slots__ = ("_texts",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        found = {spelt for value in values for text in _leaves(value) for spelt in _spellings(text)}
        self._texts = sorted(found, key=len, reverse=True)

    def __or__(self, other: Discretion) -> Discretion:
        """Mask what either of both masks."""
        if not other._texts:
            return self
        both = Discretion()
        both._texts = sorted({*self._texts, *other._texts}, key=len, reverse=True)
        return both

    def masked(self, said: str) -> str:
        for text in self._texts:
            if text[:_PREFIX] in said:
                said = _without(said, text)
        return said

    def fault(self, exc: F) -> F:
        """Return the same fault, whose sentence and place tell nothing."""
        if not self._texts or self.masked(str(exc)) == str(exc):
            return exc
        facts = {key: self._fact(value) for key, value in exc.facts.items()}
        return type(exc)(log=self.masked(exc.log), **facts)

    def _fact(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.masked(value)
        return [self._fact(item) for item in value] if isinstance(value, list) else value


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value; the keys of maps are no secret."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield str(item)


def _spellings(text: str) -> Iterator[str]:
    """Yield a text as it stands, as Python quotes it and as JSON does, if it is long enough."""
    if len(text) >= LEAST:
        yield from (text, repr(text)[1:-1], json.dumps(text)[1:-1])
        yield json.dumps(text, ensure_ascii=False)[1:-1]


def _without(said: str, text: str) -> str:
    """Mask every place where ``text`` stands, or how it begins."""
    parts, start = [], 0
    while (at := said.find(text[:_PREFIX], start)) >= 0:
        parts += [said[start:at], MASK]
        start = at + _common(said, at, text)
    return "".join([*parts, said[start:]])


def _common(said: str, at: int, text: str) -> int:
    """Return how many characters of ``text`` stand at a place."""
    pairs = zip(said[at : at + len(text)], text, strict=False)
    return next(
        (count for count, (one, other) in enumerate(pairs) if one != other),
        min(len(text), len(said) - at),
    )
