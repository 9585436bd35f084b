from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parse

READS: dict[str, tuple[str | bytes, Any]] = {
    "json": ('{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
    "json, later key wins": ('{"a": 1, "a": 2}', {"a": 2}),
    "json, a pair of surrogates": ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    "json, a key of 2,000 characters": (json.dumps({"k" * 2000: 1}), {"k" * 2000: 1}),
    "flow of yaml": ("{a: 1, b: [x, y]}", {"a": 1, "b": ["x", "y"]}),
    "bytes": ("a: ü".encode(), {"a": "ü"}),
    "byte order mark, yaml": ("\ufeffa: 1", {"a": 1}),
    "byte order mark, json": (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    "byte order mark inside of text": ('{"a": "\ufeff"}', {"a": "\ufeff"}),
    "begin and end of a document": ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
    "dates stay text": ("a: 2018-08-31\n2013-05-23: b", {"a": "2018-08-31", "2013-05-23": "b"}),
    "times stay text": ("a: 2018-08-31T01:02:03Z", {"a": "2018-08-31T01:02:03Z"}),
    "tagged date stays text": ("a: !!timestamp 2018-08-31", {"a": "2018-08-31"}),
    "later key wins": ("a: 1\nb: 2\na: 3", {"a": 3, "b": 2}),
    "numbers": (
        "a: [0, 5, -5, +5, 1_000, 0x1F, -0b11, 1., .5, -1.5e+3]",
        {"a": [0, 5, -5, 5, 1000, 31, -3, 1.0, 0.5, -1500.0]},
    ),
    "no numbers in YAML 1.1": (
        "a: [1e3, 08, 0o17, 1.2.3, 00:11]",
        {"a": ["1e3", "08", "0o17", "1.2.3", "00:11"]},
    ),
    "booleans": ("a: [yes, No, ON, off, true, FALSE]", {"a": [True, False] * 3}),
    "text, y and n too": ("a: [y, n, tRue]", {"a": ["y", "n", "tRue"]}),
    "nulls": ("a: [~, null, NULL, ]\nb:\nc: ''", {"a": [None] * 3, "b": None, "c": ""}),
    "quoted": ("a: ['0644', \"12:30\", 'yes', '.nan']", {"a": ["0644", "12:30", "yes", ".nan"]}),
    "quoted keys": ("'1': a\n'yes': b", {"1": "a", "yes": "b"}),
    "blocks": ("a: |\n  0644\nb: >\n  x\n  y\n", {"a": "0644\n", "b": "x y\n"}),
    "tags": (
        (
            "{a: !!str 0644, b: !!int '5', c: !!float 1, d: !!bool 'yes', e: !!null x, "
            "f: !!map {x: !!seq [1]}, g: ! 'x'}"
        ),
        {"a": "0644", "b": 5, "c": 1.0, "d": True, "e": None, "f": {"x": [1]}, "g": "x"},
    ),
    "equals sign, merge sign as values": ("a: [=, <<]\nb: <<", {"a": ["=", "<<"], "b": "<<"}),
    "quoted merge sign as key": ("'<<': {a: 1}", {"<<": {"a": 1}}),
    "aliases": (
        "a: &x {k: [1]}\nb: *x\nc: [*x, &y z, *y]\n*y : 3",
        {"a": {"k": [1]}, "b": {"k": [1]}, "c": [{"k": [1]}, "z", "z"], "z": 3},
    ),
    "an anchor given again": (
        "a: &x 1\nb: *x\nc: &x 2\nd: *x",
        {"a": 1, "b": 1, "c": 2, "d": 2},
    ),
    "merge": (
        (
            "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: *a, x: 9}\nd: {z: 9, <<: [*a, *b]}\n"
            "e: {<<: *a, <<: *b}\nf: {<<: []}"
        ),
        {
            "a": {"x": 1, "y": 1},
            "b": {"y": 2, "z": 2},
            "c": {"x": 9, "y": 1},
            "d": {"x": 1, "y": 1, "z": 9},
            "e": {"x": 1, "y": 2, "z": 2},
            "f": {},
        },
    ),
    "escapes": (r'a: "\t\e\x41\u00fc"', {"a": "\t\x1bAü"}),
}


@pytest.mark.parametrize("case", READS)
def test_a_document_becomes_what_json_could_carry(case: str):
    text, expected = READS[case]
    found = parse.document(text)
    assert found == expected
    assert json.dumps(found) == json.dumps(parse.check(found)), "and the types agree"


def test_a_number_is_no_boolean_and_a_boolean_no_number():
    found = parse.document("a: [1, 1.0, true, 0, no]")
    assert [type(each) for each in found["a"]] == [int, float, bool, int, bool]


REFUSES: dict[str, tuple[str | bytes, tuple[str | int, ...], str]] = {
    "octal": ("a:\n- x\n- b: 0644", ("a", 1, "b"), "line 3, column 6: YAML reads 0644 as the"),
    "octal, what it is read as": ("a: -0644", ("a",), "number -420: quote it ('-0644')"),
    "octal with a sign of grouping": ("a: 0_17", ("a",), "number 15"),
    "octal nothing": ("a: 00", ("a",), "YAML reads 00 as the number 0"),
    "minutes": ("a: 12:30", ("a",), "YAML reads 12:30 as the number 750: quote it ('12:30')"),
    "a mac address": ("a: 11:22:33:44:55:16", ("a",), "the number 8846009716: quote it"),
    "minutes with a fraction": ("a: -1:30.5", ("a",), "the number -90.5"),
    "tagged octal": ("a: !!int '017'", ("a",), "the number 15"),
    "not a number": ("a: .nan", ("a",), ".nan is no number that a template can hold: quote it"),
    "infinity": ("a: [-.INF]", ("a", 0), "-.INF is no number"),
    "too large a fraction": ("a: 1.0e+999", ("a",), "1.0e+999 is no number"),
    "no digits at all": ("a: 0x_", ("a",), "0x_ is no number that a template can hold: quote it"),
    "json, not a number": ('{"a": [NaN]}', ("a", 0), "nan is no number"),
    "json, infinity": ('{"a": -Infinity}', ("a",), "-inf is no number"),
    "json, too large a fraction": ('{"a": 1e999}', ("a",), "inf is no number"),
    "json, NUL": ('{"a": {"b": "\\u0000"}}', ("a", "b"), "NUL character: leave it out"),
    "json, NUL in a key": ('{"a": {"\\u0000": 1}}', ("a",), "NUL character: leave it out"),
    "json, half a character": ('{"a": "\\ud800"}', ("a",), "half of a character"),
    "yaml, half a character": ('a: "\\ud800"', (), "invalid Unicode character escape code"),
    "yaml, NUL": ('a: ["\\0"]', ("a", 0), "line 1, column 5: a text holds a NUL character"),
    "a NUL as it is": ("a: 1\nb: \0", (), "line 2, column 4: the control character U+0000"),
    "a control character": ("a: x\x07", (), "line 1, column 5: the control character U+0007"),
    "after a byte order mark inside": ("a: \ufeff\nb: \x7f", (), "line 2, column 4: the control"),
    "in json too": ('{"a": "\x07"}', (), "line 1, column 8: the control character U+0007"),
    "latin-1": ("a: ü".encode("latin-1"), (), "is not UTF-8 (invalid start byte at 3)"),
    "utf-16": ("a: 1".encode("utf-16"), (), "is not UTF-8"),
    "half a character": ("a: \ud800", (), "is not UTF-8 (surrogates not allowed at 3)"),
    "a number as key": ("a:\n  80: x", ("a",), "line 2, column 3: a key must be text, and 80 is a"),
    "a number as key, what to do": ("a: {80: x}", ("a",), "number: quote it ('80')"),
    "a boolean as key": ("on: x", (), "a key must be text, and on is a boolean: quote it ('on')"),
    "null as key": ("a: {~: x}", ("a",), "a key must be text, and ~ is null: quote it ('~')"),
    "nothing as key": ("a:\n  ?\n  : x", ("a",), "a key must be text, and nothing stands there"),
    "an alias of a number as key": (
        "a: &x 5\n*x : 1",
        (),
        "a key must be text, and *x is a number",
    ),
    "an alias of a list as key": ("a: &x [5]\n*x : 1", (), "a key must be text, and *x is a list"),
    "a list as key": (
        "? [a]\n: b",
        (),
        "line 1, column 3: a key must be text, not a map or a list",
    ),
    "an octal as key": ("0644: x", (), "YAML reads 0644 as the number 420"),
    "two documents": ("a: 1\n---\nb: 1", (), "line 2, column 1: a second document begins here"),
    "two documents, one empty": ("---\n---\nb: 1", (), "a second document begins here: keep one"),
    "a tag that makes objects": (
        "a: !!python/object/apply:os.system ['x']",
        ("a",),
        "the tag !!python/object/apply:os.system is not allowed here: leave it out, or use !!str",
    ),
    "the same for a scalar": ("a: !!python/name:os.system x", ("a",), "is not allowed here"),
    "a tag of other tools": ("a: !Ref x", ("a",), "the tag !Ref is not allowed here"),
    "bytes of YAML": ("a: !!binary aGk=", ("a",), "the tag !!binary is not allowed here"),
    "a set": ("a: !!set {x}", ("a",), "the tag !!set is not allowed here"),
    "the wrong tag for a list": ("a: !!map [x]", ("a",), "the tag !!map is not allowed here"),
    "the wrong tag for a map": ("a: !!seq {x: 1}", ("a",), "the tag !!seq is not allowed here"),
    "a tag that does not fit": ("a: !!int x", ("a",), "'x' does not fit the tag !!int"),
    "nor this": ("a: !!bool maybe", ("a",), "'maybe' does not fit the tag !!bool"),
    "nor this one": ("a: !!int ''", ("a",), "'' does not fit the tag !!int"),
    "many directives": ("%TAG !a! tag:x\n" * 11 + "--- {}", (), "%TAG directives are of no use"),
    "a merge of text": ("a: {<<: x}", ("a", "<<"), "<< merges a map or a list of maps"),
    "a merge of texts": ("a: {<<: [x]}", ("a", "<<"), "<< merges a map or a list of maps"),
    "an alias of nothing": ("a: [x, *b]", ("a", 1), "*b names nothing above it: write &b"),
    "an alias of what is around it": ("a: &x {b: [*x]}", ("a", "b", 0), "it would never end"),
    "an anchor taken over": ("a: &x 1\nb: &x [*x]", ("b", 0), "it would never end"),
    "nothing": ("", (), "the template is empty: write a map of sections"),
    "only a comment": ("# a: 1\n", (), "the template is empty"),
    "null": ("null", (), "the template is empty"),
    "a list": ("- a", (), "the template is a list: write a map of sections"),
    "a text": ("hello", (), "the template is a text"),
    "a number": ("5", (), "the template is a number"),
    "a text of json": ('"a"', (), "the template is a text"),
    "a colon in a text": (
        "a: b: c",
        (),
        "line 1, column 5: mapping values are not allowed in this",
    ),
    "a colon, what to do": ("a: b: c", (), "quote a text that holds ': '"),
    "keys out of line": ("a:\n   b: 1\n  c: 1", (), "that begins at line 1): indent the keys"),
    "a tab": ("a:\n\tb: 1", (), "line 2, column 1: found character that cannot start any token"),
    "an open quote": ("a: 'b", (), "found unexpected end of stream"),
    "an open bracket": ("a: [b", (), "line 2, column 1: did not find expected ',' or ']'"),
    "json with a fault": ('{"a": 1 "b": 2}', (), "line 1, column 12: did not find expected ',' or"),
}


@pytest.mark.parametrize("case", REFUSES)
def test_what_is_no_document_is_refused_with_place_and_way_out(case: str):
    text, path, says = REFUSES[case]
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        parse.document(text)
    assert refusal.value.path == path
    assert says in str(refusal.value)


def test_where_a_fault_began_is_told_if_that_is_another_line():
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        parse.document("a: [b c: d: e")
    assert "begins" not in str(refusal.value)
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        parse.document("x: 1\na: [b\n")
    assert "(while parsing a flow sequence that begins at line 2): put a comma" in str(
        refusal.value
    )


def test_the_message_names_what_was_read():
    with pytest.raises(errors.TemplateUnreadable, match=r"the file env\.yaml is a list"):
        parse.document("[]", what="the file env.yaml")


@pytest.mark.parametrize("text", ["", " \n", "# nothing\n", "~", "---\n"])
def test_what_may_be_empty_is_an_empty_map(text: str):
    assert parse.document(text, may_be_empty=True) == {}


@pytest.mark.parametrize("text", ["[]", "0", "''", "false"])
def test_what_may_be_empty_must_still_be_a_map(text: str):
    with pytest.raises(errors.TemplateUnreadable):
        parse.document(text, may_be_empty=True)


# ------------------------------------------------------------------------------------ objects

OBJECTS: dict[str, tuple[Any, tuple[str | int, ...], str]] = {
    "a list": ([], (), "the template is a list"),
    "a number": (5, (), "the template is a number"),
    "null": (None, (), "the template is empty"),
    "a tuple": ({"a": (1,)}, ("a",), "a tuple is nothing JSON knows"),
    "bytes": ({"a": [b"x"]}, ("a", 0), "a bytes is nothing JSON knows"),
    "a key": ({"a": {5: 1}}, ("a",), "a key must be text, and 5 is a number: quote it"),
    "a key that is true": ({True: 1}, (), "a key must be text, and True is a boolean: quote it"),
    "a key that is null": ({None: 1}, (), "a key must be text, and None is null: quote it"),
    "NUL": ({"a": "x\0"}, ("a",), "NUL"),
    "NUL at the top": ("x\0", (), "NUL"),
    "half a character": ({"a\udc80": 1}, (), "half of a character"),
    "not a number": ({"a": float("nan")}, ("a",), "nan is no number"),
    "too long a number": ({"a": -(10**100)}, ("a",), "a number has more than 100 digits"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_objects_are_held_to_the_same(case: str):
    found, path, says = OBJECTS[case]
    with pytest.raises(errors.TemplateUnreadable) as refusal:
        parse.check(found)
    assert refusal.value.path == path
    assert says in str(refusal.value)


def test_objects_that_are_sound_come_back_as_they_are():
    found = {"a": [1, -2.5, True, None, "ü", {}], "ü": 10**100 - 1}
    assert parse.check(found) is found


# ------------------------------------------------------------------------------------- limits

SMALL = Limits(template_bytes=60, document_depth=3, document_nodes=10, scalar_digits=5)

# row: text, object, or both, that just fits; the same with one more of it
ROWS: dict[str, tuple[str, str | bytes, str | bytes]] = {
    "bytes of ascii": ("template_bytes", "a: " + 57 * "x", "a: " + 58 * "x"),
    "bytes of other text": ("template_bytes", "a: " + 28 * "ü", "a: " + 29 * "ü"),
    "bytes": ("template_bytes", b"a: " + 57 * b"x", b"a: " + 58 * b"x"),
    "bytes of json": ("template_bytes", '{"a": 1}' + 52 * " ", '{"a": 1}' + 53 * " "),
    "depth of yaml": ("document_depth", "a: {b: [x]}", "a: {b: [[]]}"),
    "depth of blocks": ("document_depth", "a:\n- b: x", "a:\n- b:\n   c: x"),
    "depth of json": ("document_depth", '{"a": {"b": ["x"]}}', '{"a": {"b": [[]]}}'),
    "depth of lists": ("document_depth", "a: [[x]]", "a: [[[x]]]"),
    "depth of lists in json": ("document_depth", '{"a": [["x"]]}', '{"a": [[[]]]}'),
    "depth of maps in json": ("document_depth", '{"a": {"b": {"c": 1}}}', '{"a":{"b":{"c":{}}}}'),
    "depth of an alias of text": ("document_depth", "a: {b: [&x y, *x]}", "a: {b: [[&x y, *x]]}"),
    "depth through aliases": (
        "document_depth",
        "a: &a [[]]\nb: *a",
        "a: &a [[]]\nb: [*a]",
    ),
    "depth through aliases of aliases": (
        "document_depth",
        "a: &a []\nb: &b [*a]\nc: *b",
        "a: &a []\nb: &b [*a]\nc: [*b]",
    ),
    "nodes of yaml": ("document_nodes", "a: [1,2,3,4,5,6,7]", "a: [1,2,3,4,5,6,7,8]"),
    "nodes of json": ("document_nodes", '{"a": [1,2,3,4,5,6,7]}', '{"a": [1,2,3,4,5,6,7,8]}'),
    "keys count": ("document_nodes", "a: {b: 1, c: 2, d: 3}", "a: {b: 1, c: 2, d: 3, e: 4}"),
    "keys count in json": (
        "document_nodes",
        '{"a":{"b":1,"c":2,"d":3}}',
        '{"a":{"b":1,"c":2,"d":3,"e":4}}',
    ),
    "nodes through aliases": ("document_nodes", "a: &a [1]\nb: [*a]", "a: &a [1]\nb: [*a, *a, *a]"),
    "nodes through merges": (
        "document_nodes",
        "a: &a []\nb: {<<: *a}",
        "a: &a {x: 1}\nb: {<<: *a}",
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_what_is_over_a_row_of_the_limits_is_refused_by_its_name(case: str):
    row, fits, too_much = ROWS[case]
    parse.document(fits, SMALL)
    with pytest.raises(errors.RequestLimitExceeded) as refusal:
        parse.document(too_much, SMALL, "this file")
    assert f"cannot take this file: {getattr(SMALL, row)} " in str(refusal.value)
    assert f"({row})" in str(refusal.value)
    generous = dataclasses.replace(SMALL, **{row: 1000})
    parse.document(too_much, generous)


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        ("a: 99999", "a: 100000"),
        ("a: 1.234", "a: 1.2345"),
        ("a: -0x12", "a: -0x123"),
        ("a: '123456'", "a: !!int '123456'"),
        ('{"a": 99999}', '{"a": 100000}'),
        ('{"a": -99999}', '{"a": -100000}'),
    ],
)
def test_numbers_have_a_limited_length_and_may_be_quoted(fits: str, too_much: str):
    parse.document(fits, SMALL)
    with pytest.raises(errors.TemplateUnreadable, match=r"\(scalar_digits\): quote it") as refusal:
        parse.document(too_much, SMALL)
    assert refusal.value.path == ("a",)


BIG = LIMITS.template_bytes - 100
A_MAP = "a: &a {" + ",".join(f"k{i}: 1" for i in range(2000)) + "}\n"
TEN = ",".join(["x"] * 10)
BOMBS: dict[str, str] = {
    "lists in lists": "a: " + "[" * BIG,
    "maps in maps": "{a: " * (BIG // 4),
    "lists in lists, json": '{"a":' + "[" * BIG,
    "maps in maps, json": '{"a":' * (BIG // 5),
    "1,000 levels, json": '{"a":' + "[" * 1000 + "]" * 1000 + "}",
    "blocks in blocks": "- " * (BIG // 2),
    "indented blocks": "".join(" " * i + "a:\n" for i in range(900)),
    "questions": "? " * (BIG // 2),
    "a billion laughs": f"a0: &a0 [{TEN}]\n"
    + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)),
    "a chain of aliases": "a0: &a0 []\n"
    + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 2000)),
    "many aliases": "a: &a [x]\nb: [" + "*a," * (BIG // 4) + "]",
    "merges of much": A_MAP + "".join(f"b{i}: {{<<: *a}}\n" for i in range(1000)),
    "many merges": "a: &a {x: 1}\nb: {" + "<<: *a," * 50000 + "}",
    "a merge of many": "a: &a {x: 1}\nb: {<<: [" + "*a," * 100000 + "]}",
    "many scalars": "{" + "a," * (BIG // 2) + "}",
    "many directives": "".join(f"%TAG !{i}! tag:x\n" for i in range(25000)) + "--- a",
    "many digits": "a: " + "9" * BIG,
    "many digits, json": '{"a": ' + "9" * BIG + "}",
    "as many digits as Python takes, json": '{"a": [' + ",".join(["9" * 4300] * 120) + "]}",
    "many groups of digits": "a: 0" + "_" * BIG,
    "many sixties": "a: 1" + ":1" * (BIG // 2),
    "10 MB": "a: " + "x" * 10_000_000,
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_is_refused_in_little_time(case: str):
    began = time.process_time()
    with pytest.raises((errors.RequestLimitExceeded, errors.TemplateUnreadable)):
        parse.document(BOMBS[case])
    assert time.process_time() - began < 5  # most take a few milliseconds; they would take minutes


def test_objects_that_hold_themselves_are_refused():
    bomb: dict[str, Any] = {}
    bomb["a"] = bomb
    with pytest.raises(errors.RequestLimitExceeded, match="document_depth"):
        parse.check(bomb)


def test_objects_that_share_too_much_are_refused():
    bomb: Any = ["x"] * 10
    for _ in range(12):
        bomb = [bomb] * 10
    with pytest.raises(errors.RequestLimitExceeded, match="document_nodes"):
        parse.check({"a": bomb})


# ------------------------------------------------------------------------------- anything at all

TEXTS = st.text() | st.sampled_from(
    ["<<", "0644", "12:30", "on", "~", "2018-08-31", "1e3", "=", ""]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)
WORDS = (
    """a b & * &a *a : - ? [ ] { } , # | > ' " %TAG ! !!str !!int << ~ 0644 1:1 0x .inf --- ..."""
)
SNIPPETS = st.sampled_from([*WORDS.split(" "), "\n", "\n  ", "\t", "\0"])


def document_or_failure(read: Any, *args: Any) -> None:
    try:
        found = read(*args)
    except errors.Failure:
        return
    assert isinstance(found, dict)
    json.dumps(found, allow_nan=False).encode()


@given(st.binary() | st.text() | st.text('{}[]",:&*!<>|-? \nab10._x'))
def test_any_text_gives_a_map_or_a_named_failure(text: str | bytes):
    document_or_failure(parse.document, text)


@given(st.lists(SNIPPETS, max_size=40), st.sampled_from(["", " "]))
def test_any_jumble_of_yaml_gives_a_map_or_a_named_failure(words: list[str], between: str):
    document_or_failure(parse.document, between.join(words))


@given(TREES)
def test_any_objects_give_a_map_or_a_named_failure(tree: Any):
    document_or_failure(parse.check, {"a": tree})
    document_or_failure(parse.check, tree)


@given(st.dictionaries(TEXTS, TREES, min_size=1, max_size=3))
def test_what_was_written_is_read_again(tree: dict[str, Any]):
    try:
        parse.check(tree)
    except errors.Failure:
        return
    assert parse.document(json.dumps(tree)) == tree
    assert parse.document(yaml.safe_dump(tree)) == tree
