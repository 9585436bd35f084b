from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.properties import translation, values
from bloomery.orchestration.properties.constraints import (
    AllowedPattern,
    AllowedValues,
    ConstraintContext,
    Custom,
    Length,
    Range,
)
from bloomery.orchestration.properties.schema import Schema, Status, Support, Type
from bloomery.orchestration.properties.values import Properties
from tests.kit import work

STRING, INTEGER, NUMBER, BOOLEAN = Type.STRING, Type.INTEGER, Type.NUMBER, Type.BOOLEAN
MAP, LIST, ANY = Type.MAP, Type.LIST, Type.ANY

SCHEMA = {
    "s": Schema(STRING),
    "sd": Schema(STRING, default="dd"),
    "i": Schema(INTEGER, default=7),
    "i0": Schema(INTEGER),
    "n": Schema(NUMBER),
    "b": Schema(BOOLEAN),
    "bd": Schema(BOOLEAN, default=True),
    "m": Schema(MAP),
    "mm": Schema(
        MAP,
        schema={
            "a": Schema(STRING, required=True),
            "b": Schema(INTEGER, default=3),
            "c": Schema(LIST, schema=Schema(INTEGER, constraints=[Range(1, 5)])),
        },
    ),
    "l": Schema(LIST),
    "ls": Schema(LIST, schema=Schema(STRING)),
    "lm": Schema(
        LIST,
        schema=Schema(
            MAP,
            schema={
                "x": Schema(INTEGER, required=True, constraints=[Range(max=5)]),
                "y": Schema(STRING),
            },
        ),
    ),
    "any": Schema(ANY),
    "c": Schema(INTEGER, constraints=[Range(1, 5)], default=2),
    "cs": Schema(
        STRING,
        constraints=[AllowedValues(["x", "y", ""]), Length(max=0, description="DESC")],
    ),
    "lc": Schema(LIST, constraints=[Length(max=2), AllowedValues(["p", "q"])]),
    "ni": Schema(STRING, implemented=False),
    "md": Schema(MAP, default={"k": 1}),
    "ld": Schema(LIST, default=[1]),
    "hidden": Schema(STRING, support=Support(status=Status.HIDDEN)),
    "unsupported": Schema(STRING, support=Support(status=Status.UNSUPPORTED)),
    "tm": Schema(MAP, takes_text=True, constraints=[Length(max=1)]),
    "tl": Schema(LIST, takes_text=True),
}
ABSENT = {
    **dict.fromkeys(SCHEMA),
    "sd": "dd", "i": 7, "bd": True, "c": 2, "md": {"k": 1}, "ld": [1],
}  # fmt: skip

TAKEN = [  # property, given, value; asked of the published Heat with the same schema
    ("s", "x", "x"), ("s", 5, "5"), ("s", True, "True"), ("s", None, ""), ("s", "", ""),
    ("sd", None, "dd"), ("sd", "", ""),
    ("i", "5", 5), ("i", 5, 5), ("i", 5.0, 5), ("i", 5.7, 5), ("i", True, 1), ("i", None, 7),
    ("i", " 5 ", 5), ("i", "1_0", 10), ("i", 10**30, 10**30), ("i", "-3", -3), ("i0", None, 0),
    ("n", "5", 5), ("n", "5.5", 5.5), ("n", 5, 5), ("n", True, True), ("n", None, 0),
    ("n", "1e3", 1000.0),
    ("b", True, True), ("b", "true", True), ("b", "FALSE", False), ("b", None, False),
    ("bd", None, True), ("bd", False, False),
    ("m", {}, {}), ("m", {"a": None}, {"a": None}), ("m", None, {}),
    ("mm", {"a": "x"}, {"a": "x", "b": 3, "c": None}),
    ("mm", {"a": 1, "b": "9", "c": ["1", 2]}, {"a": "1", "b": 9, "c": [1, 2]}),
    ("mm", {"a": None}, {"a": "", "b": 3, "c": None}),
    ("mm", {"a": "x", "b": None, "c": None}, {"a": "x", "b": 3, "c": []}),
    ("l", [], []), ("l", None, []), ("l", [1, None], [1, None]),
    ("ls", [1, True, None], ["1", "True", ""]),
    ("lm", [{"x": 1}], [{"x": 1, "y": None}]), ("lm", [], []),
    ("any", None, None), ("any", [None, {"a": 1.5}], [None, {"a": 1.5}]), ("any", True, True),
    ("c", "3", 3), ("c", None, 2), ("cs", None, ""),
    ("lc", ["p"], ["p"]), ("lc", [], []), ("lc", None, []),
    ("md", None, {"k": 1}), ("md", {}, {}), ("md", {"b": 2}, {"b": 2}),
    ("ld", None, [1]), ("ld", [], []),
    ("hidden", "x", "x"), ("unsupported", "x", "x"),
    ("tm", '{"a": 1, "b": 2}', '{"a": 1, "b": 2}'), ("tm", [1], [1]), ("tm", {"a": 1}, {"a": 1}),
    ("tm", None, {}), ("tm", "", ""), ("tl", "a, b,", ["a", " b", ""]), ("tl", "", []),
    ("tl", ["x"], ["x"]), ("tl", None, []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "value"), TAKEN)
