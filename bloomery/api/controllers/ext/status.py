"""The state of the site: /ext/v1/status."""

from __future__ import annotations

from typing import Any

from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import status


class Status(Rest):
    @endpoint(rule=status.RULE)
    def get(self, call: Call) -> dict[str, Any]:
        """Describe conductors, flows, stacks, event sinks and the database."""
        return status.describe(call.context)
