"""/ext/v1: what the Ironic API does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webob import exc as statuses

from bloomery.api import routing
from bloomery.api.controllers.ext import allocations, description, events, fleet, nodes, webhooks
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


class Folder(Rest):
    """Only what is below it answers."""

    def __init__(self, **children: Rest) -> None:
        super().__init__()
        self.children = children  # type: ignore[misc]  # of one folder, not of all

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        raise statuses.HTTPNotFound


class V1(Folder):
    """Names what is below it, so that nobody has to guess."""

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
    """Return the controller of /ext; ``root`` returns that of all, which it describes."""
    children: dict[str, Rest] = {
        "allocations": allocations.Allocations(),
        "events": events.Events(),
        "fleet": fleet.Fleet(),
        "nodes": nodes.Nodes(),
        "openapi.json": description.Openapi(root),
        "webhooks": webhooks.Webhooks(),
    }
    return Folder(v1=V1(**children))
