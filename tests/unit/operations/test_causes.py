"""The engine of causes, and the templates of its tables."""

from __future__ import annotations

import dataclasses
import string
from types import SimpleNamespace
from typing import Any, Final

import pytest

from bloomery.conf.conductor import Conductor as Options
from bloomery.model.allocation import Allocation
from bloomery.model.node import Node
from bloomery.model.stacks import Stack, StoredResource
from bloomery.model.step import StepRun
from bloomery.operations import allocation_why, causes
from bloomery.operations.causes import Rule
from bloomery.orchestration.queries import why as stack_why

TABLES: Final[tuple[tuple[Any, Any], ...]] = (
    (causes.OF_NODE, causes.NodeSituation),
    (allocation_why.OF_ALLOCATION, allocation_why.AllocationSituation),
    (stack_why.OF_RESOURCE, stack_why.ResourceWait),
    (stack_why.OF_STACK, stack_why.StackSituation),
)
MEMBERS: Final = {
    "node": Node, "run": StepRun, "options": Options, "allocation": Allocation, "row": Stack,
    "resource": StoredResource,
}  # fmt: skip
RULES: Final = [
    pytest.param(rule, cls, id=f"{cls.__name__}-{number}-{rule.code}")
    for table, cls in TABLES
    for number, rule in enumerate(table)
]
TABLE: Final = (
    Rule("held", lambda s: s.holder, "{fact} holds it{s.purpose: for %s}", "wait: {cause}"),
    Rule("", lambda _: True, "nothing: {s.purpose}", "none", since="s.at"),
)


def has(cls: type, name: str) -> bool:
    return hasattr(cls, name) or name in {each.name for each in dataclasses.fields(cls)}


@pytest.mark.parametrize(("rule", "cls"), RULES)
def test_every_field_of_a_sentence_exists(rule: Rule[Any], cls: type) -> None:
    texts = (rule.code, rule.cause, rule.next_action, f"{{{rule.since or 'fact'}}}")
    fields = [field for text in texts for _, field, *_ in string.Formatter().parse(text) if field]
    for field in fields:
        root, *path = field.partition("[")[0].split(".")
        assert root in ("s", "fact", "cause"), field
        if root == "s":
            assert has(cls, path[0]), field
            assert path[0] not in MEMBERS or has(MEMBERS[path[0]], path[1]), field


@pytest.mark.parametrize(("table", "cls"), TABLES)
def test_the_last_rule_of_a_table_always_applies(table: Any, cls: type) -> None:
    assert table[-1].when(None)


@pytest.mark.parametrize(
    ("purpose", "cause"),
    [("deploy", "host-a holds it for deploy"), (None, "host-a holds it"),
     ("password=hunter2", "host-a holds it for password=******")],
)  # fmt: skip
def test_the_first_rule_is_the_cause(purpose: str | None, cause: str) -> None:
    found = causes.find(TABLE, SimpleNamespace(holder="host-a", purpose=purpose))
    assert (found.code, found.cause, found.next_action) == ("held", cause, f"wait: {cause}")


def test_what_is_well_has_no_code() -> None:
    found = causes.find(TABLE, SimpleNamespace(holder=None, purpose="x", at="now"))
    assert (found.code, found.cause, found.since) == (None, "nothing: x", "now")
