"""The walk from a path to a method ends for every path."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from webob import exc as statuses

from bloomery import errors
from bloomery.api import versions
from bloomery.api.controllers import root
from bloomery.api.controllers.v1 import old_paths
from bloomery.api.declare import Call
from bloomery.api.routing import Rest

ROOT = root.Root()


def controllers(controller: Rest) -> Iterator[Rest]:
    yield controller
    for part in (*controller.children.values(), *controller.subresources.values()):
        yield from controllers(part)


WORDS = sorted(
    {word for each in controllers(ROOT) for word in {*each.children, *each.subresources}}
)
OLD = sorted(old_paths.WORDS)


def found(method: str, path: tuple[str, ...], query: dict[str, str] | None = None) -> bool:
    """Walk the path, and return whether a method answers it."""
    call = Call(
        context=None, method=method, url="", version=versions.MAX, query=dict(query or {}),
        body=b"", content_type="",
    )  # fmt: skip
    try:
        return hasattr(ROOT.walk(call, list(path)), "endpoint")
    except (statuses.HTTPException, errors.Failure):
        return False


@pytest.mark.parametrize(
    ("before", "words", "length"),
    [
        pytest.param((), WORDS, 2, id="any two words"),
        pytest.param(("v1", "nodes"), WORDS, 2, id="any two words behind nodes"),
        pytest.param(("v1", "nodes"), OLD, 4, id="the words of the old paths, repeated"),
        pytest.param(("ext", "v1", "nodes"), WORDS, 2, id="any two words behind our nodes"),
    ],
)
def test_walk_returns_nowhere_it_has_been(before, words, length):
    for path in itertools.product(words, repeat=length):
        for method in ("GET", "PUT"):
            found(method, (*before, *path))


@pytest.mark.parametrize("ident", [word for word in WORDS if word.isidentifier()])
def test_word_of_a_path_is_an_ident_where_an_ident_is_due(ident):
    assert found("GET", ("v1", "nodes", "states"), {"node_ident": ident})
    assert found("GET", ("v1", "nodes", "vendor_passthru"), {"node_ident": ident})
