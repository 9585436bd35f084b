"""Virtual interfaces: /v1/nodes/<ident>/vifs."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import node as schemas
from bloomery.operations import management

SINCE: Final = 28


class Vifs(Rest):
    @endpoint(rule="baremetal:node:vif:list", since=SINCE)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return {"vifs": management.list_vifs(call.context, node)}

    @endpoint(rule="baremetal:node:vif:attach", status=204, since=SINCE, body=schemas.VIF)
    def post(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        management.attach_vif(call.context, node, body)

    @endpoint(rule="baremetal:node:vif:detach", status=204, since=SINCE)
    def delete(self, call: Call, node: str, vif: str) -> None:
        management.detach_vif(call.context, node, vif)
