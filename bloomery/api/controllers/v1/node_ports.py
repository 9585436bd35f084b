"""/v1/nodes/<uuid>/ports: a list; ports are read and written under /v1/ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import patch
from bloomery.api.schemas import port as schemas
from bloomery.operations import port_lists

LIST: Final = {
    **arguments.PAGING,
    "fields": Arg(arguments.words, since=8),
    "detail": Arg(arguments.boolean, since=43, refusal=400),
}


def malformed() -> errors.Invalid:
    return errors.Invalid(reason="Malformed request URI. Use /v1/ports for single ports.")


class Detail(Rest):
    @endpoint(rule="baremetal:port:list", query=arguments.PAGING)
    def get(self, call: Call, node: str, **asked: Any) -> dict[str, Any]:
        return port_lists.of_node(call.context, node, asked, detail=True)


class Ports(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"detail": Detail()}

    @endpoint(rule="baremetal:port:list", query=LIST)
    def get_all(self, call: Call, node: str, **asked: Any) -> dict[str, Any]:
        return port_lists.of_node(call.context, node, asked)

    @endpoint(rule="baremetal:port:get")
    def get_one(self, call: Call, node: str, port: str) -> None:
        raise malformed()

    @endpoint(rule="baremetal:port:create", body=schemas.CREATE)
    def post(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        raise malformed()

    @endpoint(rule="baremetal:port:update", body=patch.PATCH)
    def patch(self, call: Call, node: str, port: str, *, body: list[dict[str, Any]]) -> None:
        raise malformed()

    @endpoint(rule="baremetal:port:delete")
    def delete(self, call: Call, node: str, port: str) -> None:
        raise malformed()
