"""The relay: from event rows to sinks, each carried by a thread of its own.

    relay = relay.make_relay(conf, db)
    runtime = lifecycle.build(conf, db, sealer, on_events_written=relay.wake)
    relay.start()                 # before anybody writes: a new sink begins at the current end
    ...
    relay.stop()                  # after the last write

Without a sink nothing is read; old rows are trimmed all the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from bloomery.conf import Conf
from bloomery.db import event_cursors
from bloomery.db.engine import Database
from bloomery.events.oslo_sink import OsloSink
from bloomery.events.sink_worker import Pace, SinkWorker
from bloomery.events.sinks import LogSink, Sink
from bloomery.events.trimmer import Trimmer


def needs_oslo(conf: Conf) -> bool:
    """Will oslo.messaging be loaded?  Then choose its threads first (cmd.threads)."""
    return bool(conf.oslo_messaging_notifications.driver)


def needs_snapshots(conf: Conf) -> bool:
    """Do event rows have to carry whole objects?  Only versioned notifications want that."""
    return conf.default.notification_level is not None and needs_oslo(conf)


def sinks_of(conf: Conf, config_files: Sequence[str] = ()) -> list[Sink]:
    """Return the sinks that are configured; nothing is loaded or opened yet."""
    sinks: list[Sink] = []
    if conf.events.log:
        sinks.append(LogSink())
    if needs_oslo(conf):
        sinks.append(OsloSink(conf, config_files))
    return sinks


def make_relay(conf: Conf, db: Database, config_files: Sequence[str] = ()) -> Relay:
    """``config_files``: those of the process, for the options that are oslo.messaging's own."""
    return Relay(
        db,
        sinks_of(conf, config_files),
        holder=f"{conf.default.host}:{os.getpid()}",
        keep_hours=conf.events.keep_hours,
    )


class Relay:
    """Owns the threads: one for each sink, and one that trims."""

    def __init__(
        self,
        db: Database,
        sinks: Sequence[Sink],
        *,
        holder: str,
        keep_hours: float,
        pace: Pace | None = None,
    ) -> None:
        self._db = db
        self._names = [sink.name for sink in sinks]
        self.sink_workers = [SinkWorker(db, sink, holder=holder, pace=pace) for sink in sinks]
        self._readers = [sink_worker.wake for sink_worker in self.sink_workers]
        self.trimmer = Trimmer(db, self._names, keep_hours)

    def start(self) -> None:
        """Note where new sinks begin, start the threads, and return."""
        if self._names:
            self._db.transact(lambda conn: event_cursors.add_missing(conn, self._names))
        for sink_worker in self.sink_workers:
            sink_worker.start()
        self.trimmer.start()

    def wake(self) -> None:
        """There may be something new; called after each commit that wrote event rows."""
        for wake in self._readers:
            wake()

    def add_reader(self, wake: Callable[[], None]) -> None:
        """Have somebody else told of commits, who reads rows without a cursor."""
        self._readers.append(wake)

    def stop(self) -> None:
        """End the threads; what was not told is told after the next start."""
        for sink_worker in self.sink_workers:
            sink_worker.stop()
        self.trimmer.stop()
