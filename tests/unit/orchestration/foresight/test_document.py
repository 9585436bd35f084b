"""Plans as people and programs read them; what a secret went into is never shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import document
from bloomery.orchestration.plan import ExistingStack
from bloomery.orchestration.plan.plans import MAKE, Key
from bloomery.orchestration.template.view import PlainResource
from tests.unit.orchestration.plan import stacks
from tests.unit.orchestration.plan.kit import (
    Template,
    attr,
    join,
    param,
    ref,
    retain,
    row,
    rows,
    shown,
    template,
    thing,
)

OLD = template(
    net=thing(value="a"),
    key=thing(size=8),
    web=thing(value=ref("key"), other={"ports": [80, 443], "name": "x"}),
    volume=retain(),
    gone=thing(depends_on=("net",)),
    same=thing(),
    fixed=thing(fixed="a"),
    log=thing(value=1),
)
NEW = Template(
    {
        "net": thing(value="b"),
        "key": thing(size=16),
        "web": thing(value=ref("key"), other={"ports": [80, 8443], "name": None}),
        "same": thing(),
        "fixed": thing(fixed="b"),
        "log": thing(value=attr("net")),
        "new": thing(depends_on=("web",)),
        "theirs": thing(external_id="7"),
    }
)
TEXT = """\
~  net     Thing  update in place
     value: a -> b
±  key     Thing  replace          size cannot change in place
     size: 8 -> 16
-  key     Thing  delete           replaced
x  fixed   Thing  would fail       fixed is immutable
     fixed: a -> b
+  theirs  Thing  adopt            external_id: it is there already and stays another's
=  volume  Thing  keep             no longer in the template; deletion policy Retain
-  gone    Thing  delete           no longer in the template
~  log     Thing  update in place
     value: 1 -> (known after net is updated)
~  web     Thing  update in place
     other.ports[1]: 443 -> 8443
     other.name: x -> null
     value: null -> (known after key is replaced)
+  new     Thing  create

