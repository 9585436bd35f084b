"""No script of the pages has a provision state or a code of a problem: the service sends both."""

from __future__ import annotations

import re
from typing import Final

import pytest

from bloomery.conductor import states
from bloomery.model.rules import nodes
from bloomery.web import pages

SCRIPTS: Final = sorted(pages.FOLDER.glob("*.js"))
FIELDS: Final = {"last_error", "maintenance"}  # of a node, whose names are codes, too
WORDS: Final = frozenset(states.State) | nodes.PROBLEMS.keys() - FIELDS
_TEXT: Final = re.compile(r"(?=(['\"`])([a-z_ -]+)\1)")
_KEY: Final = re.compile(r"[{,]\s*([a-z_]+):")
_COMMENT: Final = re.compile(r"(^|\s)//.*")
# The file, a word, and what the word means there.
ALLOWED: Final = {
    ("events.js", "error"): "the level of an event",
    ("others.js", "active"): "the state of an allocation or a webhook",
    ("states.js", "available"): "the label of a kind",
}


def words_of(script: str) -> set[str]:
    code = "\n".join(_COMMENT.sub("", line) for line in script.splitlines())
    texts = {match[2] for match in _TEXT.finditer(code)}
    keys = set(_KEY.findall(code)) - {"error"}  # of answers: {error: …}
    return (texts | keys) & WORDS


@pytest.mark.parametrize(
    "line",
    ["if (state === 'clean failed') …", "{enroll: [0, 1]}", 'code = "no_conductor"', "x: 'active'"],
)
def test_a_typed_word_is_found(line: str) -> None:
    assert len(words_of(line)) == 1


def test_the_pages_type_no_word_of_the_service() -> None:
    typed = {(path.name, word) for path in SCRIPTS for word in words_of(path.read_text("utf-8"))}
    assert typed == ALLOWED.keys()
