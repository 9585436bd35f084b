"""Seeded cases for a side-by-side with the published Heat: 2,000 expressions and 200 templates.

A case is ``{"id", "template", "environment", "files"}``, as a client would send it. Expressions are
drawn from the functions' forms by kind of value; about one argument in eight is of a wrong kind, so
that refusals are compared too.  Templates are drawn whole; most are then broken in one named way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

EXPRESSIONS: Final = 2_000
TEMPLATES: Final = 200
WRONG: Final = 0.12
VERSIONS: Final = (
    "2013-05-23",
    "2014-10-16",
    "2015-04-30",
    "2015-10-15",
    "2016-04-08",
    "2016-10-14",
    "2017-02-24",
    "2017-09-01",
    "2018-03-02",
    "2018-08-31",
    "2021-04-16",
)
TEXTS: Final = (
    "",
    "a",
    "b",
    "a,b",
    "x y z",
    "ü",
    "aab ab a",
    "5",
    "1.5",
    "true",
    "k",
    "10.0.0.1",
    ".",
)
NUMBERS: Final = (0, 1, -1, 2, 80, 1.5, 70000)
PARAMETERS: Final = {
    "s": {"type": "string", "default": "text"},
    "n": {"type": "number", "default": "7"},
    "b": {"type": "boolean", "default": "on"},
    "l": {"type": "comma_delimited_list", "default": "a, b,c"},
    "j": {"type": "json", "default": {"k": [1, {"z": "q"}], "t": "u"}},
}
KINDS: Final = ("text", "list", "map", "number", "bool", "null")

Draw = Callable[["Expressions", int], Any]


class Expressions:
    """Draws one expression after another from ``chance``."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def of(self, kind: str, depth: int) -> Any:
        """An expression that should give ``kind``; now and then one that does not."""
        if self.chance.random() < WRONG:
            kind = self.chance.choice(KINDS)
        if depth <= 0 or self.chance.random() < 0.3:
            return self.literal(kind, depth)
        return self.chance.choice(CALLS[kind])(self, depth - 1)

    def literal(self, kind: str, depth: int) -> Any:
        if kind == "text":
            return self.chance.choice(TEXTS)
        if kind == "number":
            return self.chance.choice(NUMBERS)
        if kind == "bool":
            return self.chance.choice((True, False))
        if kind == "list":
            return [self.item(depth - 1) for _ in range(self.chance.randint(0, 3))]
        if kind == "map":
            keys = self.chance.sample(("a", "b", "k", "x"), self.chance.randint(0, 3))
            return {key: self.item(depth - 1) for key in keys}
        return None

    def item(self, depth: int) -> Any:
        return self.of(self.chance.choice(("text", "text", "text", "number", "map", "list")), depth)

    def texts(self, depth: int) -> list[Any]:
        return [self.of("text", depth) for _ in range(self.chance.randint(1, 3))]

    def path(self) -> list[Any]:
        return self.chance.choices(("k", "z", "t", 0, 1, "1", "x", 9), k=self.chance.randint(0, 2))


def _param(name: str) -> Draw:
    return lambda e, _d: {"get_param": [name, *e.path()] if e.chance.random() < 0.3 else name}


def _attr(e: Expressions, _depth: int) -> Any:
    forms = (
        ["v", "value", *e.path()],
        ["v", "value"],
        ["t", "output"],
        ["v"],
        ["v", "nope"],
        ["v", "show"],
    )
    return {"get_attr": list(e.chance.choices(forms, weights=(5, 3, 3, 1, 1, 0))[0])}


def _join(e: Expressions, d: int) -> Any:
    return {
        "list_join": [e.of("text", 0), *(e.of("list", d) for _ in range(e.chance.randint(1, 2)))]
    }


def _join_texts(e: Expressions, d: int) -> Any:
    return {"list_join": [e.of("text", 0), e.texts(d)]}


