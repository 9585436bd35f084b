"""Calls of every function of templates, drawn: arguments right, or wrong in places.

    Calls(dice, world).of("text", depth=2)  # {"list_join": [",", {"get_param": "l"}]}

Each function has one entry in ARGUMENTS; a test holds the table against the functions that versions
offer.  ``dice`` decides everything, so that hypothesis can shrink it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from bloomery.orchestration.template import versions
from bloomery.orchestration.template.dialect import Template
from bloomery.orchestration.template.functions.parser import Removed
from tests.kit.stacks import template_texts

KINDS: Final = ("text", "list", "map", "number", "bool")
TEXTS: Final = ("a", "b", "a,b", "x y", "k=v", "10.0.0.1", "ü", "%a%-%b%", "5", "true", "%index%")
KEYS: Final = ("a", "b", "k", "%a%", "ab", "0")
ATTRIBUTES: Final = (
    "value", "output", "show", "refs", "refs_map", "attributes", "told", "config",
    "resource.0.value", "resource.inner", "removed_rsrc_list", "nope", "outputs",
)  # fmt: skip
GOOD_YAQL: Final = (
    "$", "$.data", "str($.data)", "[$.data]", "dict(a => $.data)", "isList($.data)",
    "list($.data).len()", "[1, 2].select($ * 10)", "coalesce(null, $.data)",
)  # fmt: skip
ATTRIBUTES_OF: Final = {
    "OS::Heat::Value": ("value",), "OS::Heat::TestResource": ("output",),
    "OS::Heat::RandomString": ("value",),
    "OS::Heat::ResourceGroup": ("refs", "refs_map", "resource.0", "value"),
    "OS::Heat::ResourceChain": ("refs", "attributes"),
    "child.yaml": ("told", "outputs", "resource.inner"),
}  # fmt: skip


class Dice:
    """Draws, and is wrong in so many of a hundred places."""

    def __init__(self, draw: st.DrawFn, wrong: int) -> None:
        self._draw = draw
        self._wrong = wrong

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def odd(self) -> bool:
        return self._wrong > 0 and self.chance(self._wrong)

    def times(self, most: int, what: Callable[[], Any]) -> list[Any]:
        return [what() for _ in range(self.number(0, most))]


@dataclass(slots=True)
class Names:
    """What expressions may name: ``parameters`` and ``resources`` by their kind and type."""

    parameters: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


class _Place:
    """Which functions may stand in one kind of place, by what they come to."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        usable = sorted(name for name, what in table.items() if not isinstance(what, Removed))
        self.deciding = [name for name in usable if name in DECIDE]
        self.by_kind = {
            kind: [name for name in usable if kind in GIVES.get(name, KINDS)] for kind in KINDS
        }


class Calls:
    def __init__(self, dice: Dice, names: Names, template: type[Template]) -> None:
        self.dice = dice
        self.names = names
        offered = template.features.offered
        self._places = _Place(offered.functions), _Place(offered.conditions)
        self._deciding = False  # inside of a condition, where fewer functions are known

    # ------------------------------------------------------------------------------- expressions

    def of(self, kind: str, depth: int) -> Any:
        """A literal or a call that should come to ``kind``."""
        dice = self.dice
        if dice.odd():
            return self.junk(depth)
        if depth <= 0 or dice.chance(35):
            return self.literal(kind, depth - 1)
        names = self._places[self._deciding].by_kind[kind]
        if not self.names.resources:
            names = [name for name in names if name not in OF_RESOURCES]
        return self.call(dice.of(names), depth - 1) if names else self.literal(kind, depth - 1)

    def any(self, depth: int) -> Any:
        return self.of(self.dice.of(KINDS), depth)

    def call(self, name: str, depth: int) -> Any:
        args = self.junk(depth) if self.dice.odd() else ARGUMENTS[name](self, depth)
        call = {name: args}
        return call | {"more": 1} if self.dice.odd() and self.dice.chance(10) else call

    def literal(self, kind: str, depth: int) -> Any:
        dice = self.dice
        if kind == "text":
            return dice.of(TEXTS)
        if kind == "number":
            return dice.of((0, 1, 2, 5, -1, 1.5, 80))
        if kind == "bool":
            return dice.of((False, True))
        if kind == "list":
            return dice.times(3, lambda: self.of(dice.of(("text", "text", "number", "map")), depth))
        return {dice.of(KEYS): self.any(depth) for _ in range(dice.number(0, 2))}

    def junk(self, depth: int) -> Any:
        """Anything: a hostile scalar, a container of some, a call where none should be."""
        dice = self.dice
        which = dice.number(0, 9)
        if which < 5 or depth <= 0:
            return dice.of(template_texts.SCALARS)
        if which == 5:
            return dice.of(template_texts.NOT_JSON)
        if which == 6:
            return dice.times(3, lambda: self.junk(depth - 1))
        if which == 7:
            keys = dice.times(2, lambda: str(dice.of(template_texts.SCALARS))[:400])
            return {key: self.junk(depth - 1) for key in keys}
        return self.call(dice.of(tuple(ARGUMENTS)), depth - 1)

    def condition(self, depth: int) -> Any:
        dice = self.dice
        if dice.odd():
            return self.junk(depth)
        if self.names.conditions and dice.chance(50):
            return dice.of(self.names.conditions)
        return self.decision(depth)

    def decision(self, depth: int) -> Any:
        """What may stand under a name in ``conditions``."""
        dice, names = self.dice, self._places[True].deciding
        if depth <= 0 or not names or dice.chance(20):
            return dice.of((True, False))
        before, self._deciding = self._deciding, True
        try:
            return self.call(dice.of(names), depth - 1)
        finally:
            self._deciding = before

    # ----------------------------------------------------------------------------------- names

    def parameter(self) -> str:
        known = list(self.names.parameters)
        return self.dice.of(known) if known and not self.dice.odd() else "nope"

    def resource(self) -> str:
        known = list(self.names.resources)
        return self.dice.of(known) if known and not self.dice.odd() else "nope"

    def file(self) -> Any:
        return self.dice.of(self.names.files) if self.names.files else "there.txt"

    def path(self) -> list[Any]:
        return self.dice.times(2, lambda: self.dice.of(("k", 0, 1, "a", "0", -1, "value")))


