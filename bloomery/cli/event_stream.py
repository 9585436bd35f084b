"""Follow events of ``/ext/v1/events``, across lost connections.

for event in follow(client, {"type": "baremetal.node"}):
    print(event_line(event))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from bloomery import parsing
from bloomery.cli import terminal
from bloomery.cli.client import ApiError, Client

RETRY_S: Final = 1.0
_SERVER_FAULT: Final = 500

Json = dict[str, Any]


def follow(
    client: Client,
    query: Mapping[str, str],
    since: int | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[Json]:
    """Yield events without an end; ``since``: start after this number.

    A lost connection is reopened after the last event.  Raises ApiError where the first connection
    is refused, or a later one for good.
    """
    path = f"/ext/v1/events?{urlencode(query)}"
    last_id, was_answered = since, False
    while True:
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        try:
            for line in client.stream(path, headers):
                was_answered = True
                field, _, value = line.partition(b":")  # comments are keep-alives
                if field == b"data":
                    event = parsing.load_json(value)
                    last_id = event["id"]
                    yield event
        except ApiError as exc:
            answer = exc.facts["answer"]
            if not was_answered or (answer is not None and answer < _SERVER_FAULT):
                raise
        pause(RETRY_S)


def event_line(event: Json) -> str:
    facts = terminal.brief(event["facts"])
    return terminal.visible(
        f"{event['at']}  {event['event_type']}  {event['object_uuid']}  {facts}"
    )
