"""Watch a stack's action with a live tree of resources, updated by its events.

run = StackRun(Client(f"{orchestration_url}/v1/admin"), "servers")
run.create({"template": template})
run.watch("CREATE_COMPLETE")            # raises StackStuck with the stack's own reason
run.document()["outputs"]
"""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Final

import rich.console
import rich.live
import rich.markup
import rich.tree

from bloomery import errors
from bloomery.cli import terminal
from bloomery.cli.client import ApiError, Client, Outage

DEPTH: Final = 10  # of nested stacks that are read
NOT_BEGUN: Final = "INIT_COMPLETE"
GROUP: Final = "OS::Ironic::InstanceGroup"
LEAVING: Final = "is deleted when the roll-out comes to its end"
LEFT_OVER: Final = (
    "left over from an earlier update: the next one takes it back, or deletes it with its data"
)
_CHANGED: Final = "state changed"  # the reason of resources without one
_NOT_FOUND, _SERVER_FAULT = 404, 500
_PATH: Final = re.compile(r"resources\.\S+: ")  # prefix of a resource's own reason
_POLL_S: Final = 0.25
_MOST_LINES: Final = 40  # of a live tree; more lines leave out completed resources
_STYLES: Final = {"COMPLETE": "bold green", "FAILED": "red", "IN_PROGRESS": "yellow"}

Json = dict[str, Any]


class StackStuck(errors.Failure):
    """A stack did not reach its state."""

    code = "client.stack_stuck"
    text = "{reason}"


class StackNotThere(errors.Failure):
    """No stack of the project has that name."""

    code = "client.stack_not_there"
    text = "cannot find a stack called {name}; bloomery stack list shows those that are there"


def find(client: Client, name: str) -> Json | None:
    """Return a stack by name or id, without outputs, or None."""
    try:
        return _show(client, f"/stacks/{urllib.parse.quote(name, safe='')}")
    except ApiError as exc:
        if exc.facts["answer"] == _NOT_FOUND:
            return None
        raise


def _show(client: Client, path: str) -> Json:
    stack: Json = client.get(f"{path}?resolve_outputs=false")["stack"]
    return stack


def get(client: Client, name: str) -> Json:
    """Return a stack by name or id.  Raises StackNotThere."""
    stack = find(client, name)
    if stack is None:
        raise StackNotThere(name=name)
    return stack


def path_of(stack: Json) -> str:
    return f"/stacks/{stack['stack_name']}/{stack['id']}"


def resources(client: Client, path: str, query: str = "") -> list[Json]:
    """Return the resources of a stack and of its nested stacks."""
    documents: list[Json] = client.get(f"{path}/resources?nested_depth={DEPTH}{query}")["resources"]
    return documents


def why(extensions: Client, uuid: str) -> Json:
    """Return the explanation of a stack; older services, and Heat, have none."""
    try:
        document: Json = extensions.get(f"/ext/v1/stacks/{uuid}/why")
    except ApiError as exc:
        if exc.facts["answer"] == _NOT_FOUND:
            return {}
        raise
    return document


def leaving(document: Json) -> set[str]:
    """Return the paths of the members that roll-outs of a stack delete at their end."""
    return {each["path"] for each in document.get("leaving", ())}


class EventLog:
    """Events of a stack and of its nested stacks, oldest first, each once."""

    def __init__(self, client: Client, path: str) -> None:
        self._client, self._path = client, path
        self._marker: str | None = None

    def skip(self) -> None:
        """Leave out all events until now."""
        newest = self._list("sort_dir=desc&limit=1")
        self._marker = newest[0]["id"] if newest else None

    def new_events(self) -> list[Json]:
        """Return the events since the last call."""
        after = "" if self._marker is None else f"&marker={self._marker}"
        events = self._list(f"sort_dir=asc{after}")
        if events:
            self._marker = events[-1]["id"]
        return events

    def _list(self, query: str) -> list[Json]:
        path = f"{self._path}/events?nested_depth={DEPTH}&{query}"
        events: list[Json] = self._client.get(path)["events"]
        return events


def document(client: Client, path: str) -> Json:
    """Return a stack with its outputs and resources."""
    stack: Json = client.get(path)["stack"]
    return stack | {"resources": resources(client, path)}


