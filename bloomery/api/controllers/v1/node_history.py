"""What happened: /v1/nodes/<ident>/history."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.operations import history

SINCE: Final = 78
LIST: Final = {**arguments.PAGING, "detail": Arg(arguments.boolean)}


class History(Rest):
    @endpoint(rule="baremetal:node:history:get", since=SINCE, query=LIST)
    def get_all(self, call: Call, node: str, **asked: Any) -> dict[str, Any]:
        return history.show(call.context, node, asked)

    @endpoint(rule="baremetal:node:history:get", since=SINCE)
    def get_one(self, call: Call, node: str, entry: str) -> dict[str, Any]:
        return history.entry(call.context, node, entry)
