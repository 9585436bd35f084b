"""What is looked at from outside while processes die: rows as they change, and what was told.

``watch_rows`` lets the database itself note who changed a node that somebody else had reserved.
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

import amqp
import kombu
import sqlalchemy as sa
from kombu import exceptions as kombu_exceptions

from bloomery import errors
from bloomery.conductor import states
from bloomery.db import events
from bloomery.db.tables import EVENTS, NODES, STEP_RUNS
from bloomery.model.step import OPEN_RUNS
from bloomery.notifications import routes
from tests.chaos.site import CHECK_S, TIMEOUT_S, Site, opened
from tests.kit.servers import rpc
from tests.kit.waiting import wait_for

_CHANGED: Final = (  # what nobody but the holder of a node may change
    "provision_state", "target_provision_state", "power_state", "target_power_state", "last_error",
)  # fmt: skip
_COMPLAINTS: Final = "CREATE TABLE complaints (text text)"
_ON_POSTGRESQL: Final = f"""
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
      writer || ' wrote ' || row_to_json(NEW) || ' over ' || row_to_json(OLD));
  END IF;
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER complain AFTER UPDATE ON nodes FOR EACH ROW EXECUTE FUNCTION complain();
"""
_ON_MARIADB: Final = f"""
CREATE TRIGGER complain AFTER UPDATE ON nodes FOR EACH ROW BEGIN
  SET @writer = substring_index(user(), '@', 1);
  SET @is_changed = NOT ({" AND ".join(f"OLD.{name} <=> NEW.{name}" for name in _CHANGED)});
  SET @is_reserved = NOT (NEW.reservation <=> OLD.reservation) AND NEW.reservation IS NOT NULL;
  IF (OLD.reservation <> @writer AND @is_changed)
    OR (@is_reserved AND (OLD.reservation IS NOT NULL OR NEW.reservation <> @writer))
    OR NEW.lock_generation < OLD.lock_generation + @is_reserved
  THEN
    INSERT INTO complaints VALUES (concat_ws(' ', @writer, 'wrote', NEW.uuid, NEW.provision_state,
      NEW.reservation, NEW.lock_generation, 'over', OLD.provision_state, OLD.reservation));
  END IF;
