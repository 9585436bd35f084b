"""Every path leads to an endpoint or to a refusal, which names the methods of the path."""

from __future__ import annotations

import itertools

import pytest
from webob import exc as statuses

from bloomery import errors
from bloomery.api import routes, routing, versions
from bloomery.api.declare import Call

TABLE = routing.Table(routes.ENDPOINTS)
WORDS = sorted(
    {word for each in routes.ENDPOINTS for word in routing.segments_of(each.path) if word[0] != "{"}
)
OLD = sorted(routing.OLD_SEGMENTS)


def call_of(method: str, query: dict[str, str] | None = None, version: int = versions.MAX) -> Call:
    return Call(
        context=None, method=method, url="", version=version, query=dict(query or {}),
        body=b"", content_type="",
    )  # fmt: skip


def found(method: str, path: tuple[str, ...], query: dict[str, str] | None = None) -> bool:
    """Return whether an endpoint answers the path."""
    try:
        routing.find(TABLE, call_of(method, query), "/".join(path))
    except (statuses.HTTPException, errors.Failure):
        return False
    return True


@pytest.mark.parametrize("version", [1, 90, versions.MAX])
def test_a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has(version):
    paths = {each.path for each in routes.ENDPOINTS}
    assert len(paths) > 100
    for path in paths:
        here = [each for each in routes.ENDPOINTS if each.path == path]
        if min(each.since for each in here) > version:
            continue
        allowed = {each.method for each in here} | {"HEAD" for each in here if each.has_head}
        for method in ("HEAD", "TRACE", "PROPFIND", "GET", "POST", "PUT", "PATCH", "DELETE"):
            if method not in allowed:
                with pytest.raises(statuses.HTTPMethodNotAllowed) as refusal:
                    routing.find(
                        TABLE, call_of(method, version=version), path.replace("{node}", "n")
                    )
                assert refusal.value.headers["Allow"] == ", ".join(sorted(allowed))


def test_an_endpoint_is_declared_once():
    with pytest.raises(ValueError, match="declared twice"):
        routing.Table([*routes.ENDPOINTS, routes.ENDPOINTS[0]])


@pytest.mark.parametrize(
    ("before", "words", "length"),
    [
        pytest.param((), WORDS, 2, id="any two words"),
        pytest.param(("v1", "nodes"), WORDS, 2, id="any two words behind nodes"),
        pytest.param(("v1", "nodes"), OLD, 4, id="the words of the old paths, repeated"),
        pytest.param(("ext", "v1", "nodes"), WORDS, 2, id="any two words behind our nodes"),
    ],
)
def test_no_path_is_an_error_of_ours(before, words, length):
    for path in itertools.product(words, repeat=length):
        for method in ("GET", "PUT"):
            found(method, (*before, *path))


@pytest.mark.parametrize("ident", [word for word in WORDS if word.isidentifier()])
def test_word_of_a_path_is_an_ident_where_an_ident_is_due(ident):
    assert found("GET", ("v1", "nodes", "states"), {"node_ident": ident})
    assert found("GET", ("v1", "nodes", "vendor_passthru"), {"node_ident": ident})