def test_a_value_becomes_what_its_type_makes_of_it(name: str, given: Any, value: Any):
    found = Properties(SCHEMA, {name: given}).resolved(check=True)
    assert found == ABSENT | {name: value}
    assert type(found[name]) is type(value)


REFUSED = [  # properties, path of the fault, a word of it
    ({"s": 1.5}, ["s"], "not text"),
    ({"s": []}, ["s"], "not text"),
    ({"s": {"a": 1}}, ["s"], "not text"),
    ({"i": "5.0"}, ["i"], "whole number"),
    ({"i": "x"}, ["i"], "whole number"),
    ({"i": ""}, ["i"], "whole number"),
    ({"i": []}, ["i"], "whole number"),
    ({"i": {}}, ["i"], "whole number"),
    ({"i": float("inf")}, ["i"], "whole number"),
    ({"n": "x"}, ["n"], "not a number"),
    ({"n": ""}, ["n"], "not a number"),
    ({"n": "inf"}, ["n"], "not a number"),
    ({"n": "nan"}, ["n"], "not a number"),
    ({"n": float("nan")}, ["n"], "not a number"),
    ({"n": []}, ["n"], "not a number"),
    ({"b": "on"}, ["b"], "boolean"),
    ({"b": "1"}, ["b"], "boolean"),
    ({"b": 1}, ["b"], "boolean"),
    ({"b": 0}, ["b"], "boolean"),
    ({"b": "TRUE "}, ["b"], "boolean"),
    ({"b": ""}, ["b"], "boolean"),
    ({"b": []}, ["b"], "boolean"),
    ({"m": []}, ["m"], "not a map"),
    ({"m": '{"a": 1}'}, ["m"], "not a map"),
    ({"m": 5}, ["m"], "not a map"),
    ({"l": "a,b"}, ["l"], "not a list"),
    ({"l": {}}, ["l"], "not a list"),
    ({"l": ""}, ["l"], "not a list"),
    ({"l": 5}, ["l"], "not a list"),
    ({"tm": 5}, ["tm"], "not a map"),
    ({"tm": {"a": 1, "b": 2}}, ["tm"], "length"),
    ({"tm": [1, 2]}, ["tm"], "length"),
    ({"tl": {"a": 1}}, ["tl"], "not a list"),
    ({"mm": {}}, ["mm"], "Property a not assigned"),
    ({"mm": None}, ["mm"], "Property a not assigned"),
    ({"mm": {"a": "x", "zz": 1}}, ["mm"], "Unknown Property zz"),
    ({"mm": {"a": "x", "c": [1, 9]}}, ["mm", "c", 1], "9 is not between 1 and 5"),
    ({"mm": {"a": "x", "c": 9}}, ["mm", "c"], "not a list"),
    ({"mm": {"a": "x", "c": ["q"]}}, ["mm", "c", 0], "whole number"),
    ({"mm": "x"}, ["mm"], "not a map"),
    ({"ls": [[1]]}, ["ls", 0], "not text"),
    ({"ls": ["x", {"a": 1}]}, ["ls", 1], "not text"),
    ({"lm": [{"x": 9}]}, ["lm", 0, "x"], "9 is not 5 or less"),
    ({"lm": [{"y": "q"}]}, ["lm", 0], "Property x not assigned"),
    ({"lm": [{"x": 1}, {"x": 2, "z": 1}]}, ["lm", 1], "Unknown Property z"),
    ({"lm": ["q"]}, ["lm", 0], "not a map"),
    ({"lm": [None]}, ["lm", 0], "Property x not assigned"),
    ({"lm": {"x": 1}}, ["lm"], "not a list"),
    ({"c": 0}, ["c"], "not between"),
    ({"c": "9"}, ["c"], "9 is not between 1 and 5"),
    ({"cs": "x"}, ["cs"], "DESC"),
    ({"cs": "z"}, ["cs"], "allowed values"),
    ({"lc": ["p", "z"]}, ["lc"], "allowed values"),
    ({"lc": ["p", "q", "p"]}, ["lc"], "length is 3"),
    ({"ni": "x"}, [], "Property ni is not implemented"),
    ({"ni": None}, [], "Property ni is not implemented"),
    ({"zz": 1}, [], "Unknown Property zz"),
    ({"hiden": 1}, [], "Did you mean 'hidden'?"),
    ({"zz": 1, "i": "x"}, [], "Unknown Property zz"),
    ({"c": 9, "i": "x"}, ["i"], "whole number"),
    ({5: 1}, [], "Unknown Property 5"),
    ("text", [], "must be a map"),
    ([], [], "must be a map"),
    (5, [], "must be a map"),
]


