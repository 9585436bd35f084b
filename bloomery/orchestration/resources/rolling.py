"""Groups with rolling update batches.

``data`` holds the remaining batches, so that another engine can continue.  A batch is one update of
the child stack.  The next batch begins when the update has ended and the pause is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import base, batches, composite
from bloomery.orchestration.resources.states import Action
from bloomery.outcome import DONE, Outcome

STATE: Final = "batches"
PACE: Final = {
    "max_batch_size": Schema(
        Type.INTEGER, "The maximum number of members in a batch.", default=1,
        constraints=[constraints.Range(min=1)],
    ),
    "pause_time": Schema(
        Type.NUMBER, "Seconds between two batches.", default=0,
        constraints=[constraints.Range(min=0)],
    ),
}  # fmt: skip
UPDATE_PACE: Final = {
    "min_in_service": Schema(
        Type.INTEGER, "The minimum number of members in service.", default=0,
        constraints=[constraints.Range(min=0)],
    ),
    **PACE,
}  # fmt: skip


class Rolling(composite.Membered):
    """A group with batches; ``document_after`` returns the child's template after a batch."""

    def document_after(self, batch: batches.Resize) -> Mapping[str, Any]:
        raise NotImplementedError

    def check_create_complete(self, token: Any) -> Outcome:
        return (
            self._advance() if STATE in self.record.data else super().check_create_complete(token)
        )

    def check_update_complete(self, token: Any) -> Outcome:
        return (
            self._advance() if STATE in self.record.data else super().check_update_complete(token)
        )

    def plan_batches(self, steps: Sequence[batches.Resize], pause_s: float) -> None:
        self.record.data[STATE] = {
            "steps": [list(step) for step in steps],
            "each_s": self.time_of_each(steps, pause_s),
            "pause_s": pause_s,
            "until": self.context.utc(),  # the end of the current pause
            "doing": Action.CREATE,  # the child's action for the current batch
        }

    def forget_batches(self) -> None:
        self.record.data.pop(STATE, None)

    def time_of_each(self, steps: Sequence[batches.Resize], pause_s: float) -> float:
        """Return the timeout of a batch, in seconds.  Raises as ``batches.time_of_each``."""
        return batches.time_of_each(len(steps), pause_s=pause_s, timeout_s=self.context.timeout_s)

    def next_batch(self) -> None:
        state = self.record.data[STATE]
        document = self.document_after(batches.Resize(*state["steps"].pop(0)))
        blueprint = self.blueprint(document, timeout_s=state["each_s"])
        state["until"], state["doing"] = None, self.change_child(blueprint)

    def _advance(self) -> Outcome:
        state = self.record.data[STATE]
        while (outcome := self.follow_child(Action(state["doing"]))) is DONE and state["steps"]:
            now = self.context.utc()
            if state["until"] is None:
                state["until"] = now + state["pause_s"]
            if (pause_s := float(state["until"] - now)) > 0:
                return base.look_again(pause_s, "pauses between two batches (pause_time)")
            self.next_batch()
        if outcome is DONE:
            del self.record.data[STATE]
        return outcome
