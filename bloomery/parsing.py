"""JSON, YAML and booleans that strangers wrote: BMCs, agents, other services, files of a command.

    parsing.load_json(answer)            # at most LEVELS deep
    parsing.load_yaml(file.read_text())  # and at most VALUES, counted at each use of an alias

Deep text would end a parser, or the code behind it, with RecursionError; aliases of aliases would
take all memory.  Both are refused before anything is built.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import yaml

LEVELS: Final = 100
VALUES: Final = 1_000_000
# Brackets, and whole texts, whose brackets do not count.  A text always matches, even without an
# end, and is scanned once: time is linear in the length.
_BRACKETS: Final = re.compile(rb""""[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[][{}]""", re.DOTALL)
_STEPS: Final = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_TRUE: Final = ("1", "on", "t", "true", "y", "yes")  # Ironic's, by oslo.utils
_FALSE: Final = ("0", "f", "false", "n", "no", "off")


class TooMuch(ValueError):
    """The text nests deeper, or has more values, than it may."""


def load_json(text: bytes | str, levels: int = LEVELS) -> Any:
    """Return the document.  Raises TooMuch, and other ValueErrors where it is no JSON."""
    check_depth(text.encode(errors="surrogatepass") if isinstance(text, str) else text, levels)
    return json.loads(text)


def check_depth(body: bytes, most: int) -> None:
    """Raise TooMuch if brackets nest deeper than ``most``; short bodies need no scan."""
    if body.count(b"{") + body.count(b"[") <= most:
        return
    depth = 0
    for token in _BRACKETS.finditer(body):
        depth += _STEPS.get(token[0], 0)
        if depth > most:
            raise _too_deep(most)


def boolean(value: Any, *, strict: bool = False, default: bool = False) -> bool:
    """Return a boolean as oslo.utils reads it, whose import compiles 420 regular expressions.

    ``default``: for any other text.  ``strict``: raise a ValueError for it instead, in the words of
    oslo.utils, which Ironic's answers show.
    """
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    if strict:
        words = ", ".join(repr(each) for each in sorted(_TRUE + _FALSE))
        raise ValueError(f"Unrecognized value '{value}', acceptable values are: {words}")
    return default


def trust(value: Any) -> bool | str:
    """Return how certificates are verified: True, False, or by a file or folder of CAs.

    Raises ValueError, which says what is allowed.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("must be true, false, or a path")  # noqa: TRY004  as for any other value
    try:
        return boolean(value, strict=True)
    except ValueError:
        if Path(value).exists():
            return value
    raise ValueError(
        f"must be true, false, or the path of a file or directory that exists, not {value!r}"
    )


def load_yaml(text: str | bytes) -> Any:
    """Return the one document, with YAML's safe types.  Raises TooMuch, yaml.YAMLError."""
    import yaml  # slow to import, and rarely needed

    check_yaml(text)
    return yaml.load(text, yaml.CSafeLoader)


def compose_yaml(text: str | bytes) -> yaml.Node | None:
    """Return the nodes of the one document.  Raises TooMuch, yaml.YAMLError."""
    import yaml

    check_yaml(text)
    return yaml.compose(text, Loader=yaml.CSafeLoader)


def check_yaml(text: str | bytes) -> None:
    """Raise TooMuch for text that would become too deep, or too large.  Raises yaml.YAMLError.

    Nothing is built; an alias counts as all that its anchor names.
    """
    import yaml

    count = 0
    anchors: dict[str, tuple[int, int]] = {}  # values and levels
    outer: list[tuple[str | None, int, int]] = []  # anchor, values before, levels of its siblings
    levels = 0  # of the values in the innermost list or map so far
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            outer.append((event.anchor, count, levels))
            anchors.pop(event.anchor or "", None)
            count, levels = count + 1, 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before, siblings = outer.pop()
            levels += 1
            if anchor is not None:
                anchors[anchor] = count - before, levels
            levels = max(levels, siblings)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _, _ in outer):
                raise TooMuch(f"*{event.anchor} stands inside of what it names")
            size, height = anchors.get(event.anchor, (1, 0))
            count, levels = count + size, max(levels, height)
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            anchors.pop(event.anchor or "", None)
        if len(outer) + levels > LEVELS:
            raise _too_deep(LEVELS)
        if count > VALUES:
            raise TooMuch(f"it has more than {VALUES:,} values, each use of an alias counted")


def _too_deep(most: int) -> TooMuch:
    return TooMuch(f"it nests too deep: {most} levels are allowed")