@pytest.mark.parametrize(("given", "path", "word"), REFUSED)
def test_a_fault_knows_its_place_and_says_what_is_wrong(given: Any, path: Any, word: str):
    with pytest.raises(errors.StackValidationFailed) as caught:
        Properties(SCHEMA, given).validate()
    assert caught.value.path == tuple(path)
    assert word in str(caught.value)


def test_the_caller_puts_the_resource_before_the_path():
    with pytest.raises(errors.StackValidationFailed) as caught:
        Properties(SCHEMA, {"mm": {"a": "x", "c": [9]}}).validate()
    fault = caught.value.under("resources", "web", "properties", error="Property error")
    assert str(fault).startswith("Property error: resources.web.properties.mm.c[0]: 9 is not")


REQUIRED = {"r": Schema(STRING, required=True), "rd": Schema(INTEGER, required=True, default=5)}


def test_a_required_property_is_missed_beside_its_neighbours():
    with pytest.raises(errors.StackValidationFailed) as caught:
        Properties(REQUIRED, {}).validate()
    assert caught.value.path == ()
    assert str(caught.value).startswith("Property r not assigned")
    assert Properties(REQUIRED, {"r": None}).resolved() == {"r": "", "rd": 5}


@pytest.mark.parametrize("tree", [None, {}])
def test_no_properties_are_all_defaults(tree: Any):
    assert Properties(SCHEMA, tree).resolved(check=True) == ABSENT


def test_structure_alone_is_checked_where_values_do_not_count():
    lax = Properties(REQUIRED | SCHEMA, {"c": 99, "i": "x"})
    lax.validate(with_values=False)
    with pytest.raises(errors.StackValidationFailed, match="Unknown Property"):
        Properties(SCHEMA, {"zz": 1}).validate(with_values=False)
    Properties(SCHEMA, Call(resource="anything")).validate(with_values=False)


def test_resolving_without_a_check_asks_no_constraint():
    assert Properties(SCHEMA, {"c": 99, "mm": {"a": "", "zz": 1}}).resolved()["c"] == 99


def test_what_is_handed_out_is_not_the_default_itself():
    for name in ("md", "ld"):
        first = Properties(SCHEMA, {}).resolved()[name]
        first.clear()
    assert Properties(SCHEMA, {}).resolved() == ABSENT
    assert Properties({"m": Schema(MAP)}, {"m": None}).resolved()["m"] is not values._EMPTY[MAP]


def test_a_property_called_description_defaults_to_that_of_the_resource():
    schema = {"description": Schema(STRING, default="d")}
    assert Properties(schema, {}, description="mine").resolved() == {"description": "mine"}
    assert Properties(schema, {}).resolved() == {"description": "d"}
    given = Properties(schema, {"description": None}, description="mine")
    assert given.resolved() == {"description": "d"}


def test_numbers_have_no_more_digits_than_the_limit():
    context = ConstraintContext(limits=Limits(scalar_digits=5))
    for given in ("1" * 6, 10**5, -(10**5), 10**5000):
        for name in ("i", "n"):
            with pytest.raises(errors.StackValidationFailed, match=r"5 digits \(scalar_digits"):
                Properties(SCHEMA, {name: given}, context=context).validate()
    assert Properties(SCHEMA, {"i": 99_999}, context=context).resolved()["i"] == 99_999
    with pytest.raises(errors.StackValidationFailed):
        Properties(SCHEMA, {"s": 10**5000}).validate()
    with pytest.raises(errors.StackValidationFailed):
        Properties(SCHEMA, {"n": "1" * 10**6}).validate()


