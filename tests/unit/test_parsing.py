"""Text of strangers: deep JSON, deep YAML and aliases of aliases are refused before they cost."""

from __future__ import annotations

import json
import time

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from oslo_utils import strutils

from bloomery import parsing

DEEP = 200_000
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
        parsing.check_depth(body, most)
    except parsing.TooMuch:
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


def bomb(levels: int, width: int = 10) -> str:
    """Return a map whose last value has ``width`` ** ``levels`` texts."""
    lines = ["a0: &a0 x"]
    for level in range(1, levels + 1):
        uses = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{uses}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * DEEP, id="lists without an end"),
        pytest.param("[" * DEEP + "]" * DEEP, id="lists"),
        pytest.param('{"a":' * DEEP + "1" + "}" * DEEP, id="maps"),
        pytest.param("[" * 900 + "]" * 900, id="what a parser still takes"),
    ],
)
@pytest.mark.parametrize("parse", [parsing.load_json, parsing.load_yaml, parsing.compose_yaml])
@pytest.mark.parametrize("kind", [str, bytes])
def test_deep_text_is_refused(parse, kind, text):
    with pytest.raises(parsing.TooMuch, match="it nests too deep: 100 levels are allowed"):
        parse(text if kind is str else text.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb(10), id="ten levels of ten aliases"),
        pytest.param(bomb(500, 1), id="a long chain of aliases"),
        pytest.param("a: &a [*a]", id="an alias within its own list"),
        pytest.param("a: &a {b: {c: *a}}", id="an alias within its own map"),
        pytest.param("x: &x [" + "y, " * 1000 + "]\nz: [" + "*x, " * 1001 + "]", id="many uses"),
        pytest.param("x: &x {a: 1}\n" + "".join(
            f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 9) if n else '*x'}]}}\n"
            for n in range(9)
        ), id="merges of merges"),
        pytest.param("".join(f"{' ' * n}a:\n" for n in range(101)), id="indented maps"),
    ],
)  # fmt: skip
def test_yaml_is_counted_as_if_it_were_written_out(text):
    with pytest.raises(parsing.TooMuch):
        parsing.load_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [1, 2]\nb: [*a, *a]\nc: {<<: &d {e: f}}", id="aliases"),
        pytest.param(json.dumps({"nodes": [{"name": f"n{n}"} for n in range(500)]}), id="many"),
        pytest.param("[" * 100 + "]" * 100, id="as deep as allowed"),
        pytest.param("", id="nothing"),
    ],
)
def test_usual_yaml_is_read_as_ever(text):
    assert parsing.load_yaml(text) == yaml.safe_load(text)


@given(JSON)
def test_json_is_read_as_ever(value):
    assert parsing.load_json(json.dumps(value)) == value


BOOLEANS = st.none() | st.booleans() | st.integers(-1, 2) | st.text(max_size=6) | st.sampled_from(
    [f"{before}{word}{after}" for word in (*strutils.TRUE_STRINGS, *strutils.FALSE_STRINGS)
     for before, after in (("", ""), (" ", "\n"), ("x", ""))]
).flatmap(lambda word: st.sampled_from([word, word.upper(), word.title()]))  # fmt: skip


@given(BOOLEANS, st.booleans())
def test_booleans_are_read_as_oslo_reads_them(value, default):
    def answer(read):
        try:
            return read(value, strict=True)
        except ValueError as exc:
            return str(exc)

    assert answer(parsing.boolean) == answer(strutils.bool_from_string)
    own = parsing.boolean(value, default=default)
    assert own == strutils.bool_from_string(value, default=default)
