"""OS::Heat::TestResource: waits and fails on demand, for tests of stacks.

``attr_wait_secs``, ``constraint_prop_secs``, ``client_name`` and ``entity_name`` have no effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action
from bloomery.outcome import DONE, Outcome

VALUE: Final = "value"


def _seconds(description: str, *, default: int | None = None) -> Schema:
    return Schema(Type.NUMBER, description, default=default, update_allowed=True)


class TestResource(base.Resource):
    """A resource that waits and fails on demand, and has its ``value`` as ``output``."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    __test__ = False  # pytest must not collect it

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        VALUE: Schema(
            Type.STRING, "The value of the attribute output.", default="test_string",
            update_allowed=True
        ),
        "update_replace_value": Schema(Type.STRING, "Any text; a change replaces the resource."),
        "fail": Schema(
            Type.BOOLEAN, "Whether create and update fail after the wait.", default=False,
            update_allowed=True,
        ),
        "update_replace": Schema(
            Type.BOOLEAN, "Whether a change of value replaces the resource.", default=False,
            update_allowed=True,
        ),
        "wait_secs": _seconds("Seconds that each action takes; -1: for ever.", default=0),
        "action_wait_secs": Schema(
            Type.MAP, "Seconds by action, instead of wait_secs.", update_allowed=True, schema={
                "create": _seconds("Seconds that a create takes."),
                "update": _seconds("Seconds that an update takes."),
                "delete": _seconds("Seconds that a delete takes."),
            },
        ),
        "attr_wait_secs": _seconds("The delay of reading an attribute; not used.", default=0),
        "constraint_prop_secs": _seconds("The delay of a constraint; not used.", default=0),
        "client_name": Schema(Type.STRING, "The client for entity_name; not used."),
        "entity_name": Schema(Type.STRING, "The entity to find; not used.", update_allowed=True),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "output": Attribute("The value of the last create or update.", Type.STRING),
    }

    def handle_create(self) -> Any:
        self._remember()
        return self._begin(Action.CREATE, fails=self.properties["fail"])

    def check_create_complete(self, token: Any) -> Outcome:
        if (outcome := self._outcome(token)) is DONE:
            self.resource_id_set(self.physical_resource_name())
        return outcome

    def handle_check(self) -> None:
        if self.record.physical_id is None:
            raise ValueError("Resource not created")

    @classmethod
    def needs_replace(
        cls,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        prop_diff: Mapping[str, Any],
    ) -> bool:
        return VALUE in prop_diff and bool(after.get("update_replace"))

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self._remember()
        return self._begin(Action.UPDATE, fails=self.properties["fail"])

    def handle_delete(self) -> Any:
        return self._begin(Action.DELETE, fails=False)

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self.record.data.get(VALUE) if name == "output" else None

    def _remember(self) -> None:
        self.record.data[VALUE] = self.properties[VALUE]

    def _begin(self, action: Action, *, fails: bool) -> dict[str, Any]:
        named = (self.properties["action_wait_secs"] or {}).get(action.lower())
        wait_s = float(self.properties["wait_secs"] if named is None else named)
        until = None if wait_s < 0 else self.context.utc() + wait_s
        return {"until": until, "fails": fails}

    def _outcome(self, token: Mapping[str, Any]) -> Outcome:
        until, now = token["until"], self.context.utc()
        if until is None or now < until:
            left_s = math.inf if until is None else until - now
            return base.look_again(left_s, "its wait_secs are not over")
        if token["fails"]:
            raise ValueError(f"Test Resource failed {self.record.name}")
        return DONE

    check_update_complete = check_delete_complete = _outcome
