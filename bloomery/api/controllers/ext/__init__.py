"""/ext/v1: what the Ironic API does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webob import exc as statuses

from bloomery.api.controllers.ext import allocations, description, events, fleet, nodes, webhooks
from bloomery.api.declare import Call
from bloomery.api.routing import Rest


class Folder(Rest):
    """Only what is below it answers."""

    def __init__(self, **children: Rest) -> None:
        super().__init__()
        self.children = children  # type: ignore[misc]  # of one folder, not of all

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        raise statuses.HTTPNotFound


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
    return Folder(v1=Folder(**children))
