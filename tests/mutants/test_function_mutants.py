"""Each edge of a template's function is bent in turn, and the table of vectors notices.

MUTANTS names the function, what is done wrong, and how.  A vector that notices is one whose outcome
is no longer that of the table.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bloomery.orchestration.template import view
from bloomery.orchestration.template.functions import (
    base,
    cloudformation,
    conditions,
    containers,
    loops,
    references,
    replacing,
    shapes,
    text,
    urls,
    yaql,
)
from tests.kit.stacks import function_vectors
from tests.kit.stacks.function_vectors import VECTORS

_select, _loosely = references.select, references.select_loosely
_decided, _unit = conditions.decided, itertools.product
_json_text, _host, _place = shapes.json_text, urls._host, urls._place


class Mutant(NamedTuple):
    function: str
    wrong: str
    target: Any
    name: str
    bent: Any


def _never(*_args: Any, **_more: Any) -> None:
    """Refuse nothing."""


def _one_by_one(text: str, values: dict[str, str], limits: Any) -> tuple[str, list[str]]:
    unused = [key for key in values if key not in text]
    for key in replacing._longest_first(values):
        text = text.replace(key, values[key])
    return text, unused


def _leftmost(text: str, values: dict[str, str], limits: Any) -> tuple[str, list[str]]:
    made, at = "", 0
    while at < len(text):
        found = [key for key in replacing._longest_first(values) if text.startswith(key, at)]
        made += values[found[0]] if found else text[at]
        at += len(found[0]) if found else 1
    return made, [key for key in values if key not in text]


def _stepped_into_lists_only(value: Any, step: Any) -> Any:
    return references._MISSING if isinstance(value, str) else _stepped(value, step)


def _stepped_forwards(value: Any, step: Any) -> Any:
    return references._MISSING if step in (-1, "-1") else _stepped(value, step)


_stepped = references._stepped


def _first_fastest(*items: Any) -> Any:
    return (tuple(reversed(found)) for found in _unit(*reversed(items)))


def _digest(encoding: str) -> Callable[..., str]:
    def made(self: Any, algorithm: str, content: str) -> str:
        return hashlib.new(algorithm, content.encode(encoding, "replace")).hexdigest()

    return made


def _digest_result(self: Any, args: Any, seen: Any) -> Any:
    if args[0] != args[0].lower():
        raise self.fault("lower case, please")
    return text.Digest._digest(self, *args)


def _concat_any(self: Any, value: Any) -> list[Any]:
    return list(value or [])


def _merge_deep(self: Any, args: Any, seen: Any) -> Any:
    made: dict[Any, Any] = {}
    for item in args:
        for key, value in (item or {}).items():
            both = isinstance(value, dict) and isinstance(made.get(key), dict)
            made[key] = made[key] | value if both else value
    return made


def _typed(value: Any) -> Any:
    return (type(value).__name__, repr(value))


def _equal_as_text(self: Any, args: Any, seen: Any) -> bool:
    return str(args[0]) == str(args[1])


def _equal_with_types(self: Any, args: Any, seen: Any) -> bool:
    return type(args[0]) is type(args[1]) and args[0] == args[1]


def _both_parsed(cls: Any, name: str, args: Any, parser: Any) -> Any:
    list(map(parser.parse, args[1:]))
    return _expand(cls, name, args, parser)


def _null_left_behind(cls: Any, name: str, args: Any, parser: Any) -> Any:
    found = _expand(cls, name, args, parser)
    return None if found is base.ABSENT else found


_expand = conditions.If.__dict__["expand"].__func__


def _null_is_false(value: Any, seen: Any) -> bool:
    return value is not None and _decided(value, seen)


def _truth(value: Any, seen: Any) -> bool:
    return bool(value)


def _all(self: Any, seen: Any) -> bool:
    found = [self.operand(index, seen) for index in range(len(self.args))]
    return all(found)


def _any(self: Any, seen: Any) -> bool:
    found = [self.operand(index, seen) for index in range(len(self.args))]
    return any(found)


def _text_of(null: str, lower: bool = False) -> Callable[..., str]:
    def made(self: Any, key: str, value: Any) -> str:
        if value is None:
            return null
        if isinstance(value, dict | list):
            return _json_text(value)
        return str(value).lower() if lower else str(value)

    return made


def _values_as_text(self: Any, value: Any) -> Any:
    return list(map(str, _values(self, value)))


_values = loops.Repeat._values


def _loop_text_at_once(self: Any, template: str, pairs: Any) -> str:
    return replacing.replaced(template, dict(pairs), self.limits)[0]


def _values_of_map(self: Any, value: Any) -> Any:
    return list(value.values()) if isinstance(value, dict) else value or ()


def _copy_without_keys(self: Any, template: Any, pairs: Any) -> Any:
    if isinstance(template, dict):
        return {key: self._copy(value, pairs) for key, value in template.items()}
    return _copy(self, template, pairs)


_copy = loops._Copier._copy


def _join_without_null(self: Any, value: Any) -> list[Any]:
    return [item for item in _items(self, value) if item is not None]


_items = text.ListJoinOne._items


def _join_of_numbers(self: Any, item: Any) -> str:
    return "" if item is None else _json_text(item) if not isinstance(item, str) else item


def _join_of_maps(self: Any, item: Any) -> str:
    return _json_text(item) if isinstance(item, dict) else _text(self, item)


_text = text.ListJoinOne._text
_map_result, _select_result = containers.MapReplace.result, cloudformation.Select.result


def _known(controls: Any) -> Any:
    return {key: controls[key] for key in ("keys", "values") if key in (controls or {})}


def _split_out_of_range(self: Any, parts: list[str], index: Any) -> Any:
    return parts[int(index)] if -len(parts) <= int(index) < len(parts) else None


def _split_whole_numbers(self: Any, parts: list[str], index: Any) -> Any:
    if not isinstance(index, int):
        raise self.fault("a number, please")
    return _part(self, parts, index)


_part = text.StrSplit._part


def _not_found_is_null(self: Any, args: Any, seen: Any) -> Any:
    return seen.parameters.get(args) if seen.has_parameter(args) else args


def _unquoted_place(args: dict[str, Any]) -> str:
    quoted = _place({**args, "username": "", "password": ""})
    secret = f":{args['password']}" if args.get("password") else ""
    who = f"{args.get('username', '')}{secret}"
    return f"{who}@{quoted}" if who else quoted


MUTANTS = (
    Mutant("get_param", "null where a path leads nowhere", references, "select_loosely",
           lambda value, path: _loosely(value, path) or None),
    Mutant("get_param", "numeric text is no index", references, "select_loosely",
           lambda value, path: _select(value, path) or ""),
    Mutant("get_param", "no characters of text", references, "_stepped", _stepped_into_lists_only),
    Mutant("get_param", "no negative index", references, "_stepped", _stepped_forwards),
    Mutant("get_param", "an unknown parameter is null", view.Plain, "parameter",
           lambda self, name: self.parameters.get(name)),
    Mutant("get_resource", "the name instead of the id", view.PlainResource, "reference_id",
           lambda self: self.name),
    Mutant("get_resource", "an unknown name is itself", references.GetResource, "result",
           lambda self, args, seen: seen.ids.get(args, args)),
    Mutant("get_attr", "empty text where a path leads nowhere", references, "select",
           lambda value, path: _select(value, path) or ""),
    Mutant("get_attr", "numeric text is an index", references, "select",
           lambda value, path: _loosely(value, path) or None),
    Mutant("get_attr", "what is not ready is asked", view.PlainResource, "ready", True),
    Mutant("get_attr", "unknown attributes are null", view.PlainResource, "has_attribute",
           lambda self, name: True),
    Mutant("get_attr", "all attributes in every version", references._Attribute, "lengths",
           references.GetAttr.lengths),
    Mutant("get_attr", "a path is not walked", references, "select",
           lambda value, path, missing=None: value),
    Mutant("get_file", "a missing file is empty", view.Plain, "file",
           lambda self, key: self.files.get(key, "")),
    Mutant("resource_facade", "any part may be asked for", references.ResourceFacade, "check",
           _never),
    Mutant("list_join", "null is skipped", text.ListJoinOne, "_items", _join_without_null),
    Mutant("list_join", "numbers become text", text.ListJoin, "_text", _join_of_numbers),
    Mutant("list_join", "several lists in every version", text.ListJoinOne, "takes_several", True),
    Mutant("list_join", "text is a list of characters", text.ListJoinOne, "_items", _concat_any),
    Mutant("list_join", "JSON without spaces", shapes, "json_text",
           lambda value: _json_text(value).replace(": ", ":")),
    Mutant("list_join", "JSON in the order of the map", shapes, "json_text",
           shapes.json.dumps),
    Mutant("str_replace", "shortest first", replacing, "_longest_first",
           lambda values: sorted(values, key=len)),
    Mutant("str_replace", "equal lengths in the order of the map", replacing, "_longest_first",
           lambda values: sorted(values, key=len, reverse=True)),
    Mutant("str_replace", "leftmost first", replacing, "replaced", _leftmost),
    Mutant("str_replace", "what was put in is looked at again", replacing, "replaced", _one_by_one),
    Mutant("str_replace", "null becomes None", replacing.StrReplaceScalars, "_text",
           _text_of("None")),
    Mutant("str_replace", "booleans as in JSON", replacing.StrReplaceScalars, "_text",
           _text_of("", lower=True)),
    Mutant("str_replace", "maps in every version", replacing.StrReplaceScalars, "takes_structures",
           True),
    Mutant("str_replace", "a mark that the text has", replacing, "_free_code_points",
           lambda text, values: iter(range(0xF0000, 0xF00FF))),
    Mutant("str_replace_strict", "unused placeholders do no harm", replacing.StrReplaceStrict,
           "is_strict", False),
    Mutant("str_replace_strict", "a placeholder inside of another counts", replacing, "replaced",
           lambda text, values, limits: ("x", [key for key in values if key not in text])),
    Mutant("str_replace_vstrict", "empty values do no harm", replacing.StrReplaceVstrict, "_text",
           replacing.StrReplace._text),
    Mutant("str_replace_vstrict", "false is empty", replacing.StrReplaceVstrict, "_text",
           lambda self, key, value: replacing.StrReplace._text(self, key, value or self.fault)),
    Mutant("str_replace_vstrict", "unused placeholders do no harm", replacing.StrReplaceStrict,
           "is_strict", False),
    Mutant("str_split", "null out of range", text.StrSplit, "_part", _split_out_of_range),
    Mutant("str_split", "numeric text is no index", text.StrSplit, "_part", _split_whole_numbers),
    Mutant("digest", "UTF-8", text.Digest, "_digest", _digest("utf-8")),
    Mutant("digest", "what Latin-1 lacks is a question mark", text.Digest, "_digest",
           _digest("latin-1")),
    Mutant("digest", "upper case is unknown", text.Digest, "result", _digest_result),
    Mutant("repeat", "the first placeholder varies fastest", loops.itertools, "product",
           _first_fastest),
    Mutant("repeat", "numbers become text", loops.Repeat, "_values", _values_as_text),
    Mutant("repeat", "placeholders all at once", loops._Copier, "_text", _loop_text_at_once),
    Mutant("repeat", "the values of a map", loops.Repeat, "_values", _values_of_map),
    Mutant("repeat", "maps in every version", loops.Repeat, "takes_maps", True),
    Mutant("repeat", "keys stay", loops._Copier, "_copy", _copy_without_keys),
    Mutant("repeat", "unequal lists end with the shortest", loops.RepeatPermutations, "_count",
           lambda self, lengths, for_each: min(lengths)),
    Mutant("repeat", "permutations are not looked at", loops.RepeatPermutations, "_is_parallel",
           lambda self: False),
    Mutant("repeat", "permutations may be anything", loops.RepeatPermutations, "check",
           loops.Repeat.check),
    Mutant("map_merge", "deep", containers.MapMerge, "result", _merge_deep),
    Mutant("map_replace", "a key may be lost", containers.MapReplace, "_renamed",
           lambda self, key, source, keys: keys.get(key) or key),
    Mutant("map_replace", "controls are not looked at", containers.MapReplace, "result",
           lambda self, args, seen: _map_result(self, [args[0], _known(args[1])], seen)),
    Mutant("filter", "types count", containers, "identity", _typed),
    Mutant("filter", "null cannot be left out", containers.Filter, "result",
           lambda self, args, seen: [item for item in args[1] or []
                                     if item is None or item not in (args[0] or [])]),
    Mutant("list_concat", "text is a list of characters", containers.ListConcat, "_items",
           _concat_any),
    Mutant("list_concat", "null is an element", containers.ListConcat, "_items",
           lambda self, value: [None] if value is None else value),
    Mutant("list_concat_unique", "types count", containers, "identity", _typed),
    Mutant("list_concat_unique", "the last one is kept", containers.ListConcatUnique, "result",
           lambda self, args, seen: list({containers.identity(item): item
               for one in args for item in one or []}.values())),
    Mutant("contains", "types count", containers.Contains, "result",
           lambda self, args, seen: any(_typed(args[0]) == _typed(item) for item in args[1])),
    Mutant("contains", "in the keys of a map", containers.Contains, "result",
           lambda self, args, seen: args[0] in args[1]),
    Mutant("make_url", "IPv6 without brackets", urls, "_host", lambda host: host),
    Mutant("make_url", "user and password as they are", urls, "_place", _unquoted_place),
    Mutant("make_url", "ports from 0", urls, "_PORTS", range(70_001)),
    Mutant("make_url", "any part", urls.MakeUrl, "_check", _never),
    Mutant("make_url", "slashes are quoted in paths", urls.parse, "quote",
           lambda part, safe="": part.replace(" ", "+")),
    Mutant("yaql", "no limit of elements", yaql._Output, "_limited",
           lambda self, items: iter(items)),
    Mutant("yaql", "syntax is looked at late", yaql.Yaql, "check", _never),
    Mutant("if", "null is false", conditions, "decided", _null_is_false),
    Mutant("if", "any text is true", conditions, "decided", _truth),
    Mutant("if", "both branches are looked at", conditions.If, "expand", classmethod(_both_parsed)),
    Mutant("if", "null is left behind", conditions.If, "expand", classmethod(_null_left_behind)),
    Mutant("if", "two arguments in every version", conditions.If, "lengths", (2, 3)),
    Mutant("equals", "as text", conditions.Equals, "result", _equal_as_text),
    Mutant("equals", "types count", conditions.Equals, "result", _equal_with_types),
    Mutant("equals", "names are conditions", conditions.Equals, "result",
           lambda self, args, seen: args == ["no", "no"] and seen.condition("no")),
    Mutant("not", "names are not looked up", conditions, "decided", _truth),
    Mutant("and", "names are not looked up", conditions, "decided", _truth),
    Mutant("and", "all are looked at", conditions.And, "resolve", _all),
    Mutant("and", "one is enough", conditions._Several, "check", _never),
    Mutant("or", "all are looked at", conditions.Or, "resolve", _any),
    Mutant("or", "one is enough", conditions._Several, "check", _never),
    Mutant("Ref", "parameters alone", cloudformation.Ref, "result", _not_found_is_null),
    Mutant("Fn::GetAtt", "a path", cloudformation.GetAtt, "lengths", range(2, 9)),
    Mutant("Fn::Join", "JSON of maps", cloudformation.Join, "_text", _join_of_maps),
    Mutant("Fn::Split", "null stays null", cloudformation.Split, "result",
           lambda self, args, seen: args[1] and args[1].split(args[0])),
    Mutant("Fn::Select", "null where nothing is", cloudformation.Select, "result",
           lambda self, args, seen: _select_result(self, args, seen) or None),
    Mutant("Fn::Replace", "maps become JSON", cloudformation.Replace, "takes_structures", True),
    Mutant("Fn::Base64", "is encoded", cloudformation.Base64, "result",
           lambda self, args, seen: cloudformation.text.hashlib.md5(args.encode()).hexdigest()),
    Mutant("Fn::MemberListToMap", "in the order of the list", cloudformation, "sorted",
           list),
    Mutant("Fn::FindInMap", "a missing key is null", cloudformation.FindInMap, "result",
           lambda self, args, seen: seen.mappings.get(args[0], {}).get(args[1], {}).get(args[2])),
    Mutant("Fn::GetAZs", "no zones", cloudformation.GetAZs, "result",
           lambda self, args, seen: []),
    Mutant("Fn::ResourceFacade", "names of HOT", cloudformation.ResourceFacade, "METADATA",
           "metadata"),
    Mutant("Fn::If", "two arguments", cloudformation.If, "lengths", (2, 3)),
    Mutant("Fn::Equals", "as text", conditions.Equals, "result",
           lambda self, args, seen: False),
    Mutant("Fn::Not", "a plain condition", cloudformation.Not, "check", _never),
    Mutant("Fn::And", "one is enough", conditions._Several, "check", _never),
    Mutant("Fn::Or", "true by itself", conditions.Or, "resolve", lambda self, seen: True),
)  # fmt: skip


def unnoticed(function: str) -> bool:
    """Whether every vector of a function still gives what the table says."""
    return all(
        function_vectors.is_same(_outcome(vector), vector.expected)
        for vector in VECTORS
        if vector.function == function
    )


def _outcome(vector: function_vectors.Vector) -> Any:
    try:
        return function_vectors.outcome(vector)
    except (AttributeError, LookupError, TypeError, ValueError) as exc:
        return exc  # a bent function may break altogether


@pytest.mark.parametrize("function", sorted({mutant.function for mutant in MUTANTS}))
def test_the_vectors_hold_while_nothing_is_bent(function: str):
    assert unnoticed(function)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.function}: {mutant.wrong}")
def test_a_bent_edge_is_noticed(mutant: Mutant):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutant.target, mutant.name, mutant.bent, raising=mutant.name != "sorted")
        assert not unnoticed(mutant.function)


def test_every_function_has_an_edge_that_is_bent():
    functions = {vector.function for vector in VECTORS} - {"other"}
    assert functions == {mutant.function for mutant in MUTANTS}