signs: + made or adopted, ~ changed in place, ± replaced by a new one, - deleted, = kept, but \
not in the stack any more, x would fail
1 to create, 1 to adopt, 3 to update in place, 1 to replace, 2 to delete, 1 to keep, it would \
fail at fixed."""


def test_an_operator_reads_what_happens_in_order() -> None:
    assert shown(foresight.plan(OLD, NEW)) == TEXT


def test_unchanged_ones_are_listed_when_asked_for() -> None:
    said = shown(foresight.plan(OLD, NEW), unchanged=True)
    assert "\n   same    Thing  unchanged\n" in said


def test_nothing_to_do_is_said() -> None:
    assert shown(foresight.plan(OLD, OLD)) == "Nothing changes."
    assert shown(foresight.create(template())) == "Nothing changes."


def test_that_no_resource_changes_is_not_that_nothing_does() -> None:
    one = template(a=thing(), b=thing())
    for other in (
        template(b=thing(), a=thing()),
        template(a=thing(description="said otherwise"), b=thing()),
        Template({"a": thing(), "b": thing()}, parameters={"p": 1}),
    ):
        assert shown(foresight.plan(one, other)) == "No resource changes."


def test_creation_and_deletion_are_plans_too() -> None:
    wanted = template(a=thing(), b=thing(value=ref("a")))
    assert shown(foresight.create(wanted)) == (
        "+  a  Thing  create\n+  b  Thing  create\n\nsigns: + made or adopted\n2 to create."
    )
    assert shown(foresight.delete(wanted)) == (
        "-  b  Thing  delete\n-  a  Thing  delete\n\nsigns: - deleted\n2 to delete."
    )


def test_doubt_is_a_question_mark() -> None:
    old = template(a=thing(), b=thing(size=attr("a")))
    new = template(a=thing(value=1), b=thing(size=attr("a")))
    assert shown(foresight.plan(old, new, rows(row("a"), row("b", size=4)))) == (
        "~   a  Thing  update in place\n"
        "     value: null -> 1\n"
        "±?  b  Thing  replace          size cannot change in place\n"
        "     size: 4 -> (known after a is updated)\n"
        "-?  b  Thing  delete           if it is replaced\n\n"
        "signs: ~ changed in place, ± replaced by a new one, - deleted, "
        "? depends on values that come later\n"
        "1 to update in place, 1 to replace, 1 to delete."
    )


def test_where_the_update_would_fail_is_said() -> None:
    old = Template({name: thing(fixed="a") for name in "abcdef"})
    new = Template({name: thing(fixed="b") for name in "abcdef"})
    assert shown(foresight.plan(old, new)).splitlines()[-1] == (
        "it would fail at a, b, c, d, e and 1 more."
    )
    old, new = (template(a=thing(value=v), b=thing(fixed=attr("a"))) for v in (1, 2))
    assert shown(foresight.plan(old, new)) == (
        "~   a  Thing  update in place\n"
        "     value: 1 -> 2\n"
        "x?  b  Thing  may fail         fixed is immutable\n"
        "     fixed: null -> (known after a is updated)\n\n"
        "signs: ~ changed in place, x would fail, ? depends on values that come later\n"
        "1 to update in place, it may fail at b."
    )


def test_long_values_and_many_leaves_are_cut() -> None:
    old = template(a=thing(value="x" * 200, other=dict.fromkeys("abcdefghijkl", 1)))
    new = template(a=thing(value="y", other=dict.fromkeys("abcdefghijkl", 2)))
    lines = shown(foresight.plan(old, new)).splitlines()
    assert lines[1].strip() == f"value: {'x' * 97}... -> y"
    assert lines[6].strip() == "and 8 more"


def test_a_program_reads_json() -> None:
    told = json.loads(json.dumps(document.of_templates(foresight.plan(OLD, NEW))))
    steps = {step["resource"]: step for step in told["steps"] if step["action"] != "delete"}
    assert steps["net"] == {
        "resource": "net",
        "type": "Thing",
        "action": "patch",
        "reason": "",
        "certain": True,
        "stage": 1,
        "machine": None,
        "node": None,
        "leftover": False,
        "verbs": [],
        "loses_data": False,
        "takes": None,
        "pause_s": 0,
        "differences": [{"path": "value", "before": "a", "after": "b"}],
    }
    assert steps["log"]["differences"] == [
        {"path": "value", "before": 1, "after": None, "known_after": "net is updated"}
    ]
    assert told["unchanged"] == [{"resource": "same", "type": "Thing"}]
    assert told["summary"] == {
        "adopt": 1,
        "create": 1,
        "delete": 2,
        "keep": 1,
        "patch": 3,
        "refuse": 1,
        "replace": 1,
    }


def test_json_tells_of_stages_and_of_doubt() -> None:
    old = template(a=thing(), b=thing(depends_on=("a",)), middle=thing())
    told = document.of_templates(foresight.plan(old, template(middle=thing())))
    assert [(step["resource"], step["stage"]) for step in told["steps"]] == [("b", 1), ("a", 2)]
    old, new = (
        template(a=thing(), b=thing(value=attr("a"))),
        template(a=thing(value=1), b=thing(value=attr("a"))),
    )
    (_, doubtful) = document.of_templates(foresight.plan(old, new))["steps"]
    assert doubtful["certain"] is False
    assert doubtful["differences"][0]["certain"] is False


# --------------------------------------------------------------------------------- secrets

SECRET = "hunter2"
WAYS = {
    "itself": param("password"),
    "in a text": join("x-", param("password"), "-y"),
    "deep": {"user": [{"password": param("password")}]},
    "under a name that is made": param(join("pass", "word")),
    "with what is not known": join(param("password"), ref("moved")),
    "as a path": param("map", param("password")),
    "with a path that is not known": param("password", ref("moved")),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hidden_in", ["old", "new", "both"])
def test_a_hidden_parameter_is_masked(way: str, hidden_in: str) -> None:
    def side(which: str, size: int) -> Template:
        password = f"{SECRET}{size}"
        return Template(
            {"moved": thing(size=size), "a": thing(value=WAYS[way], size=size)},
            parameters={"password": password, "map": {password: password}},
            hidden=["password"] if hidden_in in {which, "both"} else (),
        )

    made = foresight.plan(side("old", 1), side("new", 2))
    told = shown(made) + json.dumps(document.of_templates(made)) + repr(made)
    assert SECRET not in told
    assert "value" in told
    assert "size: 1 -> 2" in told  # the rest is shown


@pytest.mark.parametrize("way", WAYS)
def test_the_value_that_was_there_is_masked_though_the_new_one_is_not_known(way: str) -> None:
    parameters = {"password": SECRET, "map": {SECRET: SECRET}}
    wanted = {"moved": thing(), "a": thing(value=WAYS[way])}
    old = Template(wanted, parameters=parameters)
    new = Template(wanted | {"moved": thing(size=2)}, parameters=parameters, hidden=["password"])
    made = foresight.plan(old, new, rows(row("moved"), row("a", value=f"{SECRET}1")))
    assert SECRET not in shown(made)
    assert len(made.actions[Key("a", MAKE)].differences) == 1


@pytest.mark.parametrize("part", ["metadata", "update_policy"])
def test_a_hidden_parameter_is_masked_outside_of_properties(part: str) -> None:
    def side(password: str) -> Template:
        resources = {"a": thing(**{part: {"x": param("password")}})}
        return Template(resources, parameters={"password": password}, hidden=["password"])

    made = foresight.plan(side("hunter1"), side("hunter2"))
    assert shown(made).startswith(
        "~  a  Thing  update in place\n"
        f"     {part}.x: ****** -> ****** (parameter password is hidden)\n"
    )


def test_what_comes_from_a_resource_with_a_secret_is_masked() -> None:
    def side(other: Any) -> Template:
        return Template(
            {
                "a": thing(value=param("password")),
                "b": thing(value=attr("a")),
                "c": thing(value=join(attr("b"), other), other=other),
            },
            parameters={"password": SECRET},
            hidden=["password"],
        )

    live = {name: PlainResource(name=name, id=name, values={"value": SECRET}) for name in "abc"}
    records = rows(
        row("a", value=SECRET), row("b", value=SECRET), row("c", value=f"{SECRET}1", other=1)
    )
    made = foresight.plan(side(1), side(2), ExistingStack(records=records, live=live))
    leaves = made.actions[Key("c", MAKE)].differences
    assert [(each.before, each.after) for each in leaves] == [("******", "******"), (1, 2)]
    assert [each.hidden for each in leaves] == ["resource b has a secret", ""]


@pytest.mark.parametrize("secret", [param("password"), join("x-", param("password")), attr("s")])
def test_a_secret_hides_no_other_key_of_its_map(secret: Any) -> None:
    def side(size: int) -> Template:
        value = {"size": size, "login": {"user": f"u{size}", "password": secret}}
        resources = {"s": thing(value=param("password")), "a": thing(value=value)}
        return Template(resources, parameters={"password": f"{SECRET}{size}"}, hidden=["password"])

    live = {"s": PlainResource(name="s", id="s", values={"value": SECRET})}
    old = {"size": 1, "login": {"user": "u1", "password": SECRET}}
    records = rows(row("s", value=f"{SECRET}1"), row("a", value=old))
    made = foresight.plan(side(1), side(2), ExistingStack(records=records, live=live))
    (*_, step) = document.of_templates(made)["steps"]
    leaves = {each["path"]: each for each in step["differences"]}
    assert leaves["value.size"] == {"path": "value.size", "before": 1, "after": 2}
    assert leaves["value.login.user"]["after"] == "u2"
    assert leaves["value.login.password"]["before"] == "******"
    assert leaves["value.login.password"]["hidden"]
    assert SECRET not in shown(made) + json.dumps(document.of_templates(made))


@pytest.mark.parametrize("gone", ["old", "new"])
def test_a_map_that_comes_or_goes_with_a_secret_in_it_is_hidden(gone: str) -> None:
    def side(which: str) -> Template:
        value = {"login": {"password": param("password")}, "size": 1}
        resources = {"a": thing(value={"size": 1} if gone == which else value)}
        return Template(resources, parameters={"password": SECRET}, hidden=["password"])

    made = foresight.plan(side("old"), side("new"))
    (leaf,) = made.actions[Key("a", MAKE)].differences
    assert (leaf.where, leaf.before, leaf.after) == ("value.login", "******", "******")


def test_what_a_kind_keeps_redacted_is_masked_where_it_goes() -> None:
    secret = row("a")
    secret.redacted = {"value"}
    live = {"a": PlainResource(name="a", id=SECRET, values={"value": SECRET})}
    old, new = template(a=thing(), b=thing(value=1)), template(a=thing(), b=thing(value=ref("a")))
    made = foresight.plan(
        old, new, ExistingStack(records=rows(secret, row("b", value=1)), live=live)
    )
    (leaf,) = made.actions[Key("b", MAKE)].differences
    assert (leaf.before, leaf.after) == ("******", "******")


def test_a_property_whose_old_tree_has_a_fault_is_masked() -> None:
    old = Template({"a": thing(value=param("no"))}, parameters={"p": 1}, hidden=["p"])
    made = foresight.plan(old, template(a=thing(value=2)), rows(row("a", value=SECRET)))
    assert SECRET not in shown(made)


ASKED = """
heat_template_version: 2021-04-16
parameters: {key: {type: string, hidden: %s, default: %s}, size: {type: string, default: big}}
conditions: {is_long: {equals: [{get_param: key}, correct horse]}, is_odd: {not: is_long}}
resources: {a: {type: OS::Heat::Value, properties: {value: %s}}}
"""


def leaves(old: tuple[str, str, str], new: tuple[str, str, str]) -> list[tuple[Any, Any, str]]:
    made = foresight.plan(stacks.stack(ASKED % old), stacks.stack(ASKED % new))
    differences = made.actions[Key("a", MAKE)].differences
    return [(each.before, each.after, each.hidden) for each in differences]


@pytest.mark.parametrize(("condition", "asked"), [("is_long", "is_long"), ("is_odd", "is_odd")])
def test_a_value_that_a_hidden_parameter_has_chosen_is_masked(condition: str, asked: str) -> None:
    tree = f"{{if: [{condition}, 1, 2]}}"
    made = leaves(("true", "correct horse", tree), ("true", "battery", tree))
    assert made == [("******", "******", f"condition {asked} depends on a hidden parameter")]
    assert leaves(("false", "correct horse", tree), ("false", "battery", tree))[0][2] == ""


def test_the_value_of_a_hidden_parameter_is_masked_though_nothing_asks_for_it() -> None:
    made = leaves(("true", "correct horse", "correct horse"), ("true", "correct horse", "open"))
    assert made == [("******", "******", "it has the value of a hidden parameter")]


def test_a_parameter_that_was_hidden_stays_so_in_the_plan_that_shows_it() -> None:
    asks = "{digest: [md5, {get_param: key}]}"
    made = leaves(("true", "correct horse", "open"), ("false", "correct horse", asks))
    assert made == [("******", "******", "parameter key is hidden")]
