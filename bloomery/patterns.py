"""Users' regular expressions: bounded in size, memory and time.

They are written for Python's ``re``, which cannot be interrupted; ``regex`` can, but has more
syntax (recursion, fuzzy matches) and unrolls ``(…){1000}`` while compiling.  So a pattern is parsed
before it is compiled: syntax unknown to ``re`` is refused or made literal, as in ``re``, and a
pattern that would unroll to more than ``_UNROLLED`` atoms is refused::

    patterns.fullmatch("[a-z]{3}", "abc", limits)  # True
    patterns.refusal("[a-z", limits)  # its fault, as one sentence
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
    """The default limits."""

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
_LETTERS: Final = frozenset("AbBdDsSwWZafnrtvxuU0123456789")  # escapes of ``re``


def fullmatch(pattern: str, text: str, limits: Limits) -> bool:
    """Does ``pattern`` match all of ``text``?  Raises StackValidationFailed if unusable."""
    return (
        bounded(pattern, text, limits, lambda match, s: match.fullmatch(text, timeout=s))
        is not None
    )


def refusal(pattern: str, limits: Limits) -> str | None:
    """Return the fault of ``pattern`` as one sentence; None if it is usable."""
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
    """Return the result of ``use`` for the compiled pattern; ``use`` passes on the time-out.

    ``regex`` counts the time of all threads of the process.  A match that had less than
    ``pattern_s`` for itself is repeated with twice the time.
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
    """Return the compiled ``pattern``; StackValidationFailed for an unusable one."""
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
        if kind == "brace":
            text = r"\{"  # literal for ``re``, a fuzzy match for ``regex``
        elif kind == "escape":
            _know(pattern, text)
        elif kind == "set":
            text = _spelled_set(pattern, text)
        parts.append(text)
        size.take(kind, token["least"])
    if size.total() > _UNROLLED:
        _refuse(pattern, "its counted repeats multiply to too much; use smaller counts")
    return "".join(parts)


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
    """The number of a pattern's atoms once ``a{3}`` is unrolled to ``aaa``."""

    __slots__ = ("frames",)

    def __init__(self) -> None:
        self.frames = [[0, 0]]  # of each open group: the closed atoms, and the last atom

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
    start = pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}..."
    raise errors.StackValidationFailed(reason=f"cannot use the regular expression {start!r}: {why}")
