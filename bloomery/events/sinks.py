"""The protocol of sinks, and the simplest sink: a line of JSON per event, by logging."""

from __future__ import annotations

import logging
from typing import Final, Protocol

import orjson

from bloomery.db.events import EventRow
from bloomery.events import selection

LOG: Final = logging.getLogger("bloomery.events")


class Sink(Protocol):
    """Receive events, one at a time, in order, always from the same thread.

    An exception of ``send`` means that the event was not taken, and is repeated.  A sink may see an
    event twice.  ``wants_snapshots``: rows must have snapshots, on every process of the site.
    """

    name: str
    wants_snapshots: bool

    def open(self) -> None:
        """Prepare for events; called again after a failure."""

    def send(self, event: EventRow) -> None: ...

    def close(self) -> None: ...


class LogSink:
    """Writes every event to the logger ``bloomery.events`` at the event's level."""

    name = "log"
    wants_snapshots = False

    def open(self) -> None:
        return

    def send(self, event: EventRow) -> None:
        level = logging.getLevelName(event.level.upper())
        if LOG.isEnabledFor(level):
            LOG.log(level, "%s", line(event))

    def close(self) -> None:
        return


def line(event: EventRow) -> str:
    return orjson.dumps(selection.document(event)).decode()
