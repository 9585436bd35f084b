"""Events in a stream of NATS JetStream.

The subject is bloomery.OBJECT.UUID.ACTION.STATUS, such as
``bloomery.node.1be26c0b-03f2-4d2e-ae87-c02d7f33c123.provision_set.end``.  The stream refuses a
repeated event by its header Nats-Msg-Id, within the stream's duplicate window.

nats-py needs asyncio: its loop has a thread of its own, where each event waits for the stream's
acknowledgement.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bloomery import errors
from bloomery.conf.notifications import Events
from bloomery.db.events import EventRow
from bloomery.events import selection

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")

_SUBJECTS: Final = "bloomery.>"
_ANSWER_S: Final = 10.0  # for a connection, and for an acknowledgement


class NatsSink:
    """Publish all events, each after the acknowledgement of the one before."""

    name = "nats"
    wants_snapshots = False

    def __init__(self, conf: Events) -> None:
        """Raises CannotStart without nats-py."""
        try:
            import nats  # noqa: F401
        except ImportError:
            raise errors.CannotStart(
                reason="cannot send to [events]nats_servers: nats-py is not installed; "
                "pip install 'bloomery[nats]'"
            ) from None
        self._conf = conf
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Connect unless connected; create a missing stream, which keeps as long as the rows."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="events-nats-loop", daemon=True
            )
            self._thread.start()
        if self._client is None or not self._client.is_connected:
            self._client = self._wait(self._connect())

    async def _connect(self) -> Client:
        import nats
        from nats.errors import NoServersError
        from nats.js.errors import NotFoundError

        reasons: list[Exception] = []

        async def on_error(exc: Exception) -> None:
            reasons.append(exc)

        try:
            client = await nats.connect(  # each server twice: the worker waits and tries again
                list(self._conf.nats_servers), name="bloomery", error_cb=on_error,
                allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0,
            )  # fmt: skip
        except NoServersError as exc:
            raise (reasons[-1] if reasons else exc) from exc
        try:
            stream = client.jetstream()
            try:
                await stream.stream_info(self._conf.nats_stream)
            except NotFoundError:
                await stream.add_stream(
                    name=self._conf.nats_stream, subjects=[_SUBJECTS],
                    max_age=self._conf.keep_hours * 3600,
                )  # fmt: skip
        except BaseException:
            await client.close()
            raise
        return client

    def send(self, event: EventRow) -> None:
        """Publish an event.  Raises the errors of nats-py, also for another stream's subject."""
        assert self._client is not None
        self._wait(
            self._client.jetstream().publish(
                subject(event), selection.message(event), timeout=_ANSWER_S,
                stream=self._conf.nats_stream, headers={"Nats-Msg-Id": event.message_id},
            )
        )  # fmt: skip

    def close(self) -> None:
        if self._client is not None:
            self._wait(self._client.close())
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._client = None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        bounded = asyncio.wait_for(work, 2 * _ANSWER_S)
        return asyncio.run_coroutine_threadsafe(bounded, self._loop).result()


def subject(event: EventRow) -> str:
    return f"bloomery.{event.object}.{event.object_uuid}.{event.action}.{event.status}"