def _replace(e: Expressions, d: int) -> Any:
    name = e.chance.choice(
        ("str_replace", "str_replace", "str_replace_strict", "str_replace_vstrict")
    )
    keys = e.chance.sample(("a", "ab", "b", "x", "y"), e.chance.randint(0, 3))
    params = {key: e.item(d - 1) for key in keys}
    return {name: {"template": e.of("text", d), "params": params}}


def _split(e: Expressions, d: int) -> Any:
    index = e.chance.choice(([], [], [0], ["1"], [9], [-1], ["x"]))
    return {"str_split": [e.chance.choice((",", " ", "")), e.of("text", d), *index]}


def _split_one(e: Expressions, d: int) -> Any:
    return {"str_split": [",", e.of("text", d), e.chance.choice((0, "0", 1, -1))]}


def _digest(e: Expressions, d: int) -> Any:
    return {
        "digest": [e.chance.choice(("md5", "SHA256", "sha1", "foo", "sha512")), e.of("text", d)]
    }


def _repeat(e: Expressions, d: int) -> Any:
    loops = {
        key: e.of("list", 0) for key in e.chance.sample(("%a%", "%b%"), e.chance.randint(1, 2))
    }
    if e.chance.random() < 0.7:
        loops = {key: e.chance.sample(("x", "y", "z"), 2) for key in loops}
    template = e.chance.choice(("%a%-%b%", {"%a%": "v%b%"}, ["%a%", {"k": "%b%"}], e.of("text", d)))
    call: dict[str, Any] = {"template": template, "for_each": loops}
    if e.chance.random() < 0.2:
        call["permutations"] = e.chance.choice((True, False, "no"))
    return {"repeat": call}


def _lists(name: str) -> Draw:
    return lambda e, d: {name: [e.of("list", d) for _ in range(e.chance.randint(1, 3))]}


def _filter(e: Expressions, d: int) -> Any:
    return {"filter": [e.of("list", d), e.of("list", d)]}


def _merge(e: Expressions, d: int) -> Any:
    return {"map_merge": [e.of("map", d) for _ in range(e.chance.randint(1, 3))]}


def _map_replace(e: Expressions, d: int) -> Any:
    control: dict[str, Any] = {}
    if e.chance.random() < 0.7:
        control["keys"] = {e.chance.choice("abk"): e.chance.choice("abcx")}
    if e.chance.random() < 0.7:
        control["values"] = {e.chance.choice(("a", "b", "5")): e.item(0)}
    return {"map_replace": [e.of("map", d), control]}


def _contains(e: Expressions, d: int) -> Any:
    return {"contains": [e.item(d), e.of(e.chance.choice(("list", "text")), d)]}


def _url(e: Expressions, d: int) -> Any:
    parts = {
        "scheme": ("http", "ws"),
        "host": ("example.com", "fe80::1", "[::1]"),
        "port": (80, "80", 0, 70000),
        "path": ("/a b", "x"),
        "username": ("u@",),
        "password": ("p:",),
        "fragment": ("f g",),
        "query": ({"k": "a/b c"}, {"a": 1, "b": "ü"}),
        "nope": ("x",),
    }
    weights = (9, 9, 4, 6, 3, 3, 3, 4, 0.3)
    chosen = set(e.chance.choices(list(parts), weights=weights, k=5))
    return {"make_url": {key: e.chance.choice(parts[key]) for key in sorted(chosen)}}


def _yaql(e: Expressions, d: int) -> Any:
    expression = e.chance.choice(
        (
            "$.data.where($ != 'a')",
            "$.data.select($)",
            "$.data.len()",
            "$.data.first()",
            "$.data.k",
            "$.data.orderBy($)",
            "max($.data)",
            "$.data + 1",
            "$.data.keys()",
            "dict(a => $.data)",
            "1 +",
        )
    )
    return {"yaql": {"expression": expression, "data": e.item(d)}}