# -------------------------------------------------------------------------------------- arguments

Arguments = Callable[[Calls, int], Any]


def _get_param(calls: Calls, depth: int) -> Any:
    name = calls.parameter()
    return [name, *calls.path()] if calls.dice.chance(30) else name


def _get_attr(calls: Calls, depth: int) -> Any:
    name, attribute = _get_att(calls, depth)
    return [name] if calls.dice.chance(10) else [name, attribute, *calls.path()]


def _get_att(calls: Calls, depth: int) -> Any:
    name = calls.resource()
    known = ATTRIBUTES_OF.get(calls.names.resources.get(name, ""), ("show",))
    return [name, calls.dice.of(ATTRIBUTES if calls.dice.odd() else known)]


def _join(calls: Calls, depth: int) -> Any:
    return [calls.of("text", 0), calls.of("list", depth)]


def _replace(calls: Calls, depth: int) -> Any:
    return {"template": calls.of("text", depth), "params": calls.of("map", depth)}


def _replace_all(calls: Calls, depth: int) -> Any:
    return {"template": "a stack", "params": {"a": calls.of("text", depth)}}


def _select(calls: Calls, depth: int) -> Any:
    return [calls.dice.of((0, "1", "a", 9, -1)), calls.of(calls.dice.of(("list", "map")), depth)]


def _split(calls: Calls, depth: int) -> Any:
    more = calls.dice.of(([], [0], ["1"], [9], [-1]))
    return [calls.dice.of((",", " ", "", "a")), calls.of("text", depth), *more]


def _fn_split(calls: Calls, depth: int) -> Any:
    return _split(calls, depth)[:2]


def _fn_replace(calls: Calls, depth: int) -> Any:
    return [calls.of("map", depth), calls.of("text", depth)]


def _member_list(calls: Calls, depth: int) -> Any:
    one = [".member.0.Name=k", ".member.0.Value=v"]
    return ["Name", "Value", calls.of("list", depth) if calls.dice.chance(40) else one]


def _repeat(calls: Calls, depth: int) -> Any:
    dice = calls.dice
    if dice.chance(3):
        large = [str(number) for number in range(dice.of((10, 1000)))]
        return {"template": "a-b-c", "for_each": {"a": large, "b": large, "c": large}}
    lists = {dice.of(KEYS): calls.of("list", depth) for _ in range(dice.number(1, 3))}
    call: dict[str, Any] = {"template": calls.any(depth), "for_each": lists}
    return call | ({"permutations": dice.of((True, False))} if dice.chance(20) else {})


def _digest(calls: Calls, depth: int) -> Any:
    return [
        calls.dice.of(("md5", "sha512", "SHA1", *(["shake_128", "x"] if calls.dice.odd() else []))),
        calls.of("text", depth),
    ]


def _some(kind: str, least: int = 0) -> Arguments:
    def draw(calls: Calls, depth: int) -> Any:
        return [calls.of(kind, depth) for _ in range(calls.dice.number(least, 3))]

    return draw


def _pair(one: str, other: str) -> Arguments:
    return lambda calls, depth: [calls.of(one, depth), calls.of(other, depth)]


def _map_replace(calls: Calls, depth: int) -> Any:
    control = {key: calls.of("map", depth) for key in ("keys", "values") if calls.dice.chance(60)}
    return [calls.of("map", depth), control]


def _yaql(calls: Calls, depth: int) -> Any:
    if calls.dice.chance(90) and not calls.dice.odd():
        return {"expression": calls.dice.of(GOOD_YAQL), "data": calls.any(depth)}
    expression = calls.dice.of(template_texts.YAQL)
    if calls.dice.chance(20):
        other = calls.dice.of(template_texts.YAQL)
        expression = calls.dice.of(
            (f"{expression}.select({other})", f"[{expression}, {other}]", f"{expression} + {other}")
        )
    return {"expression": expression, "data": calls.any(depth)}


