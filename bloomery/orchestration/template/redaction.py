"""Mask the values of hidden parameters in messages, wherever a message has them from.

    redaction = Redaction(["correct horse"])
    redaction.masked('"Correct Horse" is not a number')  # "******" is not a number
    redaction.masked("no element is called 'horse'")  # no element is called '******'
    raise redaction.fault(exc)

A function, a property or a kind names the value that it refuses, and cannot know that this came
from a hidden parameter.  So validation and events mask messages with the definition's redaction.
A value is recognised in lower and upper case, as a number in another spelling, as an element of a
comma-delimited list, and between quotes as any part of it, because functions split text.  A digest
of it is not recognised, nor are texts below LEAST characters, which occur in any sentence.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from bloomery import errors

MASK: Final = "******"
LEAST: Final = 4  # characters of a masked text
_PREFIX: Final = 16  # characters by which a longer text is found, for messages shorten texts
_ELEMENTS: Final = 100  # of a comma-delimited list; others are masked only between quotes
_DIGITS: Final = 400  # of a text that may be a number
_QUOTES: Final = re.compile("(['\"]+)")
_BETWEEN: Final = "\0"  # no document has it

F = TypeVar("F", bound=errors.Failure)


class Redaction:
    """Masks the texts and numbers in ``values``, in each spelling that messages have of them."""

    __slots__ = ("_joined", "_texts")

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._know({spelt for value in values for text in _leaves(value) for spelt in _forms(text)})

    def _know(self, texts: Iterable[str]) -> None:
        self._texts = sorted(texts, key=len, reverse=True)
        self._joined = _BETWEEN.join(self._texts)

    def __or__(self, other: Redaction) -> Redaction:
        """Return a redaction of the values of both."""
        if not other._texts:
            return self
        both = Redaction()
        both._know({*self._texts, *other._texts})
        return both

    def masked(self, message: str) -> str:
        if not self._texts:
            return message
        folded = _folded(message)
        for text in self._texts:
            if text[:_PREFIX] in folded:
                message = _without(message, text)
                folded = _folded(message)
        before, *quoted = _QUOTES.split(message)
        after = quoted[-1:]
        return "".join([before, *map(self._unless_part, quoted[:-1]), *after])

    def document(self, value: Any) -> Any:
        """Mask the texts and numbers in a value; the keys of maps stay."""
        if isinstance(value, Mapping):
            return {key: self.document(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.document(inner) for inner in value]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        text = self.masked(str(value))
        return value if text == str(value) else text

    def _unless_part(self, quoted: str) -> str:
        """Mask quoted text, which may be shortened, if it is part of a hidden text."""
        part = _folded(quoted.removesuffix("...")).strip()
        return MASK if len(part) >= LEAST and part in self._joined else quoted

    def fault(self, exc: F) -> F:
        """Return the same error with its facts and log masked."""
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


def _forms(text: str) -> Iterator[str]:
    """Yield the forms that functions give a text: stripped, split at commas, as a number."""
    forms = [text, text.strip(), *map(str.strip, text.split(",", _ELEMENTS)[:_ELEMENTS])]
    if len(text) <= _DIGITS:
        # the number in a text as Python writes it: 12345 for ``012_345`` and ``1.2345e4``
        with contextlib.suppress(ValueError):
            number = float(text)
            forms.append(str(number))
            if number.is_integer():
                forms.append(str(math.floor(number)))
                forms[-1] = str(int(text))  # without the rounding of a float, if it reads it
    for form in forms:
        if len(form) >= LEAST:  # as it stands, as Python quotes it and as JSON does
            yield _folded(form)
            yield _folded(repr(form)[1:-1])
            yield _folded(json.dumps(form)[1:-1])
            yield _folded(json.dumps(form, ensure_ascii=False)[1:-1])


def _folded(text: str) -> str:
    """Return ``text`` in lower case, each character at its index."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _without(message: str, text: str) -> str:
    """Mask every occurrence of ``text``, which is in lower case, or of its beginning."""
    folded, parts, start = _folded(message), [], 0
    while (at := folded.find(text[:_PREFIX], start)) >= 0:
        parts += [message[start:at], MASK]
        pairs = zip(folded[at : at + len(text)], text, strict=False)
        start = at + sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return "".join([*parts, message[start:]])
