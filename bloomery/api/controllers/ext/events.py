"""Events as a list and as a stream: /ext/v1/events."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import pagination
from bloomery.operations import event_feed

QUERY: Final = {
    "limit": Arg(arguments.count),
    "node": Arg(arguments.ident),
    "object": Arg(arguments.uuid),
    "order": Arg(arguments.direction),
    "since": Arg(arguments.position),
    "stack": Arg(arguments.uuid),
    "type": Arg(arguments.text),
    "until": Arg(arguments.integer),
}


class Events(Rest):
    """Answer ``text/event-stream`` with a stream, other requests with a page."""

    @endpoint(rule="baremetal:events:list", query=QUERY, streams=True)
    def get(self, call: Call, **query: Any) -> Reply | dict[str, Any]:
        scope = event_feed.Query(
            event_type=query.get("type"), node=query.get("node"), stack=query.get("stack"),
            object=query.get("object"),
        )  # fmt: skip
        newest_first = pagination.is_descending(query.get("order", "asc"))
        if call.wants_stream:
            if newest_first or "until" in query:
                raise errors.Invalid(reason="cannot stream with order or until: ask for a list")
            begin = event_feed.listen(call.context, scope, _since(call, query))
            return Reply(stream=begin)
        most = call.context.services.conf.api.max_limit
        limit = min(query.get("limit", most), most)
        if limit < 1:
            raise errors.Invalid(reason="cannot use limit: it has to be positive")
        page = event_feed.list_page(
            call.context, scope, query.get("since", 0), query.get("until"),
            newest_first=newest_first, limit=limit,
        )  # fmt: skip
        document = {"events": page.documents, "last_id": page.last_id}
        if page.rest is not None:
            place = {"since": page.rest.since, "until": page.rest.until}
            again = {name: value for name, value in (query | place).items() if value is not None}
            document["next"] = f"{call.url}/ext/v1/events?{urlencode(again)}"
        return document


def _since(call: Call, query: dict[str, Any]) -> int | None:
    """Return the cursor to continue from; the header Last-Event-ID precedes the query."""
    if call.last_event_id is None:
        return query.get("since")
    return arguments.integer("Last-Event-ID", call.last_event_id)
