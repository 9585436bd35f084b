"""What an Instance does when its deployment has failed: again, on another node where it may choose.

    deployed -> deploy                                              on the same node
    deployed -> replace_node -> replaced_node -> reserve            on another one
    deployed -> quarantine -> look_after                            when the last one went well

A node that could not be deployed is put into maintenance when it is clean, so that nobody else gets
it, if whoever owns the stack may do that.
"""

from __future__ import annotations

import contextlib
from typing import Final

from bloomery import errors
from bloomery.conductor.states import UNSTABLE_STATES
from bloomery.orchestration.resources import (
    allocation,
    base,
    instance_boot,
    instance_schema,
    instance_teardown,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.machines import Json

FAILED: Final = "failed_nodes"  # UUID of a node -> what it said
QUARANTINED: Final = "quarantined"  # those that need not be looked at any more
GIVEN_UP: Final = "given_up"  # a later order wants something else: no further attempt
CLEANED_WITHIN_S: Final = 600.0  # an instance that is deployed waits no longer for a failed node


class Retry(instance_teardown.Teardown, instance_boot.Boot):
    """``data``: the number of the attempt, and the errors of those before."""

    def first_attempt(self) -> None:
        self.record.data["attempt"] = 1
        for name in ("errors", FAILED, QUARANTINED, GIVEN_UP):
            self.record.data.pop(name, None)

    def _setting(self, name: str) -> int:
        retry = self.properties["retry"] or {}
        value = retry.get(name)
        return int(instance_schema.RETRY[name].default if value is None else value)

    def after_failure(self, node: Json) -> str:
        """Return the step of the next attempt; raise MachineFailed where there is none left."""
        data = self.record.data
        data["errors"] = [*data.get("errors", ()), str(node["last_error"])]
        ended = data["attempt"] >= self._setting("attempts") or data.get(GIVEN_UP)
        if self.record.action is not base.Action.CREATE or ended:
            self._quarantine()
            raise stepwise.MachineFailed("; ".join(data["errors"]))
        self.note_move(node)
        if self.properties["selector"] and self._setting("other_node"):
            data.setdefault(FAILED, {})[node["uuid"]] = str(node["last_error"])
            return "replace_node"
        data["attempt"] += 1
        self.arm()
        return "deploy"

    def step_replace_node(self) -> str | None:
        """Give the node back that could not be deployed; another one is asked for."""
        self.order("deleted")
        return "replaced_node"

    def step_replaced_node(self) -> str | None:
        if self._waits_for_teardown(self.get_node()):
            timeout_s = instance_schema.timeout_s(self.properties, "teardown")
            self.wait_for(self.node_uuid(), timeout_s, "for the instance to go")
        allocation.withdraw(self, str(self.record.data["instance"]))
        self.record.data["attempt"] += 1
        return "reserve"

    def step_quarantine(self) -> str | None:
        """Wait a while for nodes that are not clean yet; what is deployed is deployed."""
        if waits := self._quarantine():
            with contextlib.suppress(stepwise.MachineTimedOut):
                self.wait_for(waits, CLEANED_WITHIN_S, "for a failed node to be clean")
        return "look_after"

    def _quarantine(self) -> str | None:
        """Put failed nodes into maintenance; return one that is still being cleaned."""
        data, waits = self.record.data, None
        left = {
            uuid: error for uuid, error in data.get(FAILED, {}).items()
            if uuid not in data.get(QUARANTINED, ()) and self._setting("quarantine_failed")
        }  # fmt: skip
        for uuid, error in left.items():
            try:
                node = self.machines.get_node(uuid)
                if node["provision_state"] in UNSTABLE_STATES:
                    waits = uuid
                    continue
                if node["instance_uuid"] is None and not node["maintenance"]:
                    self.machines.set_maintenance(uuid, True, self._reason(error))
            except machines.Busy:
                waits = uuid
                continue
            except (errors.Forbidden, errors.NodeNotFound):
                pass  # it is not ours to judge, or nobody's any more
            data.setdefault(QUARANTINED, []).append(uuid)
        return waits

    def _reason(self, error: str) -> str:
        thing = f"{self.record.name} of stack {self.context.stack_name}"
        return f"cannot be deployed for {thing} ({self.context.stack_id}): {error}"
