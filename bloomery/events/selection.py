"""Filters of events, and their JSON documents with masked secrets.

selection = Selection(event_type="baremetal.node", project="c0ffee")
selection.takes(event)                    # of this type, and visible to that project
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import orjson

from bloomery import secrets
from bloomery.db.events import EventRow
from bloomery.model.rules import nodes as rules

LAST_ERROR: Final = "last_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """``event_type``: a prefix of whole words, such as ``baremetal.node.power_set``.

    ``objects``: the kinds of objects; empty: all.
    ``project``: events of objects whose owner or lessee is that project; None: all events.
    ``hides_errors_from``: roles of the project that may not read ``last_error``: owner, lessee.
    """

    event_type: str | None = None
    objects: tuple[str, ...] = ()
    object_uuid: str | None = None
    project: str | None = None
    hides_errors_from: frozenset[str] = frozenset()

    def takes(self, event: EventRow) -> bool:
        """Does the selection include this event?"""
        if self.object_uuid is not None and event.object_uuid != self.object_uuid:
            return False
        if self.objects and event.object not in self.objects:
            return False
        if self.project is not None and self._role(event) is None:
            return False
        kind = self.event_type
        return kind is None or f"{event.event_type}.".startswith(f"{kind}.")

    def _role(self, event: EventRow) -> str | None:
        if event.owner == self.project:
            return "owner"
        return "lessee" if event.lessee == self.project else None

    def hides_error(self, event: EventRow) -> bool:
        return self.project is not None and self._role(event) in self.hides_errors_from


def document(event: EventRow, *, hides_error: bool = False) -> dict[str, Any]:
    """Return the document of an event: its object, type, time and facts, without the snapshot."""
    facts: Any = orjson.Fragment(event.facts_text)
    if hides_error and LAST_ERROR in event.facts_text:
        facts = {name: value for name, value in event.facts.items() if name != LAST_ERROR}
        if "cause" in facts:
            node = SimpleNamespace(**event.facts)
            facts |= rules.describe_problem(node, "", secrets.mask, hides_error=True)
    return {
        "id": event.id,
        "at": event.created_at,
        "event_type": event.event_type,
        "object_uuid": event.object_uuid,
        "level": event.level,
        "publisher": event.publisher,
        "request_id": event.request_id,
        "facts": facts,
    }


def message(event: EventRow) -> bytes:
    """Return the body of a webhook, and of a message to NATS."""
    return orjson.dumps(
        {"type": event.event_type, "timestamp": event.created_at, "data": document(event)}
    )


class Frames:
    """An event in the format of server-sent events, encoded once for all listeners."""

    def __init__(self, event: EventRow) -> None:
        self.event = event
        self._frames: dict[bool, bytes] = {}

    def of(self, selection: Selection) -> bytes:
        hides_error = selection.hides_error(self.event)
        if hides_error not in self._frames:
            self._frames[hides_error] = frame(self.event, hides_error=hides_error)
        return self._frames[hides_error]


def frame(event: EventRow, *, hides_error: bool = False) -> bytes:
    data = orjson.dumps(document(event, hides_error=hides_error))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.event_type.encode(), data)
