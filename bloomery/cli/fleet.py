"""Move many nodes to a provision state, with a live table of them.

fleet = Fleet(client, machines)
fleet.enrol()
fleet.take("manage", "manageable")      # raises FleetStuck with the nodes and their errors
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import rich.console
import rich.live
import rich.table

from bloomery import errors
from bloomery.cli.client import Client

_POLL_S = 0.1
_FIELDS = "uuid,name,provision_state,power_state,last_error,reservation,deploy_step,clean_step"
_STYLES = {"active": "bold green", "available": "cyan", "manageable": "blue", "enroll": "dim"}


class FleetStuck(errors.Failure):
    """Some nodes did not reach their state."""

    code = "client.fleet_stuck"
    text = "{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node to enrol, and the addresses of its ports."""

    name: str
    driver: str
    driver_info: dict[str, Any]
    addresses: Sequence[str] = ()
    properties: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


class Fleet:
    """Nodes that move together; each poll is one list request."""

    def __init__(self, client: Client, machines: Sequence[Machine], limit_s: float = 120) -> None:
        self._client = client
        self._machines = machines
        self._limit_s = limit_s
        self._console = rich.console.Console()
        self._seen: dict[str, dict[str, Any]] = {}
        self._began = time.monotonic()

    def enrol(self) -> None:
        """Create a node and its ports for each machine."""
        for machine in self._machines:
            node = self._client.post(
                "/v1/nodes",
                {
                    "name": machine.name,
                    "driver": machine.driver,
                    "driver_info": machine.driver_info,
                    "properties": machine.properties,
                }
                | machine.more,
            )
            for address in machine.addresses:
                self._client.post("/v1/ports", {"node_uuid": node["uuid"], "address": address})

    def take(self, verb: str, state: str, names: Iterable[str] | None = None) -> None:
        """Set the target ``verb`` of these nodes (None: all), and watch until ``state``."""
        nodes = [machine.name for machine in self._machines] if names is None else list(names)
        for name in nodes:
            self._client.put(f"/v1/nodes/{name}/states/provision", {"target": verb})
        self._watch(nodes, state)

    def patch(self, name: str, patch: list[dict[str, Any]]) -> None:
        self._client.patch(f"/v1/nodes/{name}", patch)

    def _watch(self, names: Sequence[str], state: str) -> None:
        give_up_at = time.monotonic() + self._limit_s
        with self._live() as live:
            while True:
                nodes = self._look()
                if live is not None:
                    live.update(self._table(nodes))
                stuck = [nodes[name] for name in names if _failed(nodes[name], state)]
                if stuck or time.monotonic() > give_up_at:
                    raise _stuck(stuck or [nodes[name] for name in names], state)
                if all(_arrived(nodes[name], state) for name in names):
                    return
                time.sleep(_POLL_S)

    def _live(self) -> AbstractContextManager[rich.live.Live | None]:
        """Return a table that is redrawn in place; without a terminal each change is a line."""
        if self._console.is_terminal:
            return rich.live.Live(console=self._console, refresh_per_second=10)
        return nullcontext()

    def _look(self) -> dict[str, dict[str, Any]]:
        listed = self._client.get(f"/v1/nodes?fields={_FIELDS}&limit=1000")["nodes"]
        nodes = {node["name"]: node for node in listed}
        for name, node in nodes.items():
            before = self._seen.get(name, {}).get("provision_state")
            if not self._console.is_terminal and node["provision_state"] != before:
                took = time.monotonic() - self._began
                self._console.print(
                    f"[{took:5.1f} s] {name}: {node['provision_state']}", markup=False
                )
        self._seen = nodes
        return nodes

    def _table(self, nodes: dict[str, dict[str, Any]]) -> rich.table.Table:
        table = rich.table.Table("node", "state", "power", "step", "error")
        for machine in self._machines:
            node = nodes[machine.name]
            state = node["provision_state"]
            step = (node["deploy_step"] or node["clean_step"] or {}).get("step", "")
            style = _STYLES.get(state, "red" if "fail" in state or state == "error" else "yellow")
            table.add_row(
                machine.name, f"[{style}]{state}", node["power_state"] or "", step,
                node["last_error"] or "",
            )  # fmt: skip
        return table


def _arrived(node: dict[str, Any], state: str) -> bool:
    return node["provision_state"] == state and node["reservation"] is None


def _failed(node: dict[str, Any], state: str) -> bool:
    """Has the node failed?  A failed node has an error and no lock."""
    now = node["provision_state"]
    fell_back = node["last_error"] is not None and node["reservation"] is None and now != state
    return "fail" in now or now == "error" or fell_back


def _stuck(nodes: Sequence[dict[str, Any]], state: str) -> FleetStuck:
    states = "; ".join(
        f"{node['name']} is in {node['provision_state']}: {node['last_error'] or 'no error told'}"
        for node in nodes
        if node["provision_state"] != state
    )
    return FleetStuck(reason=f"cannot take every node to {state}: {states}")
