"""Order something of many nodes, print a line for each, and watch them.

orders = Orders(client, ["web-1", "web-2"], "deploy", Watching(wait=True))
orders.act({"provision": {"target": "active"}})
orders.watch("active")
orders.end()                            # exits with 1 if a node was refused or has failed
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import click

from bloomery import errors
from bloomery.cli import groups, terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.fleet import Fleet, FleetStuck, batches

Json = dict[str, Any]
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
    """The nodes of one command.  A refused node takes no further order, and is not watched."""

    def __init__(
        self, client: Client, nodes: Sequence[str], command: str, watching: Watching
    ) -> None:
        self._client = client
        self._command = command
        self._watching = watching
        self._results: dict[str, Json] = {
            node: {"node": node, "error": None} for node in dict.fromkeys(nodes)
        }

    @property
    def nodes(self) -> list[str]:
        """Return the nodes that were not refused."""
        return [node for node, result in self._results.items() if result["error"] is None]

    def act(self, action: Json) -> None:
        """Order an action of the nodes, many in a request."""

        def refusals() -> Iterator[tuple[str, str | None]]:
            for batch in batches(self.nodes):
                body = {"nodes": batch, **action}
                for result in self._client.post("/ext/v1/nodes:act", body)["results"]:
                    error = result["error"]
                    yield result["node"], error and self._sentence(result["node"], error)

        self._record(refusals(), "accepted")

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
        fleet = Fleet(
            self._client, self.nodes, self._watching.limit_s, to_stderr=self._watching.as_json
        )
        try:
            fleet.watch(state, field)
        except KeyboardInterrupt:
            click.echo("\nthe nodes go on; look on with: bloomery node list", err=True)
            raise SystemExit(groups.INTERRUPTED) from None
        except FleetStuck as exc:
            if not self._watching.as_json:
                raise
            click.echo(f"Error: {terminal.visible(str(exc))}", err=True)
            for node, error in exc.facts["nodes"].items():
                self._results[node]["error"] = error

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
                terminal.echo(f"{node}: {error or success}", err=error is not None)

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


def path_of(node: str) -> str:
    return f"/v1/nodes/{quote(node, safe='')}"
