"""Style of pictures: colours of kinds, and names escaped, measured and shortened.

Colours are dark enough on white, and most readers can distinguish them.
"""

from __future__ import annotations

import unicodedata
import zlib
from typing import Final
from xml.sax import saxutils

INK: Final = "#1f2933"
FAINT: Final = "#616e7c"
LINE: Final = "#8794a5"
PAPER: Final = "#ffffff"
CARD_EDGE: Final = "#c3ccd8"

_KINDS: Final = (
    "#3b6fb6", "#2a9187", "#8457b8", "#c2772a", "#b8507c", "#5f8a2f", "#5468c4", "#a1603f",
    "#3a8fb0", "#9a7b1e",
)  # fmt: skip
_NO_KIND: Final = "#9aa5b1"

# Cluster by depth: fill and edge, from light to less light, then again.
CLUSTERS: Final = (("#f4f7fb", "#b9c6d8"), ("#e8eef6", "#a9b9cf"), ("#f7f5ee", "#cfc6ab"))


def kind_colour(kind: str) -> str:
    """Return the colour of a kind, the same in every picture."""
    if not kind:
        return _NO_KIND
    return _KINDS[zlib.crc32(kind.encode("utf-8", "replace")) % len(_KINDS)]


TITLE_CHARS: Final = 500  # most characters of a name in a title

# Widths of characters in Helvetica and similar fonts, in units of the font size.
_NARROW: Final = dict.fromkeys("iljI.,:;'|!()[]{} tfr-/\\", 0.32)
_WIDE: Final = dict.fromkeys("mwMW@%_OQGDHNUC&<>=+~#", 0.8)
_USUAL: Final = 0.58
_BOLD: Final = 1.1


def clean(text: str) -> str:
    """Replace characters that XML or DOT cannot hold, or that reorder text, by U+FFFD or " "."""
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def escaped(text: str) -> str:
    """Escape text for XML, between tags or quotes."""
    return saxutils.escape(clean(text), {'"': "&quot;", "'": "&#39;"})


def title(text: str) -> str:
    """Return an escaped name for a title, at most ``TITLE_CHARS`` long."""
    return escaped(text if len(text) <= TITLE_CHARS else f"{text[: TITLE_CHARS - 1]}…")


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the width of a line without a font."""
    return sum(map(_units, text)) * size * (_BOLD if bold else 1)


def _units(char: str) -> float:
    if unicodedata.combining(char):
        return 0
    if unicodedata.east_asian_width(char) in "WF":
        return 1
    return _NARROW.get(char) or _WIDE.get(char) or (0.68 if char.isupper() else _USUAL)


def shortened(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Cut out the middle, where related names differ least, until the rest fits ``room``."""
    if len(text) > TITLE_CHARS:  # the middle would be cut anyway
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
