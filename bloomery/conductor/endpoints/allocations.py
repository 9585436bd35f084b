"""Allocations: who wants a node, and gives it back."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import allocations
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.model.request import Request

Json = dict[str, Any]


class AllocationEndpoints:
    """Serves ``rpc.contract.Allocations``."""

    runtime: ConductorRuntime

    def create_allocation(self, request: Request, values: Json, node_uuid: str | None) -> None:
        allocations.create(Context(runtime=self.runtime, request=request), values, node_uuid)

    def destroy_allocation(self, request: Request, uuid: str) -> None:
        allocations.destroy(Context(runtime=self.runtime, request=request), uuid)