# ----------------------------------------------------------------------------- what is not ready


class Call:
    """A stand-in for a function: asks one resource."""

    def __init__(self, *, resource: str, value: Any = None) -> None:
        self.resource, self.value = resource, value


class Asks:
    """Reads trees in which calls stand; resources in ``ready`` are."""

    def __init__(self, *ready: str) -> None:
        self.ready = ready

    def resolve(self, tree: Any) -> Any:
        if isinstance(tree, Call):
            return tree.value
        if isinstance(tree, dict):
            return {key: self.resolve(value) for key, value in tree.items()}
        return [self.resolve(one) for one in tree] if isinstance(tree, list) else tree

    def settled(self, tree: Any) -> bool:
        if isinstance(tree, Call):
            return tree.resource in self.ready
        inner = tree.values() if isinstance(tree, dict) else tree
        return isinstance(inner, str | int) or all(self.settled(one) for one in inner)


NINE = Call(resource="r", value=9)
NOTHING = Call(resource="r")


@pytest.mark.parametrize(
    "tree",
    [
        {"c": NINE},
        {"c": NOTHING},
        {"cs": NOTHING},
        {"cs": Call(resource="r", value="z")},
        {"lm": [{"x": NINE}]},
        {"lm": [{"x": 9}, {"x": 1, "y": NOTHING}]},
        {"mm": NOTHING},
        {"mm": {"a": NOTHING, "c": [9]}},
        {"mm": {"a": "x", "zz": NOTHING}},
        Call(resource="r", value={"c": 9}),
    ],
)
def test_a_value_is_not_judged_while_what_it_comes_from_is_not_ready(tree: Any):
    Properties(SCHEMA, tree, Asks()).validate()


@pytest.mark.parametrize(
    "tree",
    [
        {"c": 9, "s": NOTHING},
        {"i": Call(resource="r", value="r")},
        {"mm": {"b": NOTHING}},
        {"l": Call(resource="r", value="r")},
        {"zz": NOTHING},
        Call(resource="r", value={"zz": 1}),
        Call(resource="r", value="text"),
    ],
)
def test_what_cannot_be_right_is_refused_all_the_same(tree: Any):
    with pytest.raises(errors.StackValidationFailed):
        Properties(SCHEMA, tree, Asks()).validate()


@pytest.mark.parametrize(
    "tree", [{"c": NINE}, {"lm": [{"x": NINE}]}, {"mm": {"a": "", "c": [NINE]}}]
)
def test_a_value_is_judged_once_all_is_ready(tree: Any):
    with pytest.raises(errors.StackValidationFailed, match="9 is not"):
        Properties(SCHEMA, tree, Asks("r")).validate()


def test_a_call_may_give_all_properties_at_once():
    asked = Call(resource="r", value={"c": "4", "s": "x"})
    assert Properties(SCHEMA, asked, Asks("r")).resolved(check=True) == ABSENT | {"c": 4, "s": "x"}
    assert Properties(SCHEMA, NOTHING, Asks("r")).resolved() == ABSENT


def test_a_fault_of_a_call_is_found_below_its_property():
    class Fails(Asks):
        def resolve(self, tree: Any) -> Any:
            raise errors.StackValidationFailed(reason="no").under("get_param")

    with pytest.raises(errors.StackValidationFailed, match=r"^l\.get_param: no"):
        Properties(SCHEMA, {"s": "x", "l": [NOTHING]}, Fails()).validate()


def test_custom_constraints_of_properties_get_the_means():
    schema = {"node": Schema(STRING, constraints=[Custom("ironic.node")])}
    context = ConstraintContext(
        find=lambda name: lambda value, context: f"{name} {context.service} {value}", service=7
    )
    with pytest.raises(errors.StackValidationFailed, match=r"ironic\.node 7 n1"):
        Properties(schema, {"node": "n1"}, context=context).validate()


# ------------------------------------------------------------------------------------ old spellings


