#!/usr/bin/env python3
"""Refuse what must not be committed: unfinished business, places of one machine, long lines.

The lock file and the documents travel to other machines, so neither the path of somebody's
checkout nor the host of somebody's package index belongs in them. Lines of
pages stay short.
Prints file:line for each find.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED: Final = {
    "unfinished": re.compile(r"\b(?:TODO|FIXME|XXX)\b"),
    "a path of one machine": re.compile(r"(?<![\w.*])/(?:root|work|farm|home/\w+|Users/\w+)/"),
    "a package index": re.compile(
        r"(?:index-url|find-links|trusted-host)[ =]"
        r"|//[\w.-]*(?:pypi|devpi|artifactory|nexus)[\w.-]*/"
    ),
}

PAGE_WIDTH: Final = 120  # lines of pages are shorter, but for code and links that cannot be cut
ROW_WIDTH: Final = 220  # rows of tables cannot be cut at all
WRITTEN_BY_TOOLS: Final = frozenset({"bmc-faults.md", "conformance.md"})


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name and Path(name) != this_file()]


def this_file() -> Path:
    return Path(__file__).resolve().relative_to(Path.cwd())


def finds(path: Path) -> Iterator[str]:
    """What is refused in one file; a file that is not text has no words."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError):
        return
    for number, line in enumerate(lines, start=1):
        for why, pattern in REFUSED.items():
            if found := pattern.search(line):
                yield f"{path}:{number}: {why}: {found.group()}"
    if path.suffix == ".md" and path.name not in WRITTEN_BY_TOOLS:
        yield from (f"{path}:{number}: a long line" for number in long_lines(lines))


def long_lines(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of the lines of a page that are too long; code is left alone."""
    is_code = False
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            limit = ROW_WIDTH if line.startswith("|") else PAGE_WIDTH
            if len(line) >= limit and " " in line.strip():
                yield number


def main() -> int:
    found = [line for path in tracked() for line in finds(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