def _if(calls: Calls, depth: int) -> Any:
    return [
        calls.condition(depth),
        *(calls.any(depth) for _ in range(calls.dice.of((2, 2, 2, 1, 3)))),
    ]


def _equals(calls: Calls, depth: int) -> Any:
    return [calls.any(depth), calls.any(depth)]


def _not(calls: Calls, depth: int) -> Any:
    return calls.condition(depth)


def _not_in_list(calls: Calls, depth: int) -> Any:
    return [calls.condition(depth)]


def _both(calls: Calls, depth: int) -> Any:
    least = 1 if calls.dice.odd() else 2
    return [calls.condition(depth) for _ in range(calls.dice.number(least, 3))]


def _url(calls: Calls, depth: int) -> Any:
    parts: Mapping[str, str] = {
        "scheme": "text", "host": "text", "port": "number", "path": "text", "username": "text",
        "password": "text", "fragment": "text", "query": "map",
    }  # fmt: skip
    return {key: calls.of(kind, depth) for key, kind in parts.items() if calls.dice.chance(50)}


def _text(calls: Calls, depth: int) -> Any:
    return calls.of("text", depth)


def _find(calls: Calls, depth: int) -> Any:
    if calls.dice.odd():
        return [calls.of("text", depth), calls.of("text", depth), calls.dice.of(("a", "b"))]
    return ["M", "a", calls.dice.of(("a", "b"))]


def _ref(calls: Calls, depth: int) -> Any:
    named = [*calls.names.resources, *calls.names.parameters]
    return calls.dice.of(named) if named and not calls.dice.odd() else "nope"


def _facade(*sections: str) -> Arguments:
    """Right in nested templates alone."""
    return lambda calls, depth: calls.dice.of(sections)


ARGUMENTS: Final[Mapping[str, Arguments]] = {
    "get_param": _get_param,
    "get_resource": lambda calls, depth: calls.resource(),
    "get_attr": _get_attr,
    "get_file": lambda calls, depth: calls.file(),
    "list_join": _join,
    "str_replace": _replace,
    "str_replace_strict": _replace_all,
    "str_replace_vstrict": _replace_all,
    "str_split": _split,
    "resource_facade": _facade("metadata", "deletion_policy", "update_policy"),
    "repeat": _repeat,
    "digest": _digest,
    "map_merge": _some("map"),
    "map_replace": _map_replace,
    "yaql": _yaql,
    "if": _if,
    "equals": _equals,
    "not": _not,
    "and": _both,
    "or": _both,
    "filter": _pair("list", "list"),
    "make_url": _url,
    "list_concat": _some("list"),
    "list_concat_unique": _some("list"),
    "contains": lambda calls, depth: [calls.any(depth), calls.of("list", depth)],
    "Ref": _ref,
    "Fn::GetAtt": _get_att,
    "Fn::GetAZs": lambda calls, depth: calls.dice.of(("", "nova")),
    "Fn::Join": _join,
    "Fn::Split": _fn_split,
    "Fn::Replace": _fn_replace,
    "Fn::Base64": _text,
    "Fn::MemberListToMap": _member_list,
    "Fn::ResourceFacade": lambda calls, depth: calls.dice.of(
        ("Metadata", "DeletionPolicy", "UpdatePolicy")
    ),
    "Fn::Select": _select,
    "Fn::FindInMap": _find,
    "Fn::If": _if,
    "Fn::Equals": _equals,
    "Fn::Not": _not_in_list,
    "Fn::And": _both,
    "Fn::Or": _both,
}
GIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "list_join": ("text",), "str_replace": ("text",), "str_replace_strict": ("text",),
    "str_replace_vstrict": ("text",), "digest": ("text",), "make_url": ("text",),
    "get_file": ("text",), "get_resource": ("text",), "str_split": ("list",), "repeat": ("list",),
    "filter": ("list",), "list_concat": ("list",), "list_concat_unique": ("list",),
    "map_merge": ("map",), "map_replace": ("map",), "contains": ("bool",), "equals": ("bool",),
    "not": ("bool",), "and": ("bool",), "or": ("bool",), "Fn::Join": ("text",),
    "Fn::Replace": ("text",), "Fn::Base64": ("text",), "Fn::Split": ("list",),
    "Fn::GetAZs": ("list",), "Fn::MemberListToMap": ("map",), "resource_facade": (),
    "Fn::ResourceFacade": (),
}  # fmt: skip
OF_RESOURCES: Final = frozenset({"get_attr", "get_resource", "Fn::GetAtt"})
DECIDE: Final = frozenset(
    {"equals", "not", "and", "or", "contains", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"}
)


def offered() -> set[str]:
    """Every name of a function that any version offers or has dropped."""
    classes = versions.installed().values()
    return {
        name
        for each in classes
        for table in (each.features.offered.functions, each.features.offered.conditions)
        for name in table
    }
