"""Move many nodes to a provision state, with a live table of them.

create(client, machine)
fleet = Fleet(client, ["web-1", "web-2"])
fleet.take("manage", "manageable")      # raises FleetStuck with the nodes and their errors
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click
import rich.console
import rich.live
import rich.markup
import rich.table

from bloomery import errors
from bloomery.cli import terminal
from bloomery.cli.client import ApiError, Client, Outage

AT_ONCE = 50  # machines in one request; the service takes up to 200
_POLL_S = 0.2
_RETRY_S = 0.5  # of an outage
_FIELDS = (
    "uuid,name,provision_state,power_state,target_power_state,last_error,reservation,deploy_step,"
    "clean_step,retired"
)
_STYLES = {"active": "bold green", "available": "cyan", "manageable": "blue", "enroll": "dim"}


class FleetStuck(errors.Failure):
    """Some nodes did not reach their state."""

    code = "client.fleet_stuck"
    text = "{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node to enrol, and its ports, each with an ``address``."""

    name: str
    driver: str
    driver_info: dict[str, Any] = field(repr=False)  # it has the password of the BMC
    ports: Sequence[dict[str, Any]] = ()
    properties: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


T = TypeVar("T")


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in parts, each for one request."""
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def roll(
    items: Sequence[T], size: int, budget: int, run: Callable[[Sequence[T]], Sequence[str | None]]
) -> Iterator[tuple[T, str | None]]:
    """Run items batch by batch; yield each with its error, or None.

    No further batch begins after more failures than ``budget``.
    """
    failures = 0
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        if failures > budget:
            reason = f"not begun, after {terminal.amount(failures, 'failure')}"
            results: Sequence[str | None] = [reason] * len(batch)
        else:
            results = run(batch)
            failures += sum(error is not None for error in results)
        yield from zip(batch, results, strict=True)


def create(client: Client, machine: Machine) -> None:
    """Create the node of a machine, and its ports.  Raises FleetStuck."""
    [result] = enrol(client, [machine])
    if result["error"] is not None:
        raise FleetStuck(reason=f"{machine.name}: {result['error']['message']}", nodes={})


def enrol(client: Client, machines: Sequence[Machine]) -> Iterator[dict[str, Any]]:
    """Create what is missing of the machines; yield the service's result for each."""
    for batch in batches(machines):
        nodes = [
            {
                "name": each.name,
                "driver": each.driver,
                "driver_info": each.driver_info,
                "properties": each.properties,
                "ports": list(each.ports),
                **each.more,
            }
            for each in batch
        ]
        yield from client.post("/ext/v1/nodes:batch", {"nodes": nodes})["results"]


class Watch:
    """Reads of the service for ``limit_s``; an outage meanwhile is borne, and told once."""

    def __init__(self, client: Client, limit_s: float) -> None:
        self._client = client
        self._outage = Outage(lambda sentence: click.echo(sentence, err=True))
        self._ends_at = time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._ends_at

    def read(self, path: str) -> dict[str, Any]:
        """Return the document.  Raises ApiError for a refusal, or an outage at the end."""
        while True:
            try:
                document: dict[str, Any] = self._client.get(path)
            except ApiError as exc:
                if self.is_over:
                    raise
                self._outage.tolerate(exc)
                time.sleep(_RETRY_S)
            else:
                self._outage.end()
                return document


