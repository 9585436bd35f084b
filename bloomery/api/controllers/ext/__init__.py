"""/ext/v1: extensions to the Ironic API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webob import exc as statuses

from bloomery.api import routing
from bloomery.api.controllers.ext import (
    allocations,
    bulk,
    caller,
    conductors,
    description,
    events,
    fleet,
    nodes,
    session,
    status,
    webhooks,
)
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


class Folder(Rest):
    """A path that answers only below itself."""

    def __init__(self, **children: Rest) -> None:
        super().__init__()
        self.children = children  # type: ignore[misc]  # set on the instance

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        raise statuses.HTTPNotFound


class V1(Folder):
    """List the children of /ext/v1."""

    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        root = f"{call.url}/ext/v1"
        paths = sorted({path for verb, path, _ in routing.endpoints(self) if verb == "GET"} - {"/"})
        return {
            "id": "v1",
            "links": [{"href": root, "rel": "self"}]
            + [{"href": f"{root}{path}", "rel": path.removeprefix("/")} for path in paths],
        }

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        if segments:
            raise statuses.HTTPNotFound
        return self._method(call, has_ident=False)


def make(root: Callable[[], Rest]) -> Rest:
    """Return the controller of /ext; ``root`` returns the root controller."""
    children: dict[str, Rest] = {
        "allocations": allocations.Allocations(),
        "conductors": conductors.Conductors(),
        "events": events.Events(),
        "fleet": fleet.Fleet(),
        "me": caller.Me(),
        "nodes": nodes.Nodes(),
        "nodes:act": bulk.Act(),
        "nodes:batch": bulk.Batch(),
        "openapi.json": description.Openapi(root),
        "session": session.Session(),
        "states": caller.States(),
        "status": status.Status(),
        "webhooks": webhooks.Webhooks(),
    }
    return Folder(v1=V1(**children))
