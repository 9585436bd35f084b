"""Send the calls of a story to a server, wait until its nodes are stable, and leave it empty.

The same client for Ironic and for Bloomery: it knows an address and nothing of what is behind.
Waiting looks at the nodes themselves, never at a clock, but for a limit that ends in an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tests.conformance.ironic import script

LONGEST_S: Final = 60
POLL_S: Final = 0.02
MOVING: Final = frozenset({
    "verifying", "deploying", "deleting", "cleaning", "inspecting", "adopting", "rescuing",
    "unrescuing", "servicing",
})  # fmt: skip
LEGACY: Final = "X-OpenStack-Ironic-API-Version"
LOOK: Final = "/v1/nodes?include_children=true&fields=uuid,provision_state,reservation"
COLLECTIONS: Final = (  # emptied in this order
    "allocations", "ports", "portgroups", "volume/connectors", "volume/targets", "nodes", "chassis",
    "deploy_templates", "runbooks", "inspection_rules",
)  # fmt: skip


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # lower-case names; of a header that is repeated, all values
    body: bytes


class Unsettled(Exception):
    """A node did not come to rest, or something of a story could not be deleted."""


class Exchange:
    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.base = f"http://{host}:{port}"
        self._connection = http.client.HTTPConnection(host, port, timeout=LONGEST_S)

    def tell(self, story: script.Story) -> Iterator[tuple[script.Call, Reply]]:
        """Yield each call, as it was sent, with its reply; afterwards the server is empty."""
        bound: dict[str, str] = {}
        for drawn in story.calls:
            call = _filled_in(drawn, bound)
            reply = self.send(call)
            if call.bind:
                bound[call.bind] = json.loads(reply.body).get("uuid", "none")
            if call.method != "GET" and reply.status < 300:
                self.settle()
            yield call, reply
        self.empty()

    def close(self) -> None:
        self._connection.close()

    # -- one request -------------------------------------------------------------------------------

    def send(self, call: script.Call) -> Reply:
        headers = {"Accept": "application/json", **call.headers}
        if call.version is not None:
            headers[LEGACY] = call.version
        body = call.raw
        if call.body is not script.MISSING:
            body = json.dumps(call.body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        for name in [name for name, value in headers.items() if value == ""]:
            del headers[name]
        try:
            return self._exchange(call, body, headers)
        except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
            self._connection.close()
            return self._exchange(call, body, headers)

    def _exchange(self, call: script.Call, body: bytes | None, headers: dict[str, str]) -> Reply:
        with contextlib.suppress(BrokenPipeError):  # refused by its head; the answer is there
            self._connection.request(call.method, call.path, body=body, headers=headers)
        answer = self._connection.getresponse()
        heads: dict[str, str] = {}
        for name, value in answer.getheaders():
            key = name.lower()
            heads[key] = f"{heads[key]} | {value}" if key in heads else value
        return Reply(answer.status, heads, answer.read())

    def load(self, method: str, path: str, body: Any = script.MISSING) -> tuple[int, Any]:
        """Send a request that belongs to no story."""
        reply = self.send(script.Call(method=method, path=path, body=body))
        return reply.status, json.loads(reply.body) if reply.body else None

    # -- waiting -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until no node is held or moves, and no allocation is under way."""
        until = time.monotonic() + LONGEST_S
        while busy := self._busy():
            if time.monotonic() > until:
                raise Unsettled(f"{self.base}: {busy}")
            time.sleep(POLL_S)

    def _busy(self) -> list[Any]:
        _, nodes = self.load("GET", f"{LOOK},target_power_state")
        moving = [
            node
            for node in nodes["nodes"]
            if node["reservation"]
            or node["target_power_state"]
            or node["provision_state"] in MOVING
        ]
        return moving or self._allocating()

    def _allocating(self) -> list[Any]:
        status, answer = self.load("GET", "/v1/allocations?fields=uuid,state")
        listed = answer["allocations"] if status == 200 else []
        return [item for item in listed if item["state"] == "allocating"]

    # -- leaving nothing behind --------------------------------------------------------------------

    def empty(self) -> None:
        self.settle()
        for node in self._listed("nodes"):
            self._free(node)
        answers = [
            self.load("DELETE", f"/v1/{collection}/{item['uuid']}")
            for collection in COLLECTIONS
            for item in self._listed(collection)
        ]
        if left := {name: items for name in COLLECTIONS if (items := self._listed(name))}:
            raise Unsettled(f"{self.base} answers {answers}, keeps {json.dumps(left)[:2000]}")

    def _listed(self, collection: str) -> list[dict[str, Any]]:
        everything = "?detail=true&include_children=true" if collection == "nodes" else ""
        status, answer = self.load("GET", f"/v1/{collection}{everything}")
        plural = collection.rsplit("/", maxsplit=1)[-1]
        items: list[dict[str, Any]] = answer[plural] if status == 200 else []
        return items

    def _free(self, node: Mapping[str, Any]) -> None:
        path = f"/v1/nodes/{node['uuid']}"
        if node["protected"]:
            self.load("PATCH", path, [{"op": "remove", "path": "/protected"}])
        self.load("PUT", f"{path}/states/power", {"target": "power off"})
        self.settle()
        self.load("PUT", f"{path}/maintenance", {"reason": "end of the story"})
        if node["console_enabled"]:
            self.load("PUT", f"{path}/states/console", {"enabled": False})
            self.settle()


def _filled_in(call: script.Call, bound: Mapping[str, str]) -> script.Call:
    if not bound:
        return call

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            for name, ident in bound.items():
                value = value.replace("{" + name + "}", ident)
        elif isinstance(value, dict):
            value = {key: fill(item) for key, item in value.items()}
        elif isinstance(value, list):
            value = [fill(item) for item in value]
        return value

    return dataclasses.replace(call, path=fill(call.path), body=fill(call.body))
