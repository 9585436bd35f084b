"""Why a node is where it is: /ext/v1/nodes/<ident>/why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from webob import exc as statuses

from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import why


class Why(Rest):
    @endpoint(rule="baremetal:node:history:get")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        """Why the node is where it is.  Microversions do not apply here: names always work."""
        return why.explain(call.context, node)


class Nodes(Rest):
    """Only what is below a node answers."""

    subresources: ClassVar[Mapping[str, Rest]] = {"why": Why()}

    def walk(self, call: Call, segments: list[str]) -> Any:
        if len(segments) < 2 or segments[1] not in self.subresources:
            raise statuses.HTTPNotFound
        return super().walk(call, segments)
