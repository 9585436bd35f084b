"""Which engines are alive: the heartbeat of this engine, and the observed ones of the others.

A live engine increments the counter in its row.  An engine is dead if it has retired, or if its
counter did not change for ``engine_life_check_timeout`` on the observer's monotonic clock.  An
engine that cannot write its own heartbeat stops acting on stacks one heartbeat interval before that
time-out, because another engine may take them over then.

A process that is alone on its database regards every other engine as dead.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.engine import Engine as Options
from bloomery.db import engines
from bloomery.db.engine import Database

LOG = logging.getLogger(__name__)

BINARY: Final = "bloomery-engine"
TOPIC: Final = "engine"
_LEAST_BEATS: Final = 4  # within engine_life_check_timeout


def check(options: Options) -> None:
    """Raise CannotStart for intervals by which a live engine could count as dead."""
    least = _LEAST_BEATS * options.engine_heartbeat_interval
    if options.engine_life_check_timeout < least:
        raise errors.CannotStart(
            reason="cannot use [engine]engine_life_check_timeout = "
            f"{options.engine_life_check_timeout}: a living engine might be taken for dead; set "
            f"it to at least {least}, which is {_LEAST_BEATS} times engine_heartbeat_interval "
            f"({options.engine_heartbeat_interval})",
        )


class Liveness:
    """``on_death``: an engine is gone; ``on_retired``: others have declared this engine dead.

    ``engine_id`` is new in each process, and changes before ``on_retired`` is called.
    """

    def __init__(
        self,
        db: Database,
        options: Options,
        *,
        host: str,
        alone: bool,
        on_death: Callable[[], object] = lambda: None,
        on_retired: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check(options)
        self.engine_id = str(uuid.uuid4())
        self._db, self._options, self._host, self._alone = db, options, host, alone
        self._on_death, self._on_retired, self._clock = on_death, on_retired, clock
        self._seen: dict[str, tuple[int, float]] = {}  # by id: counter, and since when
        self._renewed_at = clock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stacks-heart", daemon=True)

    @property
    def interval_s(self) -> int:
        options = self._options
        return options.periodic_interval if self._alone else options.engine_heartbeat_interval

    def register(self) -> None:
        self._db.transact(
            lambda conn: engines.register(
                conn,
                engine_id=self.engine_id,
                host=self._host,
                hostname=socket.gethostname(),
                binary=BINARY,
                topic=TOPIC,
                report_interval=self.interval_s,
                alone=self._alone,
            )
        )
        self._renewed_at = self._clock()
        self.observe()

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat and retire, so that another engine takes the stacks over at once."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        try:
            self._retire(self.engine_id)
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("engine %s: cannot retire while stopping: %s", self.engine_id, exc)

    # ------------------------------------------------------------------------- questions

    def may_act(self) -> bool:
        options = self._options
        lasts_s = options.engine_life_check_timeout - options.engine_heartbeat_interval
        return self._alone or self._clock() - self._renewed_at < lasts_s

    def is_live(self, engine_id: str) -> bool:
        if self._alone or engine_id == self.engine_id:
            return engine_id == self.engine_id
        if engine_id not in self._seen:
            self.observe()
        return engine_id in self.live_ids()

    def live_ids(self) -> list[str]:
        """Return the IDs of the engines that were seen alive; this engine is the first."""
        now, timeout_s = self._clock(), self._options.engine_life_check_timeout
        seen = list(self._seen.items())
        others = [ident for ident, (_, since) in seen if now - since < timeout_s]
        return [self.engine_id, *(ident for ident in others if ident != self.engine_id)]

    # ------------------------------------------------------------------------- the heart

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_s):
            try:
                self.beat()
                if not self._alone:
                    self.observe()
            except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
                LOG.warning("engine %s: no heartbeat: %s", self.engine_id, errors.brief(exc))

    def beat(self) -> None:
        if self._db.transact(lambda conn: engines.beat(conn, self.engine_id)):
            self._renewed_at = self._clock()
            return
        LOG.warning("engine %s was taken for dead, and begins anew", self.engine_id)
        self.engine_id = str(uuid.uuid4())
        self._on_retired()
        self.register()

    def observe(self) -> None:
        with self._db.read() as conn:
            rows = engines.list_live(conn)
        now, timeout_s = self._clock(), self._options.engine_life_check_timeout
        before, seen = self._seen, {}
        for row in rows:
            counter, since = before.get(row.engine_id, (None, now))
            seen[row.engine_id] = (row.heartbeat, since if counter == row.heartbeat else now)
        dead = [
            ident for ident, (_, since) in seen.items()
            if ident != self.engine_id and now - since >= timeout_s
        ]  # fmt: skip
        self._seen = {ident: what for ident, what in seen.items() if ident not in dead}
        for engine_id in dead:
            if self._retire(engine_id, heartbeat=seen[engine_id][0]):
                LOG.warning("engine %s is dead: its stacks are taken over", engine_id)
        if before.keys() - self._seen.keys():
            self._on_death()

    def _retire(self, engine_id: str, *, heartbeat: int | None = None) -> bool:
        return self._db.transact(
            lambda conn: engines.unregister(conn, engine_id, heartbeat=heartbeat)
        )
