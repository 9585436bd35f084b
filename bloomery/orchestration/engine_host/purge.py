"""The purge of old rows: deleted stacks, events and revisions beyond limits, unreferenced rows.

It may run at any time, in several engines at once, and may stop half-way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import sqlalchemy as sa

from bloomery.conf.engine import Engine as Options
from bloomery.db import engines, purge, revisions, rows
from bloomery.db.engine import Database

LOG = logging.getLogger(__name__)

EVERY_S: Final = 3600.0
_BATCH: Final = 50  # stacks of one transaction, so that other writers wait little
_SETTLED: Final = timedelta(days=1)  # least age of an unreferenced row


class Purge:
    """The hourly job of an engine; ``stopping`` ends it between two batches."""

    def __init__(
        self,
        db: Database,
        options: Options,
        *,
        now: Callable[[], datetime] = rows.now,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._db, self._options = db, options
        self._now, self._stopping = now, stopping

    def run(self) -> None:
        stacks, events = self.drop_stacks(), self.drop_events()
        self.drop_revisions()
        settled = self._now() - _SETTLED
        self._db.transact(lambda conn: purge.drop_templates(conn, before=settled))
        self._db.transact(lambda conn: purge.drop_credentials(conn, before=settled))
        self._db.transact(lambda conn: engines.purge(conn, before=settled))
        if stacks or events:
            LOG.info("purged %d deleted stacks and %d events", stacks, events)

    def drop_stacks(self) -> int:
        if self._options.purge_days < 0:
            return 0
        before, total = self._now() - timedelta(days=self._options.purge_days), 0
        while not self._stopping():
            with self._db.read() as conn:
                batch = purge.list_deleted(conn, before=before, at_most=_BATCH)
            if not batch:
                break
            self._db.transact(partial(purge.drop_stacks, stacks=batch))
            total += len(batch)
        return total

    def drop_events(self) -> int:
        keep, total = self._options.max_events_per_stack, 0
        if not keep:
            return 0
        most = keep + self._options.event_purge_batch_size
        with self._db.read() as conn:
            crowded = purge.list_crowded(conn, more_than=most)
        for stack in crowded:
            if self._stopping():
                break
            total += self._db.transact(partial(_cut, stack=stack, keep=keep))
        return total

    def drop_revisions(self) -> None:
        days = self._options.revision_days
        drop = partial(
            revisions.drop_old,
            keep=self._options.max_revisions_per_stack,
            before=self._now() - timedelta(days=days) if days else None,
            at_most=_BATCH,
        )
        while not self._stopping() and self._db.transact(drop) == _BATCH:
            continue


def _cut(conn: sa.Connection, stack: str, keep: int) -> int:
    gone = purge.drop_events(conn, stack, keep=keep)
    if root := purge.root_of(conn, stack):
        purge.drop_properties(conn, root)
    return gone