def _if(kind: str) -> Draw:
    def draw(e: Expressions, d: int) -> Any:
        arms = [e.of(kind, d) for _ in range(e.chance.choices((2, 1, 3), weights=(8, 2, 0.4))[0])]
        return {"if": [e.chance.choice(("yes", "no", True, False, "nope")), *arms]}

    return draw


def _equals(e: Expressions, d: int) -> Any:
    return {"equals": [e.item(0), e.item(0)]}


def _odd(e: Expressions, d: int) -> Any:
    one = e.item(d)
    return e.chance.choice(
        (
            {"get_param": "s", "get_file": "x"},
            {"Fn::Join": [",", ["a", "b"]]},
            {"Fn::GetAtt": ["v", "value"]},
            {"Ref": "s"},
            {"get_file": "there.txt"},
            {"get_file": "missing.txt"},
            {"get_param": "nope"},
            {"get_resource": "nope"},
            {"Fn::Select": [1, ["a", "b"]]},
            {"resource_facade": "metadata"},
            {"get_param": one},
            {"get_attr": one},
            {"str_split": one},
            {"list_join": one},
            {"repeat": one},
            {"str_replace": one},
            {"digest": one},
            {"map_merge": one},
            {"filter": one},
            {"yaql": one},
            {"Fn::Base64": "x"},
            {"Fn::Split": [",", "a,b"]},
            {"Fn::Replace": [{"a": "b"}, "abc"]},
            {"get_param": "OS::region"},
            {"get_param": "OS::project_id"},
            {"make_url": one},
            {"if": one},
        )
    )


CALLS: Final[dict[str, tuple[Draw, ...]]] = {
    "text": (
        _param("s"),
        _attr,
        _join,
        _join_texts,
        _replace,
        _replace,
        _split_one,
        _digest,
        _url,
        _odd,
        _if("text"),
    ),
    "list": (
        _param("l"),
        _split,
        _repeat,
        _repeat,
        _lists("list_concat"),
        _lists("list_concat_unique"),
        _filter,
        _yaql,
        _attr,
        _odd,
        _if("list"),
    ),
    "map": (_param("j"), _merge, _map_replace, _attr, _yaql, _odd, _if("map")),
    "number": (_param("n"), _yaql, _attr),
    "bool": (_param("b"), _contains, _equals),
    "null": (_attr, _odd),
}


def expressions(seed: int) -> Iterator[dict[str, Any]]:
    """Yield one case per expression, half in an output, half in a property."""
    chance = random.Random(seed)
    for number in range(EXPRESSIONS):
        kind = chance.choices(KINDS, weights=(5, 5, 4, 1, 1, 0.5))[0]
        value = chance.choice(CALLS[kind])(Expressions(chance), chance.randint(0, 2))
        version = chance.choices(VERSIONS, weights=(1, 1, 1, 2, 1, 2, 1, 2, 1, 2, 14))[0]
        template = _around(version, value, in_output=chance.random() < 0.5)
        yield _case(f"expression-{number}", template, files={"there.txt": "from a file"})


def _around(version: str, value: Any, *, in_output: bool) -> dict[str, Any]:
    nested = {"k": [{"z": "deep"}, "y"], "t": None, "1": "one"}
    template: dict[str, Any] = {
        "heat_template_version": version,
        "parameters": PARAMETERS,
        "resources": {
            "v": {"type": "OS::Heat::Value", "properties": {"value": nested}},
            "t": {"type": "OS::Heat::TestResource", "properties": {"value": "told"}},
        },
        "outputs": {"o": {"value": value}},
    }
    if version >= "2016-10-14":
        template["conditions"] = {"yes": {"equals": [{"get_param": "n"}, 7]}, "no": False}
    if not in_output:
        held = {"type": "OS::Heat::Value", "properties": {"value": value}}
        template["resources"]["held"] = held
        template["outputs"] = {"o": {"value": {"get_attr": ["held", "value"]}}}
    return template


def _case(
    name: str, template: Any, *, environment: Any = None, files: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "id": name,
        "template": template,
        "environment": environment or {},
        "files": files or {},
    }
