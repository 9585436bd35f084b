"""Would the kills of engines notice?  Each row takes a safeguard of the kinds of machines away."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from bloomery.orchestration.engine_host import wakes
from bloomery.orchestration.orders import machines
from bloomery.orchestration.resources import base, instance_placement, stepwise
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.node import Node
from tests.functional.orchestration import test_machine_failures
from tests.invariants import test_machine_forecasts
from tests.kit.stacks import conductor_deaths, trees
from tests.kit.stacks.machine_kills import FLOWS, begun, check
from tests.unit.orchestration.engine_host import test_wakes


def _orders_again(self: stepwise.OnNode, verb: str, **arguments: Any) -> None:
    self.machines.set_provision_state(self.node_uuid(), verb, **arguments)


MUTANTS: dict[str, tuple[str, Any, str, Any]] = {
    "UUIDs are not from the row": (
        "create", base.Resource, "derived_id", lambda self, role="": str(uuid.uuid4()),
    ),
    "an instance orders before it is stored": ("create", Instance, "ordering_steps", frozenset()),
    "a node orders before it is stored": ("create", Node, "ordering_steps", frozenset()),
    "an order is given again": ("rebuild", stepwise.OnNode, "order", _orders_again),
    "a node is not looked at before it is freed": (
        "delete", stepwise.OnNode, "order", _orders_again,
    ),
    "another node is asked for without a look": (
        "create on a second attempt", instance_placement, "is_reserved", lambda instance: False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_kills_notice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, where, attribute, broken = MUTANTS[name]
    start = begun(FLOWS[flow], tmp_path)
    monkeypatch.setattr(where, attribute, broken)
    with pytest.raises(AssertionError):
        check(FLOWS[flow], start, tmp_path)
    start.db.close()


DEATHS: dict[str, tuple[str, Any, str, Any]] = {
    "what may have been ordered is ordered again": (
        "rebuild", stepwise.OnNode, "order", _orders_again,
    ),
    "a conductor that does not answer is a failure": ("deploy", machines, "_BUSY", ()),
    "an allocation whose answer was lost is a failure": (
        "deploy", stepwise.Stepwise, "is_ours", lambda *_arguments: False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEATHS)
def test_deaths_of_conductors_notice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, where, attribute, broken = DEATHS[name]
    monkeypatch.setattr(where, attribute, broken)
    with pytest.raises(AssertionError, match="the conductor died after commit"):
        conductor_deaths.check(conductor_deaths.FLOWS[flow], tmp_path)


def test_a_mark_that_is_not_looked_at_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_machine_failures.test_a_machine_with_the_mark_of_another_stack_is_left_alone(tmp_path)
    monkeypatch.setattr(stepwise.Stepwise, "check_unmarked", lambda *_arguments: None)
    (tmp_path / "mutant").mkdir()
    with pytest.raises(AssertionError):
        test_machine_failures.test_a_machine_with_the_mark_of_another_stack_is_left_alone(
            tmp_path / "mutant"
        )


def test_a_wait_without_its_first_look_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened before anybody watched is looked at once, when the watch begins."""
    database = trees.database(tmp_path)
    monkeypatch.setattr(wakes.WakeIndex, "watch", lambda *_arguments: False)
    with pytest.raises(AssertionError):
        test_wakes.test_what_happened_between_the_look_and_the_watch_is_looked_at(database)
    database.close()


def test_a_plan_that_does_not_look_at_its_nodes_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Node, "current_effect", base.Resource.current_effect)
    with pytest.raises(AssertionError):
        test_machine_forecasts.test_what_is_certain_comes_true()
