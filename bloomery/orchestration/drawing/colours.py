"""Which kind and which status gets which colour: dark enough on white, told apart by most eyes."""

from __future__ import annotations

import zlib
from typing import Final

INK: Final = "#1f2933"
FAINT: Final = "#616e7c"
LINE: Final = "#8794a5"
AGAINST: Final = "#c62828"  # an edge that closes a circle
PAPER: Final = "#ffffff"
CARD_EDGE: Final = "#c3ccd8"

# What a status says, by the first of these words that is in it.
STATUSES: Final = (
    ("init", FAINT),
    ("fail", "#c62828"),
    ("error", "#c62828"),
    ("progress", "#b45309"),
    ("complete", "#1b7f4b"),
    ("delete", "#b23a6f"),
    ("replace", "#b45309"),
    ("update", "#1d5fbf"),
    ("create", "#1b7f4b"),
)

_KINDS: Final = (
    "#3b6fb6", "#2a9187", "#8457b8", "#c2772a", "#b8507c", "#5f8a2f", "#5468c4", "#a1603f",
    "#3a8fb0", "#9a7b1e",
)  # fmt: skip
_NO_KIND: Final = "#9aa5b1"

# Cluster by depth: fill and edge, from light to less light, then again.
CLUSTERS: Final = (("#f4f7fb", "#b9c6d8"), ("#e8eef6", "#a9b9cf"), ("#f7f5ee", "#cfc6ab"))


def of_status(status: str) -> str:
    said = status.lower()
    return next((colour for word, colour in STATUSES if word in said), FAINT)


def of_kind(kind: str) -> str:
    """The same for the same kind in every picture."""
    if not kind:
        return _NO_KIND
    return _KINDS[zlib.crc32(kind.encode("utf-8", "replace")) % len(_KINDS)]
