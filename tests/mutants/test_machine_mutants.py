"""Would the kills of engines notice?  Each row takes a safeguard of the kinds of machines away."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from bloomery.orchestration.resources import base, stepwise
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.node import Node
from tests.kit.machine_kills import FLOWS, begun, check


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
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_kills_notice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, where, attribute, broken = MUTANTS[name]
    start = begun(FLOWS[flow], tmp_path)
    monkeypatch.setattr(where, attribute, broken)
    with pytest.raises(AssertionError):
        check(FLOWS[flow], start, tmp_path)
    start.db.close()
