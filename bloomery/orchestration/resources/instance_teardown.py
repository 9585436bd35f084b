"""How an Instance gives its machine back, at its end or to make room for its replacement.

release [<-> order_before] -> undeploy -> undeployed [-> cleaned] -> free [-> reserve_again]
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import Power, State
from bloomery.orchestration.resources import (
    allocation,
    instance_info,
    instance_preparation,
    instance_schema,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.states import Action
from bloomery.outcome import Outcome

UNDEPLOYABLE: Final = frozenset({
    State.ACTIVE, State.DEPLOYFAIL, State.DEPLOYWAIT, State.ERROR, State.RESCUE, State.RESCUEFAIL,
    State.UNRESCUEFAIL, State.SERVICEFAIL, State.SERVICEWAIT,
})  # fmt: skip
SOFT_S: Final = 120
REPLACED: Final = "replaced"  # the replacement waits for the machine
KEPT: Final = ("uuid", "name", "resource_class", "traits", "owner", "extra")  # of an allocation


class Teardown(instance_preparation.Preparation):
    """The steps of an Instance from ``release`` on."""

    def handle_delete(self) -> Any:
        self.record.data.pop(REPLACED, None)
        self.begin("release")

    def handle_prepare_for_replace(self) -> Any:
        """Give the machine back, so that its replacement can have it."""
        self.record.data[REPLACED] = True
        self.begin("release")

    def check_prepare_for_replace_complete(self, token: Any) -> Outcome:
        return self.advance()

    def step_release(self) -> str | None:
        """Find out what there is to take away; what is not ours is left alone."""
        try:
            node = self.get_node() if self.record.physical_id else None
        except errors.NotFound:
            node = None
        if node is None or not self.is_ours(node["instance_info"]):
            return "free"
        state = node["provision_state"]
        if node["protected"] and self.properties["protected"] is False:
            self.machines.update_node(
                node["uuid"], [{"op": "add", "path": "/protected", "value": False}]
            )
        elif node["protected"]:
            raise stepwise.MachineRefused(
                f"cannot undeploy node {node['uuid']}: it is protected; set protected to false"
            )
        if step := self.bring_back(node):
            return step
        if state in (State.AVAILABLE, State.CLEANFAIL):
            self._forget(node)
            return "free"
        if state == State.DEPLOYHOLD:
            self.machines.set_provision_state(node["uuid"], "abort")
        if state not in UNDEPLOYABLE:
            phase = "clean" if state in instance_preparation.CLEANING else "teardown"
            timeout_s = instance_schema.timeout_s(self.properties, phase)
            self.wait_for(node["uuid"], timeout_s, f"while it is {state}")
        self._detach(node["uuid"], keep=())
        self._note_allocation()
        self.note_move(node)
        soft = (self.properties["teardown"] or {}).get("secure_power_off") == "soft"
        return "shut_down" if soft and node["power_state"] == Power.ON else "undeploy"

    def step_shut_down(self) -> str | None:
        """Let the system end in good order, if it does in time."""
        self.machines.set_power_state(self.node_uuid(), Power.SOFT_OFF)
        return "is_shut_down"

    def step_is_shut_down(self) -> str | None:
        node = self.get_node()
        if node["power_state"] == Power.ON:
            timeout_s = float((self.properties["teardown"] or {}).get("soft_timeout") or SOFT_S)
            with contextlib.suppress(stepwise.MachineTimedOut):
                self.wait_for(node["uuid"], timeout_s, "for the system to shut down")
        return "undeploy"

    def _note_allocation(self) -> None:
        """Note what an allocation asked for that goes with the instance, and is to stay."""
        ident = self.properties["allocation"]
        keeps = (self.properties["teardown"] or {}).get("keep_allocation")
        if not ident or not (keeps or self.record.data.get(REPLACED)):
            return
        if record := self.machines.find(machines.ALLOCATION, ident):
            kept = {name: record[name] for name in KEPT if record.get(name)}
            self.record.data["allocation"] = kept | {"candidate_nodes": [record["node_uuid"]]}

    def _forget(self, node: Json) -> None:
        """Take away what was written on a node that was never deployed."""
        keys = [key for key in node["instance_info"] if key in _written(self.properties)]
        patch = [_remove(f"/instance_info/{key}") for key in keys]
        if node["instance_name"] is not None:
            patch.append(_remove("/instance_name"))
        if node["instance_uuid"] == self.derived_id("instance"):
            patch.append(_remove("/instance_uuid"))
        self.machines.update_node(node["uuid"], patch)

    def step_undeploy(self) -> str | None:
        with contextlib.suppress(errors.NodeNotFound):
            self.order("deleted")
        return "undeployed"

    def step_undeployed(self) -> str | None:
        """Wait until the instance is gone; cleaning is waited for where that is wanted."""
        try:
            node = self.get_node()
        except errors.NodeNotFound:
            return "free"
        if self._waits_for_teardown(node):
            self.wait_for(
                node["uuid"],
                instance_schema.timeout_s(self.properties, "teardown"),
                "for the instance to go",
            )
        data, teardown = self.record.data, self.properties["teardown"] or {}
        if teardown.get("wait_for_cleaning") or data.get(REPLACED) or data.get("allocation"):
            return "cleaned"
        return "free"

    def _waits_for_teardown(self, node: Json) -> bool:
        """Is the instance still there?  Raises MachineFailed where it could not be taken away."""
        if node["provision_state"] == State.ERROR:
            raise self._failure_of(node)
        return node["provision_state"] == State.DELETING or self.is_ours(node["instance_info"])

    def _failure_of(self, node: Json) -> stepwise.MachineFailed:
        """Return what keeps the instance, in the words of the node, and the way out."""
        state = node["provision_state"]
        way_out = states.advice(state, maintenance=bool(node["maintenance"]))
        if self.record.action is Action.DELETE:
            way_out += "; then delete the stack again"
        return stepwise.MachineFailed(
            f"node {node['name'] or node['uuid']} is {state}: {node['last_error']}; {way_out}"
        )

    def step_cleaned(self) -> str | None:
        node = self.get_node()
        if node["provision_state"] in instance_preparation.CLEANING:
            self.wait_for(
                node["uuid"],
                instance_schema.timeout_s(self.properties, "clean"),
                "for the node to be clean",
            )
        another = self.record.data.get(REPLACED) and self.properties["selector"]
        if node["provision_state"] == State.CLEANFAIL and not another:
            raise self._failure_of(node)
        return "free"

    def step_free(self) -> str | None:
        """Give an allocation of its own back; most go with the instance."""
        if self.properties["selector"] and (uuid := self.record.data.get("instance")):
            allocation.withdraw(self, uuid)
        return "reserve_again" if self.record.data.get("allocation") else None

    def step_reserve_again(self) -> str | None:
        """Set the node aside as it was, under the same UUID, where the allocation is to stay."""
        fields = self.record.data["allocation"]
        present = self.machines.find(machines.ALLOCATION, fields["uuid"])
        if present is None:
            self.machines.create(machines.ALLOCATION, fields)
            present = self.machines.find(machines.ALLOCATION, fields["uuid"]) or {}
        if present.get("state") == "error":
            raise stepwise.MachineFailed(str(present["last_error"]))
        if present.get("state") != "active":
            self.wait_for(
                fields["uuid"],
                instance_schema.timeout_s(self.properties, "allocate"),
                "for the node again",
            )
        del self.record.data["allocation"]
        return None

    def _detach(self, uuid: str, keep: Sequence[str]) -> None:
        """Detach interfaces that were attached for this resource, but for those to keep."""
        ours = [each["vif"] for each in self.record.properties.get("networks") or []]
        unwanted = [vif for vif in ours if vif not in keep]
        present = self.machines.list_vifs(uuid) if unwanted else []
        for vif in unwanted:
            if vif in present:
                self.machines.detach_vif(uuid, vif)


def _written(properties: Mapping[str, Any]) -> set[str]:
    return {*instance_info.info_of(properties), machines.MARK}


def _remove(path: str) -> Json:
    return {"op": "remove", "path": path}
