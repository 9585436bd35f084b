"""Webhooks: each is a sink with a cursor of its own, so that a failed one delays no other.

An event is sent as a signed POST, as in Standard Webhooks; any 2xx answer with a whole body within
the time-out accepts it.  Redirects are not followed.  Addresses of the machine itself, of its link
and of clouds' metadata are called only where an operator allows it.  A failed delivery is retried
with growing pauses.  A webhook is parked after too many failures in a row, or if its backlog does
not shrink (``trimmer``): it keeps no old events until it is activated again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import standardwebhooks

from bloomery import errors, fetching
from bloomery.conf.notifications import Events
from bloomery.db import webhooks
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events import selection as selections
from bloomery.events.selection import Selection
from bloomery.events.sink_worker import Pace, SinkWorker
from bloomery.model import webhook as webhook_model
from bloomery.model.webhook import State, Webhook
from bloomery.secrets import Sealer

LOG = logging.getLogger(__name__)

_POLL_S: Final = 5.0  # for changes by other processes
_NOTE_S: Final = 5.0  # the least time between two notes of success
_LANES: Final = 4  # objects whose events are sent to one address in parallel


class DeliveryFailed(Exception):
    """The address did not accept an event."""


class WebhookSink:
    """Deliver to one address."""

    wants_snapshots = False

    def __init__(self, db: Database, webhook: Webhook, sealer: Sealer, conf: Events) -> None:
        self._db, self._webhook, self._conf = db, webhook, conf
        self.name = webhook.sink
        self._selection = Selection(event_type=webhook.type, object_uuid=webhook.object_uuid)
        self._signer = standardwebhooks.Webhook(sealer.open_text(webhook.secret))
        self._url = fetching.checked(webhook.url)
        self._noted_at: float | None = None  # the last note of success

    def open(self) -> None:
        return

    def send(self, event: EventRow) -> None:
        """Send an event; called by several threads.  Raises DeliveryFailed."""
        if not self._selection.takes(event):
            return
        body, headers = signed(self._signer, event, datetime.now(UTC))
        try:
            status, _, _ = fetching.post(
                self._url, body, headers, self._addresses, self._conf.webhook_timeout
            )
        except (fetching.FetchRefused, fetching.FetchFailed) as exc:
            raise DeliveryFailed(str(exc)) from exc
        if not 200 <= status < 300:
            raise DeliveryFailed(f"the server answers {status}")
        now = time.monotonic()
        if self._noted_at is None or now - self._noted_at >= _NOTE_S:
            self._db.transact(lambda conn: webhooks.note_delivery(conn, self._webhook.uuid))
            self._noted_at = now

    def note_failure(self, failure: DeliveryFailed) -> None:
        """Store the failure; the webhook may be parked afterwards."""
        self._noted_at, error, most = None, str(failure), self._conf.webhook_max_failures
        uuid = self._webhook.uuid
        if self._db.transact(lambda conn: webhooks.note_failure(conn, uuid, error, most=most)):
            LOG.warning("webhook %s: parked after %d failures in a row: %s", uuid, most, error)

    def _addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
        entries, allow_local = fetching.resolved(host, port), self._conf.webhook_allow_local
        return fetching.reachable(entries, webhook_model.OPTION, allow_local=allow_local)

    def close(self) -> None:
        return


def signed(
    signer: standardwebhooks.Webhook, event: EventRow, now: datetime
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers; repetitions have the same id."""
    body = selections.message(event)
    return body, fetching.signed(signer, event.message_id, now, body)


class Readers(Protocol):
    """The relay, as far as webhooks use it."""

    def add_reader(self, wake: Callable[[], None]) -> None: ...

    def remove_reader(self, wake: Callable[[], None]) -> None: ...


class Webhooks:
    """Own a worker for each active webhook, and a thread that supervises them."""

    def __init__(
        self,
        db: Database,
        sealer: Sealer,
        conf: Events,
        relay: Readers,
        *,
        holder: str,
        pace: Pace | None = None,
    ) -> None:
        """``relay`` wakes the workers for new events."""
        self._relay = relay
        self._db, self._sealer, self._conf = db, sealer, conf
        self._holder, self._pace = holder, pace
        self._workers: dict[str, tuple[tuple[str | None, ...], SinkWorker]] = {}
        self._ending: dict[str, SinkWorker] = {}
        self._change = threading.Condition()
        self._is_changed = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="events-webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poll(self) -> None:
        """Poll the rows at once, after a change in this process."""
        with self._change:
            self._is_changed = True
            self._change.notify()

    def stop(self) -> None:
        with self._change:
            self._stopping = True
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join()
        for uuid in list(self._workers):
            self._begin_stop(uuid)
        for worker in self._ending.values():
            worker.stop()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self.settle()
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: it tries again
                LOG.warning("cannot look after webhooks: %s", errors.brief(exc))
            with self._change:
                self._change.wait_for(lambda: self._is_changed or self._stopping, _POLL_S)
                self._is_changed = False

    def settle(self) -> None:
        """Start and stop workers to match the rows; a hanging worker delays no other."""
        with self._db.read() as conn:
            hooks = {
                each.uuid: each for each in webhooks.list_all(conn) if each.state != State.PARKED
            }
        for uuid, (traits, _) in list(self._workers.items()):
            if uuid not in hooks or _traits(hooks[uuid]) != traits:
                self._begin_stop(uuid)
        self._ending = {uuid: each for uuid, each in self._ending.items() if not each.has_ended}
        for uuid, webhook in hooks.items():
            if uuid not in self._workers and uuid not in self._ending:
                self._begin(webhook)

    def _begin(self, webhook: Webhook) -> None:
        sink = WebhookSink(self._db, webhook, self._sealer, self._conf)

        def note_failure(failure: Exception) -> None:
            if isinstance(failure, DeliveryFailed):
                sink.note_failure(failure)
                self.poll()

        worker = SinkWorker(
            self._db, sink, holder=self._holder, pace=self._pace, may_begin=False, lanes=_LANES,
            on_refusal=note_failure, on_end=self.poll,
        )  # fmt: skip
        self._workers[webhook.uuid] = _traits(webhook), worker
        self._relay.add_reader(worker.wake)
        worker.start()

    def _begin_stop(self, uuid: str) -> None:
        _, worker = self._workers.pop(uuid)
        self._relay.remove_reader(worker.wake)
        worker.begin_stop()
        self._ending[uuid] = worker


def _traits(webhook: Webhook) -> tuple[str | None, ...]:
    """Return the settings whose change needs a new worker."""
    return webhook.url, webhook.secret, webhook.type, webhook.object_uuid
