"""Where events of a stack go besides its list: the sinks that its environment names.

A package brings a type of sink under ``bloomery.event_sinks`` in its entry points: a class that is
made with what the environment says beside the type, and has ``consume(context, event)``, as Heat
has them::

    event_sinks:
      - {type: my-queue, target: stacks, ttl: 60}

Events go there after they were stored, in the order of a stack, by a thread that holds up nobody.
What a process has not sent when it dies is not sent by another: the list of events has them all.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from bloomery.model import stacks as model

LOG = logging.getLogger(__name__)

VERSION: Final = "0.1"
MOST: Final = 10_000  # events that wait for slow sinks; more are dropped and told of

Declarations = Sequence[Mapping[str, Any]]


class EventSink(Protocol):
    def consume(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> None: ...


class EventSinks:
    """``loaders``: what loads the class of each type of sink, by the name of the type."""

    def __init__(self, loaders: Mapping[str, Callable[[], Callable[..., EventSink]]]) -> None:
        self._loaders = loaders
        self._made: dict[str, EventSink] = {}
        self._waiting: queue.Queue[tuple[Declarations, Mapping[str, Any], dict[str, Any]]]
        self._waiting = queue.Queue(MOST)
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()

    def __bool__(self) -> bool:
        """Whether there is any type of sink."""
        return bool(self._loaders)

    def send(
        self, stack: model.Stack, declarations: Declarations, events: Iterable[model.Event]
    ) -> None:
        """Let sinks have events of a stack; returns at once."""
        if not (declarations and self._loaders):
            return
        context = {"project_id": stack.project, "user": stack.user}
        for event in events:
            try:
                self._waiting.put_nowait((declarations, context, document(event)))
            except queue.Full:
                LOG.warning("stack %s: sinks are too slow, events are dropped", stack.uuid)
                return
        self._begin()

    def flush(self) -> None:
        """Wait until everything that was sent has been consumed."""
        self._waiting.join()

    def _begin(self) -> None:
        with self._mutex:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="event-sinks", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            declarations, context, event = self._waiting.get()
            for declaration in declarations:
                self._consume(declaration, context, event)
            self._waiting.task_done()

    def _consume(
        self, declaration: Mapping[str, Any], context: Mapping[str, Any], event: dict[str, Any]
    ) -> None:
        """Hand one event to one sink; what it raises is told and spoils no other."""
        try:
            self._sink(declaration).consume(context, event)
        except Exception:
            LOG.exception("sink %s does not take event %s", declaration.get("type"), event["id"])

    def _sink(self, declaration: Mapping[str, Any]) -> EventSink:
        key = json.dumps(declaration, sort_keys=True, default=str)
        if key not in self._made:
            settings = {name: value for name, value in declaration.items() if name != "type"}
            self._made[key] = self._loaders[declaration["type"]]()(**settings)
        return self._made[key]


def document(event: model.Event) -> dict[str, Any]:
    """An event as sinks get it; properties are left to whoever asks for the event."""
    return {
        "timestamp": event.created_at.isoformat(),
        "version": VERSION,
        "type": "os.heat.event",
        "id": event.uuid,
        "payload": {
            "resource_name": event.name,
            "physical_resource_id": event.physical_id,
            "stack_id": event.stack_uuid,
            "resource_action": event.action,
            "resource_status": event.status,
            "resource_status_reason": event.reason,
            "resource_type": event.type,
            "resource_properties": {},
            "version": VERSION,
        },
    }
