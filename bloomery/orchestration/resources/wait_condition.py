"""OS::Heat::WaitCondition: waits until its handle has received enough signals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.wait_condition_handle import FAILURE, SUCCESS, Handle
from bloomery.outcome import DONE, Outcome

LONGEST_S: Final = 43200


class WaitConditionFailure(Exception):
    """A signal reported a failure; the argument is the reason."""


class WaitConditionTimeout(Exception):
    """The signals did not come in time."""


class WaitCondition(base.Resource):
    """A wait for signals of success at a handle, in each create and each update."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "handle": Schema(Type.STRING, "The wait condition handle.", required=True),
        "timeout": Schema(
            Type.NUMBER, "Seconds to wait for the signals.", required=True,
            constraints=[constraints.Range(min=1, max=LONGEST_S)],
        ),
        "count": Schema(
            Type.INTEGER, "The number of success signals to wait for.", default=1,
            update_allowed=True, constraints=[constraints.Range(min=1)],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "data": Attribute("The data of the signals by ID, as JSON.", Type.STRING),
    }
    # Names of the properties, which differ in CloudFormation.
    handle_key: ClassVar[str] = "handle"
    timeout_key: ClassVar[str] = "timeout"
    count_key: ClassVar[str] = "count"

    def handle_create(self) -> Any:
        self.handle()
        return self.context.utc() + float(self.properties[self.timeout_key])

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        return self.handle_create()

    def handle_delete(self) -> Any:
        """Forget the signals, so that the next wait at this handle needs new ones."""
        handle = self._find_handle()
        if handle is not None:
            handle.record.metadata = {}

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.lower() != "data":
            return None
        handle = self._find_handle()
        return None if handle is None else json.dumps(handle.payload())

    def check_create_complete(self, until: float) -> Outcome:
        handle, count = self.handle(), self.properties[self.count_key]
        failures, successes = handle.reasons(FAILURE), handle.reasons(SUCCESS)
        if failures:
            raise WaitConditionFailure(";".join(failures))
        if len(successes) >= count or not handle.waits:
            return DONE
        now = self.context.utc()
        if now >= until:
            reasons = f" - {';'.join(successes)}" if successes else ""
            raise WaitConditionTimeout(f"{len(successes)} of {count} received{reasons}")
        return base.wait_for(handle.record.uuid, until - now)

    check_update_complete = check_create_complete

    def handle(self) -> Handle:
        handle = self._find_handle()
        if handle is None:
            raise errors.NotFound(
                reason=f"cannot wait at {self.properties[self.handle_key]!r}: it is no wait"
                " condition handle of this stack; name one with get_resource"
            )
        return handle

    def _find_handle(self) -> Handle | None:
        siblings = self.context.siblings
        handle = siblings and siblings.find(self.properties[self.handle_key])
        return handle if isinstance(handle, Handle) else None


class CfnWaitCondition(WaitCondition):
    """A wait condition with the property names of CloudFormation."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "Handle": WaitCondition.properties_schema["handle"],
        "Timeout": Schema(
            Type.INTEGER, "Seconds to wait for the signals.", required=True,
            constraints=[constraints.Range(min=1, max=LONGEST_S)],
        ),
        "Count": WaitCondition.properties_schema["count"],
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "Data": WaitCondition.attributes_schema["data"],
    }
    handle_key: ClassVar[str] = "Handle"
    timeout_key: ClassVar[str] = "Timeout"
    count_key: ClassVar[str] = "Count"
