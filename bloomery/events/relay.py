"""The relay: sends event rows to sinks, with a thread for each sink, and the sink of the log.

    relay = relay.make_relay(conf, db)
    runtime = lifecycle.build(conf, db, sealer, on_events_written=relay.wake)
    relay.start()                 # before any write: a new sink begins at the current end
    ...
    relay.stop()                  # after the last write

Without a sink old rows are only trimmed.  On a server's database sinks belong to the site: rows are
kept until each sink has had them, whichever process sends them, and every process writes snapshots
as soon as one sink sends notifications with them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events import selection
from bloomery.events.live import LiveEvents
from bloomery.events.nats_sink import NatsSink
from bloomery.events.numberer import Numberer
from bloomery.events.oslo_sink import OsloSink, SensorMessages
from bloomery.events.sink_worker import Pace, Sink, SinkWorker, add_sinks
from bloomery.events.trimmer import Trimmer
from bloomery.events.webhooks import Webhooks
from bloomery.secrets import Sealer

EVENT_LOG: Final = logging.getLogger("bloomery.events")


class LogSink:
    """Writes every event to the logger ``bloomery.events`` at the event's level, as JSON."""

    name = "log"
    wants_snapshots = False

    def open(self) -> None:
        return

    def send(self, event: EventRow) -> None:
        level = logging.getLevelName(event.level.upper())
        if EVENT_LOG.isEnabledFor(level):
            EVENT_LOG.log(level, "%s", orjson.dumps(selection.document(event)).decode())

    def close(self) -> None:
        return


def needs_oslo(conf: Conf) -> bool:
    """Will oslo.messaging be loaded?  Then choose its threads first (cmd.threads)."""
    return bool(conf.oslo_messaging_notifications.driver)


def make_relay(
    conf: Conf, db: Database, config_files: Sequence[str] = (), sealer: Sealer | None = None
) -> Relay:
    """``config_files``: those of the process, for oslo.messaging's own options.

    ``sealer`` unseals the secrets of webhooks; None: this process delivers to no webhook.
    """
    sinks: list[Sink] = []
    if conf.events.log:
        sinks.append(LogSink())
    if needs_oslo(conf):
        sinks.append(OsloSink(conf, config_files))
    if conf.events.nats_servers:
        sinks.append(NatsSink(conf.events))
    holder = f"{conf.default.host}:{os.getpid()}"
    relay = Relay(
        db,
        sinks,
        holder=holder,
        keep_hours=conf.events.keep_hours,
        most_listeners=conf.events.max_listeners,
    )
    if needs_oslo(conf):
        relay.sensor_messages = SensorMessages(conf, config_files)
    if sealer is not None:
        relay.webhooks = Webhooks(db, sealer, conf.events, relay, holder=holder)
    return relay


class Relay:
    """Own the threads: one for each sink, one that trims, and one for streaming clients."""

    def __init__(
        self,
        db: Database,
        sinks: Sequence[Sink],
        *,
        holder: str,
        keep_hours: float,
        pace: Pace | None = None,
        most_listeners: int = 0,
    ) -> None:
        self._db, self._sinks = db, sinks
        self._numberer = None if db.is_sqlite else Numberer(db, self._wake_readers)
        self.sink_workers = [SinkWorker(db, sink, holder=holder, pace=pace) for sink in sinks]
        self.webhooks: Webhooks | None = None
        self.sensor_messages: SensorMessages | None = None
        self.live = LiveEvents(db, most=most_listeners)
        self._readers = [self.live.wake, *(each.wake for each in self.sink_workers)]
        self.trimmer = Trimmer(
            db, [sink.name for sink in sinks] if db.is_sqlite else None, keep_hours
        )

    def start(self) -> None:
        """Store where new sinks begin, start the threads, and return.

        Raises CannotStart for notification drivers that do not load.
        """
        for sink in self._sinks:
            if isinstance(sink, OsloSink):
                sink.open()
        if self._numberer is not None:
            self._numberer.prepare()
        if self._sinks:
            self._db.transact(lambda conn: add_sinks(conn, self._sinks))
        if self._numberer is not None:
            self._numberer.start()
        for sink_worker in self.sink_workers:
            sink_worker.start()
        self.trimmer.start()
        if self.webhooks is not None:
            self.webhooks.start()

    def wake(self) -> None:
        """Signal new events; called after each commit that wrote event rows."""
        if self._numberer is None:
            self._wake_readers()
        else:
            self._numberer.wake()

    def _wake_readers(self) -> None:
        for wake in tuple(self._readers):
            wake()

    def poll_webhooks(self) -> None:
        """Poll the webhooks at once, because this process has changed one."""
        if self.webhooks is not None:
            self.webhooks.poll()

    def wants_snapshots(self) -> bool:
        """Do event rows need snapshots?  The answer changes with the site's sinks."""
        theirs = self._numberer is not None and self._numberer.wants_snapshots
        return theirs or any(sink.wants_snapshots for sink in self._sinks)

    def send_sensors(self, driver: str, payload: dict[str, Any]) -> None:
        """Notify of the sensor data of a node, past the rows."""
        if self.sensor_messages is not None:
            self.sensor_messages.send(driver, payload)

    def add_reader(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` after commits, for a reader of rows without a cursor."""
        self._readers.append(wake)

    def remove_reader(self, wake: Callable[[], None]) -> None:
        self._readers.remove(wake)

    def stop(self) -> None:
        """End the threads; events that were not delivered are delivered after the next start."""
        if self._numberer is not None:
            self._numberer.stop()
        if self.webhooks is not None:
            self.webhooks.stop()
        for sink_worker in self.sink_workers:
            sink_worker.stop()
        if self.sensor_messages is not None:
            self.sensor_messages.close()
        self.live.stop()
        self.trimmer.stop()
