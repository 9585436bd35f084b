"""What each function of a template gives: tables that the unit tests and the mutants share.

A row is a snippet, what it gives, and the version if it is not the latest.  The rows were seen on
Heat itself.  What cannot be resolved gives EARLY (refused while the template is read), LATE
(refused when it is resolved: an output of such a kind does not keep a stack from being made) or
REFERENCE (as LATE, and the reason is the name of a resource).
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from bloomery import errors
from bloomery.orchestration.template import view
from bloomery.orchestration.template.functions import base, parser, tables

LATEST = "2021-04-16"
AWS = "AWSTemplateFormatVersion.2010-09-09"


class Refused(enum.Enum):
    EARLY = "while it is read"
    LATE = "when it is resolved"
    REFERENCE = "when it is resolved, for the name of a resource"


EARLY, LATE, REFERENCE = Refused


class Vector(NamedTuple):
    function: str
    snippet: Any
    expected: Any
    version: str = LATEST
    deciding: bool = False  # the snippet is a condition


class Parent:
    """A resource that a nested template stands for."""

    def metadata(self) -> Any:
        return {"m": 1}

    def deletion_policy(self) -> str:
        return "Retain"

    def update_policy(self) -> Any:
        return {"u": 1}


VIEW = view.Plain(
    parameters={
        "s": "abc",
        "n": 5,
        "f": 1.5,
        "b": True,
        "l": ["x", "y"],
        "j": {"k": [1, {"z": "q"}], "1": "one"},
        "c": "yes",
        "t": "true",
        "s2": "s",
        "r2": "r",
        "null": None,
    },
    files={"a.txt": "content", "abc": "of a parameter"},
    ids={"r": "id-17", "unready": None},
    attributes={
        "r": {"value": "text", "map": {"k": [1, {"z": "q"}]}, "null": None, "show": {"all": 1}}
    },
    conditions={"yes": True, "no": False},
    mappings={"m": {"k": {"z": "v", "w": ["q"]}}},
    facade=Parent(),
)


def offered(version: str) -> tables.Offered:
    return tables.cfn(version) if "." in version else tables.hot(version)


def parsed(vector: Vector, seen: view.StackView = VIEW) -> Any:
    what = offered(vector.version)
    functions = what.conditions if vector.deciding else what.functions
    return parser.Parser(functions=functions, conditions=what.conditions, view=seen).parse(
        vector.snippet
    )


def outcome(vector: Vector, seen: view.StackView = VIEW) -> Any:
    """Return what the snippet gives, or how it was refused."""
    try:
        tree = parsed(vector, seen)
    except errors.StackValidationFailed:
        return EARLY
    try:
        return None if tree is base.ABSENT else base.resolve(tree, seen)
    except errors.InvalidTemplateReference:
        return REFERENCE
    except errors.StackValidationFailed:
        return LATE


def is_same(left: Any, right: Any) -> bool:
    """Whether values are equal and of the same types: ``true`` is not 1 here."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and left == right


def _repeat(template: Any, for_each: Any, **more: Any) -> Any:
    return {"repeat": {"template": template, "for_each": for_each, **more}}


def _replace(template: Any, params: Any, name: str = "str_replace") -> Any:
    return {name: {"template": template, "params": params}}


def _url(**parts: Any) -> Any:
    return {"make_url": parts}


def _yaql(expression: Any, data: Any = None) -> Any:
    return {"yaql": {"expression": expression, "data": data}}


_NO = {"if": ["no", "a"]}  # leaves nothing behind

