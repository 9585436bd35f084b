"""What happened, as a list and as it happens: /ext/v1/events."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import event_feed

QUERY: Final = {
    "limit": Arg(arguments.count),
    "node": Arg(arguments.ident),
    "object": Arg(arguments.uuid),
    "since": Arg(arguments.integer),
    "stack": Arg(arguments.uuid),
    "type": Arg(arguments.text),
}


class Events(Rest):
    """Asked for ``text/event-stream`` it answers without an end, else with a page."""

    @endpoint(rule="baremetal:events:list", query=QUERY, streams=True)
    def get(self, call: Call, **query: Any) -> Reply | dict[str, Any]:
        scope = event_feed.Query(
            event_type=query.get("type"), node=query.get("node"), stack=query.get("stack"),
            object=query.get("object"),
        )  # fmt: skip
        if call.wants_stream:
            begin = event_feed.listen(call.context, scope, _since(call, query))
            return Reply(stream=begin)
        most = call.context.services.conf.api.max_limit
        limit = min(query.get("limit", most), most)
        if limit < 1:
            raise errors.Invalid(reason="cannot use limit: it has to be positive")
        page = event_feed.list_page(call.context, scope, since=query.get("since", 0), limit=limit)
        document = {"events": page.documents, "last_id": page.last_id}
        if page.has_more:
            again = urlencode({**query, "since": page.last_id})
            document["next"] = f"{call.url}/ext/v1/events?{again}"
        return document


def _since(call: Call, query: dict[str, Any]) -> int | None:
    """Return where to go on: what a client saw last weighs more than what its URL says."""
    if call.last_event_id is None:
        return query.get("since")
    return arguments.integer("Last-Event-ID", call.last_event_id)
