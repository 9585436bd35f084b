"""RPC methods for nodes and their records: each method is one short transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery.conductor import (
    agents,
    inspection_rules,
    nodes,
    portgroups,
    ports,
    records,
    runbooks,
    volumes,
)
from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.model import nouns
from bloomery.model.request import Request

Json = dict[str, Any]

RULES: Final[Mapping[str, Rules]] = {
    "inspectionrule": inspection_rules.RULES,
    "port": ports.RULES,
    "portgroup": portgroups.RULES,
    "runbook": runbooks.RULES,
    "volumeconnector": volumes.RULES,
    "volumetarget": volumes.RULES,
}
NONE: Final = Rules()


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
        agents.drop_certificate(self.runtime, node_uuid)

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

    def create_record(self, request: Request, noun: str, values: Json) -> None:
        records.create(self._context(request), nouns.BY_NAME[noun], RULES.get(noun, NONE), values)

    def update_record(self, request: Request, noun: str, uuid: str, patch: list[Json]) -> None:
        rules = RULES.get(noun, NONE)
        records.update(self._context(request), nouns.BY_NAME[noun], rules, uuid, patch)

    def destroy_record(self, request: Request, noun: str, uuid: str) -> None:
        records.destroy(self._context(request), nouns.BY_NAME[noun], RULES.get(noun, NONE), uuid)
