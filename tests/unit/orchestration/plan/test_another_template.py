"""One template in the place of another: the stack below stays, and is updated."""

from __future__ import annotations

import pytest

from bloomery.orchestration import foresight
from bloomery.orchestration.plan.plans import MAKE, Key, Verb
from bloomery.orchestration.stack import Stack
from tests.unit.orchestration.plan.stacks import resources

NESTED = """
heat_template_version: 2021-04-16
parameters: {PARAMETER: {type: string, default: VALUE}}
resources:
  in: {type: OS::Heat::Value, properties: {value: {get_param: PARAMETER}}}
"""


def nested(kind: str, properties: str = "{}", **registry: str) -> Stack:
    files = {
        "k.yaml": NESTED.replace("PARAMETER", "p").replace("VALUE", "x"),
        "y/k.yaml": NESTED.replace("PARAMETER", "p").replace("VALUE", "y"),
        "q.yaml": NESTED.replace("PARAMETER", "q").replace("VALUE", "x"),
    }
    body = f'  n: {{type: "{kind}", properties: {properties}}}'
    return resources(body, files=files, environment={"resource_registry": registry})


@pytest.mark.parametrize(
    ("old", "new", "members", "leaves"),
    [
        (nested("k.yaml"), nested("y/k.yaml"), {"n/in": Verb.UPDATE}, ["type"]),
        (nested("My::K", **{"My::K": "k.yaml"}), nested("k.yaml"), {}, ["type"]),
        (
            nested("My::K", **{"My::K": "k.yaml"}),
            nested("My::K", **{"My::K": "y/k.yaml"}),
            {"n/in": Verb.UPDATE},
            [],
        ),
        (nested("k.yaml", "{p: a}"), nested("q.yaml", "{q: a}"), {}, ["q", "p", "type"]),
        (
            nested("k.yaml", "{p: a}"),
            nested("q.yaml"),
            {"n/in": Verb.UPDATE},
            ["p", "type"],
        ),
    ],
)
def test_another_template_is_an_update_in_place(
    old: Stack, new: Stack, members: dict[str, Verb], leaves: list[str]
) -> None:
    made = foresight.plan(old, new)
    assert {key.name: each.verb for key, each in made.changes.items()} == members | {
        "n": Verb.UPDATE
    }
    assert [each.where for each in made.actions[Key("n", MAKE)].differences] == leaves


def test_a_property_that_another_template_has_no_more_goes_though_another_is_not_known() -> None:
    def side(kind: str, more: str, size: int) -> Stack:
        properties = f"{{{more}: {{get_attr: [key, value]}}, size: {size}}}"
        text = NESTED.replace("VALUE}", "x}, size: {type: number, default: 1}")
        files = {f"{one}.yaml": text.replace("PARAMETER", one) for one in ("p", "q")}
        body = f"  key: {{type: OS::Heat::RandomString, properties: {{length: {size}}}}}\n"
        return resources(f"{body}  n: {{type: {kind}, properties: {properties}}}", files=files)

    action = foresight.plan(side("p.yaml", "p", 8), side("q.yaml", "q", 9)).actions[Key("n", MAKE)]
    assert action.verb is Verb.UPDATE
    assert [each.where for each in action.differences] == ["p", "q", "size", "type"]


def test_a_template_in_place_of_a_kind_is_a_replacement() -> None:
    old = nested("OS::Heat::None")
    new = nested("OS::Heat::None", **{"OS::Heat::None": "k.yaml"})
    assert foresight.plan(old, new).verb("n") is Verb.REPLACE
