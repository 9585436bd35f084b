"""Would the drawn roll-outs notice?  Each row takes a safeguard of roll-outs away."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.orchestration.resources import rollouts
from bloomery.orchestration.resources.machine_group import InstanceGroup
from tests.invariants import test_any_rollout as drawn


def _too_many(outdated: Any, ready: int, pace: Any, count: int, *, is_canary: bool) -> Any:
    return outdated[: pace.batch_size]


def _again(self: InstanceGroup) -> str:
    self._rollout["left"] = list({*self._rollout["left"], *self._rollout["failed"]})
    return "choose"


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "who is still ready is not counted": (rollouts, "_batch", _too_many),
    "who failed is tried again with each batch": (InstanceGroup, "step_rest", _again),
}


def _run_all() -> None:
    for seed in range(drawn.SEEDS):
        drawn.test_any_roll_out_ends_and_leaves_what_the_next_update_finishes("rebuild", seed)


@pytest.mark.parametrize("name", MUTANTS)
def test_drawn_roll_outs_notice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[name])
    with pytest.raises(AssertionError):
        _run_all()
