"""doc/explanation/architecture.md names the six places that a request passes; they are there.

And operations know no word of the API, so that pages and stacks can call them as it does.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "doc/explanation/architecture.md").read_text()
NAMED = re.findall(r"^\d\. `([\w/.]+):([\w.]+)`", PAGE, re.MULTILINE)


def test_six_places_are_named() -> None:
    assert len(NAMED) == 6


@pytest.mark.parametrize(("file", "function"), NAMED)
def test_the_named_function_is_where_the_page_says(file: str, function: str) -> None:
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
    for name in function.split("."):
        found = [s for s in body if getattr(s, "name", None) == name]
        assert found, f"{file} has no {function}"
        body = getattr(found[0], "body", [])


OPERATIONS = sorted((ROOT / "bloomery/operations").glob("**/*.py"))
WORDS_OF_THE_API = re.compile(
    r"bloomery\.api|\bversion\b|microversion|_SINCE\b|\b1\.\d+\b"  # who is asking in which version
    r"|/v1\b|\bhref\b|\blinks?\b|\burl\b|Fragment",  # where things are, ready to be sent
)


def words_of_the_api(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if WORDS_OF_THE_API.search(line)]


@pytest.mark.parametrize("path", OPERATIONS, ids=lambda path: path.stem)
def test_operations_know_no_word_of_the_api(path: Path) -> None:
    assert words_of_the_api(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "from bloomery.api import versions",
        "if ctx.version < 39:",
        "NAMES_SINCE: Final = 5",
        '"""Nodes have names since 1.5."""',
        'return f"{ctx.url}"',
        'f"/v1/nodes/{uuid}"',
        '{"links": []}',
        'orjson.Fragment("{}")',
    ],
)
def test_words_of_the_api_are_noticed(line: str) -> None:
    assert words_of_the_api(line) == [line]
