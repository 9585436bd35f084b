"""Order something of many nodes, print a line for each, and watch them.

orders = Orders(client, ["web-1", "web-2"], "deploy", Watching(wait=True))
orders.act({"provision": {"target": "active"}})
orders.watch("active")
orders.end()                            # exits with 1 if a node was refused or has failed
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import click

from bloomery import errors
from bloomery.cli import groups, terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.fleet import Fleet, FleetStuck, batches, roll

Json = dict[str, Any]
POWER: Final = {"on": "power on", "off": "power off", "reboot": "power on"}  # states at the end
Send = Callable[[Client, str], object]  # sends one request, with the path of a node


class NodeNotThere(errors.Failure):
    """The service has no node of that name."""

    code = "client.node_not_there"
    text = "cannot find a node called {node}; bloomery node list shows those that are there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """The options of commands that order: ``limit_s`` of the watch, None without a limit."""

    wait: bool = False
    limit_s: float | None = None
    as_json: bool = False


class Orders:
    """The nodes of one command.  A refused node takes no further order, and is not watched.

    ``places``: the ``resource`` of a stack that each node is for, and the ``node``'s name.
    """

    def __init__(
        self, client: Client, nodes: Sequence[str], command: str, watching: Watching,
        places: Mapping[str, Json] | None = None,
    ) -> None:  # fmt: skip
        self._client = client
        self._command = command
        self._watching = watching
        places = places or {}
        self._labels = {
            node: f"{place['resource']} (node {place['node']})" for node, place in places.items()
        }
        self._results: dict[str, Json] = {
            node: places.get(node, {"node": node}) | {"error": None}
            for node in dict.fromkeys(nodes)
        }

    @property
    def nodes(self) -> list[str]:
        """Return the nodes that were not refused."""
        return [node for node, result in self._results.items() if result["error"] is None]

    def refuse(self, errors: Mapping[str, str]) -> None:
        """Order nothing of these nodes, for the reasons that are said."""
        self._record(iter(errors.items()), "")

    def act(self, action: Json) -> None:
        """Order an action of the nodes, many in a request."""
        self._record(self._order(action, self.nodes), "accepted")

    def _order(self, action: Json, nodes: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        for batch in batches(nodes):
            body = {"nodes": batch, **action}
            for result in self._client.post("/ext/v1/nodes:act", body)["results"]:
                error = result["error"]
                yield result["node"], error and self._sentence(result["node"], error)

    def roll(
        self, action: Json, state: str, field: str, *, size: int, budget: int,
        hindrance: Callable[[], str | None],
    ) -> None:  # fmt: skip
        """Order an action batch by batch, each watched until its last node rests.

        No batch begins while there is a ``hindrance``, nor after more failures than ``budget``.
        """

        def run(batch: Sequence[str]) -> list[str | None]:
            try:
                if (reason := hindrance()) is not None:
                    return [f"not begun: {reason}"] * len(batch)
                errors = dict(self._order(action, batch))
            except ApiError as exc:
                return [f"cannot tell whether it was ordered: {exc}"] * len(batch)
            accepted = [node for node in batch if errors[node] is None]
            try:
                stuck = self._watch(accepted, state, field, to_the_end=True)
            except ApiError as exc:
                errors |= dict.fromkeys(accepted, f"cannot tell how it ended: {exc}")
            else:
                errors |= stuck.facts["nodes"] if stuck else {}
            return [errors[node] for node in batch]

        self._record(roll(self.nodes, size, budget, run), "done")

    def send(self, order: Send, success: str = "accepted") -> None:
        """Send a request for each node."""

        def refusals() -> Iterator[tuple[str, str | None]]:
            for node in self.nodes:
                try:
                    order(self._client, path_of(node))
                except ApiError as exc:
                    status = exc.facts.get("answer")
                    if status is None:
                        raise
                    message = str(exc).removesuffix(f" (HTTP {status})")
                    yield node, self._sentence(node, {"status": status, "message": message})
                else:
                    yield node, None

        self._record(refusals(), success)

    def stop_if_refused(self) -> None:
        """End the command, with nothing more ordered, if a node was refused."""
        if len(self.nodes) < len(self._results):
            self.end()

    def watch(self, state: str, field: str = "provision_state") -> None:
        """With --wait, show the nodes until they arrive.  Raises FleetStuck.

        Nodes are not watched after a refusal.
        """
        self.stop_if_refused()
        if not self._watching.wait:
            return
        stuck = self._watch(self.nodes, state, field)
        if stuck is None:
            return
        if not self._watching.as_json:
            raise stuck
        click.echo(f"Error: {terminal.visible(str(stuck))}", err=True)
        for node, error in stuck.facts["nodes"].items():
            self._results[node]["error"] = error

    def _watch(
        self, nodes: Sequence[str], state: str, field: str, *, to_the_end: bool = False
    ) -> FleetStuck | None:
        """Show the nodes until they arrive; return why some do not.  Ctrl-C ends the command."""
        fleet = Fleet(
            self._client, nodes, self._watching.limit_s, to_stderr=self._watching.as_json,
            labels=self._labels, to_the_end=to_the_end,
        )  # fmt: skip
        try:
            fleet.watch(state, field)
        except KeyboardInterrupt:
            click.echo("\nthe nodes go on; look on with: bloomery node list", err=True)
            raise SystemExit(groups.INTERRUPTED) from None
        except FleetStuck as exc:
            return exc
        return None

    def end(self) -> None:
        """Print the results with --json.  Exit with 1 if a node was refused or has failed."""
        if self._watching.as_json:
            click.echo(json.dumps(list(self._results.values()), indent=2))
        if len(self.nodes) < len(self._results):
            raise SystemExit(1)

    def _record(self, refusals: Iterator[tuple[str, str | None]], success: str) -> None:
        for node, error in refusals:
            self._results[node]["error"] = error
            if not self._watching.as_json:
                label = self._labels.get(node, node)
                terminal.echo(f"{label}: {error or success}", err=error is not None)

    def _sentence(self, node: str, error: Json) -> str:
        """Return why the node was refused, in the words of the commands."""
        if error["status"] == HTTPStatus.NOT_FOUND:
            return str(NodeNotThere(node=node))
        if "possible" not in error:
            return str(error["message"])
        ways = f"possible now: {', '.join(error['possible'])}"
        if error.get("first"):
            ways = " && ".join(f"bloomery node {verb} {node} --wait" for verb in error["first"])
            ways = f"first: {ways}"
        elif not error["possible"]:
            ways = "wait until it has left that state"
        return f"cannot {self._command} it while it is {error['state']}; {ways}"


def power_order(action: str, *, soft: bool) -> Json:
    """Return the order of an action of ``POWER``.  Raises UsageError."""
    if soft and action == "on":
        raise click.UsageError("--soft is for off and reboot")
    target = {"reboot": "rebooting"}.get(action, f"power {action}")
    return {"power": {"target": f"soft {target}" if soft else target}}


def path_of(node: str) -> str:
    return f"/v1/nodes/{quote(node, safe='')}"
