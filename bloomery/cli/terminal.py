"""Lines for terminals: columns, short values, no control characters."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console

MOST_CHARS: Final = 100  # of one value on one line
_WIDTH: Final = 160  # characters of a line where the output is no terminal
_NARROW: Final = 20  # characters; a narrower last column is not wrapped
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
OBEYED: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # a tab is harmless


def csv_cell(value: object) -> str:
    """Return a cell that no spreadsheet runs as a formula; a list becomes words."""
    text = " ".join(value) if isinstance(value, list) else str("" if value is None else value)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def console() -> Console:
    """Return a console for tables; wide where the output is no terminal."""
    from rich.console import Console  # slow to import

    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def columns(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Align rows of texts in columns; a terminal's edge wraps the last column between words.

    Where the other columns leave no room for the last one, each column is wrapped.
    """
    rows = [tuple(visible(" ".join(str(cell).split())) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    indent = sum(width + 2 for width in widths[:-1])
    width = edge()
    if width is not None and sum(widths[-1:]) + indent > width and indent > width - _NARROW:
        from rich.console import Console  # slow to import
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console = Console(width=width, color_system=None)
        with console.capture() as capture:
            console.print(table)
        return [line.rstrip() for line in capture.get().splitlines()]
    return [
        wrapped(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip(),
            indent,
        )
        for row in rows
    ]


def echo(line: str, *, err: bool = False) -> None:
    """Print a line without control characters, wrapped at a terminal's edge between words."""
    own_indent = len(line) - len(line.lstrip())
    click.echo(wrapped(visible(line), own_indent + 2), err=err)


def wrapped(line: str, indent: int) -> str:
    """Wrap a line at the terminal's edge, if there is one; further lines are indented."""
    width = edge()
    if width is None or len(line) <= width or width - indent < _NARROW:
        return line
    head, rest = line[:indent], line[indent:]
    return head + textwrap.fill(
        rest, width - indent, break_long_words=False, break_on_hyphens=False
    ).replace("\n", "\n" + " " * indent)


def edge() -> int | None:
    """Return the width of the terminal, or None where the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: 1 node, 2 nodes."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def tally(noun: str, actions: Sequence[str]) -> str:
    """Return what was done to how many: ``3 machines: 2 created, 1 refused``."""
    counts = Counter(actions).items()
    return f"{amount(len(actions), noun)}: " + (", ".join(f"{n} {a}" for a, n in counts) or "-")


def visible(line: str) -> str:
    """Return ``line`` without control characters."""
    return OBEYED.sub(lambda match: repr(match[0])[1:-1], line)


def brief(value: Any) -> str:
    """Return a value on one line of a table, shortened."""
    text = value if isinstance(value, str) else as_json(value)
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


def as_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
