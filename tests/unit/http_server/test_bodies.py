"""Bodies: limits, depth, and what no database could keep."""

from __future__ import annotations

import io
import time

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


def depth_of(value):
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def is_too_deep(body, most):
    try:
        bodies.check_depth(body, most)
    except bodies.TooDeep:
        return True
    return False


@given(JSON, st.integers(1, 6))
def test_depth_is_that_of_the_parsed_body(value, most):
    assert is_too_deep(orjson.dumps(value), most) == (depth_of(value) > most)


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 500_000 + b"[" * 30,
        b"[]" * 20 + b'"' + b"x" * 2_000_000 + b"\\",
        b'["' * 500_000,
        b"[" * 20 + b'"' * 1_000_001,
    ],
)
def test_hostile_body_takes_no_longer_than_its_length(body):
    began = time.process_time()
    is_too_deep(body, 25)
    assert time.process_time() - began < 2


@given(st.binary())
def test_any_bytes_are_parsed_or_refused(body):
    try:
        bodies.parse(body)
    except errors.Invalid:
        return
    is_too_deep(body, 3)


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