class Fleet:
    """Nodes that move together.  ``limit_s``: the longest watch; None: no limit.

    ``labels``: what is shown in the place of a name.  ``to_the_end``: watch on when a node fails.
    """

    def __init__(
        self,
        client: Client,
        names: Sequence[str],
        limit_s: float | None = 120,
        *,
        to_stderr: bool = False,
        labels: Mapping[str, str] | None = None,
        to_the_end: bool = False,
    ) -> None:
        self._client = client
        self._names = names
        self._limit_s = limit_s
        self._labels, self._to_the_end = labels or {}, to_the_end
        self._console = rich.console.Console(stderr=to_stderr)
        self._seen: dict[str, dict[str, Any]] = {}
        self._began = time.monotonic()

    def take(self, verb: str, state: str) -> None:
        """Set the target ``verb`` of the nodes, and watch until ``state``.  Raises FleetStuck."""
        for name in self._names:
            self._client.put(f"/v1/nodes/{name}/states/provision", {"target": verb})
        self.watch(state)

    def watch(self, state: str, field: str = "provision_state") -> None:
        """Show the nodes until ``field`` of all is ``state``.  Raises FleetStuck."""
        service = Watch(self._client, self._limit_s or float("inf"))
        # a table that is redrawn in place; without a terminal each change is a line
        live = None
        if self._console.is_terminal:
            live = rich.live.Live(console=self._console, refresh_per_second=10)
        with live or nullcontext():
            while True:
                nodes = self._poll(service, field)
                if live is not None:
                    live.update(_table({self._label(name): node for name, node in nodes.items()}))
                failed = [name for name, node in nodes.items() if _has_failed(node, state, field)]
                pending = [
                    name for name, node in nodes.items()
                    if name not in failed and not _has_arrived(node, state, field)
                ]  # fmt: skip
                if not pending or service.is_over or (failed and not self._to_the_end):
                    break
                time.sleep(_POLL_S)
        if not (failed or pending):
            return
        # the nodes that have failed; if none has, those on their way
        late = "it is on its way, and the time for the watch is over"
        reasons = {
            name: f"{nodes[name]['name'] or nodes[name]['uuid']} is in {nodes[name][field]}: "
            f"{nodes[name]['last_error'] or late}"
            for name in (failed + pending if self._to_the_end else failed or pending)
        }
        raise FleetStuck(
            reason=f"cannot take every node to {state}: {'; '.join(reasons.values())}",
            nodes=reasons,
        )

    def _label(self, name: str) -> str:
        return self._labels.get(name, name)

    def _poll(self, service: Watch, field: str) -> dict[str, dict[str, Any]]:
        """Return the nodes by name; without a terminal, print those that have changed."""
        nodes = {name: service.read(f"/v1/nodes/{name}?fields={_FIELDS}") for name in self._names}
        for name, node in nodes.items():
            before = self._seen.get(name, {}).get(field)
            if not self._console.is_terminal and node[field] != before:
                took = time.monotonic() - self._began
                line = f"[{took:5.1f} s] {self._label(name)}: {node[field]}"
                self._console.print(terminal.visible(line), markup=False)
        self._seen = nodes
        return nodes


def _table(nodes: dict[str, dict[str, Any]]) -> rich.table.Table:
    table = rich.table.Table("node", "state", "power", "step", "error")
    for name, node in nodes.items():
        state = node["provision_state"]
        step = (node["deploy_step"] or node["clean_step"] or {}).get("step", "")
        style = _STYLES.get(state, "red" if "fail" in state or state == "error" else "yellow")
        table.add_row(
            name, f"[{style}]{state}", node["power_state"] or "", step,
            rich.markup.escape(terminal.visible(node["last_error"] or "")),
        )  # fmt: skip
    return table


def _has_arrived(node: dict[str, Any], state: str, field: str) -> bool:
    is_switching = field == "power_state" and node["target_power_state"] is not None
    ends = [state, "manageable"] if state == "available" and node["retired"] else [state]
    return node[field] in ends and node["reservation"] is None and not is_switching


def _has_failed(node: dict[str, Any], state: str, field: str) -> bool:
    """Has the node failed?  A failed node has an error and no lock.

    An order of power clears the error when it begins: a reboot that fails leaves the state alone.
    """
    now, is_at_rest = node[field] or "", node["reservation"] is None
    if field == "power_state":
        is_at_rest &= node["target_power_state"] is None
        return now == "error" or (is_at_rest and node["last_error"] is not None)
    fell_back = is_at_rest and node["last_error"] is not None and now != state
    return "fail" in now or now == "error" or fell_back
