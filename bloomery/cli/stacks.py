"""A stack being made, and a live tree of it.

run = StackRun(Client(f"{orchestration_url}/v1/admin"), "servers")
run.create(template)
run.watch("CREATE_COMPLETE")            # raises StackStuck with the stack's own reason
run.outputs()
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import rich.console
import rich.live
import rich.tree

from bloomery import errors
from bloomery.cli.client import Client

_POLL_S = 0.1
_STYLES = {"COMPLETE": "bold green", "FAILED": "red", "IN_PROGRESS": "yellow"}


class StackStuck(errors.Failure):
    """A stack did not come to where it was to come."""

    code = "client.stack_stuck"
    text = "{reason}"


class StackRun:
    """One stack, watched with a request for it and one for its resources a look."""

    def __init__(self, client: Client, name: str, limit_s: float = 120) -> None:
        self._client, self._name, self._limit_s = client, name, limit_s
        self._console = rich.console.Console()
        self._path = ""
        self._seen: dict[str, str] = {}
        self._began = time.monotonic()

    def create(self, template: dict[str, Any]) -> None:
        answer = self._client.post("/stacks", {"stack_name": self._name, "template": template})
        self._path = f"/stacks/{self._name}/{answer['stack']['id']}"

    def watch(self, state: str) -> None:
        """Show the tree until the stack is in ``state``.  Raises StackStuck."""
        give_up_at = time.monotonic() + self._limit_s
        with self._live() as live:
            while True:
                stack, resources = self._look()
                if live is not None:
                    live.update(_tree(stack, resources))
                now = stack["stack_status"]
                if now == state:
                    break
                if "IN_PROGRESS" not in now or time.monotonic() > give_up_at:
                    raise StackStuck(
                        reason=f"cannot bring stack {self._name} to {state}: it is {now}: "
                        f"{stack['stack_status_reason']}"
                    )
                time.sleep(_POLL_S)
        if live is None:
            self._console.print(_tree(stack, resources))

    def outputs(self) -> dict[str, Any]:
        """Return the outputs by name."""
        outputs = self._client.get(self._path)["stack"]["outputs"]
        return {each["output_key"]: each.get("output_value") for each in outputs}

    def _live(self) -> AbstractContextManager[rich.live.Live | None]:
        """A tree that is redrawn in place; without a terminal each change is a line."""
        if self._console.is_terminal:
            return rich.live.Live(console=self._console, refresh_per_second=10)
        return nullcontext()

    def _look(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        stack: dict[str, Any] = self._client.get(self._path)["stack"]
        listed = self._client.get(f"{self._path}/resources")["resources"]
        resources = sorted(listed, key=lambda each: str(each["resource_name"]))
        for each in resources:
            name, state = each["resource_name"], each["resource_status"]
            if not self._console.is_terminal and self._seen.get(name) != state:
                took = time.monotonic() - self._began
                self._console.print(f"[{took:5.1f} s] {name}: {state}", markup=False)
            self._seen[name] = state
        return stack, resources


def _tree(stack: dict[str, Any], resources: list[dict[str, Any]]) -> rich.tree.Tree:
    tree = rich.tree.Tree(f"{stack['stack_name']}  {_state(stack['stack_status'])}")
    for each in resources:
        kind, state = each["resource_type"], _state(each["resource_status"])
        needs = ", ".join(sorted(each.get("required_by") or ()))
        tree.add(f"{each['resource_name']}  {kind}  {state}" + (f"  for {needs}" if needs else ""))
    return tree


def _state(state: str) -> str:
    style = next((style for word, style in _STYLES.items() if state.endswith(word)), "dim")
    return f"[{style}]{state}[/]"