END
"""
_FAILED: Final = {state.value for state in states.FAILURE_STATES}
RESTS_WITHIN_S: Final = 2 * TIMEOUT_S + 90
_SLOW_S: Final = 30.0  # that a busy machine may take beyond what is promised


def watch_rows(site: Site) -> None:
    """From now on note who writes to a node that another one holds."""
    engine = sa.create_engine(site.url)
    with engine.begin() as conn:
        conn.exec_driver_sql(_COMPLAINTS)
        is_mariadb = conn.dialect.name == "mysql"
        conn.exec_driver_sql(_ON_MARIADB if is_mariadb else _ON_POSTGRESQL)
    engine.dispose()


def complaints(site: Site) -> list[str]:
    return [row["text"] for row in site.rows(sa.text("SELECT text FROM complaints"))]


def check(site: Site, listener: Listener, *, rests_within_s: float = RESTS_WITHIN_S) -> None:
    """What holds when everybody has been left in peace for a while."""
    wait_for(lambda: not site.unrest(), "rest", timeout_s=rests_within_s, every_s=1.0)
    wait_for(lambda: not listener.untold(), "all to be told", timeout_s=60, every_s=1.0)
    for kind, faults in (
        ("orders to machines", site.witness.faults), ("writes to rows", complaints(site)),
        ("answers", site.faults), ("what was told", listener.disorder()),
    ):  # fmt: skip
        assert not faults, f"{kind}: {len(faults)} faults, such as {faults[:3]}"
    ended = {
        row["request_id"]
        for row in site.rows(sa.select(EVENTS).where(EVENTS.c.action == "provision_set"))
        if row["status"] != "start"
    }
    lost = [order for order in site.acknowledged if order.request_id not in ended]
    assert not lost, f"acknowledged, and came to no end: {lost}"
    for row in site.rows(sa.select(NODES).where(NODES.c.provision_state.in_(_FAILED))):
        assert row["last_error"], f"{row['uuid']} does not say why it failed"
    ended_early = {
        member.name: "".join(member.complaints)[-2000:]
        for member in site.members if member.process.poll() is not None
    }  # fmt: skip
    assert not ended_early, f"ended by themselves: {ended_early}"


class StuckNodes:
    """Looks every second for nodes with work to do on which nothing happens.

    Counted is what some conductor could see from beginning to end: peers count anew when they
    start, so that nobody notices a death while everybody is killed again and again.
    """

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
                with contextlib.suppress(errors.DatabaseBusy), database.read() as conn:
                    nodes = list(conn.execute(_BUSY).mappings())
                    self._look(nodes, time.monotonic())

    def _look(self, nodes: list[Any], now: float) -> None:
        run_since = [member.runs_since for member in self._site.conductors]
        watched_since = min((since for since in run_since if since is not None), default=now)
        before, self._seen = self._seen, {}
        for row in nodes:
            node, since = before.get(row["uuid"], (None, now))
            if node != dict(row):
                since = now
            stood_s = now - max(since, watched_since)
            if stood_s > self.LIMIT_S:
                self.faults.append(f"nothing happened for {stood_s:.0f} s: {dict(row)}")
                since = now
            self.longest_s = max(self.longest_s, stood_s)
            self._seen[row["uuid"]] = dict(row), since


_BUSY: Final = sa.select(
    NODES.c.uuid, NODES.c.reservation, NODES.c.lock_generation, NODES.c.provision_state,
    sa.select(sa.func.aggregate_strings(STEP_RUNS.c.step + STEP_RUNS.c.state, ","))
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
        """Hear everything that is told in the block."""
        ends, hears = threading.Event(), threading.Event()
        thread = threading.Thread(target=self._run, args=(ends, hears), daemon=True)
        thread.start()
        assert hears.wait(30), "the broker does not answer"
        try:
            yield
        finally:
            ends.set()
            thread.join()
            with kombu.Connection(rpc.amqp_url(self._site.broker)) as connection:
                for queue in (self._queue, *self._keys):  # the others are made by who tells
                    connection.default_channel.queue_delete(queue)

    @property
    def _queue(self) -> str:
        return f"{self._site.topic}.listener"

    @property
    def _keys(self) -> list[str]:
        return [f"{self._site.topic}.{level}" for level in ("info", "error", "warning")]

    def _run(self, ends: threading.Event, hears: threading.Event) -> None:
        """Listen until the end, again and again where the broker goes away."""
        while not ends.is_set():
            with (
                contextlib.suppress(OSError, amqp.AMQPError, kombu_exceptions.OperationalError),
                kombu.Connection(rpc.amqp_url(self._site.broker)) as connection,
            ):
                self._consume(connection.channel())
                hears.set()
                while not ends.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.drain_events(timeout=0.2)
            ends.wait(0.2)

    def _consume(self, channel: Any) -> None:
        """Bind one queue for all levels, which keeps their order, as oslo.messaging makes them."""
        kept = {"durable": self._site.outlives_broker, "auto_delete": False}
        channel.exchange_declare("ironic", "topic", **kept)
        channel.queue_declare(self._queue, **kept)
        for key in self._keys:
            channel.queue_bind(self._queue, "ironic", key)
        channel.basic_consume(self._queue, callback=self._hear)

    def _hear(self, message: Any) -> None:
        body = json.loads(message.body)
        self.messages.append(json.loads(body["oslo.message"]))
        message.channel.basic_ack(message.delivery_tag)

    # ------------------------------------------------------------------------------ judgement

    def untold(self) -> list[str]:
        """Return what happened and was never told."""
        heard = {message["message_id"] for message in self.messages}
        return [
            f"{event.event_type} of {event.object_uuid}"
            for event in self._events() if event.message_id not in heard
        ]  # fmt: skip

    def _events(self) -> list[events.EventRow]:
        with opened(self._site.url) as database, database.read() as conn:
            count = conn.execute(sa.select(sa.func.count()).select_from(EVENTS)).scalar_one()
            stored = events.list_after(conn, 0, count)
        return [each for each in stored if routes.find(each.object, each.action) is not None]

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
