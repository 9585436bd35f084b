"""Shards: /v1/shards counts the nodes of each shard."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api.declare import Call, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import nodes

SINCE: Final = 82


class Shards(Rest):
    """Count nodes by shard; as in Ironic, nodes without a shard count under the text ``None``."""

    since = SINCE

    def check_ident(self, call: Call, ident: str) -> None:
        raise errors.NotFound(reason=f"Not Found: nothing is called {ident} here")

    @endpoint(rule="baremetal:shards:get", since=SINCE, too_old=TooOld.NOT_FOUND)
    def get_all(self, call: Call) -> dict[str, Any]:
        counts = nodes.count_by_shard(call.context)
        return {"shards": [{"name": str(shard), "count": count} for shard, count in counts]}


SHARDS: Final = Shards()
