"""Inspection rules: every operator, formats, loops, masks, and rules that mean harm."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import logging
from typing import Any

import pytest

from bloomery import errors
from bloomery.inspection import conditions, engine, formats
from bloomery.inspection.draft import Draft
from bloomery.inspection.formats import Budget, Scope
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import inspection as rules
from bloomery.secrets import SEALED

MAC = "52:54:00:00:00:0a"
INVENTORY: dict[str, Any] = {
    "cpu": {"count": 8, "architecture": "x86_64", "flags": []},
    "memory": {"physical_mb": "16384"},
    "disks": [{"name": "sda", "size": 10}, {"name": "sdb", "size": 20}],
    "bmc": {"address": "192.0.2.7", "password": "hush", "nested": [{"auth_token": "hush"}]},
    "serial": "007",
    "none": None,
    "yes": True,
}


def node(**more: Any) -> Node:
    sealed = {SEALED: "k", "token": "t"}
    return Node(uuid="n", driver="fake-hardware", name="web-1", driver_info={"x_password": sealed},
                extra={"list": [1]}, **more)  # fmt: skip


def draft() -> Draft:
    port = Port(uuid="p", address=MAC, node_uuid="n")
    return Draft.of(node(), [port], INVENTORY, {"seen": {"by": "agent"}})


def rule(**more: Any) -> InspectionRule:
    actions = more.pop("actions", [{"op": "set-attribute", "args": ["extra/hit", True]}])
    checked = {
        "conditions": rules.conditions(more.pop("conditions", [])),
        "actions": rules.actions(actions),
    }
    return InspectionRule(uuid="r", **checked, **more)


def run(*listed: InspectionRule, mask_secrets: str = "always", calls: Any = None) -> Draft:
    work = draft()
    powers = engine.Powers(mask_secrets=mask_secrets, reveal=opened, call=calls or refuse)
    engine.run(listed, work, powers)
    return work


def refuse(**arguments: Any) -> None:
    raise errors.Invalid(reason=f"cannot call {arguments['url']}")


def opened(value: Any) -> Any:
    if isinstance(value, dict):
        if SEALED in value:
            return "hush"
        return {name: opened(inner) for name, inner in value.items()}
    return value


def holds(op: str, *args: Any, **more: Any) -> bool:
    condition = {"op": op, "args": list(args)} | more
    return run(rule(conditions=[condition])).node.extra.get("hit", False)


# ------------------------------------------------------- what another release has stored, as it is


CHANGE_IT = "would be refused today: change the rule, or delete it"


@pytest.mark.parametrize(
    ("conditions", "actions", "message"),
    [
        ([], [{"op": "set-attribute", "args": ["uuid", "x"]}], "cannot change uuid of a node"),
        ([], [{"op": "nothing", "args": {}}], "actions/0/op"),
        ([], [{"op": "add-trait", "args": {"title": "CUSTOM_A"}}], "no argument title"),
        ([{"op": "nothing", "args": {}}], [{"op": "fail", "args": ["x"]}], "conditions/0/op"),
    ],
    ids=str,
)
def test_a_stored_rule_that_would_be_refused_now_says_what_to_do(
    conditions: Any, actions: Any, message: str
):
    stored = InspectionRule(uuid="r", conditions=conditions, actions=actions)
    with pytest.raises(errors.HardwareInspectionFailure, match=message) as failure:
        run(stored)
    assert str(failure.value).endswith(CHANGE_IT)
    with pytest.raises(errors.HardwareInspectionFailure, match="it is sensitive") as failure:
        run(dataclasses.replace(stored, sensitive=True))
    assert not [word for word in ("uuid of", "'nothing'", "title") if word in str(failure.value)]


def test_a_stored_rule_that_would_be_refused_now_goes_on_where_it_does_no_harm():
    over_nothing = {"op": "add-trait", "args": ["CUSTOM_A"], "loop": "{nonsense[x]}"}
    elsewhere = {"op": "set-attribute", "args": ["uuid", "x"]}
    never = {"op": "is-true", "args": [False]}
    work = run(
        InspectionRule(uuid="a", actions=[over_nothing]),
        InspectionRule(uuid="b", conditions=[never], actions=[elsewhere]),
        rule(),
    )
    assert (work.node.traits, work.node.extra["hit"]) == ((), True)


# ------------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("eq", [["{inventory[cpu][count]}", 8]], True),
        ("eq", [["{inventory[cpu][count]}", "8"]], True),
        ("eq", [["{inventory[serial]}", "7"]], False),
        ("eq", [["{inventory[serial]}", "007"]], True),
        ("eq", [["{inventory[yes]}", True]], True),
        ("eq", [[1, 1, 2]], False),
        ("eq", [1, 1], True),
        ("gt", [1, 2], False),
        ("eq", [[1, 1, 1]], True),
        ("eq", [[[1], [1]]], True),
        ("eq", [["8", 8.0]], True),
        ("eq", [[8, "eight"]], False),
        ("eq", [[None, "None"], True], True),
        ("lt", [["{inventory[cpu][count]}", 16]], True),
        ("lt", [["{inventory[cpu][count]}", "16"]], True),
        ("lt", [["{inventory[cpu][count]}", "16"], True], False),
        ("lt", [["a", "b"]], True),
        ("gt", [["{inventory[memory][physical_mb]}", 8192]], True),
        ("gt", [[3, 2, 1]], True),
        ("gt", [[3, 2, 2]], False),
        ("is-empty", [""], True),
        ("is-empty", [None], True),
        ("is-empty", [[]], True),
        ("is-empty", [{}], True),
        ("is-empty", [0], False),
        ("is-empty", ["{inventory[cpu][flags]}"], True),
        ("is-empty", ["{inventory[nothing]}"], True),
        ("is-empty", ["{node.name}"], False),
        ("is-none", ["{inventory[none]}"], True),
        ("is-none", [None], True),
        ("is-none", ["{inventory[nothing]}"], False),
        ("is-true", ["{inventory[yes]}"], True),
        ("is-true", ["on"], True),
        ("is-true", [5], True),
        ("is-true", ["maybe"], False),
        ("is-true", [None], False),
        ("is-false", ["no"], True),
        ("is-false", ["maybe"], False),
        ("is-false", ["{inventory[none]}"], True),
        ("is-false", [0], True),
        ("in-net", ["{inventory[bmc][address]}", "192.0.2.0/24"], True),
        ("in-net", ["192.0.2.7", "192.0.2.9/24"], True),
        ("in-net", ["2001:db8::1", "2001:db8::/32"], True),
        ("in-net", ["192.0.2.7", "2001:db8::/32"], False),
        ("in-net", ["nowhere", "192.0.2.0/24"], False),
        ("matches", ["{node.name}", "web-[0-9]"], True),
        ("matches", ["{node.name}", "web"], False),
        ("matches", [16, "[0-9]{2}"], True),
        ("contains", ["{node.name}", "eb"], True),
        ("contains", ["{node.name}", "^eb"], False),
        ("one-of", ["{inventory[cpu][count]}", [4, 8]], True),
        ("one-of", ["x", ["y"]], False),
    ],
    ids=str,
)
def test_conditions_hold_or_not_and_turn_round(op, args, expected):
    assert holds(op, *args) is expected
    assert holds(f"!{op}", *args) is not expected
    assert holds(f"! {op}", *args) is not expected


def test_every_operator_is_known_to_the_api_and_to_the_engine():
    assert set(rules.CONDITIONS) == {*conditions.OPERATORS, "is-empty"}
    assert set(rules.ACTIONS) == {*engine.actions.OPERATORS, "api-call"}


@pytest.mark.parametrize(
    ("multiple", "loop", "expected"),
    [
        (None, [1, 8], True),
        (None, [1, 2], False),
        ("any", [8, 1], True),
        ("all", [8, 1], False),
        ("all", [8, 8], True),
        ("first", [8, 1], True),
        ("first", [1, 8], False),
        ("last", [1, 8], True),
        ("last", [8, 1], False),
        ("any", [], False),
        ("any", {"8": "x"}, True),
        ("any", "{inventory[disks]}", False),
        ("any", "{inventory[nothing]}", False),
    ],
    ids=str,
)
def test_conditions_loop(multiple, loop, expected):
    more = {"multiple": multiple} if multiple else {}
    assert holds("eq", ["{item}", "{inventory[cpu][count]}"], loop=loop, **more) is expected


def test_items_of_the_inventory_may_be_looped_over():
    assert holds("gt", ["{item[size]}", 15], loop="{inventory[disks]}", multiple="last")


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("lt", [[1, []]], "cannot order int and list"),
        ("in-net", ["192.0.2.7", "nonsense"], "subnet"),
        ("matches", ["x", "("], "regular expression"),
        ("one-of", ["x", "{node.name}"], "values takes a list"),
        ("eq", [[1, 1]], "loop takes a list"),
    ],
    ids=str,
)
def test_conditions_that_nobody_can_answer_fail_by_name(op, args, message):
    more = {"loop": "{node.name}"} if "loop" in message else {}
    with pytest.raises(errors.HardwareInspectionFailure, match=message) as failure:
        holds(op, *args, **more)
    assert f"inspection rule r, condition 0 ({op})" in str(failure.value)


# ---------------------------------------------------------------------------------------- actions


def act(op: str, *args: Any, **more: Any) -> Draft:
    return run(rule(actions=[{"op": op, "args": list(args)} | more]))


@pytest.mark.parametrize(
    ("op", "args", "field", "expected"),
    [
        ("set-attribute", ["extra/rack", "{node.name}"], "extra", {"list": [1], "rack": "web-1"}),
        ("set-attribute", ["/extra/a/b", 5], "extra", {"list": [1], "a": {"b": 5}}),
        ("set-attribute", ["extra.list.0", 5], "extra", {"list": [5]}),
        ("set-attribute", ["extra", {"only": 1}], "extra", {"only": 1}),
        ("set-attribute", ["properties.cpus", "{inventory[cpu][count]}"], "properties",
         {"cpus": "8"}),
        ("set-attribute", ["resource_class", "big"], "resource_class", "big"),
        ("set-attribute", ["name", "db-1"], "name", "db-1"),
        ("set-attribute", ["automated_clean", "{inventory[yes]}"], "automated_clean", True),
        ("extend-attribute", ["extra/list", 1], "extra", {"list": [1, 1]}),
        ("extend-attribute", ["extra/list", 1, True], "extra", {"list": [1]}),
        ("extend-attribute", ["extra/new", "x"], "extra", {"list": [1], "new": ["x"]}),
        ("del-attribute", ["extra/list"], "extra", {}),
        ("del-attribute", ["extra/list/0"], "extra", {"list": []}),
        ("del-attribute", ["extra/nothing/there"], "extra", {"list": [1]}),
        ("del-attribute", ["extra"], "extra", {}),
        ("del-attribute", ["name"], "name", None),
        ("set-capability", ["boot_mode", "uefi"], "properties", {"capabilities": "boot_mode:uefi"}),
        ("unset-capability", ["boot_mode"], "properties", {}),
        ("add-trait", ["CUSTOM_{inventory[serial]}"], "traits", ("CUSTOM_007",)),
        ("remove-trait", ["CUSTOM_A"], "traits", ()),
    ],
    ids=str,
)  # fmt: skip
def test_actions_change_the_node(op, args, field, expected):
    assert getattr(act(op, *args).node, field) == expected


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("set-plugin-data", ["a.b", "{inventory[serial]}"],
         {"seen": {"by": "agent"}, "a": {"b": "007"}}),
        ("extend-plugin-data", ["seen/all", 1], {"seen": {"by": "agent", "all": [1]}}),
        ("unset-plugin-data", ["seen/by"], {"seen": {}}),
        ("unset-plugin-data", ["nothing"], {"seen": {"by": "agent"}}),
    ],
    ids=str,
)  # fmt: skip
def test_actions_change_the_data(op, args, expected):
    assert act(op, *args).plugin_data == expected


@pytest.mark.parametrize(
    ("op", "args", "field", "expected"),
    [
        ("set-port-attribute", ["p", "extra/x", 1], "extra", {"x": 1}),
        ("set-port-attribute", [MAC.upper(), "pxe_enabled", False], "pxe_enabled", False),
        ("extend-port-attribute", [MAC, "extra/x", 1], "extra", {"x": [1]}),
        ("del-port-attribute", ["p", "pxe_enabled"], "pxe_enabled", True),
        ("del-port-attribute", ["p", "extra"], "extra", {}),
    ],
    ids=str,
)
def test_actions_change_ports(op, args, field, expected):
    assert getattr(act(op, *args).ports[0], field) == expected


def test_actions_loop_and_see_what_the_ones_before_have_done():
    loop = [{"path": "a", "value": 1}, {"path": "b", "value": "{node.name}"}]
    set_ = {"op": "set-attribute", "args": ["extra/{item[path]}", "{item[value]}"], "loop": loop}
    again = {"op": "set-attribute", "args": ["extra/c", "{node.extra[a]}"]}
    assert run(rule(actions=[set_, again])).node.extra == {
        "list": [1], "a": "1", "b": "{node.name}", "c": "1",
    }  # fmt: skip


def test_the_highest_priority_goes_first_and_lower_ones_see_what_it_did():
    first = rule(priority=5, actions=[{"op": "set-attribute", "args": ["extra/x", 1]}])
    second = rule(
        priority=1,
        conditions=[{"op": "eq", "args": [["{node.extra[x]}", 1]]}],
        actions=[{"op": "set-attribute", "args": ["extra/y", 2]}],
    )
    assert run(second, first).node.extra == {"list": [1], "x": 1, "y": 2}


def test_all_conditions_must_hold():
    yes, no = ({"op": "eq", "args": [[1, n]]} for n in (1, 2))
    assert "hit" not in run(rule(conditions=[yes, no])).node.extra


def test_fail_says_what_the_operator_wrote():
    with pytest.raises(errors.HardwareInspectionFailure) as failure:
        run(rule(description="sizes", actions=[{"op": "fail", "args": ["{node.name} is small"]}]))
    assert "web-1 is small (inspection rule r (sizes))" in str(failure.value)


def test_log_is_one_line_without_secrets(caplog):
    caplog.set_level(logging.INFO)
    act("log", "two\nlines password=hush", "warning")
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.getMessage() == "node n: two lines password=******"


def test_a_call_gets_its_arguments():
    calls: list[Any] = []
    action = {"op": "api-call", "args": {"url": "http://a/{node.uuid}", "timeout": 2}}
    run(rule(actions=[action]), calls=lambda **arguments: calls.append(arguments))
    assert calls == [{"url": "http://a/n", "timeout": 2}]


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("set-attribute", ["uuid", "x"], "cannot change uuid of a node"),
        ("set-attribute", ["provision_state", "active"], "cannot change provision_state"),
        ("set-attribute", ["traits", ["CUSTOM_A"]], "cannot change traits"),
        ("set-attribute", ["name", "no blanks"], "cannot name a node"),
        ("set-attribute", ["driver", None], "cannot be removed"),
        ("set-attribute", ["properties", 5], "properties"),
        ("set-attribute", ["properties/memory_mb", "much"], "memory_mb"),
        ("set-attribute", ["extra/list/7", 1], "no object or list"),
        ("set-attribute", ["name/x", 1], "no object or list"),
        ("set-attribute", ["extra..x", 1], "path"),
        ("set-attribute", [".".join(["extra"] * 30), 1], "path"),
        ("set-attribute", ["driver_info/x_password/token", "x"], "secret"),
        ("set-attribute", ["driver_info/$sealed", "x"], "secret"),
        ("extend-attribute", ["driver_info/x_password", "x"], "no list"),
        ("extend-attribute", ["extra", "x"], "no list"),
        ("del-attribute", ["driver"], "cannot be removed"),
        ("set-capability", ["a:b", "x"], "capability"),
        ("set-capability", ["a", "x,y:z"], "capability"),
        ("add-trait", ["no trait"], "trait"),
        ("set-port-attribute", ["nobody", "extra/x", 1], "no port nobody"),
        ("set-port-attribute", ["p", "address", "x"], "cannot change address of a port"),
        ("set-port-attribute", ["p", "local_link_connection", 5], "local_link_connection"),
        ("set-plugin-data", ["seen.by.whom", 1], "no object or list"),
        ("api-call", ["http://nowhere"], "cannot call http://nowhere"),
    ],
    ids=str,
)
def test_actions_that_cannot_be_done_fail_by_name(op, args, message):
    with pytest.raises(errors.HardwareInspectionFailure, match=message) as failure:
        act(op, *args)
    assert f"inspection rule r, action 0 ({op})" in str(failure.value)


def test_a_sensitive_rule_that_fails_tells_nothing_of_itself():
    actions = [{"op": "set-attribute", "args": ["hush", "hush"]}]
    with pytest.raises(errors.HardwareInspectionFailure) as failure:
        run(rule(sensitive=True, actions=actions))
    assert "hush" not in str(failure.value)


# ---------------------------------------------------------------------------------------- formats


def scope(reveal: Any = None) -> Scope:
    names = {**engine._scope(draft(), Budget(), None).names, "item": {"a.b": [[5]]}}
    return Scope(names=names, budget=Budget(), reveal=reveal)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{node.name}: {inventory[cpu][count]:>4}", "web-1:    8"),
        ("{inventory.cpu.count}", "8"),
        ("{inventory[disks][1][name]}", "sdb"),
        ("{item[a.b][0][0]}", "5"),
        ("{node.name!r}", "'web-1'"),
        ("{inventory[none]}", "None"),
        ("{{literal}}", "{literal}"),
        ("plain", "plain"),
    ],
)
def test_formats_read_plain_data(template, text):
    assert formats.text(template, scope()) == text


@pytest.mark.parametrize(
    "template",
    [
        "{node.__class__}",
        "{node.__class__.__mro__[1]}",
        "{inventory.keys}",
        "{inventory.__init__.__globals__}",
        "{node.name.upper}",
        "{node.name[0]}",
        "{item[a.b][-1]}",
        "{item[a.b][9]}",
        "{}",
        "{0}",
        "{nobody}",
        "{node",
        "node}",
        "{node.name!x}",
        "{node.name:{inventory[cpu][count]}}",
        "{inventory[cpu][count]:>99999999}",
        "{inventory[cpu][count]:.99999999f}",
        "{inventory[cpu]:>5}",
        "{node.name:d}",
        "a{3}",
        "{inventory[disks]}" * 2_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_cannot_be_resolved_stays_as_it_is(template):
    assert formats.text(template, scope()) == template


@pytest.mark.parametrize(
    "template",
    [
        "{inventory[bmc][password]}",
        "{inventory[bmc]}",
        "{inventory}",
        "{inventory[bmc][nested]}",
        "{inventory[bmc][nested][0][auth_token]}",
        "{node.driver_info[x_password]}",
        "{node.driver_info}",
    ],
)
def test_secrets_read_as_stars_unless_the_rule_may_read_them(template):
    masked, bare = formats.text(template, scope()), formats.text(template, scope(opened))
    assert "***" in masked
    assert "hush" not in masked
    assert "token': 't'" not in masked
    assert "hush" in bare


@pytest.mark.parametrize(
    ("mask_secrets", "sensitive", "reads"),
    [
        ("always", True, False),
        ("sensitive", False, False),
        ("sensitive", True, True),
        ("never", False, True),
    ],
)
def test_who_reads_secrets_is_the_option_s_to_say(mask_secrets, sensitive, reads):
    actions = [{"op": "set-attribute", "args": ["extra/x", "{node.driver_info[x_password]}"]}]
    work = run(rule(actions=actions, sensitive=sensitive), mask_secrets=mask_secrets)
    assert work.node.extra["x"] == ("hush" if reads else "***")


# ------------------------------------------------------------------------------- rules that hang


@pytest.mark.parametrize(
    "listed",
    [
        [rule(conditions=[{"op": "eq", "args": [["{item}", 5, 6]], "loop": ["x"] * 60_000}])],
        [
            rule(
                actions=[
                    {"op": "extend-plugin-data", "args": ["x", [[1] * 5_000]], "loop": [1] * 1_000}
                ]
            )
        ],
        [
            rule(
                actions=[
                    {"op": "extend-plugin-data", "args": ["x", "y" * 60_000], "loop": [1] * 1_000}
                ]
            )
        ],
    ],
    ids=["conditions", "elements", "characters"],
)
def test_work_is_counted_and_ends(listed):
    with pytest.raises(errors.HardwareInspectionFailure, match="loop over too much"):
        run(*listed)


def test_an_expression_that_backtracks_for_ever_ends():
    with pytest.raises(errors.HardwareInspectionFailure, match="longer than"):
        holds("matches", "x" * 5_000, "(x|xx)+y")


EXTEND: dict[str, Any] = {"op": "extend-attribute", "args": ["extra/list", "{item}"]}


def test_actions_have_the_time_of_the_rules_as_well(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(formats.time, "thread_time", lambda: float(next(clock)))
    with pytest.raises(errors.HardwareInspectionFailure, match="loop over too much"):
        run(rule(actions=[EXTEND | {"loop": list(range(30))}]))


def test_a_field_is_not_copied_in_each_turn_of_a_loop(monkeypatch):
    copies: list[Any] = []
    real = copy.deepcopy
    monkeypatch.setattr(copy, "deepcopy", lambda value: copies.append(value) or real(value))
    numbers = []
    for turns in (3, 30):
        copies.clear()
        extra = run(rule(actions=[EXTEND | {"loop": list(range(turns))}])).node.extra
        assert len(extra["list"]) == turns + 1
        numbers.append(len(copies))
    assert numbers[0] == numbers[1]


def test_a_rule_that_changes_a_field_does_not_change_the_data_that_a_hook_took_it_from():
    work = draft()
    work.node.extra = {"list": work.inventory["disks"]}
    powers = engine.Powers(mask_secrets="always", reveal=opened, call=refuse)
    engine.run(
        [rule(actions=[{"op": "extend-attribute", "args": ["extra/list", 1]}])], work, powers
    )
    assert len(work.node.extra["list"]) == 3
    assert work.inventory["disks"] == INVENTORY["disks"]
