"""A document written as YAML is read back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.orchestration.template import parse, write

ROOT = Path(__file__).parents[4]
EXAMPLES = [
    path for path in sorted((ROOT / "examples").rglob("*.yaml")) if path.stem != "catalogue"
]
TEXTS = [
    "", " ", "yes", "null", "~", "1", "1.5", "1e3", "0o17", "12:30:45", "2021-04-16", "0x1f",
    "- a", "a: b", "#a", "*a", "&a", "!a", "%a", "@a", "`a", "a\n", "a\nb", "a\nb\n\n", " a\n b",
    "a \nb", "\ta\nb", "a\r\nb", "é\n\U0001f600", "\x85", "\u2028", "'\"\\", "x" * 300,
    "a word " * 40, "=", "<<", "a\n# b", "---\n...",
]  # fmt: skip


@pytest.mark.parametrize("value", [*TEXTS, *(f"line\n{each}" for each in TEXTS)])
def test_a_text_is_read_back(value: str) -> None:
    document = {"a": value, "b": [value, {"c": value}]}
    assert parse.document(write.text(document)) == document
    if value not in ("", "<<"):  # which is no key, or merges
        assert parse.document(write.text({value: 1, "x": {}})) == {value: 1, "x": {}}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_read_back_in_its_order(path: Path) -> None:
    document = parse.document(path.read_text())
    again = parse.document(write.text(document))
    assert again == document
    assert list(again) == list(document)


def test_what_stands_twice_is_written_twice() -> None:
    shared: dict[str, Any] = {"a": 1}
    assert write.text({"x": shared, "y": shared}) == "x:\n  a: 1\ny:\n  a: 1\n"


def test_lines_are_a_block() -> None:
    assert write.text({"script": "#!/bin/sh\necho 1\n"}) == "script: |\n  #!/bin/sh\n  echo 1\n"
