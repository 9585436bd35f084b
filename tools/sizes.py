#!/usr/bin/env python3
"""Print how big the house is: lines of each room, the grain of its functions, moves of a request.

``tests/invariants/test_sizes.py`` holds each figure to a limit.

- Lines of a room are the lines of its Python files, all of them.
- A function's length is that of its body, from the first line behind the docstring to the last.
- A one-caller helper is a private function that its file names once, in a call.
- Moves: see ``tools/route.py``.

    tools/sizes.py                 every figure, a line each
    tools/sizes.py helpers         the one-caller helpers, by file
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import route

ROOT: Final = Path(__file__).resolve().parent.parent
PRODUCT: Final = ROOT / "bloomery"
LONG: Final = 10  # lines of a body that tells a thought


class Function(NamedTuple):
    file: str
    line: int
    name: str
    length: int
    is_helper: bool  # with one caller


def figures() -> dict[str, int]:
    """Return every figure by its name; shares are in tenths of a per cent."""
    files = sorted(PRODUCT.rglob("*.py"))
    lines = Counter[str]()
    for path in files:
        lines[_room(path)] += _lines(path)
    functions = [*_functions(files)]
    lengths = sorted(each.length for each in functions)
    helpers = sum(each.is_helper for each in functions)
    walked = route.walk()
    return {
        "lines of the product": lines.total(),
        "lines of the tests": sum(map(_lines, (ROOT / "tests").rglob("*.py"))),
        **{f"lines of {room}": count for room, count in sorted(lines.items())},
        "files of the product": len(files),
        "functions": len(lengths),
        "functions of under ten lines, per mille": (
            1000 * sum(length < LONG for length in lengths) // len(lengths)
        ),
        "one-caller helpers": helpers,
        **{f"moves of {name}": len(each.moves) for name, each in walked.items()},
        **{f"files of {name}": len(each.files) for name, each in walked.items()},
    }


def _room(path: Path) -> str:
    """Return ``bloomery``, a folder of it, or a folder of ``bloomery/orchestration``."""
    folders = path.relative_to(ROOT).parts[:-1]
    return "/".join(folders[: 3 if folders[1:2] == ("orchestration",) else 2])


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _functions(files: list[Path]) -> Iterator[Function]:
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named, called = Counter[str](), Counter[str]()
        for node in ast.walk(tree):
            named[_name(node)] += 1
            if isinstance(node, ast.Call):
                called[_name(node.func)] += 1
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
            last = body[-1].end_lineno if body else None
            yield Function(
                file=str(path.relative_to(ROOT)),
                line=node.lineno,
                name=node.name,
                length=last - body[0].lineno + 1 if last else 0,
                is_helper=node.name.startswith("_")
                and not node.name.startswith("__")
                and named[node.name] == called[node.name] == 1,
            )


def _name(node: ast.AST) -> str:
    """Return the name that an expression uses: ``x`` of ``x`` and of ``self.x``."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("list", nargs="?", choices=("helpers",))
    if parser.parse_args().list:
        for each in _functions(sorted(PRODUCT.rglob("*.py"))):
            if each.is_helper:
                print(f"{each.file}:{each.line} {each.name}: {each.length} lines")
        return 0
    for name, figure in figures().items():
        print(f"{figure:>7}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
