"""Nodes and what belongs to them, as records: each method is one short transaction."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import nodes, ports
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.model.request import Request

Json = dict[str, Any]


class RecordEndpoints:
    """Serves ``rpc.contract.Records``."""

    runtime: ConductorRuntime

    def _context(self, request: Request) -> Context:
        return Context(runtime=self.runtime, request=request)

    def create_node(self, request: Request, values: Json) -> None:
        nodes.create(self._context(request), values)

    def update_node(
        self,
        request: Request,
        node_uuid: str,
        patch: list[Json],
        reset_interfaces: bool,
    ) -> None:
        nodes.update(self._context(request), node_uuid, patch, reset_interfaces=reset_interfaces)

    def destroy_node(self, request: Request, node_uuid: str) -> None:
        nodes.destroy(self._context(request), node_uuid)

    def set_maintenance(
        self,
        request: Request,
        node_uuid: str,
        maintenance: bool,
        reason: str | None,
    ) -> None:
        nodes.set_maintenance(self._context(request), node_uuid, maintenance, reason)

    def add_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str],
        replace: bool,
    ) -> None:
        nodes.add_traits(self._context(request), node_uuid, traits, replace=replace)

    def remove_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str] | None,
    ) -> None:
        nodes.remove_traits(self._context(request), node_uuid, traits)

    def create_port(self, request: Request, values: Json) -> None:
        ports.create(self._context(request), values)

    def update_port(self, request: Request, port_uuid: str, patch: list[Json]) -> None:
        ports.update(self._context(request), port_uuid, patch)

    def destroy_port(self, request: Request, port_uuid: str) -> None:
        ports.destroy(self._context(request), port_uuid)
