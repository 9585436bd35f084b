"""Names as they may be written: escaped, measured, shortened."""

from __future__ import annotations

import unicodedata
from typing import Final
from xml.sax import saxutils

TITLE_CHARS: Final = 500  # of a name that is told in full

# Widths in units of the font size, as Helvetica and its like have them.
_NARROW: Final = dict.fromkeys("iljI.,:;'|!()[]{} tfr-/\\", 0.32)
_WIDE: Final = dict.fromkeys("mwMW@%_OQGDHNUC&<>=+~#", 0.8)
_USUAL: Final = 0.58
_BOLD: Final = 1.1


def clean(text: str) -> str:
    """Replace what XML and DOT cannot hold or what would turn the text around it: U+FFFD."""
    return "".join(char if char.isprintable() else _spared(char) for char in text)


def _spared(char: str) -> str:
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"


def escaped(text: str) -> str:
    """Write text into XML, between tags or quotes."""
    return saxutils.escape(clean(text), {'"': "&quot;", "'": "&#39;"})


def told(text: str) -> str:
    """A name as a title tells it: in full, if it is not absurdly long."""
    return escaped(text if len(text) <= TITLE_CHARS else f"{text[: TITLE_CHARS - 1]}…")


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Guess how wide a line is; no font is at hand."""
    return sum(map(_units, text)) * size * (_BOLD if bold else 1)


def _units(char: str) -> float:
    if unicodedata.combining(char):
        return 0
    if unicodedata.east_asian_width(char) in "WF":
        return 1
    return _NARROW.get(char) or _WIDE.get(char) or (0.68 if char.isupper() else _USUAL)


def shortened(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Cut out the middle, where names of one family differ least, until the rest has room."""
    if len(text) > TITLE_CHARS:  # of which nothing in the middle could be left anyway
        text = text[: TITLE_CHARS // 2] + text[-TITLE_CHARS // 2 :]
    text = clean(text)
    if width(text, size, bold=bold) <= room:
        return text
    keep = len(text)
    while keep > 1:
        keep -= 1
        head = (keep + 1) // 2
        tail = text[len(text) - (keep - head) :]
        cut = f"{text[:head]}…{tail}"
        if width(cut, size, bold=bold) <= room:
            return cut
    return "…"