# A row: snippet, expected, version if it is not the latest.
_ROWS: dict[str, list[tuple[Any, ...]]] = {
    "get_param": [
        ({"get_param": "s"}, "abc"),
        ({"get_param": ["s"]}, "abc"),
        ({"get_param": "n"}, 5),
        ({"get_param": "null"}, None),
        ({"get_param": ["j", "k", "1", "z"]}, "q"),
        ({"get_param": ["j", "k", 1, "z"]}, "q"),
        ({"get_param": ["j", "x", "1"]}, ""),
        ({"get_param": ["j", "1"]}, "one"),
        ({"get_param": ["j", 1]}, ""),
        ({"get_param": ["j", None]}, ""),
        ({"get_param": ["j", ["a"]]}, ""),
        ({"get_param": ["s", "x"]}, ""),
        ({"get_param": ["s", -1]}, "c"),
        ({"get_param": ["s", 1, 0, 0]}, "b"),
        ({"get_param": ["l", 9]}, ""),
        ({"get_param": ["l", "foo"]}, ""),
        ({"get_param": ["l", True]}, "y"),
        ({"get_param": ["l", 1.0]}, ""),
        ({"get_param": ["l", " 1 "]}, "y"),
        ({"get_param": ["l", -1]}, "y"),
        ({"get_param": ["n", 0]}, ""),
        ({"get_param": ["null", 0]}, ""),
        ({"get_param": {"get_param": "s2"}}, "abc"),
        ({"get_param": [{"get_param": "s2"}, {"get_param": ["j", "k", 0]}]}, "b"),
        ({"get_param": "nope"}, LATE),
        ({"get_param": "OS::region"}, LATE),
        ({"get_param": []}, LATE),
        ({"get_param": ""}, LATE),
        ({"get_param": None}, LATE),
        ({"get_param": _NO}, LATE),
        ({"get_param": 5}, LATE),
        ({"get_param": False}, LATE),
        ({"get_param": {"a": 1, "b": 2}}, LATE),
        ({"get_param": [5]}, LATE),
        ({"get_param": "s", "get_file": "a.txt"}, {"get_param": "s", "get_file": "a.txt"}),
    ],
    "get_resource": [
        ({"get_resource": "r"}, "id-17"),
        ({"get_resource": "unready"}, "unready"),
        ({"get_resource": {"get_param": "r2"}}, "id-17"),
        ({"get_resource": "nope"}, REFERENCE),
        ({"get_resource": 5}, REFERENCE),
        ({"get_resource": []}, REFERENCE),
        ({"get_resource": ["r"]}, REFERENCE),
    ],
    "get_attr": [
        ({"get_attr": ["r", "value"]}, "text"),
        ({"get_attr": ["r", "value", 0]}, "t"),
        ({"get_attr": ["r", "map", "k", 1, "z"]}, "q"),
        ({"get_attr": ["r", "map", "k", -1, "z"]}, "q"),
        ({"get_attr": ["r", "map", "k", 1, "z", 0]}, "q"),
        ({"get_attr": ["r", "map", "k", "1", "z"]}, None),  # unlike get_param
        ({"get_attr": ["r", "map", "k", 1, "z", "0"]}, None),
        ({"get_attr": ["r", "map", 1]}, None),
        ({"get_attr": ["r", "map", "nope"]}, None),
        ({"get_attr": ["r", "value", "missing"]}, None),
        ({"get_attr": ["r", "null", "missing"]}, None),
        ({"get_attr": [{"get_param": "r2"}, "value"]}, "text"),
        ({"get_attr": ["r"]}, {"value": "text", "map": {"k": [1, {"z": "q"}]}, "null": None}),
        ({"get_attr": "r"}, {"value": "text", "map": {"k": [1, {"z": "q"}]}, "null": None}),
        ({"get_attr": ["unready", "anything"]}, None),
        ({"get_attr": "unready"}, None),
        ({"get_attr": ["r", "nope"]}, LATE),
        ({"get_attr": ["r", 5]}, LATE),
        ({"get_attr": ["r", None]}, LATE),
        ({"get_attr": ["r", ""]}, LATE),
        ({"get_attr": ["nope", "value"]}, REFERENCE),
        ({"get_attr": [5, "value"]}, REFERENCE),
        ({"get_attr": []}, EARLY),
        ({"get_attr": ""}, EARLY),
        ({"get_attr": None}, EARLY),
        ({"get_attr": 5}, EARLY),
        ({"get_attr": {"get_param": "l"}}, EARLY),
        ({"get_attr": ["r", "map", "k", 0]}, 1, "2013-05-23"),
        ({"get_attr": ["r", "map", "nope"]}, None, "2013-05-23"),
        ({"get_attr": ["r", "map", "k", 0]}, 1, "2014-10-16"),
        ({"get_attr": ["r"]}, EARLY, "2013-05-23"),
        ({"get_attr": "r"}, EARLY, "2014-10-16"),
        ({"get_attr": ["r"]}, EARLY, "2015-04-30"),
    ],
    "get_file": [
        ({"get_file": "a.txt"}, "content"),
        ({"get_file": {"get_param": "s"}}, "of a parameter"),
        ({"get_file": "nope"}, LATE),
        ({"get_file": 5}, LATE),
        ({"get_file": []}, LATE),
    ],
    "resource_facade": [
        ({"resource_facade": "metadata"}, {"m": 1}),
        ({"resource_facade": "deletion_policy"}, "Retain"),
        ({"resource_facade": "update_policy"}, {"u": 1}),
        ({"resource_facade": "x"}, EARLY),
        ({"resource_facade": ["metadata"]}, EARLY),
        ({"resource_facade": None}, EARLY),
        ({"resource_facade": {"get_param": "s"}}, EARLY),
    ],
    "list_join": [
        ({"list_join": [",", ["a", None, {"b": 1}], None, ["c"]]}, 'a,,{"b": 1},c'),
        ({"list_join": [",", [{"k": "ü"}]]}, '{"k": "\\u00fc"}'),
        ({"list_join": [",", [{"b": 1, "a": [2, None]}, ["x"]]]}, '{"a": [2, null], "b": 1},["x"]'),
        ({"list_join": [",", ["a", {"get_attr": ["r", "map", "nope"]}]]}, "a,"),
        ({"list_join": [",", {"get_param": "l"}, ["z"]]}, "x,y,z"),
        ({"list_join": [",", None]}, ""),
        ({"list_join": [",", []]}, ""),
        ({"list_join": [",", [None]]}, ""),
        ({"list_join": [",", [None, None]]}, ","),
        ({"list_join": [",", [_NO, "b"]]}, "b"),
        ({"list_join": [",", ["a", 1]]}, LATE),
        ({"list_join": [",", [True]]}, LATE),
        ({"list_join": [",", [{1: 2, "a": 3}]]}, LATE),
        ({"list_join": [",", "a"]}, LATE),
        ({"list_join": [",", {"a": 1}]}, LATE),
        ({"list_join": [5, ["a"]]}, LATE),
        ({"list_join": [None, ["a"]]}, LATE),
        ({"list_join": []}, EARLY),
        ({"list_join": [","]}, EARLY),
        ({"list_join": ","}, EARLY),
        ({"list_join": {"a": 1}}, EARLY),
        ({"list_join": _NO}, EARLY),
        ({"list_join": [",", ["a", None, "b"]]}, "a,,b", "2014-10-16"),
        ({"list_join": [",", None]}, "", "2014-10-16"),
        ({"list_join": [",", ["a"], ["b"]]}, EARLY, "2014-10-16"),
        ({"list_join": [",", [{"a": 1}]]}, LATE, "2014-10-16"),
        ({"list_join": [",", [["a"]]]}, LATE, "2015-04-30"),
    ],
    "str_replace": [
        (_replace("aab ab a", {"a": "b", "ab": "X", "b": "Z"}), "bX X b"),
        (
            _replace("x y z", {"x": True, "y": {"q": 2, "a": 1}, "z": None}),
            'True {"a": 1, "q": 2} ',
        ),
        (_replace("abcd", {"ab": "1", "bcd": "2"}), "a2"),
        (_replace("bab", {"ba": "2", "ab": "1"}), "b1"),
        (_replace("bab", {"ab": "1", "ba": "2"}), "b1"),
        (_replace("axb", {"a": "x", "x": "y"}), "xyb"),
        (_replace("a.c a+c", {"a.c": "1"}), "1 a+c"),
        (_replace("a b", {"a": 1.50, "b": False}), "1.5 False"),
        (_replace("a {}", {"a": []}), "[] {}"),
        (_replace("a", {"b": "x"}), "a"),
        (_replace("a", {}), "a"),
        (_replace("", {"a": "x"}), ""),
        (_replace("\U000f0000a", {"a": "x", "\U000f0001": "y"}), "\U000f0000x"),
        (_replace({"get_param": "s"}, {"b": {"get_param": "n"}}), "a5c"),
        (_replace("k1", {"get_param": "j"}), '[1, {"z": "q"}]one'),
        ({"str_replace": {"template": "a", "params": {}, "more": 1}}, "a"),
        (_replace(5, {}), LATE),
        (_replace(None, {}), LATE),
        (_replace("aba", {"": "x"}), LATE),
        (_replace("a1", {1: "x"}), LATE),
        (_replace("a", {"get_param": "l"}), LATE),
        (_replace("a", None), EARLY),
        (_replace("a", []), EARLY),
        ({"str_replace": {"template": "a"}}, EARLY),
        ({"str_replace": {"params": {}}}, EARLY),
        ({"str_replace": []}, EARLY),
        ({"str_replace": "a"}, EARLY),
        (_replace("a b", {"a": 1, "b": None}), "1 ", "2015-04-30"),
        (_replace("a", {"a": {"k": 1}}), LATE, "2015-04-30"),
        (_replace("a", {"a": []}), LATE, "2013-05-23"),
    ],
    "str_replace_strict": [
        (_replace("ab", {"ab": "x"}, "str_replace_strict"), "x"),
        (_replace("ab", {}, "str_replace_strict"), "ab"),
        (_replace("ab", {"ab": None}, "str_replace_strict"), ""),
        (_replace("ab", {"ab": "x", "a": "y"}, "str_replace_strict"), LATE),
        (_replace("ab", {"c": "y"}, "str_replace_strict"), LATE),
    ],
    "str_replace_vstrict": [
        (_replace("ab", {"ab": False}, "str_replace_vstrict"), "False"),
        (_replace("ab", {"ab": 0}, "str_replace_vstrict"), "0"),
        (_replace("ab", {"ab": 0.0}, "str_replace_vstrict"), "0.0"),
        (_replace("ab", {"ab": ""}, "str_replace_vstrict"), LATE),
        (_replace("ab", {"ab": []}, "str_replace_vstrict"), LATE),
        (_replace("ab", {"ab": {}}, "str_replace_vstrict"), LATE),
        (_replace("ab", {"ab": None}, "str_replace_vstrict"), LATE),
        (_replace("ab", {"c": "x"}, "str_replace_vstrict"), LATE),
    ],
    "str_split": [
        ({"str_split": [",", "a,b,c"]}, ["a", "b", "c"]),
        ({"str_split": [",", "a,b,c", 1]}, "b"),
        ({"str_split": [",", "a,b,c", -1]}, "c"),
        ({"str_split": [",", "a,b", "0"]}, "a"),
        ({"str_split": [",", "a,b", " 1"]}, "b"),
        ({"str_split": [",", "a,b", 1.0]}, "b"),
        ({"str_split": [",", "a,b", True]}, "b"),
        ({"str_split": [",", "a,b", 0, 1]}, "a"),
        ({"str_split": [",", "", 0]}, ""),
        ({"str_split": [None, "a b"]}, ["a", "b"]),
        ({"str_split": [",", None]}, None),
        ({"str_split": [",", None, 9]}, None),
        ({"str_split": [",", None, "x"]}, None),
        ({"str_split": [",", {"get_attr": ["unready", "x"]}]}, None),
        ({"str_split": [",", "a,b,c", 9]}, LATE),
        ({"str_split": [",", "a,b,c", -9]}, LATE),
        ({"str_split": [",", "a,b", "x"]}, LATE),
        ({"str_split": [",", "a,b", None]}, LATE),
        ({"str_split": [",", 5]}, LATE),
        ({"str_split": [",", ["a"]]}, LATE),
        ({"str_split": [5, "a"]}, LATE),
        ({"str_split": ["", "a"]}, LATE),
        ({"str_split": [","]}, LATE),
        ({"str_split": []}, LATE),
        ({"str_split": {"get_param": "s"}}, LATE),
        ({"str_split": {"get_param": "l"}}, ["y"]),
        ({"str_split": ","}, EARLY),
        ({"str_split": 5}, LATE),
        ({"str_split": None}, LATE),
        ({"str_split": {"a": 1}}, EARLY),
        ({"str_split": [",", "a,b"]}, {"str_split": [",", "a,b"]}, "2015-04-30"),
    ],
    "digest": [
        (
            {"digest": ["SHA256", "abc"]},
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        ({"digest": ["Md5", "abc"]}, "900150983cd24fb0d6963f7d28e17f72"),
        ({"digest": ["md5", "abc"]}, "900150983cd24fb0d6963f7d28e17f72", "2015-04-30"),
        ({"digest": ["sha1", "päss"]}, "8b31f4083151c9b013f9bf85c064980b03707962"),
        ({"digest": ["md5", ""]}, "d41d8cd98f00b204e9800998ecf8427e"),
        ({"digest": ["foo", "abc"]}, LATE),
        ({"digest": ["md5", 5]}, LATE),
        ({"digest": ["md5", None]}, LATE),
        ({"digest": [5, "a"]}, LATE),
        ({"digest": ["shake_128", "a"]}, LATE),
        ({"digest": ["md5", "€"]}, LATE),
        ({"digest": ["md5"]}, LATE),
        ({"digest": ["md5", "a", "b"]}, LATE),
        ({"digest": "md5"}, LATE),
        ({"digest": {"a": 1}}, LATE),
        ({"digest": ["md5", "abc"]}, {"digest": ["md5", "abc"]}, "2013-05-23"),
    ],
    "repeat": [
        (
            _repeat({"%k%": "%v%"}, {"%k%": ["a", "b"], "%v%": ["1", "2"]}),
            [{"a": "1"}, {"a": "2"}, {"b": "1"}, {"b": "2"}],
        ),
        (
            _repeat("%k%-%v%", {"%k%": ["a", "b"], "%v%": ["1", "2"]}),
            ["a-1", "a-2", "b-1", "b-2"],
        ),
        (_repeat("kv", {"k": ["a", "b"], "v": ["1", "2"]}, permutations=False), ["a1", "b2"]),
        (_repeat("kv", {"k": ["b"], "v": ["1", "2"]}, permutations=True), ["b1", "b2"]),
        (_repeat("kv", {"k": ["a", "b"], "v": ["1"]}, permutations=False), LATE),
        (_repeat("kv", {"k": ["a", "b"], "v": []}, permutations=False), LATE),
        (_repeat("kv", {"k": ["a", "b"], "v": None}, permutations=False), []),
        (_repeat("kv", {"k": {"a": 1}, "v": ["1"]}, permutations=False), LATE),
        (_repeat("k", {"k": ["a"]}, permutations="false"), EARLY),
        (_repeat("k", {"k": ["a"]}, permutations=None), EARLY),
        (_repeat("k", {"k": ["a"]}, permutations=0), EARLY),
        (_repeat("k", {"k": ["a"]}, permutations={"get_param": "b"}), EARLY),
        (_repeat("k", {"k": ["v"], "v": ["x"]}), ["x"]),
        (_repeat("v", {"k": ["z"], "v": ["k"]}), ["k"]),
        (_repeat("kx", {"k": ["b"], "kx": ["c"]}), ["bx"]),
        (_repeat("k", {"": ["a"]}), ["aka"]),
        (_repeat(5, {"k": [1, 2]}), [5, 5]),
        (_repeat(None, {"k": ["a"]}), [None]),
        (_repeat("k", {"k": None}), []),
        (_repeat("k", {"k": []}), []),
        (_repeat("k", {"k": None, "v": ["a"]}), []),
        (_repeat("k", {"k": [1, 2]}), LATE),
        (_repeat("x", {"k": [1, 2]}), LATE),
        (_repeat("k", {"k": ["a", None]}), LATE),
        (_repeat("k", {"k": [{"a": 1}]}), LATE),
        (_repeat("k1", {1: ["a"]}), LATE),
        (_repeat("k", {"k": "abc"}), LATE),
        (_repeat("k", {"k": ""}), LATE),
        (_repeat("k", {}), LATE),
        (_repeat("k", {"get_param": "l"}), LATE),
        (_repeat("k", {"get_param": "j"}), LATE),
        (_repeat("k", {"k": {"get_param": "l"}}), ["x", "y"]),
        (_repeat("k", {"k": {"b": 1, "a": 2}}), ["b", "a"]),
        (_repeat("k", {"k": {"b": 1}}), LATE, "2015-10-15"),
        (_repeat("k", {"k": {"b": 1}}), ["b"], "2017-02-24"),
        (_repeat("k", {"k": ["a"]}, permutations=False), ["a"], "2017-02-24"),
        (
            _repeat({"k": {"ak": ["k", 1, True, None]}}, {"k": ["a", "b"]}),
            [{"a": {"aa": ["a", 1, True, None]}}, {"b": {"ab": ["b", 1, True, None]}}],
        ),
        (_repeat({"k": 1, "a": 2}, {"k": ["a"]}), [{"a": 2}]),
        (
            _repeat(_repeat("k-i", {"i": ["1", "2"]}), {"k": ["a", "b"]}),
            [["a-1", "a-2"], ["b-1", "b-2"]],
        ),
        (_repeat({"get_param": "s"}, {"abc": ["1"]}), ["1"]),
        (_repeat({"get_param": "%p%"}, {"%p%": ["s"]}), LATE),
        (_repeat("k", None), EARLY),
        (_repeat("k", []), EARLY),
        ({"repeat": {"template": "x"}}, EARLY),
        ({"repeat": {"for_each": {"k": ["a"]}}}, EARLY),
        ({"repeat": []}, EARLY),
        (_repeat("k", {"k": ["a"]}), _repeat("k", {"k": ["a"]}), "2014-10-16"),
    ],
    "map_merge": [
        (
            {"map_merge": [{"a": 1, "b": {"x": 1}}, None, {"b": {"y": 2}}]},
            {"a": 1, "b": {"y": 2}},
        ),
        ({"map_merge": []}, {}),
        ({"map_merge": [None]}, {}),
        ({"map_merge": [{"get_param": "j"}, {"1": 2}]}, {"k": [1, {"z": "q"}], "1": 2}),
        ({"map_merge": ["a"]}, LATE),
        ({"map_merge": [[]]}, LATE),
        ({"map_merge": "x"}, LATE),
        ({"map_merge": None}, LATE),
        ({"map_merge": {"a": 1}}, LATE),
        ({"map_merge": []}, {"map_merge": []}, "2015-10-15"),
    ],
    "map_replace": [
        (
            {"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "c"}, "values": {"y": "z"}}]},
            {"c": "x", "b": "z"},
        ),
        ({"map_replace": [{"a": "x"}, {}]}, {"a": "x"}),
        ({"map_replace": [{"a": "x"}, None]}, {"a": "x"}),
        ({"map_replace": [None, {}]}, {}),
        ({"map_replace": [{"a": "x"}, {"keys": None}]}, {"a": "x"}),
        ({"map_replace": [{"a": "x"}, {"keys": {"a": None}}]}, {"a": "x"}),
        ({"map_replace": [{"a": "x"}, {"keys": {"a": "a"}}]}, {"a": "x"}),
        ({"map_replace": [{"a": "x"}, {"keys": {"q": "a"}}]}, {"a": "x"}),
        ({"map_replace": [{"a": "x"}, {"values": {"x": None}}]}, {"a": None}),
        ({"map_replace": [{"a": 1, "b": "1"}, {"values": {"1": "t"}}]}, {"a": 1, "b": "t"}),
        ({"map_replace": [{"a": ["x"]}, {"values": {"x": "y"}}]}, {"a": ["x"]}),
        ({"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "b"}}]}, LATE),
        ({"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "b", "b": "a"}}]}, LATE),
        ({"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "b", "b": "d"}}]}, LATE),
        ({"map_replace": [{"a": "x", "b": "y"}, {"keys": {"a": "c", "b": "c"}}]}, LATE),
        ({"map_replace": [{"a": "x"}, {"keys": {"a": ["b"]}}]}, LATE),
        ({"map_replace": [{"a": "x"}, {"foo": {}}]}, LATE),
        ({"map_replace": [{"a": "x"}, {"keys": []}]}, LATE),
        ({"map_replace": [["a"], {}]}, LATE),
        ({"map_replace": [{"a": "x"}]}, LATE),
        ({"map_replace": [{"a": "x"}, {}, {}]}, LATE),
        ({"map_replace": {}}, LATE),
        ({"map_replace": [{}, {}]}, {"map_replace": [{}, {}]}, "2016-04-08"),
    ],
    "filter": [
        ({"filter": [["a"], ["a", "b", "a"]]}, ["b"]),
        ({"filter": [None, ["a"]]}, ["a"]),
        ({"filter": [[], ["a"]]}, ["a"]),
        ({"filter": [["a"], None]}, None),
        ({"filter": [["a"], []]}, []),
        ({"filter": [[None], ["a", None]]}, ["a"]),
        ({"filter": [[1], [True, 1.0, "1", 2]]}, ["1", 2]),
        ({"filter": [[{"a": [1]}], [{"a": [True]}, {"a": [2]}, ["a"]]]}, [{"a": [2]}, ["a"]]),
        ({"filter": [["a"], "abc"]}, LATE),
        ({"filter": ["a", ["a"]]}, LATE),
        ({"filter": [{"a": 1}, ["a"]]}, LATE),
        ({"filter": [["a"]]}, EARLY),
        ({"filter": [["a"], ["a"], ["b"]]}, EARLY),
        ({"filter": "a"}, EARLY),
        ({"filter": {"get_param": "l"}}, EARLY),
        ({"filter": [["a"], ["a"]]}, {"filter": [["a"], ["a"]]}, "2016-10-14"),
    ],
    "list_concat": [
        ({"list_concat": [["a"], None, ["a", "b"]]}, ["a", "a", "b"]),
        ({"list_concat": []}, []),
        ({"list_concat": [["a"]]}, ["a"]),
        ({"list_concat": [["a"], "b"]}, LATE),
        ({"list_concat": [["a"], {"b": 1}]}, LATE),
        ({"list_concat": None}, LATE),
        ({"list_concat": "a"}, LATE),
        ({"list_concat": {"a": 1}}, LATE),
        ({"list_concat": []}, {"list_concat": []}, "2017-02-24"),
    ],
    "list_concat_unique": [
        ({"list_concat_unique": [["a"], None, ["b", "a"]]}, ["a", "b"]),
        (
            {"list_concat_unique": [["a", {"x": 1}, 1, True], [{"x": 1}, "a", 1.0, None, None]]},
            ["a", {"x": 1}, 1, None],
        ),
        ({"list_concat_unique": [None]}, []),
        ({"list_concat_unique": [["a"], "b"]}, LATE),
        ({"list_concat_unique": []}, {"list_concat_unique": []}, "2017-02-24"),
    ],
    "contains": [
        ({"contains": ["a", ["a"]]}, True),
        ({"contains": ["b", "abc"]}, True),
        ({"contains": ["", "abc"]}, True),
        ({"contains": ["x", "abc"]}, False),
        ({"contains": [1, [True]]}, True),
        ({"contains": ["1", [1]]}, False),
        ({"contains": [None, [None]]}, True),
        ({"contains": [{"a": 1}, [{"a": 1}]]}, True),
        ({"contains": [5, "abc"]}, LATE),
        ({"contains": [None, "abc"]}, LATE),
        ({"contains": ["a", {"a": 1}]}, LATE),
        ({"contains": ["a", None]}, LATE),
        ({"contains": ["a"]}, EARLY),
        ({"contains": ["a", "b", "c"]}, EARLY),
        ({"contains": "a"}, EARLY),
        ({"contains": {"a": 1}}, EARLY),
        ({"contains": ["a", ["a"]]}, {"contains": ["a", ["a"]]}, "2017-02-24"),
    ],
    "make_url": [
        (
            _url(
                scheme="http",
                username="u@",
                password="p:",
                host="fe80::1",
                port=80,
                path="/a b",
                query={"k": "a/b c"},
                fragment="f g",
            ),
            "http://u%40:p%3A@[fe80::1]:80/a%20b?k=a/b+c#f%20g",
        ),
        (_url(), ""),
        (_url(scheme="http"), "http://"),
        (_url(host="h"), "//h"),
        (_url(path="a"), "a"),
        (_url(path="/a"), "/a"),
        (_url(host="h", path="a"), "//h/a"),
        (_url(host="h", path=""), "//h"),
        (_url(host="h", path="//x"), "//h//x"),
        (_url(host="h", path="ä?#"), "//h/%C3%A4%3F%23"),
        (_url(host="h", path="a%20b"), "//h/a%2520b"),
        (_url(scheme="http", path="x"), "http:///x"),
        (_url(scheme="http", port=80, path="x"), "http://:80/x"),
        (_url(port=80), "//:80"),
        (_url(host="h", port="80"), "//h:80"),
        (_url(host="h", port=65535), "//h:65535"),
        (_url(host="h", port=80.5), "//h:80.5"),
        (_url(host="h", port=0), EARLY),
        (_url(host="h", port=70000), EARLY),
        (_url(host="h", port=-1), EARLY),
        (_url(host="h", port="x"), EARLY),
        (_url(host="h", port=""), EARLY),
        (_url(host="h", port=None), EARLY),
        (_url(host="h", port={"get_param": "n"}), "//h:5"),
        (_url(host="h", port={"get_param": "s"}), LATE),
        (_url(scheme={"get_param": "l"}), LATE),
        (_url(scheme="ht:tp"), LATE),
        (_url(scheme="", host="h"), "//h"),
        (_url(scheme=None, host="h"), EARLY),
        (_url(host=5), EARLY),
        (_url(username="u", host="h"), "//u@h"),
        (_url(username="u", password="", host="h"), "//u@h"),
        (_url(password="p", host="h"), "//:p@h"),
        (_url(username="", password="p", host="h"), "//:p@h"),
        (_url(username="u", path="a"), "//u@/a"),
        (_url(username="a/b:c@d", host="h"), "//a%2Fb%3Ac%40d@h"),
        (_url(host="[fe80::1]"), "//[fe80::1]"),
        (_url(host="a b"), "//a%20b"),
        (_url(host="ä"), "//%C3%A4"),
        (_url(host="h/x"), "//h%2Fx"),
        (_url(query={"a": "b", "c": "d"}), "?a=b&c=d"),
        (_url(query={"a": 5, "b": None, "c": True}), "?a=5&b=None&c=True"),
        (_url(query={"a": ["x", "y"]}), "?a=%5B%27x%27%2C+%27y%27%5D"),
        (_url(query={"ä b": "&=?/"}), "?%C3%A4+b=%26%3D%3F/"),
        (_url(query={}), ""),
        (_url(query=None), EARLY),
        (_url(query="a=b"), EARLY),
        (_url(fragment="a#?/b"), "#a%23%3F/b"),
        (_url(x=1), EARLY),
        ({"make_url": []}, EARLY),
        ({"make_url": "a"}, EARLY),
        ({"make_url": None}, EARLY),
        ({"make_url": {}}, {"make_url": {}}, "2017-02-24"),
    ],
    "yaql": [
        (_yaql("$.data + 1", 1), 2),
        (_yaql("$.data.select($ + 1)", [1, 2]), [2, 3]),
        (_yaql("$.data.where($.a = 1).select($.b).first()", [{"a": 1, "b": 2}]), 2),
        (_yaql("$.data.selectMany($)", [[1], [2, 3]]), [1, 2, 3]),
        (_yaql("$.data.orderBy(-$)", [1, 3, 2]), [3, 2, 1]),
        (_yaql("dict($.data)", [["a", 1]]), {"a": 1}),
        (_yaql("$.data.toDict($.k, $.v)", [{"k": "a", "v": 2}]), {"a": 2}),
        (_yaql("[len($.data), $.data.sum(), $.data.max(), $.data.min()]", [1, 2]), [2, 3, 2, 1]),
        (_yaql("$.data.contains(2) and 1 < 2", [1, 2]), True),
        (_yaql("$.data.a.b", {"a": [{"b": 1}, {"b": 2}]}), [1, 2]),
        (_yaql("$", {"a": 1}), {"data": {"a": 1}}),
        (_yaql("$.data", None), None),
        (_yaql("range(0, 100).len()"), 100),
        (_yaql("'a,b'.split(',')"), ["a", "b"]),
        (_yaql("regex('b(.)').replace('abc', '\\\\1')"), "ac"),
        (_yaql("'abc' =~ 'B'"), False),
        (_yaql("'abc' !~ 'B'"), True),
        (_yaql("let(a => 1) -> $a + 1"), 2),
        (_yaql("def(f, $ + 1) -> f(2)"), 3),
        (_yaql({"get_param": "s"}), "abc"),
        (_yaql("$.data.k", {"get_param": "j"}), [1, {"z": "q"}]),
        ({"yaql": {"expression": "$.data"}}, {}),
        ({"yaql": {"expression": "$.data.foo"}}, LATE),
        (_yaql("$.data.orderBy($)", None), LATE),
        (_yaql("1/0"), LATE),
        (_yaql("list(range(0, 300))"), LATE),
        (_yaql("$.data", list(range(201))), LATE),
        (_yaql("$.data * 20000", "x"), LATE),
        (_yaql({"get_param": "n"}), LATE),
        (_yaql({"list_join": ["", ["$.data +"]]}), LATE),
        (_yaql("$.data +"), EARLY),
        (_yaql("lambda($ + 1)(2)"), EARLY),
        (_yaql("$.data.__class__", {}), EARLY),
        (_yaql(5), EARLY),
        (_yaql(None), EARLY),
        ({"yaql": {"data": 1}}, EARLY),
        ({"yaql": {"expression": "1", "x": 1}}, EARLY),
        ({"yaql": "1"}, EARLY),
        ({"yaql": []}, EARLY),
        (_yaql("1"), _yaql("1"), "2016-04-08"),
    ],
    "if": [
        ({"if": ["yes", "a", "b"]}, "a"),
        ({"if": ["no", "a", "b"]}, "b"),
        ({"if": [True, "a", "b"]}, "a"),
        ({"if": [False, "a", "b"]}, "b"),
        ({"if": [None, "a", "b"]}, "a"),
        ({"if": [{"and": ["yes", True]}, "a", "b"]}, "a"),
        ({"if": [{"equals": ["a", "b"]}, "a", "b"]}, "b"),
        ({"if": [{"get_param": "b"}, "a", "b"]}, "a"),
        ({"if": [{"get_param": "c"}, "a", "b"]}, "a"),
        ({"if": ["yes", "a", {"get_attr": ["nope", "x"]}]}, "a"),
        ({"if": ["yes", "a", {"get_attr": 5}]}, "a"),
        ({"if": ["no", "a", {"if": ["yes", 1, 2]}]}, 1),
        ({"if": ["yes", {"get_param": "s"}, "b"]}, "abc"),
        ({"if": ["yes", "a"]}, "a"),
        (["x", _NO, "y"], ["x", "y"]),
        ({"k": _NO, "z": 1}, {"z": 1}),
        ([[_NO]], [[]]),
        (_NO, None),
        ({"if": ["yes", _NO, "b"]}, None),
        ({"if": ["nope", "a", "b"]}, EARLY),
        ({"if": ["true", "a", "b"]}, EARLY),
        ({"if": ["", "a", "b"]}, EARLY),
        ({"if": [1, "a", "b"]}, EARLY),
        ({"if": [0, "a", "b"]}, EARLY),
        ({"if": [[], "a", "b"]}, EARLY),
        ({"if": [{"foo": 1}, "a", "b"]}, EARLY),
        ({"if": [{"get_param": "s"}, "a", "b"]}, EARLY),
        ({"if": [{"get_param": "n"}, "a", "b"]}, EARLY),
        ({"if": [{"str_split": [",", "a"]}, "a", "b"]}, EARLY),
        ({"if": [{"get_attr": ["r", "value"]}, "a", "b"]}, EARLY),
        ({"if": [{"if": ["yes", True, False]}, "a", "b"]}, EARLY),
        ({"if": ["yes"]}, EARLY),
        ({"if": ["yes", "a", "b", "c"]}, EARLY),
        ({"if": "yes"}, EARLY),
        ({"if": {"get_param": "l"}}, EARLY),
        ({"if": ["yes", {"get_attr": 5}, "b"]}, EARLY),
        ({"if": ["yes", "a", "b"]}, "a", "2016-10-14"),
        ({"if": ["yes", "a"]}, EARLY, "2018-08-31"),
        ({"if": ["yes", "a", "b"]}, {"if": ["yes", "a", "b"]}, "2016-04-08"),
    ],
}

# The same for what may stand in conditions.
_DECIDING: dict[str, list[tuple[Any, ...]]] = {
    "equals": [
        ({"equals": ["a", "a"]}, True),
        ({"equals": [1, "1"]}, False),
        ({"equals": [True, "true"]}, False),
        ({"equals": [None, ""]}, False),
        ({"equals": [1, 1.0]}, True),
        ({"equals": [1, True]}, True),
        ({"equals": [{"a": [1]}, {"a": [1]}]}, True),
        ({"equals": ["no", "no"]}, True),
        ({"equals": [{"get_param": "s"}, "abc"]}, True),
        ({"equals": [{"not": "no"}, True]}, True),
        ({"equals": [{"foo": 1}, {"foo": 1}]}, True),
        ({"equals": [{"contains": ["a", "abc"]}, True]}, True),
        ({"equals": ["a"]}, EARLY),
        ({"equals": ["a", "a", "a"]}, EARLY),
        ({"equals": "a"}, EARLY),
        ({"equals": {"get_param": "l"}}, EARLY),
        ({"equals": [{"str_split": [",", "a"]}, ["a"]]}, EARLY),
        ({"equals": [{"get_attr": ["r", "value"]}, 1]}, EARLY),
        ({"equals": [{"contains": ["a", "abc"]}, True]}, False, "2016-10-14"),
        ({"equals": ["a", "a"]}, {"equals": ["a", "a"]}, "2016-04-08"),
    ],
    "not": [
        ({"not": "no"}, True),
        ({"not": "yes"}, False),
        ({"not": True}, False),
        ({"not": {"get_param": "b"}}, False),
        ({"not": {"get_param": "c"}}, False),
        ({"not": {"equals": [1, 2]}}, True),
        ({"not": ["no"]}, LATE),
        ({"not": "nope"}, LATE),
        ({"not": 1}, LATE),
        ({"not": []}, LATE),
        ({"not": {"foo": 1}}, LATE),
        ({"not": {"get_param": "s"}}, LATE),
        ({"not": {"get_param": "n"}}, LATE),
        ({"not": None}, EARLY),
    ],
    "and": [
        ({"and": ["yes", "yes"]}, True),
        ({"and": ["yes", "no"]}, False),
        ({"and": ["no", "nope"]}, False),
        ({"and": ["yes", None]}, True),
        ({"and": ["yes", {"equals": [1, 1]}, True]}, True),
        ({"and": ["yes", 1]}, LATE),
        ({"and": ["yes", {"get_param": "n"}]}, LATE),
        ({"and": ["yes", ["yes", "no"]]}, LATE),
        ({"and": ["yes"]}, EARLY),
        ({"and": []}, EARLY),
        ({"and": "yes"}, EARLY),
        ({"and": {"get_param": "l"}}, EARLY),
    ],
    "or": [
        ({"or": ["no", "yes"]}, True),
        ({"or": ["no", "no"]}, False),
        ({"or": ["yes", "nope"]}, True),
        ({"or": ["yes", 0]}, True),
        ({"or": ["no", 0]}, LATE),
        ({"or": ["yes"]}, EARLY),
    ],
    "yaql": [
        (_yaql("$.data.a", {"a": {"get_param": "b"}}), True),
        (_yaql("true"), EARLY, "2017-02-24"),
    ],
    "if": [({"if": ["yes", True, False]}, EARLY)],
}

# The dialect of CloudFormation.
_AWS: dict[str, list[tuple[Any, ...]]] = {
    "Ref": [
        ({"Ref": "s"}, "abc"),
        ({"Ref": "n"}, 5),
        ({"Ref": "r"}, "id-17"),
        ({"Ref": "nope"}, REFERENCE),
        ({"Ref": ""}, REFERENCE),
        ({"Ref": []}, EARLY),
        ({"Ref": ["s"]}, EARLY),
        ({"Ref": {"Ref": "s"}}, EARLY),
        ({"Ref": "r"}, "id-17", "2013-05-23"),
        ({"Ref": "r"}, EARLY, "2014-10-16"),
    ],
    "Fn::GetAtt": [
        ({"Fn::GetAtt": ["r", "value"]}, "text"),
        ({"Fn::GetAtt": ["unready", "x"]}, None),
        ({"Fn::GetAtt": ["r", "nope"]}, LATE),
        ({"Fn::GetAtt": ["nope", "x"]}, REFERENCE),
        ({"Fn::GetAtt": ["r"]}, EARLY),
        ({"Fn::GetAtt": ["r", "value", "x"]}, EARLY),
        ({"Fn::GetAtt": "r.value"}, EARLY),
        ({"Fn::GetAtt": ["r", "value"]}, {"Fn::GetAtt": ["r", "value"]}, "2013-05-23"),
    ],
    "Fn::Join": [
        ({"Fn::Join": ["-", ["a", "b"]]}, "a-b"),
        ({"Fn::Join": ["-", ["a", None]]}, "a-"),
        ({"Fn::Join": ["-", None]}, ""),
        ({"Fn::Join": ["-", ["a", {"a": 1}]]}, LATE),
        ({"Fn::Join": ["-", ["a", 1]]}, LATE),
        ({"Fn::Join": ["-", "ab"]}, LATE),
        ({"Fn::Join": [5, ["a"]]}, LATE),
        ({"Fn::Join": ["-"]}, EARLY),
        ({"Fn::Join": ["-", ["a"], ["b"]]}, EARLY),
        ({"Fn::Join": ["-", ["a", "b"]]}, "a-b", "2013-05-23"),
        ({"Fn::Join": ["-", ["a", "b"]]}, EARLY, "2014-10-16"),
    ],
    "Fn::Split": [
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Split": [",", None]}, LATE),
        ({"Fn::Split": [",", 5]}, LATE),
        ({"Fn::Split": ["", "a"]}, LATE),
        ({"Fn::Split": [None, "a b"]}, LATE),
        ({"Fn::Split": [",", ["a,b"]]}, LATE),
        ({"Fn::Split": [","]}, EARLY),
        ({"Fn::Split": [",", "a", "b"]}, EARLY),
    ],
    "Fn::Select": [
        ({"Fn::Select": [0, ["a", "b"]]}, "a"),
        ({"Fn::Select": ["1", ["a", "b"]]}, "b"),
        ({"Fn::Select": [-1, ["a", "b"]]}, "b"),
        ({"Fn::Select": [1.0, ["a", "b"]]}, "b"),
        ({"Fn::Select": [9, ["a"]]}, ""),
        ({"Fn::Select": [0, [None]]}, None),
        ({"Fn::Select": ["x", {"x": 1}]}, 1),
        ({"Fn::Select": ["y", {"x": 1}]}, ""),
        ({"Fn::Select": ["x", {"x": None}]}, None),
        ({"Fn::Select": [0, None]}, ""),
        ({"Fn::Select": ["a", '{"a": 1}']}, 1),
        ({"Fn::Select": ["0", '["a"]']}, "a"),
        ({"Fn::Select": [0, {"x": 1}]}, LATE),
        ({"Fn::Select": ["x", ["a"]]}, LATE),
        ({"Fn::Select": [None, ["a"]]}, LATE),
        ({"Fn::Select": [0, "abc"]}, LATE),
        ({"Fn::Select": [0, "[" * 100_000]}, LATE),
        ({"Fn::Select": [0, 5]}, LATE),
        ({"Fn::Select": [0]}, EARLY),
        ({"Fn::Select": [0, ["a"], 1]}, EARLY),
        ({"Fn::Select": "a"}, EARLY),
        ({"Fn::Select": [0, ["a"]]}, "a", "2015-04-30"),
        ({"Fn::Select": [0, ["a"]]}, EARLY, "2015-10-15"),
    ],
    "Fn::Replace": [
        ({"Fn::Replace": [{"a": "x"}, "abc"]}, "xbc"),
        ({"Fn::Replace": [{"a": 5, "b": None, "c": True}, "abc"]}, "5True"),
        ({"Fn::Replace": [{"a": {"x": 1}}, "abc"]}, LATE),
        ({"Fn::Replace": [{"a": "x"}, None]}, LATE),
        ({"Fn::Replace": [{"a": "x"}, 5]}, LATE),
        ({"Fn::Replace": [{"a": "x"}]}, EARLY),
        ({"Fn::Replace": ["a", "b"]}, EARLY),
        ({"Fn::Replace": [None, "abc"]}, EARLY),
        ({"Fn::Replace": {"a": "b"}}, EARLY),
    ],
    "Fn::Base64": [
        ({"Fn::Base64": "abc"}, "abc"),
        ({"Fn::Base64": {"Ref": "s"}}, "abc"),
        ({"Fn::Base64": 5}, LATE),
        ({"Fn::Base64": None}, LATE),
        ({"Fn::Base64": ["a"]}, LATE),
    ],
    "Fn::MemberListToMap": [
        (
            {
                "Fn::MemberListToMap": [
                    "Name",
                    "Value",
                    [
                        ".member.1.Name=b",
                        ".member.1.Value=2",
                        ".member.0.Name=a",
                        ".member.0.Value=1=3",
                        ".member.0.Other=x",
                        ".member.2.Name=lonely",
                        ".member.x.Name=c",
                        "member.3.Name=d",
                    ],
                ]
            },
            {"a": "1=3", "b": "2"},
        ),
        ({"Fn::MemberListToMap": ["Name", "Value", []]}, {}),
        ({"Fn::MemberListToMap": ["Name", "Value", ["x"]]}, LATE),
        ({"Fn::MemberListToMap": ["Name", "Value", [5]]}, LATE),
        ({"Fn::MemberListToMap": ["Name", "Value", "x"]}, LATE),
        ({"Fn::MemberListToMap": ["Name", "Value"]}, EARLY),
        ({"Fn::MemberListToMap": [5, "Value", []]}, EARLY),
        ({"Fn::MemberListToMap": "x"}, EARLY),
    ],
    "Fn::FindInMap": [
        ({"Fn::FindInMap": ["m", "k", "z"]}, "v"),
        ({"Fn::FindInMap": ["m", "k", "w"]}, ["q"]),
        ({"Fn::FindInMap": ["m", "k", "nope"]}, LATE),
        ({"Fn::FindInMap": ["m", "nope", "z"]}, LATE),
        ({"Fn::FindInMap": ["nope", "k", "z"]}, LATE),
        ({"Fn::FindInMap": ["m", {"Ref": "s"}, "z"]}, LATE),
        ({"Fn::FindInMap": [["m"], "k", "z"]}, LATE),
        ({"Fn::FindInMap": ["m", ["k"], "z"]}, LATE),
        ({"Fn::FindInMap": ["m", "k"]}, EARLY),
        ({"Fn::FindInMap": ["m", "k", "z", "y"]}, EARLY),
        ({"Fn::FindInMap": "m"}, EARLY),
    ],
    "Fn::GetAZs": [({"Fn::GetAZs": ""}, LATE), ({"Fn::GetAZs": ""}, LATE, "2013-05-23")],
    "Fn::ResourceFacade": [
        ({"Fn::ResourceFacade": "Metadata"}, {"m": 1}),
        ({"Fn::ResourceFacade": "DeletionPolicy"}, "Retain"),
        ({"Fn::ResourceFacade": "UpdatePolicy"}, {"u": 1}),
        ({"Fn::ResourceFacade": "metadata"}, EARLY),
        ({"Fn::ResourceFacade": ["Metadata"]}, EARLY),
    ],
    "Fn::If": [
        ({"Fn::If": ["yes", "a", "b"]}, "a"),
        ({"Fn::If": ["no", "a", "b"]}, "b"),
        ({"Fn::If": [None, "a", "b"]}, "a"),
        ({"Fn::If": [{"Fn::Not": ["yes"]}, "a", "b"]}, "b"),
        ({"Fn::If": ["nope", "a", "b"]}, EARLY),
        ({"Fn::If": [{"Condition": "yes"}, "a", "b"]}, EARLY),
        ({"Fn::If": ["yes", "a"]}, EARLY),
    ],
    "other": [
        ({"get_param": "s"}, {"get_param": "s"}),
        ({"Fn::Foo": 1}, {"Fn::Foo": 1}),
        ({"Fn::Equals": [1, 1]}, {"Fn::Equals": [1, 1]}),
    ],
}

_AWS_DECIDING: dict[str, list[tuple[Any, ...]]] = {
    "Ref": [({"Ref": "b"}, True), ({"Ref": "r"}, REFERENCE)],
    "Fn::Equals": [
        ({"Fn::Equals": ["a", "a"]}, True),
        ({"Fn::Equals": [{"Fn::FindInMap": ["m", "k", "z"]}, "v"]}, True),
        ({"Fn::Equals": [{"Fn::Foo": 1}, "a"]}, False),
        ({"Fn::Equals": ["a"]}, EARLY),
        ({"Fn::Equals": [{"Fn::Select": [0, ["a"]]}, "a"]}, EARLY),
        ({"Fn::Equals": [{"Fn::GetAtt": ["r", "value"]}, "a"]}, EARLY),
        ({"Fn::Equals": [{"Fn::Join": ["", ["a"]]}, "a"]}, EARLY),
    ],
    "Fn::Not": [
        ({"Fn::Not": ["yes"]}, False),
        ({"Fn::Not": [{"Ref": "b"}]}, False),
        ({"Fn::Not": [{"Fn::Equals": [1, 2]}]}, True),
        ({"Fn::Not": ["nope"]}, LATE),
        ({"Fn::Not": "yes"}, EARLY),
        ({"Fn::Not": ["yes", "yes"]}, EARLY),
        ({"Fn::Not": [None]}, EARLY),
    ],
    "Fn::And": [({"Fn::And": ["yes", "no"]}, False), ({"Fn::And": ["yes"]}, EARLY)],
    "Fn::Or": [
        ({"Fn::Or": [{"Fn::Not": ["yes"]}, "yes"]}, True),
        ({"Fn::Or": [{"Condition": "no"}, "yes"]}, LATE),
    ],
    "Fn::If": [({"Fn::If": ["yes", True, False]}, EARLY)],
}


def _vectors() -> list[Vector]:
    groups = ((_ROWS, LATEST, False), (_DECIDING, LATEST, True))
    groups += ((_AWS, AWS, False), (_AWS_DECIDING, AWS, True))
    return [
        Vector(function, snippet, expected, *(version or (default,)), deciding=deciding)
        for rows, default, deciding in groups
        for function, found in rows.items()
        for snippet, expected, *version in found
    ]


VECTORS = _vectors()
