"""What Ironic does not tell of a node: /ext/v1/nodes/<ident>/why and /timeline.

Microversions do not apply here: names always work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from webob import exc as statuses

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import timeline, why

_USUAL_PAGE: Final = 100
PAGE: Final = {"limit": Arg(arguments.count), "marker": Arg(arguments.text)}


class Why(Rest):
    @endpoint(rule="baremetal:node:history:get")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        """Why the node is where it is."""
        return why.explain(call.context, node)


class Timeline(Rest):
    @endpoint(rule="baremetal:node:history:get", query=PAGE)
    def get(
        self, call: Call, node: str, *, limit: int | None = None, marker: str | None = None
    ) -> dict[str, Any]:
        """What happened to the node, newest first, and when what goes on now will end."""
        limit = _limit(call, limit)
        document = timeline.get_page(call.context, node, limit=limit, marker=marker)
        entries = document["timeline"]
        if len(entries) == limit:
            query = urlencode({"limit": limit, "marker": entries[-1]["marker"]})
            document["next"] = f"{call.url}/ext/v1/nodes/{node}/timeline?{query}"
        return document


def _limit(call: Call, limit: int | None) -> int:
    if limit is not None and limit <= 0:
        raise errors.InvalidParameterValue(reason=f"limit must be positive, not {limit}")
    return min(limit or _USUAL_PAGE, call.context.services.conf.api.max_limit)


class Parts(Rest):
    """Only what is below an object answers."""

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        if len(segments) < 2 or segments[1] not in self.subresources:
            raise statuses.HTTPNotFound
        return super().walk_on(call, segments)


class Nodes(Parts):
    subresources: ClassVar[Mapping[str, Rest]] = {"why": Why(), "timeline": Timeline()}
