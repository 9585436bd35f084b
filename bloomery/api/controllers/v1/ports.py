"""Ports: /v1/ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import Reply, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import patch
from bloomery.api.schemas import port as schemas
from bloomery.operations import port_lists, ports

FIELDS: Final = {"fields": Arg(arguments.words, since=8)}
FILTERS: Final[arguments.Args] = {
    "node": Arg(arguments.ident),
    "node_uuid": Arg(arguments.uuid),
    "address": Arg(arguments.mac),
    "portgroup": Arg(arguments.ident, since=24),
    "shard": Arg(arguments.words, since=82),
    "description_contains": Arg(arguments.search, since=97),
    "conductor_groups": Arg(arguments.words, since=99),
}
LIST: Final = {
    **arguments.PAGING,
    **FILTERS,
    **FIELDS,
    "detail": Arg(arguments.boolean, since=43, refusal=400),
}


class Detail(Rest):
    @endpoint(rule="baremetal:port:list", query={**arguments.PAGING, **FILTERS})
    def get(self, call: Call, **asked: Any) -> dict[str, Any]:
        return port_lists.show(call.context, asked, detail=True, path="ports/detail")


class Ports(Rest):
    since: ClassVar[int] = 1
    children: ClassVar[Mapping[str, Rest]] = {"detail": Detail()}

    @endpoint(rule="baremetal:port:list", query=LIST)
    def get_all(self, call: Call, **asked: Any) -> dict[str, Any]:
        return port_lists.show(call.context, asked)

    @endpoint(rule="baremetal:port:get", query=FIELDS)
    def get_one(
        self,
        call: Call,
        port: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        return ports.show(call.context, arguments.ident("port_ident", port), fields)

    @endpoint(rule="baremetal:port:create", status=201, body=schemas.CREATE)
    def post(self, call: Call, *, body: dict[str, Any]) -> Reply:
        made = ports.create(call.context, body)
        return Reply(document=made, location=call.at(f"ports/{made['uuid']}"))

    @endpoint(rule="baremetal:port:update", body=patch.PATCH)
    def patch(self, call: Call, port: str, *, body: list[dict[str, Any]]) -> dict[str, Any]:
        return ports.update(call.context, arguments.ident("port_ident", port), body)

    @endpoint(rule="baremetal:port:delete", status=204, extra_segment_status=404)
    def delete(self, call: Call, port: str) -> None:
        ports.delete(call.context, arguments.uuid("port_uuid", port))
