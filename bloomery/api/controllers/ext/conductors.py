"""Conductors, their BMCs, and the order to drain one: /ext/v1/conductors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.controllers.ext.nodes import Parts
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import conductors


class Bmcs(Rest):
    @endpoint(rule="baremetal:bmc:list")
    def get(self, call: Call, conductor: str) -> dict[str, Any]:
        """List the BMCs that the conductor has called: latency, breaker, sessions, logins."""
        return {"bmcs": conductors.list_bmcs(call.context, conductor)}


class Drain(Rest):
    @endpoint(rule="baremetal:conductor:drain", status=202, query={"force": Arg(arguments.boolean)})
    def put(self, call: Call, conductor: str, *, force: bool = False) -> None:
        """Let the conductor take no new nodes, end its work, and stop.

        409 where no other conductor would serve its nodes; ``force`` drains it nevertheless.
        """
        conductors.drain(call.context, conductor, force=force)


class Conductors(Parts):
    subresources: ClassVar[Mapping[str, Rest]] = {"bmcs": Bmcs(), "drain": Drain()}

    @endpoint(rule="baremetal:conductor:get")
    def get_all(self, call: Call) -> dict[str, Any]:
        """List the conductors with their state and their load."""
        return {"conductors": conductors.describe_all(call.context)}

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        return super().walk_on(call, segments) if segments else self._method(call, has_ident=False)
