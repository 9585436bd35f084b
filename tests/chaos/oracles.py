"""What is looked at from outside while processes die: rows as they change, and what was told.

``watch_rows`` lets PostgreSQL itself note who changed a node that somebody else had reserved.
``Listener`` hears every notification on the broker.  ``StuckNodes`` looks for nodes on which
nothing happens although something should.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import kombu
import sqlalchemy as sa

from bloomery.conductor import states
from bloomery.db import events
from bloomery.db.tables import EVENTS, NODES, STEP_RUNS
from bloomery.model.step import OPEN_RUNS
from bloomery.notifications import payloads
from tests.chaos.site import CHECK_S, TIMEOUT_S, Site, opened
from tests.kit import rpc

_CHANGED: Final = (  # what nobody but the holder of a node may change
    "provision_state", "target_provision_state", "power_state", "target_power_state", "last_error",
)  # fmt: skip
_NOTES: Final = f"""
CREATE TABLE complaints (text text);
CREATE FUNCTION complain() RETURNS trigger AS $$
DECLARE
  writer text := current_setting('application_name');
  is_changed boolean := ({", ".join(f"OLD.{name}" for name in _CHANGED)})
    IS DISTINCT FROM ({", ".join(f"NEW.{name}" for name in _CHANGED)});
  is_reserved boolean := NEW.reservation IS DISTINCT FROM OLD.reservation
    AND NEW.reservation IS NOT NULL;
BEGIN
  IF (OLD.reservation <> writer AND is_changed)
    OR (is_reserved AND (OLD.reservation IS NOT NULL OR NEW.reservation <> writer))
    OR NEW.lock_generation < OLD.lock_generation + is_reserved::int
  THEN
    INSERT INTO complaints VALUES (
      format('%s wrote %s over %s', writer, row_to_json(NEW), row_to_json(OLD)));
  END IF;
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER complain AFTER UPDATE ON nodes FOR EACH ROW EXECUTE FUNCTION complain();
"""
_SLOW_S: Final = 45.0  # that a busy machine may take beyond what is promised


def watch_rows(site: Site) -> None:
    """From now on note who writes to a node that another one holds."""
    engine = sa.create_engine(site.url)
    with engine.begin() as conn:
        conn.exec_driver_sql(_NOTES)
    engine.dispose()


def complaints(site: Site) -> list[str]:
    return [row["text"] for row in site.rows(sa.text("SELECT text FROM complaints"))]


class StuckNodes:
    """Looks every second; ``longest_s``: how long a node that is busy stood still at most."""

    LIMIT_S: Final = TIMEOUT_S + CHECK_S + _SLOW_S

    def __init__(self, site: Site) -> None:
        self._site = site
        self._seen: dict[str, tuple[Any, float]] = {}
        self.longest_s = 0.0
        self.faults: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look until the end of the block."""
        ends = threading.Event()
        thread = threading.Thread(target=self._run, args=(ends,))
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _run(self, ends: threading.Event) -> None:
        with opened(self._site.url) as database:
            while not ends.wait(1.0):
                with database.read() as conn:
                    nodes = list(conn.execute(_BUSY).mappings())
                self._look(nodes, time.monotonic())

    def _look(self, nodes: list[Any], now: float) -> None:
        self._seen = {row["uuid"]: self._seen.get(row["uuid"], (None, now)) for row in nodes}
        for row in nodes:
            before, since = self._seen[row["uuid"]]
            if before != dict(row):
                self._seen[row["uuid"]] = dict(row), now
                continue
            self.longest_s = max(self.longest_s, now - since)
            if now - since > self.LIMIT_S:
                self.faults.append(f"nothing happened for {now - since:.0f} s: {dict(row)}")
                self._seen[row["uuid"]] = dict(row), now


_BUSY: Final = sa.select(
    NODES.c.uuid, NODES.c.reservation, NODES.c.lock_generation, NODES.c.provision_state,
    sa.select(sa.func.string_agg(STEP_RUNS.c.step + STEP_RUNS.c.state, ","))
    .where(STEP_RUNS.c.node_uuid == NODES.c.uuid, STEP_RUNS.c.state.in_(OPEN_RUNS))
    .scalar_subquery().label("steps"),
).where(sa.or_(
    NODES.c.reservation.is_not(None),
    NODES.c.provision_state.in_([state.value for state in states.UNSTABLE_STATES]),
))  # fmt: skip


class Listener:
    """Takes the notifications of a site from the broker, in the order in which they come."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.messages: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        connection = kombu.Connection(rpc.amqp_url())
        channel = connection.channel()
        # As oslo.messaging declares it; one queue for all levels keeps their order.
        channel.exchange_declare("ironic", "topic", durable=False, auto_delete=False)
        queue = channel.queue_declare(exclusive=True).queue
        for level in ("info", "error", "warning"):
            channel.queue_bind(queue, "ironic", f"{self._site.topic}.{level}")
        channel.basic_consume(queue, no_ack=True, callback=self._hear)
        ends = threading.Event()
        thread = threading.Thread(target=self._run, args=(connection, ends), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()
            for level in ("info", "error", "warning"):  # made by who told, read by nobody
                channel.queue_delete(f"{self._site.topic}.{level}")
            connection.close()

    def _run(self, connection: kombu.Connection, ends: threading.Event) -> None:
        while not ends.is_set():
            with contextlib.suppress(TimeoutError):
                connection.drain_events(timeout=0.2)

    def _hear(self, message: Any) -> None:
        body = json.loads(message.body)
        self.messages.append(json.loads(body["oslo.message"]))

    # ------------------------------------------------------------------------------ judgement

    def untold(self) -> list[str]:
        """Return what happened and was never told."""
        heard = {message["message_id"] for message in self.messages}
        return [
            f"{event.event_type} of {event.object_uuid}"
            for event in self._events() if event.message_id not in heard
        ]  # fmt: skip

    def _events(self) -> list[events.Stored]:
        with opened(self._site.url) as database, database.read() as conn:
            count = conn.execute(sa.select(sa.func.count()).select_from(EVENTS)).scalar_one()
            stored = events.list_after(conn, 0, count)
        return [each for each in stored if payloads.find(each.object, each.action) is not None]

    def disorder(self) -> list[str]:
        """Return what was told before something that had come earlier; repetitions aside."""
        events_by_id = {event.message_id: event for event in self._events()}
        last: dict[str, int] = defaultdict(int)
        state: dict[str, str] = {}
        faults, heard = [], set()
        for message in self.messages:
            event = events_by_id.get(message["message_id"])
            if event is None or event.message_id in heard:
                continue
            heard.add(event.message_id)
            if event.id < last[event.object_uuid]:
                faults.append(f"event {event.id} was told after {last[event.object_uuid]}")
            last[event.object_uuid] = event.id
            if event.action == "provision_set":
                data = message["payload"]["ironic_object.data"]
                before = state.get(event.object_uuid, data["previous_provision_state"])
                if data["previous_provision_state"] != before:
                    faults.append(f"{event.object_uuid} was told to be {before}, then {data}")
                state[event.object_uuid] = data["provision_state"]
        return faults
