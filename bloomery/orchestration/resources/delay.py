"""OS::Heat::Delay: waits in chosen actions, optionally with jitter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import OnChange, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action
from bloomery.outcome import DONE, Outcome

ACTIONS: Final = [Action.CREATE, Action.DELETE, Action.SUSPEND, Action.RESUME]


class Delay(base.Resource):
    """A wait of ``min_wait`` and a random part of ``max_jitter`` times ``jitter_multiplier``."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "min_wait": Schema(
            Type.NUMBER, "The minimum wait, in seconds.", default=0, update_allowed=True,
            constraints=[constraints.Range(min=0)],
        ),
        "max_jitter": Schema(
            Type.NUMBER, "The maximum additional wait, in units of jitter_multiplier.",
            default=0, update_allowed=True, constraints=[constraints.Range(min=0)],
        ),
        "jitter_multiplier": Schema(
            Type.NUMBER, "The unit of max_jitter, in seconds.", default=1.0,
            update_allowed=True, constraints=[constraints.Range(min=0)],
        ),
        "actions": Schema(
            Type.LIST, "The actions in which to wait.", default=["CREATE"], update_allowed=True,
            schema=Schema(Type.STRING, constraints=[constraints.AllowedValues(list(ACTIONS))]),
        ),
    }  # fmt: skip

    def validate(self) -> None:
        longest_s = self._number("min_wait") + self._jitter_s()
        if longest_s > self.context.timeout_s:
            raise errors.StackValidationFailed(
                reason=f"cannot wait up to {longest_s:g} s in a stack that times out after "
                f"{self.context.timeout_s:g} s; lower min_wait or max_jitter, or raise the "
                "stack's timeout"
            )

    def handle_create(self) -> Any:
        return self._begin(Action.CREATE)

    @classmethod
    def needs_replace(
        cls,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        prop_diff: Mapping[str, Any],
    ) -> bool:
        """Tell whether properties change: as in Heat, any change replaces, despite the schema."""
        return bool(prop_diff)

    def handle_delete(self) -> Any:
        return self._begin(Action.DELETE)

    def handle_suspend(self) -> Any:
        return self._begin(Action.SUSPEND)

    def handle_resume(self) -> Any:
        return self._begin(Action.RESUME)

    def _number(self, name: str) -> float:
        return float(self.properties[name] or 0)

    def _jitter_s(self) -> float:
        return self._number("max_jitter") * self._number("jitter_multiplier")

    def _begin(self, action: Action) -> float | None:
        """Return the end of the wait, in seconds since the epoch, or None for no wait."""
        if action not in (self.properties["actions"] or ()):
            return None
        jitter_s = self.context.random() * self._jitter_s()
        return self.context.utc() + self._number("min_wait") + jitter_s

    def check_create_complete(self, token: float | None) -> Outcome:
        now = self.context.utc()
        if token is None or now >= token:
            return DONE
        return base.look_again(token - now, "its delay is not over")

    check_delete_complete = check_suspend_complete = check_resume_complete = check_create_complete
