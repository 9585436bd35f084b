"""Rules that no inspection could follow are refused before they are stored."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.inspection import rule_check
from bloomery.model.rules import inspection

LOOP = {"op": "is-true", "args": ["{item}"]}


def check(conditions: list[Any] = (), actions: list[Any] = ()) -> None:  # type: ignore[assignment]
    checked = inspection.actions(list(actions)) if actions else []
    rule_check.check(inspection.conditions(list(conditions)), checked)


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("set-attribute", ["uuid", "x"], "cannot change uuid of a node"),
        ("set-attribute", ["provision_state", "{inventory[state]}"], "cannot change provision_st"),
        ("set-attribute", ["extra//x", 5], "path"),
        ("set-attribute", ["name/x", 5], "name"),
        ("set-attribute", ["properties/memory_mb", "much"], "memory_mb"),
        ("set-attribute", ["retired", [1]], "retired"),
        ("extend-attribute", ["description", "x"], "description"),
        ("del-attribute", ["driver"], "driver cannot be removed"),
        ("set-port-attribute", ["{item}", "address", "52:54:00:00:00:01"], "address of a port"),
        ("set-port-attribute", ["{item}", "pxe_enabled", "perhaps"], "pxe_enabled"),
        ("set-capability", ["a,b", "{inventory[x]}"], "name of a capability"),
        ("set-capability", ["{inventory[x]}", "a,b"], "value of a capability"),
        ("add-trait", ["lower"], "lower"),
        ("set-plugin-data", ["a..b", "{inventory[x]}"], "path"),
        ("api-call", {"url": "ftp://x"}, "ftp"),
        ("api-call", {"url": "{inventory[url]}", "proxies": {"http": "x"}}, "proxies"),
        ("api-call", {"url": "http://x", "headers": {"a": "b\r\nc: d"}}, "headers"),
    ],
    ids=str,
)
def test_actions_that_nothing_could_do_are_named(op: str, args: Any, message: str):
    with pytest.raises(errors.InvalidParameterValue, match=message) as refusal:
        check(actions=[{"op": "log", "args": ["x"]}, {"op": op, "args": args}])
    assert "actions/1: " in str(refusal.value)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("set-attribute", ["{inventory[where]}", 5]),
        ("set-attribute", ["properties/memory_mb", "{inventory[memory][physical_mb]}"]),
        ("set-attribute", ["/driver", "idrac"]),
        ("extend-attribute", ["properties/list", "x"]),
        ("del-attribute", ["extra/list/0"]),
        ("set-port-attribute", ["{item}", "extra/x", 5]),
        ("add-trait", ["CUSTOM_{inventory[serial]}"]),
        ("add-trait", ["CUSTOM_A"]),
        ("set-capability", ["{inventory[x]}", "{inventory[y]}"]),
        ("unset-plugin-data", ["a.b"]),
        ("api-call", {"url": "http://{inventory[host]}/x"}),
        ("fail", ["no"]),
    ],
    ids=str,
)
def test_actions_that_some_inspection_could_do_are_taken(op: str, args: Any):
    check(actions=[{"op": op, "args": args}])


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("in-net", ["{inventory[bmc_address]}", "nonsense"], "subnet"),
        ("!matches", ["{node.name}", "("], "regular expression"),
        ("contains", ["{node.name}", "[a-"], "regular expression"),
        ("one-of", ["{node.name}", "{inventory[names]}"], "values takes a list"),
    ],
    ids=str,
)
def test_conditions_that_nothing_could_answer_are_named(op: str, args: Any, message: str):
    with pytest.raises(errors.InvalidParameterValue, match=f"conditions/0: .*{message}"):
        check([{"op": op, "args": args}])


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("in-net", ["{inventory[bmc_address]}", "{inventory[net]}"]),
        ("in-net", ["{inventory[bmc_address]}", "192.0.2.0/24"]),
        ("matches", ["{node.name}", "web-[0-9]{2}"]),
        ("one-of", ["{node.name}", ["a", "{inventory[name]}"]]),
        ("is-empty", ["{inventory[disks]}"]),
        ("eq", ["{node.name}", 5]),
        ("gt", ["node:memory_mb", 4096]),
    ],
    ids=str,
)
def test_conditions_that_some_inspection_could_answer_are_taken(op: str, args: Any):
    check([{"op": op, "args": args}])


@pytest.mark.parametrize("loop", ["inventory.disks", "{inventroy[disks]}", "{item}", "a {node}"])
def test_a_loop_over_nothing_is_refused(loop: str):
    with pytest.raises(errors.InvalidParameterValue, match="conditions/0: loop takes a list"):
        check([LOOP | {"loop": loop}])


@pytest.mark.parametrize("loop", [[1], {"a": 1}, "{inventory[disks]}", "{node.extra}", None])
def test_a_loop_over_something_is_taken(loop: Any):
    check([LOOP | {"loop": loop}])
