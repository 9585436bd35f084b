"""Lead a stack through a life over REST, and write down what its owner saw of it.

The same client for Heat and for Bloomery: it knows a URL and nothing of what is behind.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

LONGEST_S: Final = 120
POLL_S: Final = 0.1
SUFFIX: Final = re.compile(r"-[a-z2-7]{12}(?=-|$)")  # of the name of a nested stack
MADE_UP: Final = re.compile(
    r"[\w.-]+-[a-z2-7]{12}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
FAILURE: Final = re.compile(r"((?:Resource \w+ failed: )?\w+: [\w.\[\]-]+: ).*", re.DOTALL)
USUAL: Final = re.compile(r"state changed|Stack \w+ (?:started|completed successfully)")

Step = Mapping[str, Any]


class Unsettled(Exception):
    """A stack did not come to rest, or an answer was not the one that a life goes on with."""


class LifeClient:
    """``quiet(client)`` waits, within a race, until all but the slow resource has come to rest."""

    def __init__(self, base: str, name: str, quiet: Callable[[LifeClient], None]) -> None:
        self.base = base
        self.name = name
        self.quiet = quiet
        self.path = ""
        self.observed: set[str] = set()  # ids of events
        self.slow = ""
        self.physical: dict[str, str] = {}

    def live(self, life: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return one observation a step."""
        return [self.take(step) for step in life["steps"]]

    def take(self, step: Step) -> dict[str, Any]:
        getattr(self, f"do_{step['do']}")(step)
        self.settle("DELETE" if step["do"] == "delete" else step["ends"])
        return self.observe(gone=step["do"] == "delete")

    # -- what is asked -----------------------------------------------------------------------------

    def do_create(self, step: Step) -> None:
        body = {"stack_name": self.name, **step["body"]}
        self.path = f"/stacks/{self.name}/{self.call('POST', '/stacks', body, 201)['stack']['id']}"

    def do_update(self, step: Step) -> None:
        self.call("PUT", self.path, step["body"], 202)

    def do_race(self, step: Step) -> None:
        self.call("PUT", self.path, step["body"], 202)
        self.slow = step["slow"]
        self.quiet(self)
        self.call("PUT", self.path, step["second"], 202)

    def do_delete(self, _step: Step) -> None:
        self.call("DELETE", self.path, None, 204)

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        request = urllib.request.Request(
            self.base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:
                code, text = answer.status, answer.read()
        except urllib.error.HTTPError as exc:
            code, text = exc.code, exc.read()
        if code != status:
            raise Unsettled(f"{method} {path}: {code} instead of {status}: {text[:500]!r}")
        return json.loads(text) if text and status in {200, 201} else None

    # -- waiting -----------------------------------------------------------------------------------

    def wait(self, is_over: Callable[[], Any], what: str, *, timeout_s: float = LONGEST_S) -> None:
        until = time.monotonic() + timeout_s
        while not is_over():
            if time.monotonic() > until:
                raise Unsettled(f"{self.name}: {what} took longer than {timeout_s} s")
            time.sleep(POLL_S)

    def settle(self, action: str) -> None:
        """Wait until the stack has ended ``action`` and nothing of it is in progress."""
        ends = {f"{action}_COMPLETE", f"{action}_FAILED"}
        self.wait(lambda: self.show()["stack_status"] in ends, f"{action} of the stack")
        self.wait(lambda: not self.in_progress(), f"the resources of {action}")

    def show(self) -> Any:
        return self.call("GET", f"{self.path}?resolve_outputs=False")["stack"]

    def resources(self) -> Any:
        return self.call("GET", f"{self.path}/resources?nested_depth=5")["resources"]

    def in_progress(self) -> list[str]:
        status = {item["resource_name"]: item["resource_status"] for item in self.resources()}
        return [name for name, word in status.items() if word.endswith("_IN_PROGRESS")]

    def listed_events(self, query: str = "&nested_depth=5") -> list[Any]:
        path = f"{self.path}/events?sort_dir=asc{query}"
        events: list[Any] = self.call("GET", path)["events"]
        return events

    def fresh_events(self) -> dict[str, str]:
        """What came since the last step: lines by the ids of their events.

        Heat lists none for a tree without resources; then those of the stack itself are taken.
        Events of a nested stack leave the list of the tree with it.
        """
        events = self.listed_events() or self.listed_events(query="")
        return {
            event["id"]: event_line(self.name, event)
            for event in events
            if event["id"] not in self.observed
        }

    # -- what is seen ------------------------------------------------------------------------------

    def observe(self, *, gone: bool) -> dict[str, Any]:
        stack = self.call("GET", self.path)["stack"]
        fresh = self.fresh_events()
        self.observed |= fresh.keys()
        return {
            "status": stack["stack_status"],
            "reason": shape(stack["stack_status_reason"]),
            "outputs": {} if gone else {o["output_key"]: plain(o) for o in stack["outputs"]},
            "resources": {} if gone else self.observe_resources(),
            "events": [*fresh.values()],
        }

    def observe_resources(self) -> dict[str, Any]:
        before, self.physical, seen = self.physical, {}, {}
        for item in self.resources():
            path = location(self.name, item)
            ident = item["physical_resource_id"]
            self.physical[path] = ident
            kept = "kept" if before.get(path) == ident else "new"
            seen[path] = " ".join(
                (item["resource_type"], item["resource_status"], kept if ident else "none")
            )
        return dict(sorted(seen.items()))


def location(stack: str, item: Mapping[str, Any]) -> str:
    """Where a resource is in its tree, as ``group.0``; a stack itself is ``/`` or ``group/``."""
    [link] = [link["href"] for link in item["links"] if link["rel"] == "stack"]
    name, ident = link.split("/")[-2:]
    above = SUFFIX.sub("", name).removeprefix(stack).strip("-").replace("-", ".")
    if item["physical_resource_id"] == ident and item["resource_name"] == name:
        return f"{above}/"
    return f"{above}.{item['resource_name']}".lstrip(".")


def event_line(stack: str, event: Mapping[str, Any]) -> str:
    words = (location(stack, event), event["resource_status"])
    return " ".join((*words, shape(event["resource_status_reason"]))).strip()


def shape(reason: str) -> str:
    """What of a reason must be equal: the class and the place of a failure, not its sentence."""
    if "requires replacement" in reason:
        return "replaced"
    if USUAL.fullmatch(reason):
        return ""
    failed = FAILURE.fullmatch(reason)
    return f"{failed[1]}..." if failed else reason


def plain(output: Mapping[str, Any]) -> Any:
    text = json.dumps(output["output_value"], sort_keys=True)
    value = json.loads(MADE_UP.sub("<made up>", text))
    return {"failed": True} if output.get("output_error") else {"value": value}
