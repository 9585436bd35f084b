"""doc/architecture.md names the six places that a request passes; they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "doc/architecture.md").read_text()
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
