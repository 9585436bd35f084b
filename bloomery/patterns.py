"""Regular expressions that come from users: bounded in size, memory and time.

They are written for Python's ``re``, which cannot be stopped; ``regex`` can, but knows more
syntax (recursion, fuzzy matches) and unrolls ``(…){1000}`` while compiling.  So a pattern is read
once before it is compiled: what ``re`` does not know is refused or made literal, as ``re`` has it,
and a pattern that would unroll to more than ``_UNROLLED`` atoms is refused::

    patterns.fullmatch("[a-z]{3}", "abc", limits)  # True
    patterns.refusal("[a-z", limits)  # what is wrong with it, as one sentence
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar

from bloomery import errors

if TYPE_CHECKING:
    import regex

_Result = TypeVar("_Result")


class Limits(Protocol):
    """Most characters of a pattern and of a text, and seconds of one match."""

    @property
    def pattern_chars(self) -> int: ...
    @property
    def pattern_text_chars(self) -> int: ...
    @property
    def pattern_s(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainLimits:
    """Limits of those who have no others."""

    pattern_chars: int
    pattern_text_chars: int
    pattern_s: float


_UNROLLED: Final = 20_000  # atoms after counted repeats are written out: some 30 MiB
_SHOWN: Final = 60  # of a pattern in a sentence

_TOKEN: Final = re.compile(
    r"""
      \\ (?P<escape>.)
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<comment> \(\?\# [^)]* \) )
    | (?P<flags> \(\? [aimsu]+ \) )
    | (?P<open> \(
        (?: \?(?: [:=!>] | <[=!] | P<\w+> | [aimsu]* (?:-[ims]+)? : | \(\w+\) ) )? (?![?*]) )
    | (?P<same> \(\? P=\w+ \) )
    | (?P<odd> \( .{0,2} )
    | (?P<close> \) )
    | \{ (?P<least> \d* ) (?: (?<=\d) | (?=,) ) (?: , \d* )? \}
    | (?P<brace> \{ )
    | (?P<repeat> [*+?] )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LETTERS: Final = frozenset("AbBdDsSwWZafnrtvxuU0123456789")  # what ``re`` knows after a backslash


def fullmatch(pattern: str, text: str, limits: Limits) -> bool:
    """Say whether ``pattern`` matches all of ``text``; StackValidationFailed if nobody can say."""
    return (
        bounded(pattern, text, limits, lambda found, s: found.fullmatch(text, timeout=s))
        is not None
    )


def refusal(pattern: str, limits: Limits) -> str | None:
    """Why ``pattern`` cannot be used, as one sentence for users; None if it can."""
    try:
        compiled(pattern, limits)
    except errors.StackValidationFailed as exc:
        return str(exc.facts["reason"])
    return None


def bounded(
    pattern: str,
    text: str,
    limits: Limits,
    use: Callable[[regex.Pattern[str], float], _Result],
) -> _Result:
    """Return what ``use`` makes of the compiled pattern; it passes on the seconds as timeout.

    ``regex`` counts what all threads of the process use.  What they took is given back: a match
    that had less than ``pattern_s`` for itself begins again, with twice the time.
    """
    regular_expression = compiled(pattern, limits)
    if len(text) > limits.pattern_text_chars:
        _refuse(
            pattern,
            f"the text has more than {limits.pattern_text_chars} characters (pattern_text_chars)",
        )
    most_s = timeout_s = limits.pattern_s
    while True:
        began_s = time.thread_time()
        try:
            return use(regular_expression, timeout_s)
        except TimeoutError:
            if time.thread_time() - began_s >= 0.9 * most_s:  # the two clocks differ a little
                _refuse(
                    pattern, f"matching takes longer than {most_s} s (pattern_s); make it simpler"
                )
        timeout_s *= 2


def compiled(pattern: str, limits: Limits) -> regex.Pattern[str]:
    """Return ``pattern`` ready to be used; StackValidationFailed for one that cannot be."""
    if len(pattern) > limits.pattern_chars:
        _refuse(pattern, f"it has more than {limits.pattern_chars} characters (pattern_chars)")
    return _compiled(pattern)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex

    try:
        return regex.compile(_translated(pattern), flags=regex.VERSION0)
    except (regex.error, RecursionError, OverflowError) as exc:
        reason = "groups are nested too deep" if isinstance(exc, RecursionError) else str(exc)
        _refuse(pattern, reason)


def _translated(pattern: str) -> str:
    """Return ``pattern`` so that ``regex`` reads it as ``re`` would."""
    parts, size = [], _Size()
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup or "", token[0]
        if kind == "odd":
            _refuse(pattern, f"{text!r} is not known here")
        parts.append(_spelled(pattern, kind, text))
        size.take(kind, token["least"])
    if size.total() > _UNROLLED:
        _refuse(pattern, "its counted repeats multiply to too much; use smaller counts")
    return "".join(parts)


def _spelled(pattern: str, kind: str, text: str) -> str:
    if kind == "brace":
        return r"\{"  # literal for ``re``, a fuzzy match for ``regex``
    if kind == "escape":
        _know(pattern, text)
    elif kind == "set":
        return _spelled_set(pattern, text)
    return text


def _spelled_set(pattern: str, text: str) -> str:
    """Keep ``regex`` from seeing nested sets, set operations and named classes."""
    parts = [text[0]]
    for member in re.finditer(r"\\.|.", text[1:-1], re.DOTALL):
        if member[0].startswith("\\"):
            _know(pattern, member[0])
        doubled = member[0] in "-&|~" and parts[-1].endswith(member[0])
        parts.append(f"\\{member[0]}" if doubled or member[0] == "[" else member[0])
    return "".join([*parts, "]"])


def _know(pattern: str, escape: str) -> None:
    letter = escape[1]
    if letter.isascii() and letter.isalnum() and letter not in _LETTERS:
        _refuse(pattern, f"bad escape {escape}")


class _Size:
    """How many atoms a pattern has once ``a{3}`` is written out as ``aaa``."""

    __slots__ = ("frames",)

    def __init__(self) -> None:
        self.frames = [[0, 0]]  # of each open group: what is closed, and the last atom

    def take(self, kind: str, least: str | None) -> None:
        frame = self.frames[-1]
        if kind == "least":
            frame[1] *= max(int((least or "1")[:9]), 1)
        elif kind == "open":
            self.frames.append([0, 0])
        elif kind == "close" and len(self.frames) > 1:
            inner = sum(self.frames.pop())
            self._atom(inner + 1)
        elif kind not in {"repeat", "comment", "flags"}:
            self._atom(1)

    def _atom(self, size: int) -> None:
        frame = self.frames[-1]
        frame[0] += frame[1]
        frame[1] = size

    def total(self) -> int:
        return sum(sum(frame) for frame in self.frames)


def _refuse(pattern: str, why: str) -> NoReturn:
    shown = pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}..."
    raise errors.StackValidationFailed(reason=f"cannot use the regular expression {shown!r}: {why}")
