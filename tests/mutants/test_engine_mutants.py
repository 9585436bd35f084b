"""Each safeguard of the engine is switched off in turn, and the kill matrix goes red."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bloomery.orchestration.engine import resource_actions
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stack_actions import StackActions
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.engine.traversal import Traversal
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.stack.template_side import NOTHING
from tests.unit.orchestration.engine import test_kills as kills

Patch = pytest.MonkeyPatch


def barrier_off(patch: Patch) -> None:
    """A handler runs in the turn in which its row becomes IN_PROGRESS."""

    def start(stack: EngineStack, row: EngineResource) -> None:
        assert row.pending_action is not None
        resource_actions._change(stack, row, row.pending_action.action, Status.IN_PROGRESS)
        stack.schedule.step_at(row, stack.schedule.now())

    patch.setattr(resource_actions, "_start", start)


def stored_graph_off(patch: Patch) -> None:
    """Who takes a stack up plans again, from what the walk has half done."""

    def resume(self: StackActions, stack: EngineStack) -> None:
        if stack.row.graph is None:
            return
        action = stack.row.graph["action"]
        if action == "DELETE":
            self.converge_stack(stack, stack.definition, NOTHING)
        elif action == "CREATE":
            self.converge_stack(stack, NOTHING, stack.definition)
        else:
            self.update(stack)

    patch.setattr(StackActions, "resume", resume)


def open_acts_first_off(patch: Patch) -> None:
    """Acts that are open are not bound to their vertices before they go on."""

    def resume(self: Traversal) -> None:
        ready, self.ready = self.ready, deque()
        while ready:
            key = ready.popleft()
            if self._is_done(key):
                ready.extend(self.remaining.finish(key))
            else:
                self.ready.append(key)

    patch.setattr(Traversal, "resume", resume)


def open_acts_off(patch: Patch) -> None:
    """Acts of a traversal that is over are forgotten by whoever takes the tree up."""
    recover = StackTree._recover

    def without(self: StackTree, stack: EngineStack) -> None:
        for row in stack.list_rows():
            pending = row.pending_action
            if pending is not None and pending.traversal != stack.row.traversal:
                row.pending_action = None
        recover(self, stack)

    patch.setattr(StackTree, "_recover", without)


def frozen_properties_off(patch: Patch) -> None:
    """Values are not stored before the handler runs."""
    patch.setattr(resource_actions, "_freeze", lambda *_args: None)


def derived_ids_off(patch: Patch) -> None:
    """What is made again after a crash gets another id."""
    patch.setattr(base.Resource, "derived_id", lambda *_args: str(uuid.uuid4()))


def act_of_its_row_off(patch: Patch) -> None:
    """Acts of a superseded walk are dropped with it."""
    supersede = StackActions._supersede

    def drop(self: StackActions, stack: EngineStack) -> None:
        supersede(self, stack)
        for row in list(stack.open_rows.values()):
            resource_actions._close(stack, row)

    patch.setattr(StackActions, "_supersede", drop)


class Mutant(NamedTuple):
    off: Callable[[Patch], None]
    scene: Callable[[Any], None]
    when: str


MUTANTS = (
    Mutant(barrier_off, kills.create, "before"),
    Mutant(stored_graph_off, kills.replacement, "after"),
    Mutant(stored_graph_off, kills.failing_update, "after"),
    Mutant(open_acts_first_off, kills.cancellation, "after"),
    Mutant(open_acts_off, kills.superseded_update, "after"),
    Mutant(frozen_properties_off, kills.failing_create, "after"),
    Mutant(derived_ids_off, kills.create, "before"),
    Mutant(act_of_its_row_off, kills.superseded_update, "after"),
)


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda mutant: f"{mutant.off.__name__}-{mutant.scene.__name__}"
)
def test_a_safeguard_that_is_off_is_noticed(mutant: Mutant):
    writes = kills.played(mutant.scene).writes
    expected = kills.played(mutant.scene).picture()
    with pytest.MonkeyPatch.context() as patch:
        mutant.off(patch)
        assert any(
            _differs(mutant.scene, (mutant.when, number), expected)
            for number in range(1, writes + 1)
        )


def _differs(scene: Callable[[Any], None], kill: tuple[str, int], expected: Any) -> bool:
    """Whether a killed run ends otherwise, or not at all."""
    try:
        return bool(kills.played(scene, kill).picture() != expected)
    except Exception:  # noqa: BLE001  # an engine that breaks is noticed as well
        return True
