"""What a plan says of values that come while it is walked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import document
from bloomery.orchestration.plan import ExistingStack, tree_diff
from bloomery.orchestration.plan.plans import MAKE, NOT_SET, Action, Key, Unknown, Verb
from bloomery.orchestration.template.functions.base import Reference
from bloomery.orchestration.template.view import PlainResource, StackView
from tests.unit.orchestration.plan.kit import (
    Attr,
    Template,
    attr,
    join,
    param,
    ref,
    row,
    rows,
    template,
    thing,
)

# What happens to a; how b refers to it, and by which property; what b then does, and whether surely
STAYS, IN_PLACE, ANEW = {}, {"value": 1}, {"size": 2}
ID, ATTRIBUTE = ref("a"), attr("a")
FORECASTS = [
    (STAYS, ID, "value", Verb.UNCHANGED, True),
    (STAYS, ATTRIBUTE, "value", Verb.UNCHANGED, True),
    (IN_PLACE, ID, "value", Verb.UNCHANGED, True),
    (IN_PLACE, ID, "size", Verb.UNCHANGED, True),
    (IN_PLACE, ATTRIBUTE, "value", Verb.UPDATE, False),
    (IN_PLACE, ATTRIBUTE, "size", Verb.REPLACE, False),
    (IN_PLACE, ATTRIBUTE, "fixed", Verb.REFUSE, False),
    (ANEW, ID, "value", Verb.UPDATE, True),
    (ANEW, ID, "size", Verb.REPLACE, True),
    (ANEW, ID, "fixed", Verb.REFUSE, True),
    (ANEW, ATTRIBUTE, "value", Verb.UPDATE, False),
    (ANEW, ATTRIBUTE, "size", Verb.REPLACE, False),
    (ANEW, join("x", ID), "value", Verb.UPDATE, True),
    (ANEW, {"deep": [ID]}, "value", Verb.UPDATE, True),
]


@pytest.mark.parametrize(("change", "tree", "key", "verb", "certain"), FORECASTS)
@pytest.mark.parametrize("existing", ["rows", "live", "nothing"])
def test_what_happens_to_one_decides_what_is_known_of_the_other(
    change: dict[str, Any], tree: Any, key: str, verb: Verb, certain: bool, existing: str
) -> None:
    values = {"value": "was", "size": "was", "fixed": "was"}
    was = {"deep": ["was"]} if isinstance(tree, dict) else "xwas" if tree.args != "a" else "was"
    if tree is ATTRIBUTE:
        was = "was"
    old = template(a=thing(), b=thing(**{key: tree}))
    new = template(a=thing(**change), b=thing(**{key: tree}))
    records = rows(row("a"), row("b", **{key: was}))
    live = {"a": PlainResource(name="a", id="was", values=values)}
    existing = {
        "rows": ExistingStack(records=records),
        "live": ExistingStack(records=records, live=live),
        "nothing": None,
    }[existing]
    action = foresight.plan(old, new, existing).actions[Key("b", MAKE)]
    assert (action.verb, action.certain) == (verb, certain)


def test_an_attribute_of_what_was_never_made_changes() -> None:
    same = template(a=thing(), b=thing(value=attr("a")))
    action = _of(same, same, row("a", state="INIT_COMPLETE"), row("b", value="null"))
    assert (action.verb, action.certain) == (Verb.UPDATE, True)


def test_a_function_that_asks_for_more_than_it_told_leaves_everything_open() -> None:
    class Sly(Attr):
        def references(self, view: StackView) -> Iterator[Reference]:
            yield from ()

    new = template(a=thing(size=2), b=thing(value=Sly("sly", ["a", "value"])))
    action = _of(template(a=thing(), b=thing()), new, row("a"), row("b"))
    assert (action.verb, action.certain) == (Verb.REFUSE, False)  # the immutable one, perhaps
    assert {each.after for each in action.differences} == {Unknown("a is replaced")}


DEEP = [
    # old tree, new tree, what the row says, leaves that differ
    ({"x": 1, "y": attr("a")}, {"x": 2, "y": attr("a")}, None, {"value.x": 2}),
    ({"x": 1, "y": attr("a")}, {"x": 2, "y": attr("a")}, {"x": 1, "y": 7}, {"value.x": 2}),
    ({"x": 1, "y": attr("a")}, {"x": 2, "y": attr("a")}, {"x": 0, "y": 7}, {"value.x": 2}),
    (
        {"x": [1, attr("a")], "y": attr("c")},
        {"x": [2, attr("a")], "y": attr("c")},
        {"x": [1, 7], "y": 8},
        {"value.x[0]": 2, "value.y": Unknown("c is updated")},
    ),
    (
        {"y": attr("a")},
        {"x": attr("c"), "z": 1},
        {"y": 7},
        {"value.y": NOT_SET, "value.x": Unknown("c is updated"), "value.z": 1},
    ),
    ({"x": 1, "y": attr("c")}, {"x": 1, "y": 2}, None, {"value.y": 2}),
    (
        {"x": "1", "y": attr("c")},  # a text that a schema made a number
        {"x": "1", "y": attr("c")},
        {"x": 1, "y": 7},
        {"value.y": Unknown("c is updated")},
    ),
    (
        {"x": [1, attr("a")]},
        {"x": [1, attr("a"), {"z": attr("a")}]},
        {"x": [1, 7]},
        {"value.x": [1, Unknown("a is looked at"), {"z": Unknown("a is looked at")}]},
    ),
    (attr("a"), {"x": attr("c")}, {"x": 1}, {"value": Unknown("c is updated")}),
]


@pytest.mark.parametrize(("was", "tree", "there", "leaves"), DEEP)
def test_one_leaf_that_is_not_known_hides_no_other(
    was: Any, tree: Any, there: Any, leaves: dict[str, Any]
) -> None:
    old = template(a=thing(), c=thing(value=1), b=thing(value=was))
    new = template(a=thing(), c=thing(value=2), b=thing(value=tree))
    records = there and rows(row("a"), row("c", value=1), row("b", value=there))
    action = foresight.plan(old, new, records).actions[Key("b", MAKE)]
    assert {each.where: each.after for each in action.differences} == leaves
    assert json.dumps(document.of_templates(foresight.plan(old, new, records)))


def test_a_fault_of_the_old_template_leaves_the_whole_open() -> None:
    old = template(a=thing(), b=thing(value={"x": join(attr("a"), param("no")), "y": attr("a")}))
    made = foresight.plan(old, template(a=thing(), b=thing(value={"x": 1, "y": 2})))
    (leaf,) = made.actions[Key("b", MAKE)].differences
    assert (leaf.where, leaf.before, leaf.after) == ("value", Unknown(), {"x": 1, "y": 2})


def test_metadata_are_known_leaf_by_leaf_too() -> None:
    old = template(a=thing(value=1), b=thing(metadata={"x": 1, "y": attr("a")}))
    new = template(a=thing(value=2), b=thing(metadata={"x": 2, "y": attr("a")}))
    leaves = foresight.plan(old, new).actions[Key("b", MAKE)].differences
    assert {each.where: each.after for each in leaves} == {
        "metadata.x": 2,
        "metadata.y": Unknown("a is updated"),
    }


def test_what_is_made_first_is_named() -> None:
    new = template(a=thing(size=2), c=thing(), b=thing(value=join(ref("a"), ref("c"))))
    action = _of(template(a=thing(), b=thing(value="x")), new, row("a"), row("b", value="x"))
    (difference,) = action.differences
    assert difference.before == "x"
    assert difference.after == Unknown("a is replaced and c is created")
    assert action.properties is None


def test_a_live_value_is_compared_itself() -> None:
    live = {"a": PlainResource(name="a", id="7", values={"value": "now"})}
    old = template(a=thing(), b=thing(value="now"), c=thing(value="old"))
    new = template(a=thing(), b=thing(value=attr("a")), c=thing(value=attr("a")))
    records = rows(row("a"), row("b", value="now"), row("c", value="old"))
    made = foresight.plan(old, new, ExistingStack(records=records, live=live))
    assert (made.verb("b"), made.verb("c")) == (Verb.UNCHANGED, Verb.UPDATE)
    (difference,) = made.actions[Key("c", MAKE)].differences
    assert (difference.before, difference.after) == ("old", "now")


def test_another_reference_to_what_stays_is_a_change() -> None:
    old = template(a=thing(), c=thing(), b=thing(value=ref("a"), other=1))
    new = template(a=thing(), c=thing(), b=thing(value=ref("c"), other=1))
    action = _of(old, new, row("a"), row("b", value="id-a", other=1), row("c"))
    assert (action.verb, action.certain) == (Verb.UPDATE, True)
    assert [each.after for each in action.differences] == [Unknown("c is looked at")]


def test_a_reference_that_becomes_a_value_is_a_change_without_rows() -> None:
    old, new = template(a=thing(), b=thing(value=ref("a"))), template(a=thing(), b=thing(value=1))
    made = foresight.plan(old, new)
    (difference,) = made.actions[Key("b", MAKE)].differences
    assert (difference.before, difference.after) == (Unknown(), 1)


@pytest.mark.parametrize(
    ("tree", "verb"),
    [
        (join(param("p"), ref("a")), Verb.UPDATE),
        (join(param("q"), ref("a")), Verb.UNCHANGED),
        (param("p", ref("a")), Verb.UPDATE),
        (param("q", ref("a")), Verb.UNCHANGED),
        ({"k": [param("p", ref("a"))]}, Verb.UPDATE),
        (param(join("p"), ref("a")), Verb.UPDATE),
    ],
)
def test_a_parameter_beside_a_reference_counts(tree: Any, verb: Verb) -> None:
    resources = {"a": thing(), "b": thing(value=tree)}
    old = Template(resources, parameters={"p": {"id-a": 1}, "q": {"id-a": 1}})
    new = Template(resources, parameters={"p": {"id-a": 2}, "q": {"id-a": 1}})
    assert foresight.plan(old, new, rows(row("a"), row("b"))).verb("b") is verb


def test_a_call_that_makes_all_properties_may_change_any() -> None:
    tree = param("p", ref("a"))
    values = {"parameters": {"p": {}}}
    old = Template({"a": thing(), "b": thing(tree=tree)}, **values)
    same = Template({"a": thing(), "b": thing(tree=tree)}, **values)
    other = Template({"a": thing(size=2), "b": thing(tree=tree)}, **values)
    assert foresight.plan(old, same).verb("b") is Verb.UNCHANGED
    action = foresight.plan(old, other).actions[Key("b", MAKE)]
    assert (action.verb, action.certain) == (Verb.REFUSE, False)  # one of them is immutable


def test_a_call_that_makes_all_properties_is_asked_when_it_can_be() -> None:
    tree = param("p")
    old = Template({"a": thing(tree=tree)}, parameters={"p": {"value": 1}})
    new = Template({"a": thing(tree=tree)}, parameters={"p": {"value": 2}})
    action = _of(old, new, row("a", value=1), name="a")
    assert [each.where for each in action.differences] == ["value"]


@pytest.mark.parametrize(
    ("change", "certain", "after"),
    [
        (STAYS, None, None),
        (IN_PLACE, None, None),
        (ANEW, True, Unknown("a is replaced")),
    ],
)
def test_metadata_is_waited_for_as_properties_are(
    change: dict[str, Any], certain: bool | None, after: Any
) -> None:
    old = template(a=thing(), b=thing(metadata={"a": ref("a")}))
    new = template(a=thing(**change), b=thing(metadata={"a": ref("a")}))
    action = _of(old, new, row("a"), row("b"))
    if certain is None:
        assert action.verb is Verb.UNCHANGED
    else:
        assert (action.verb, action.certain) == (Verb.UPDATE, certain)
        assert [each.after for each in action.differences] == [after]


def test_metadata_that_refers_elsewhere_differs_though_neither_is_known() -> None:
    old = template(a=thing(), c=thing(), b=thing(metadata={"k": [ref("a"), 1]}))
    new = template(a=thing(), c=thing(), b=thing(metadata={"k": [ref("c"), 1]}))
    action = _of(old, new, row("a"), row("b"), row("c"))
    (difference,) = action.differences
    assert (action.verb, difference.where) == (Verb.UPDATE, "metadata")


def test_doubt_spreads_along_references() -> None:
    names = "abcd"
    chain = {"a": thing(), **{each: thing(value=attr(chr(ord(each) - 1))) for each in "bcd"}}
    old, new = Template(chain), Template(chain | {"a": thing(value=1)})
    made = foresight.plan(old, new, rows(*(row(name, value="x") for name in names)))
    assert [made.verb(name) for name in names] == [Verb.UPDATE] * 4
    assert [made.actions[Key(name, MAKE)].certain for name in names] == [True] + [False] * 3


def test_a_doubtful_replacement_makes_the_id_doubtful() -> None:
    chain = {"a": thing(), "b": thing(size=attr("a")), "c": thing(value=ref("b"))}
    old, new = Template(chain), Template(chain | {"a": thing(value=1)})
    made = foresight.plan(old, new, rows(*(row(name) for name in chain)))
    assert made.verb("b") is Verb.REPLACE
    assert [made.actions[Key(name, MAKE)].certain for name in "bc"] == [False, False]


def test_a_fault_says_where_it_is() -> None:
    with pytest.raises(errors.StackValidationFailed) as told:
        foresight.plan(template(a=thing()), template(a=thing(value=param("no"))), rows(row("a")))
    assert told.value.path[:2] == ("resources", "a")


@pytest.mark.parametrize("existing", [None, {}])
def test_a_reference_into_nowhere_is_a_named_error(existing: Any) -> None:
    old = template(b=thing())
    new = template(b=thing(value=ref("gone")))
    existing = rows(row("b")) if existing is None else None
    with pytest.raises(errors.InvalidTemplateReference, match="no resource is called 'gone'"):
        foresight.plan(old, new, existing)


def test_a_cycle_is_named() -> None:
    with pytest.raises(errors.CircularDependencyException, match="a -> b -> a"):
        foresight.create(template(a=thing(depends_on=("b",)), b=thing(value=ref("a"))))


def _of(old: Template, new: Template, *records: StoredResource, name: str = "b") -> Action:
    return foresight.plan(old, new, rows(*records)).actions[Key(name, MAKE)]


def test_a_walk_plans_nothing_that_a_value_could_wait_for():
    walk = SimpleNamespace(actions={})  # it compares one resource, whose turn has come
    assert tree_diff.known_after(walk, [Reference("r1", None)]) == Unknown()
