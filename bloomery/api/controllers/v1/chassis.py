"""Chassis: /v1/chassis, and /v1/chassis/<uuid>/nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.controllers.v1 import nodes, records
from bloomery.api.declare import REFUSED, Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import node as schemas
from bloomery.api.schemas import patch
from bloomery.model import nouns

Json = dict[str, Any]


def of_chassis(chassis: str) -> Json:
    return {"chassis_uuid": arguments.uuid("chassis_uuid", chassis)}


class NodesDetail(Rest):
    @endpoint(rule="baremetal:node:list", query=nodes.DETAIL)
    def get(self, call: Call, chassis: str, **query: Any) -> Json:
        return nodes.read_page(call, query | of_chassis(chassis), detail=True)


class Nodes(Rest):
    """List the nodes of a chassis; single nodes are read and written under /v1/nodes."""

    children: ClassVar[Mapping[str, Rest]] = {"detail": NodesDetail()}

    @endpoint(rule="baremetal:node:list", query=nodes.LIST)
    def get_all(self, call: Call, chassis: str, **query: Any) -> Json:
        return nodes.read_page(call, query | of_chassis(chassis))

    @endpoint(rule="baremetal:node:get", status=REFUSED)
    def get_one(self, call: Call, chassis: str, node: str) -> None:
        raise malformed()

    @endpoint(rule="baremetal:node:create", status=REFUSED, body=schemas.CREATE)
    def post(self, call: Call, chassis: str, *, body: Json) -> None:
        raise malformed()

    @endpoint(rule="baremetal:node:update", status=REFUSED, body=patch.PATCH)
    def patch(self, call: Call, chassis: str, node: str, *, body: list[Json]) -> None:
        raise malformed()

    @endpoint(rule="baremetal:node:delete", status=REFUSED)
    def delete(self, call: Call, chassis: str, node: str) -> None:
        raise malformed()


def malformed() -> errors.Invalid:
    return errors.Invalid(reason="Malformed request URI. Use /v1/nodes for single nodes.")


CHASSIS: Final = records.Collection(nouns.CHASSIS, list_rule="get", subresources={"nodes": Nodes()})
