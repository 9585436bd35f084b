"""Bodies: limits, depth, and what no database could keep."""

from __future__ import annotations

import io

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.http_server import bodies

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(st.binary())
def test_any_bytes_are_parsed_or_refused(body):
    try:
        bodies.parse(body)
    except errors.Invalid:
        return


@given(JSON)
def test_what_has_no_nul_is_taken_as_it_is(value):
    body = orjson.dumps(value)
    if b"\\u0000" not in body:
        assert bodies.parse(body) == value


@pytest.mark.parametrize(
    ("environ", "limit", "found"),
    [
        ({}, 10, b""),
        ({"CONTENT_LENGTH": ""}, 10, b""),
        ({"CONTENT_LENGTH": "0"}, 10, b""),
        ({"CONTENT_LENGTH": "x"}, 10, b""),
        ({"CONTENT_LENGTH": "4"}, 4, b"abcd"),
        ({"HTTP_TRANSFER_ENCODING": "Chunked"}, 6, b"abcdef"),
        ({"CONTENT_LENGTH": "5"}, 4, None),
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, 5, None),
    ],
)
def test_body_is_read_within_its_limit(environ, limit, found):
    stream = io.BytesIO(
        b"abcdef"[: int(environ.get("CONTENT_LENGTH") or 6)]
        if "x" not in environ.get("CONTENT_LENGTH", "")
        else b"abcdef"
    )
    environ |= {"wsgi.input": stream}
    if found is None:
        with pytest.raises(bodies.TooLarge):
            bodies.read(environ, limit, 1)
    else:
        assert bodies.read(environ, limit, 1) == found


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"a": "\\u0000"}', "Schema error for a:"),
        (b'{"a": {"b": ["x", "\\u0000"]}}', "Schema error for a/b:"),
        (b'"\\u0000"', "Schema error for body:"),
    ],
)
def test_nul_is_refused_with_its_place(body, where):
    with pytest.raises(errors.Invalid, match=where):
        bodies.parse(body)


def test_text_that_only_looks_like_nul_is_fine():
    assert bodies.parse(b'{"a": "\\\\u0000"}') == {"a": "\\u0000"}