class StackRun:
    """One stack; each poll reads the stack and its events.

    ``limit_s``: the longest watch; None: no limit.  ``extensions`` reports members that a roll-out
    will delete; None: unknown.  ``to_stderr``: standard output is for a document.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        limit_s: float | None = 120,
        extensions: Client | None = None,
        *,
        to_stderr: bool = False,
    ) -> None:
        self._client, self._name, self._limit_s = client, name, limit_s
        self._extensions = extensions
        self._leaving: set[str] | None = None  # paths; None: not requested yet
        self._console = rich.console.Console(highlight=False, stderr=to_stderr)
        self._path = ""
        self._log = EventLog(client, "")
        self._rows: dict[tuple[str, str], Json] = {}  # by stack and name
        self._unread: list[Json] = []  # events that the rows do not have yet
        self._printed: list[str] = []
        self._began = time.monotonic()

    def create(self, body: Json) -> None:
        """Create the stack; ``body`` has its template."""
        answer = self._client.post("/stacks", {"stack_name": self._name, **body})
        self._follow(f"/stacks/{self._name}/{answer['stack']['id']}")

    def update(self, stack: Json, body: Json, *, existing: bool = False) -> None:
        """Update the stack; ``existing``: keys that ``body`` leaves out keep their values."""
        self._follow(path_of(stack))
        self._log.skip()
        (self._client.patch if existing else self._client.put)(self._path, body)

    def delete(self, stack: Json) -> None:
        self._follow(path_of(stack))
        self._log.skip()
        self._rows = {_key(each): each for each in resources(self._client, self._path)}  # as of now
        self._client.delete(self._path)

    def check(self, stack: Json) -> None:
        self._follow(path_of(stack))
        self._log.skip()
        self._client.post(f"{self._path}/actions", {"check": None})

    def watch(self, state: str) -> None:
        """Show the tree until the stack is in ``state``.  Raises StackStuck."""
        stack = self.watch_to_end()
        if stack["stack_status"] != state:
            raise StackStuck(
                reason=f"cannot bring stack {self._name} to {state}: it is "
                f"{stack['stack_status']}: {stack['stack_status_reason']}"
            )

    def watch_to_end(self) -> Json:
        """Show the tree until no action is in progress; return the stack.  Raises StackStuck."""
        give_up_at = self._began + (self._limit_s or float("inf"))
        outage = Outage(self._console.print)
        stack: Json = {}
        # a tree that is redrawn in place; without a terminal each change is a line
        live = None
        if self._console.is_terminal:
            live = rich.live.Live(console=self._console, refresh_per_second=10)
        with live or nullcontext():
            while True:
                try:
                    stack = _show(self._client, self._path)
                    self._read_events(stack)
                    outage.end()
                except ApiError as exc:
                    outage.tolerate(exc)
                    stack = stack or {"stack_status": "IN_PROGRESS", "stack_name": self._name}
                else:
                    if live is not None:
                        live.update(self._tree(stack, most_lines=_MOST_LINES))
                    if "IN_PROGRESS" not in stack["stack_status"]:
                        break
                if time.monotonic() > give_up_at:
                    raise StackStuck(
                        reason=f"stack {self._name} is still {stack['stack_status']} after "
                        f"{self._limit_s:g} s"
                    )
                time.sleep(_POLL_S)
        if live is None:
            self._console.print(self._tree(stack))
        owners = by_physical_id(self._rows.values())
        for row in self._rows.values() if stack["stack_status"].endswith("COMPLETE") else ():
            if row["resource_status"].endswith("FAILED"):  # such as members of a group
                path, why = path_of_resource(owners, row), row["resource_status_reason"]
                line = f"{stack['stack_name']} is complete, but {path} failed: {why}"
                self._console.print(terminal.visible(line), markup=False, soft_wrap=True)
        return stack

    def document(self) -> Json:
        """Return the stack as it is now, with its outputs and resources."""
        return document(self._client, self._path)

    # -------------------------------------------------------------------------------- reading

    def _follow(self, path: str) -> None:
        self._path = path
        self._log = EventLog(self._client, path)

    def _read_events(self, stack: Json) -> None:
        """Update the rows from events.

        A list of resources adds new resources, and the successors of replaced ones.
        """
        self._unread += [  # without those of a stack itself
            each
            for each in self._log.new_events()
            if each["physical_resource_id"] != stack_id_of(each)
        ]
        new_events = self._unread
        ends = "IN_PROGRESS" not in stack["stack_status"]
        deletes = any(each["resource_status"].startswith("DELETE") for each in new_events)
        is_incomplete = any(_key(each) not in self._rows for each in new_events)
        current = {}
        if ends or deletes or is_incomplete or not self._rows:
            current = {_key(each): each for each in resources(self._client, self._path)}
        for event in new_events:  # which has no type and no required_by
            row = self._rows.get(_key(event), {"resource_type": ""}) | event
            stored_id = self._rows.get(_key(event), {}).get("physical_resource_id")
            row["physical_resource_id"] = event["physical_resource_id"] or stored_id
            self._rows[_key(event)] = row
        self._rows |= current
        self._unread = []
        if new_events and not self._console.is_terminal:
            owners = by_physical_id(self._rows.values())
            for each in new_events:
                self._print(
                    path_of_resource(owners, each),
                    each["resource_status"],
                    each["resource_status_reason"],
                )
        self._request_leaving_members(stack, new_events)

    def _request_leaving_members(self, stack: Json, new_events: Iterable[Json]) -> None:
        """Request the leaving members once, when the first member of a group has started."""
        if self._extensions is None or self._leaving is not None:
            return
        rolling = {
            each["physical_resource_id"]
            for each in self._rows.values()
            if each["resource_type"] == GROUP and each["resource_status"] == "UPDATE_IN_PROGRESS"
        }
        if not any(stack_id_of(each) in rolling for each in new_events):
            return
        self._leaving = leaving(why(self._extensions, stack["id"]))
        for path in sorted(self._leaving):
            if not self._console.is_terminal:
                self._print(path, LEAVING, "")

    def _print(self, path: str, state: str, reason: str) -> None:
        """Print a change; a group does not repeat the sentence of its member."""
        why = ""
        if state.endswith("FAILED") and not self.has_printed(reason):
            self._printed.append(_PATH.split(reason)[-1])
            why = f": {reason}"
        elif says_more(state, reason):
            why = f": {reason}"
        took = time.monotonic() - self._began
        line = f"[{took:5.1f} s] {path}: {state}{why}"
        self._console.print(terminal.visible(line), markup=False, soft_wrap=True)

    def has_printed(self, reason: str) -> bool:
        """Was this sentence, or one that it contains, printed?"""
        return any(each in reason for each in self._printed)

    def _tree(self, stack: Json, most_lines: int | None = None) -> rich.tree.Tree:
        """Return the tree; beyond ``most_lines`` only resources that are not complete.

        A resource with members in the tree leaves the reason of a failure to them.
        """
        tree = rich.tree.Tree(f"{_escaped(stack['stack_name'])}  {_state(stack['stack_status'])}")
        rows = list(self._rows.values())
        if stack["stack_status"].startswith("DELETE"):  # resources that never started have no end
            rows = [each for each in rows if each["resource_status"] != NOT_BEGUN]
        if most_lines is not None and len(rows) > most_lines:
            remaining = [
                each
                for each in rows
                if not each["resource_status"].endswith("COMPLETE")
                or each["resource_status"] == NOT_BEGUN
            ]
            tree.add(f"{len(rows) - len(remaining)} of {len(rows)} resources are complete")
            rows = remaining[:most_lines]
        children: dict[str, list[Json]] = {}
        for row in sorted(rows, key=lambda each: str(each["resource_name"])):
            children.setdefault(stack_id_of(row), []).append(row)
        physical_ids = {each["physical_resource_id"] for each in rows}
        owners, leaving = by_physical_id(rows), self._leaving or set()
        leaves = {
            _key(each)
            for each in rows
            if not each["resource_status"].startswith("DELETE")
            and path_of_resource(owners, each) in leaving
        }

        def add(branch: rich.tree.Tree, stack_id: str) -> None:
            for row in children.pop(stack_id, ()):
                child_id = str(row["physical_resource_id"])
                state, reason = row["resource_status"], str(row["resource_status_reason"] or "")
                has_reason = state.endswith("FAILED") and child_id not in children
                if not has_reason and not says_more(state, reason):
                    reason = LEAVING if _key(row) in leaves else ""
                requirers = ", ".join(sorted(row.get("required_by") or ()))
                parts = (
                    _escaped(row["resource_name"]), _escaped(row["resource_type"]), _state(state),
                    _escaped(reason), f"required by {_escaped(requirers)}" if requirers else "",
                )  # fmt: skip
                add(branch.add("  ".join(part for part in parts if part)), child_id)

        for stack_id in [i for i in children if i == stack["id"] or i not in physical_ids]:
            add(tree, stack_id)
        return tree


def says_more(state: str, reason: str) -> bool:
    """Does a reason, such as a pause, tell more than the state of a resource in progress?"""
    return state.endswith("IN_PROGRESS") and reason not in ("", _CHANGED)


def by_physical_id(rows: Iterable[Json]) -> dict[str, Json]:
    """Return resources by physical id, such as that of a nested stack."""
    return {each["physical_resource_id"]: each for each in rows if each["physical_resource_id"]}


def path_of_resource(owners: Mapping[str, Json], row: Json) -> str:
    """Return the name of a resource, behind those of the resources that own its stack."""
    path, owner = [str(row["resource_name"])], owners.get(stack_id_of(row))
    while owner is not None and len(path) <= DEPTH:
        path.append(owner["resource_name"])
        owner = owners.get(stack_id_of(owner))
    return "/".join(reversed(path))


def _key(row: Json) -> tuple[str, str]:
    return stack_id_of(row), row["resource_name"]


def stack_id_of(row: Json) -> str:
    """Return the id of the stack of a resource or an event: the end of its URL."""
    link = next(each["href"] for each in row["links"] if each["rel"] == "stack")
    return str(link).rpartition("/")[2]


def _escaped(text: object) -> str:
    return rich.markup.escape(terminal.visible(str(text)))


def _state(state: str) -> str:
    styles = () if state == NOT_BEGUN else _STYLES.items()
    style = next((style for ending, style in styles if state.endswith(ending)), "dim")
    return f"[{style}]{state}[/]"
