"""Shards: /v1/shards says how many nodes are in each."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api.declare import Call, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import nodes

SINCE: Final = 82


class Shards(Rest):
    """Nodes without a shard count under the name ``None``, a text, as in Ironic."""

    since = SINCE

    def check_ident(self, call: Call, ident: str) -> None:
        raise errors.NotFound(reason=f"Not Found: nothing is called {ident} here")

    @endpoint(rule="baremetal:shards:get", since=SINCE, too_old=TooOld.NOT_FOUND)
    def get_all(self, call: Call) -> dict[str, Any]:
        counts = nodes.count_by_shard(call.context)
        return {"shards": [{"name": str(shard), "count": count} for shard, count in counts]}


SHARDS: Final = Shards()
