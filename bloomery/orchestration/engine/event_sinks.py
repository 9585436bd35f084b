"""Event sinks: they receive the events of a stack if its environment, or the operator's, says so.

A package registers a type of sink as an entry point in ``bloomery.event_sinks``.  The class takes
the other keys of the environment's entry as arguments, and has Heat's ``consume(context, event)``::

    event_sinks:
      - {type: my-queue, target: stacks, ttl: 60}

A thread of its own sends stored events, in the order of each stack.  When the process dies, no
other process sends its unsent events: only the event list of the stack has all of them.
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
MOST: Final = 10_000  # events that wait for slow sinks; more are dropped, with a warning

Declarations = Sequence[Mapping[str, Any]]


class EventSink(Protocol):
    def consume(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> None: ...


class EventSinks:
    """``loaders``: functions that load the class of a sink, by the name of its type."""

    def __init__(self, loaders: Mapping[str, Callable[[], Callable[..., EventSink]]]) -> None:
        self._loaders = loaders
        self._sinks: dict[str, EventSink] = {}
        self._waiting: queue.Queue[tuple[Declarations, Mapping[str, Any], dict[str, Any]]]
        self._waiting = queue.Queue(MOST)
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()

    def __bool__(self) -> bool:
        """Tell whether any type of sink is installed."""
        return bool(self._loaders)

    def send(
        self, stack: model.Stack, declarations: Declarations, events: Iterable[model.Event]
    ) -> None:
        """Queue events of a stack for its sinks, without waiting."""
        if not (declarations and self._loaders):
            return
        context = {"project_id": stack.project, "user": stack.user}
        for event in events:
            try:
                self._waiting.put_nowait((declarations, context, document(event)))
            except queue.Full:
                LOG.warning("stack %s: sinks are too slow, events are dropped", stack.uuid)
                return
        with self._mutex:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="event-sinks", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Wait until everything that was sent has been consumed."""
        self._waiting.join()

    def _run(self) -> None:
        """Hand events to their sinks; an exception is logged, and does not affect other sinks."""
        while True:
            declarations, context, event = self._waiting.get()
            for declaration in declarations:
                try:
                    self._sink(declaration).consume(context, event)
                except Exception:
                    kind = declaration.get("type")
                    LOG.exception("sink %s does not take event %s", kind, event["id"])
            self._waiting.task_done()

    def _sink(self, declaration: Mapping[str, Any]) -> EventSink:
        key = json.dumps(declaration, sort_keys=True, default=str)
        if key not in self._sinks:
            settings = {name: value for name, value in declaration.items() if name != "type"}
            self._sinks[key] = self._loaders[declaration["type"]]()(**settings)
        return self._sinks[key]


def document(event: model.Event) -> dict[str, Any]:
    """Return an event in the form of Heat's sinks, without the resource's properties."""
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
