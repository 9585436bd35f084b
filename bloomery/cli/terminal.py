"""Lines for terminals: columns, short values, no control characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_CHARS: Final = 100  # of one value on one line
_WIDTH: Final = 160  # characters of a line where the output is no terminal
OBEYED: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # a tab is harmless


def console() -> Console:
    """Return a console for tables; wide where the output is no terminal."""
    from rich.console import Console  # slow to import

    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def columns(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Align rows of texts in columns."""
    rows = [tuple(visible(" ".join(str(cell).split())) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def visible(line: str) -> str:
    """Return ``line`` without control characters."""
    return OBEYED.sub(lambda match: repr(match[0])[1:-1], line)


def brief(value: Any) -> str:
    """Return a value on one line of a table, shortened."""
    text = value if isinstance(value, str) else as_json(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."


def as_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
