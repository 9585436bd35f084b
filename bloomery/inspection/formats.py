"""Format strings of rules, over plain data only.

    text("{node.name} has {inventory[cpu][count]:>4}", scope)

``.name`` and ``[name]`` are equivalent: a key of an object, or an index of a list.  They never
reach Python attributes.  Unresolved fields stay as text, as in Ironic.
"""

from __future__ import annotations

import contextlib
import re
import string
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors, secrets

MASK: Final = "***"
MOST_CHARS: Final = 65_536  # of one formatted text
_MOST_WIDTH: Final = 256
_FIELD: Final = re.compile(r"(?P<first>\w+)(?P<rest>(?:\.\w[\w-]*|\[[^\[\]]*\])*)")
_STEP: Final = re.compile(r"\.(?P<name>\w[\w-]*)|\[(?P<key>[^\[\]]*)\]")
_SPEC: Final = re.compile(r"(?:.?[<>^])?[ +-]?0?(?P<width>\d*),?(?:\.(?P<digits>\d+))?[a-zA-Z%]?")
_CONVERSIONS: Final[Mapping[str, Callable[[Any], str]]] = {"s": str, "r": repr, "a": ascii}


class Unresolved(Exception):
    """A field without data, or an invalid format."""


class Budget:
    """The limit of work of all rules in one inspection."""

    def __init__(self, steps: int = 200_000, chars: int = 32 << 20, seconds: float = 20.0) -> None:
        self._steps, self._chars, self._seconds = steps, chars, seconds

    def take(self, chars: int = 0) -> None:
        """Count one step and its characters.  Raises Invalid at the limit."""
        self._steps -= 1
        self._chars -= chars
        self._check()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Count the CPU time of the block.  Raises Invalid at the limit."""
        began_s = time.thread_time()
        yield
        self._seconds -= time.thread_time() - began_s
        self._check()

    def _check(self) -> None:
        if self._steps < 0 or self._chars < 0 or self._seconds < 0:
            raise errors.Invalid(
                reason="the rules loop over too much, or make texts that are too long",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that formats may use.

    ``reveal`` opens sealed secrets of nodes; None: secrets are masked.
    """

    names: Mapping[str, Any]
    budget: Budget
    reveal: Callable[[Any], Any] | None = None

    def with_item(self, item: Any) -> Scope:
        return Scope(names={**self.names, "item": item}, budget=self.budget, reveal=self.reveal)


def value(template: Any, scope: Scope) -> Any:
    """Return ``template`` with every text formatted, at any depth."""
    scope.budget.take()
    if isinstance(template, str):
        return text(template, scope)
    if isinstance(template, list):
        return [value(each, scope) for each in template]
    if isinstance(template, dict):
        return {name: value(member, scope) for name, member in template.items()}
    return template


def text(template: str, scope: Scope) -> str:
    """Return the formatted text; the template itself where a field is unresolved."""
    scope.budget.take(len(template))
    try:
        return resolved(template, scope)
    except Unresolved:
        return template


def resolved(template: str, scope: Scope) -> str:
    """Return the formatted text.  Raises Unresolved."""
    parts, size = [], 0
    try:
        for literal, field, spec, conversion in string.Formatter().parse(template):
            parts.append(literal)
            if field is not None:
                parts.append(_formatted(look_up(field, scope), spec or "", conversion))
            size += sum(map(len, parts[-2:]))
            if size > MOST_CHARS:
                raise Unresolved(template)
    except ValueError as exc:  # a brace alone, or an odd format
        raise Unresolved(template) from exc
    scope.budget.take(size)
    return "".join(parts)


def data(template: str, scope: Scope) -> Any:
    """Return the value that a text such as "{inventory[disks]}" names.

    Raises Unresolved for any other text.
    """
    return look_up(_only_field(template), scope)


def name_in(template: str) -> str | None:
    """Return the first name of such a text, "inventory", or None for any other text."""
    try:
        match = _FIELD.fullmatch(_only_field(template))
    except Unresolved:
        return None
    return match["first"] if match else None


def _only_field(template: str) -> str:
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError as exc:
        raise Unresolved(template) from exc
    if len(fields) != 1 or fields[0][0] or not fields[0][1] or fields[0][2] or fields[0][3]:
        raise Unresolved(template)
    return fields[0][1]


def look_up(field: str, scope: Scope) -> Any:
    """Return the value of a field, masked unless the rule may read secrets."""
    match = _FIELD.fullmatch(field)
    if match is None or match["first"] not in scope.names:
        raise Unresolved(field)
    part = scope.names[match["first"]]
    for step in _STEP.finditer(match["rest"]):
        key = step["name"] if step["key"] is None else step["key"]
        if scope.reveal is None and secrets.is_secret_key(key):
            return MASK
        part = _child(part, key)
    if scope.reveal is None:
        return _masked(part)
    return scope.reveal(part) if match["first"] == "node" else part


def _child(container: Any, key: str) -> Any:
    if isinstance(container, dict) and secrets.SEALED not in container and key in container:
        return container[key]
    if isinstance(container, list | tuple) and key.isascii() and key.isdecimal():
        place = int(key[:9])
        if place < len(container):
            return container[place]
    raise Unresolved(key)


def _masked(part: Any) -> Any:
    """Return data with secrets masked, at any depth."""
    if isinstance(part, dict):
        if secrets.SEALED in part:
            return MASK
        return {
            name: MASK if secrets.is_secret_key(str(name)) else _masked(member)
            for name, member in part.items()
        }
    return [_masked(each) for each in part] if isinstance(part, list | tuple) else part


def _formatted(part: Any, spec: str, conversion: str | None) -> str:
    match = _SPEC.fullmatch(spec)
    if match is None or any(int(match[n] or 0) > _MOST_WIDTH for n in ("width", "digits")):
        raise Unresolved(spec)
    if conversion is not None:
        if conversion not in _CONVERSIONS:
            raise Unresolved(conversion)
        part = _CONVERSIONS[conversion](part)
    try:
        return format(part, spec) if spec else str(part)
    except (TypeError, ValueError, OverflowError) as exc:
        raise Unresolved(spec) from exc