def test_old_spellings_are_checked_under_their_new_names():
    schema = {
        "image": Schema(STRING, required=True, constraints=[AllowedPattern("id-.*")]),
        "old_image": Schema(STRING, support=Support(status=Status.HIDDEN)),
    }
    rules = [
        translation.Resolve(("image",), lambda name: f"id-{name}" if name != "x" else name),
        translation.Replace(("image",), source=("old_image",)),
    ]
    found = Properties(schema, {"old_image": "a"}, rules=rules).resolved(check=True)
    assert found == {"image": "id-a", "old_image": None}
    with pytest.raises(errors.StackValidationFailed, match="does not match") as caught:
        Properties(schema, {"old_image": "x"}, rules=rules).validate()
    assert caught.value.path == ("image",)
    waiting = {"old_image": Call(resource="r", value="x")}
    Properties(schema, waiting, Asks(), rules=rules).validate()
    with pytest.raises(errors.StackValidationFailed, match="image and old_image"):
        Properties(schema, {"image": "id-a", "old_image": "b"}, rules=rules).validate()


# -------------------------------------------------------------------------------------- differences

CHANGING = {
    "fixed": Schema(STRING),
    "free": Schema(STRING, update_allowed=True),
    "never": Schema(STRING, immutable=True),
    "any": Schema(ANY, update_allowed=True),
}


@pytest.mark.parametrize(
    ("before", "after", "changed", "immutable", "replacing"),
    [
        ({}, {}, {}, (), ()),
        ({"free": "a"}, {"free": "a"}, {}, (), ()),
        ({"free": "a"}, {"free": "b"}, {"free": "b"}, (), ()),
        ({"free": "a"}, {}, {"free": None}, (), ()),
        ({"free": "a"}, {"free": None}, {"free": None}, (), ()),
        ({"free": None}, {}, {}, (), ()),
        ({"fixed": "a"}, {"fixed": "b"}, {"fixed": "b"}, (), ("fixed",)),
        ({"never": "a"}, {"never": "b"}, {"never": "b"}, ("never",), ()),
        ({}, {"fixed": "", "never": "", "free": ""}, {"fixed": "", "never": "", "free": ""},
         ("never",), ("fixed",)),
        ({"any": 1}, {"any": True}, {"any": True}, (), ()),
        ({"any": 1}, {"any": 1.0}, {}, (), ()),
        ({"any": {"a": [1]}}, {"any": {"a": [2]}}, {"any": {"a": [2]}}, (), ()),
        ({"gone": 1}, {}, {}, (), ()),
    ],
)  # fmt: skip
def test_differences_say_what_an_update_has_to_do(
    before: Any, after: Any, changed: Any, immutable: Any, replacing: Any
):
    found = values.differences(CHANGING, before, after)
    assert (found.changed, found.immutable, found.replacing) == (changed, immutable, replacing)


def test_an_immutable_change_is_not_supported():
    values.differences(CHANGING, {}, {"fixed": "b"}).check()
    with pytest.raises(errors.NotSupported, match="never"):
        values.differences(CHANGING, {}, {"never": "b"}).check()


# --------------------------------------------------------------------------------- whatever comes


def _junk(dice: random.Random, depth: int = 3) -> Any:
    makers: list[Any] = [
        lambda: None, lambda: dice.choice([True, False]), lambda: dice.randint(-9, 9),
        lambda: dice.choice([1.5, float("inf"), float("nan"), 10**400, -0.0]),
        lambda: dice.choice(["", "x", "5", "true", "\0", "ü", "a,b", "9" * 200]),
    ]  # fmt: skip
    if depth:
        makers += [
            lambda: [_junk(dice, depth - 1) for _ in range(dice.randint(0, 3))],
            lambda: {
                dice.choice(["a", "b", "c", "x", "y", 5, None]): _junk(dice, depth - 1)
                for _ in range(dice.randint(0, 3))
            },
        ]
    return dice.choice(makers)()


def test_nothing_but_named_errors_comes_of_anything():
    dice, names = random.Random(7), list(SCHEMA)  # repeated alike each time
    for _ in range(3000):
        tree = {dice.choice(names): _junk(dice) for _ in range(2)}
        with contextlib.suppress(errors.StackValidationFailed):
            Properties(SCHEMA, tree).validate()


def test_a_sentence_stays_short_however_long_a_name_is():
    with pytest.raises(errors.StackValidationFailed) as caught:
        Properties(SCHEMA, {"k" * 10**6: 1}).validate()
    assert len(str(caught.value)) < 200


def test_a_thousand_resources_are_checked_in_no_time():
    trees = [{"s": "x", "c": "3", "mm": {"a": "x", "c": [1, 2]}} for _ in range(1000)]
    schemas = {name: SCHEMA[name] for name in ("s", "c", "mm")}

    def check() -> None:
        for tree in trees:
            Properties(schemas, tree).validate()

    assert work.calls(check) < 200_000  # a hundred for each
