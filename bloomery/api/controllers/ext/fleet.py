"""Counts of nodes: /ext/v1/fleet."""

from __future__ import annotations

from typing import Any

from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import fleet


class Fleet(Rest):
    @endpoint(rule="baremetal:node:list")
    def get(self, call: Call) -> dict[str, Any]:
        """Count the nodes that the caller may list, by state, class and conductor."""
        return fleet.describe(call.context)
