"""From text to a document: JSON first, because it is fast, then YAML 1.1 as Heat reads it.

A document has the values of JSON only: maps with text keys, lists, texts, finite numbers, booleans
and null.  Dates stay text.  Text that YAML would silently read as another value is refused, with
line, column and advice.  Documents beyond ``limits.Limits`` are refused before they cost much.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import yaml

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import yaml_events

BOM: Final = "\ufeff"
NOT_IN_YAML: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
ADVICE: Final = {  # advice for users, by the message of libyaml
    "mapping values are not allowed in this context": (
        "quote a text that holds ': ', put ': ' after each key, and indent the keys of a map alike"
    ),
    "did not find expected key": "indent the keys of one map alike, and close every quote",
    "could not find expected ':'": "put ': ' after the key, and close every quote",
    "found character that cannot start any token": (
        "quote a text that begins with %, @ or `, and indent with spaces instead of tabs"
    ),
    "found unexpected end of stream": "close the quote",
    "did not find expected ',' or ']'": "put a comma between two items, and close the list",
    "did not find expected ',' or '}'": "put a comma between two entries, and close the map",
    "did not find expected '-' indicator": "begin each item of a list with '- ', indented alike",
    "found undefined tag handle": "leave the tag out, or quote a text that begins with !",
    "found unknown escape character": "write \\\\ for a backslash, or use single quotes",
    "did not find expected alphabetic or numeric character": (
        "quote a text that begins with * or &"
    ),
}


def document(
    text: str | bytes,
    limits: Limits = LIMITS,
    what: str = "the template",
    *,
    may_be_empty: bool = False,
) -> dict[str, Any]:
    """Return the map in ``text``; {} for an empty document that ``may_be_empty``.

    Raises TemplateUnreadable, with the nearest known path, and RequestLimitExceeded.
    """
    too_long = limits.exceeded("template_bytes", "bytes", what)
    if len(text) > limits.template_bytes:
        raise too_long
    try:
        if isinstance(text, bytes):
            text = text.decode()
        elif len(text.encode()) > limits.template_bytes:
            raise too_long
    except (UnicodeDecodeError, UnicodeEncodeError) as exc:
        raise errors.TemplateUnreadable(
            reason=f"{what} is not UTF-8 ({exc.reason} at {exc.start}): save it as UTF-8"
        ) from exc
    text = text.removeprefix(BOM)
    if text.lstrip()[:1] == "{":
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = None  # maybe it is YAML
        except RecursionError as exc:
            raise limits.exceeded("document_depth", "levels", what) from exc
        except ValueError as exc:  # an integer of thousands of digits
            raise errors.TemplateUnreadable(reason=_too_many_digits(limits)) from exc
        if value is not None:
            return check(value, limits, what)
    value = _of_yaml(text, limits, what)
    return {} if value is None and may_be_empty else _map(value, what)


def check(value: Any, limits: Limits = LIMITS, what: str = "the template") -> dict[str, Any]:
    """Return ``value``, which is parsed already, if it is a valid document."""
    _Checker(limits, what).value(value, limits.document_depth)
    return _map(value, what)


def _map(value: Any, what: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    state = "is empty" if value is None else f"is {kind_of(value)}"
    raise errors.TemplateUnreadable(reason=f"{what} {state}: write a map of sections, key: value")


def kind_of(value: Any) -> str:
    return KINDS.get(type(value), f"a {type(value).__name__}")


KINDS: Final = {
    dict: "a map",
    list: "a list",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _too_many_digits(limits: Limits) -> str:
    most = limits.scalar_digits
    return f"a number has more than {most} digits (scalar_digits): quote it if it is meant as text"


class _Checker:
    """Checks parsed values recursively, and counts them."""

    __slots__ = ("beyond", "limits", "nodes", "what")

    def __init__(self, limits: Limits, what: str) -> None:
        self.limits = limits
        self.what = what
        self.nodes = 1
        self.beyond = 10**limits.scalar_digits

    def value(self, value: Any, deeper: int) -> None:
        kind = type(value)
        if kind is str:
            self._text(value)
        elif kind is dict:
            self._inside(value, len(value) * 2, deeper)
            for key in value:
                if type(key) is not str:
                    raise errors.TemplateUnreadable(
                        reason=f"a key must be text, and {str(key)[:40]} is {kind_of(key)}: "
                        "quote it"
                    )
                self._text(key)
            for key, inner in value.items():
                self._at(key, inner, deeper - 1)
        elif kind is list:
            self._inside(value, len(value), deeper)
            for index, inner in enumerate(value):
                self._at(index, inner, deeper - 1)
        elif kind is int:
            if not -self.beyond < value < self.beyond:
                raise errors.TemplateUnreadable(reason=_too_many_digits(self.limits))
        elif kind is float:
            if not math.isfinite(value):
                raise errors.TemplateUnreadable(
                    reason=f"{value} is no number that a template can hold: quote it"
                )
        elif kind is not bool and value is not None:
            raise errors.TemplateUnreadable(reason=f"a {kind.__name__} is nothing JSON knows")

    def _at(self, key: str | int, value: Any, deeper: int) -> None:
        if type(value) is str and value.isascii() and "\0" not in value:
            return  # most values, at no cost
        try:
            self.value(value, deeper)
        except errors.Misplaced as exc:
            raise exc.under(key) from exc

    def _inside(self, value: Any, nodes: int, deeper: int) -> None:
        self.nodes += nodes
        if self.nodes > self.limits.document_nodes:
            raise self.limits.exceeded("document_nodes", "keys and values", self.what)
        if deeper <= 0:
            raise self.limits.exceeded("document_depth", "levels", self.what)

    def _text(self, text: str) -> None:
        if "\0" in text:
            raise errors.TemplateUnreadable(reason="a text holds a NUL character: leave it out")
        if not text.isascii() and SURROGATE.search(text):
            raise errors.TemplateUnreadable(
                reason="a text holds half of a character (a lone surrogate): leave it out"
            )


# ------------------------------------------------------------------------------------------ YAML


MOST_DIRECTIVES: Final = 10  # libyaml compares each with all that came before


def _of_yaml(text: str, limits: Limits, what: str) -> Any:
    if text.count("%TAG") > MOST_DIRECTIVES:
        raise errors.TemplateUnreadable(reason="%TAG directives are of no use here: leave them out")
    try:
        return yaml_events.Builder(text.encode(), limits, what).read()
    except yaml.reader.ReaderError as exc:
        # name the first character that YAML does not take; libyaml knows only an offset
        at = next((match.start() for match in NOT_IN_YAML.finditer(text)), 0)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise errors.TemplateUnreadable(
            reason=f"line {line}, column {column}: the control character U+{ord(text[at]):04X} is "
            "not allowed: leave it out, or write it as an escape in double quotes"
        ) from exc
    except yaml.MarkedYAMLError as exc:
        # the message of libyaml with its place, its context and advice
        reason = problem = exc.problem or "this is not YAML"
        if (mark := exc.problem_mark) is not None:
            reason = f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
            if exc.context_mark is not None and exc.context_mark.line < mark.line:
                reason += f" ({exc.context} that begins at line {exc.context_mark.line + 1})"
        advice = f": {ADVICE[problem]}" if problem in ADVICE else ""
        raise errors.TemplateUnreadable(reason=f"{reason}{advice}") from exc
