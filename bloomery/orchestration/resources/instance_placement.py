"""Where an Instance runs: on a node, on what an allocation has, or on what its selector finds.

reserve -> await_node
reserve -> await_former [-> withdraw_former -> reserve]     in the place of one deleted first, or
                                                            away from others
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.resources import (
    allocation,
    instance_info,
    instance_schema,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.machines import Json

FORMER: Final = "former_node"  # of the instance that this one replaces


DOMAINS: Final = {"conductor_group": "conductor_group", "shard": "shard", "chassis": "chassis_uuid"}


class Placement(stepwise.OnNode):
    """The steps of an Instance until it knows its node; ``prepare`` follows."""

    def step_reserve(self) -> str | None:
        """Find out which node it is, or ask for one."""
        data = self.record.data
        if ident := self.properties["node"]:
            self.resource_id_set(self.machines.get_node(ident)["uuid"])
            data["instance"] = self.derived_id("instance")
            return "prepare"
        if ident := self.properties["allocation"]:
            present = self.machines.find(machines.ALLOCATION, ident)
            if present is None:
                raise errors.EntityNotFound(entity="Allocation", name=ident)
            data["instance"] = present["uuid"]
            return "await_node"
        if data["attempt"] == 1 and not data.get("moved") and self._ask_preferred():
            return "await_former"
        data["instance"] = self.derived_id(f"allocation-{data['attempt']}")
        if not self._is_reserved():
            allocation.post(self, data["instance"], self._request())
        return "await_node"

    def _is_reserved(self) -> bool:
        """Was another node asked for already?  It is not available any more, and ours."""
        data = self.record.data
        asks_anew = bool(data.get("failed_nodes"))
        return asks_anew and self.machines.find(machines.ALLOCATION, data["instance"]) is not None

    def _request(self) -> Json:
        """Return what an allocation of its own asks for: no node that has failed already.

        Raises MachineFailed with what those said, where no other is there.
        """
        selector, failed = self.properties["selector"], self.record.data.get("failed_nodes")
        request = allocation.request_of(self.machines, selector)
        if not failed:
            return request
        others = allocation.candidates(self.machines, selector)
        uuids = [node["uuid"] for node in others if node["uuid"] not in failed]
        if not uuids:
            words = [*self.record.data.get("errors", ()), "no other node is available"]
            raise stepwise.MachineFailed("; ".join(words))
        return request | {"candidate_nodes": uuids}

    def _ask_preferred(self) -> bool:
        """Ask for nodes that are to be had before any other; False: any will do.

        What an engine has asked for that died holds a node, and others may be preferred by now.
        """
        uuid, spread = self.derived_id("allocation-former"), self.properties["spread"]
        if not spread or self.machines.find(machines.ALLOCATION, uuid) is None:
            nodes: list[str] = []
            if former := self._former_node():
                nodes = [former]
            elif spread:
                asked = self.properties["selector"]
                there = allocation.candidates(self.machines, asked, in_use=True)
                nodes = spread_nodes(there, DOMAINS[spread["by"]], spread["number"])
            if not nodes:
                return False
            allocation.post(self, uuid, self._request() | {"candidate_nodes": nodes})
        self.record.data["instance"] = uuid
        return True

    def _former_node(self) -> str | None:
        """Return the node of the one that this one replaces, if the selector allows it."""
        former = self.record.data.get(FORMER)
        candidates = self.properties["selector"].get("candidate_nodes")
        if former is None:
            return None
        if candidates and former not in candidates:
            try:
                name = self.machines.get_node(former)["name"]
            except errors.NotFound:
                return None
            return former if name in candidates else None
        return str(former)

    def step_await_former(self) -> str | None:
        """Wait for the node of the one that this one replaces; any other will do."""
        present = self.machines.find(machines.ALLOCATION, str(self.record.data["instance"]))
        if present is None or present["state"] == "error":
            return "withdraw_former"
        return self.step_await_node()

    def step_withdraw_former(self) -> str | None:
        allocation.withdraw(self, str(self.record.data["instance"]))
        self.record.data["moved"] = True
        return "reserve"

    def step_await_node(self) -> str | None:
        uuid = str(self.record.data["instance"])
        present = self.machines.find(machines.ALLOCATION, uuid)
        if present is None:
            raise stepwise.MachineFailed(f"allocation {uuid} was deleted by somebody else")
        if present["state"] == "error":
            raise stepwise.MachineFailed(str(present["last_error"]))
        if present["state"] != "active":
            why = f"for a node: {present['last_error']}" if present["last_error"] else "for a node"
            self.wait_for(uuid, instance_schema.timeout_s(self.properties, "allocate"), why)
        self.resource_id_set(present["node_uuid"])
        return "prepare"

    @classmethod
    def deletes_first(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        return instance_info.deletes_first(before, after)

    def data_for_replacement(self, *, returns: bool) -> dict[str, Any]:
        """Return the node that the next one had best run on."""
        former = self.record.data.get(FORMER) if returns else None
        node = former or self.record.physical_id
        return {FORMER: node} if node else {}


def spread_nodes(nodes: Sequence[Json], field: str, number: int) -> list[str]:
    """Return free nodes with one value of a field: with the next value for each number.

    A value that no free node has is passed over; []: there is nothing to choose from.
    """
    values = sorted({str(node[field] or "") for node in nodes})
    free: dict[str, list[str]] = {value: [] for value in values}
    for node in nodes:
        if _is_free(node):
            free[str(node[field] or "")].append(node["uuid"])
    start = number % len(values) if values else 0
    chosen = next((v for v in values[start:] + values[:start] if free[v]), None)
    return free[chosen] if chosen is not None and len(values) > 1 else []


def _is_free(node: Json) -> bool:
    is_available = node["provision_state"] == State.AVAILABLE
    return is_available and node["instance_uuid"] is None and not node["maintenance"]
