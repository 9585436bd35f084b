"""How soon a webhook whose receiver refuses one POST in twenty has all events, on loopback."""

from __future__ import annotations

import base64
import http.server
import itertools
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from cryptography.fernet import Fernet

from bench import harness
from bench.harness import Line
from bloomery.conf.notifications import Events
from bloomery.db import events, schema, webhooks
from bloomery.db.engine import Database
from bloomery.events.relay import Relay
from bloomery.events.webhooks import Webhooks
from bloomery.model.webhook import Webhook
from bloomery.secrets import Sealer

EVENTS: Final = 400
OBJECTS: Final = 10
ONE_IN: Final = 20
CONF: Final = Events(webhook_allow_local=True)


class Receiver(http.server.ThreadingHTTPServer):
    """Refuses one POST in twenty with 503, and counts the others."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts = itertools.count(1)
        self.taken: set[str] = set()
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_refused = next(self.server.posts) % ONE_IN == 0
        if not is_refused:
            self.server.taken.add(self.headers["webhook-id"])
        self.send_response(503 if is_refused else 204)
        self.end_headers()

    def log_message(self, *_args: Any) -> None: ...


@contextmanager
def delivering(receiver: Receiver) -> Iterator[tuple[Database, Relay]]:
    """A new database with one webhook, and what delivers to it."""
    with harness.folder() as path:
        db = Database(f"sqlite:///{path / 'events.sqlite'}")
        schema.upgrade(db)
        sealer = Sealer(Fernet.generate_key())
        secret = sealer.seal_text(base64.b64encode(bytes(32)).decode())
        webhook = Webhook(uuid=str(uuid.uuid4()), url=receiver.url, secret=secret)
        db.transact(lambda conn: webhooks.insert(conn, webhook, most=1))
        relay = Relay(db, [], holder="here:1", keep_hours=1)
        relay.webhooks = Webhooks(db, sealer, CONF, relay, holder="here:1")
        relay.start()
        try:
            yield db, relay
        finally:
            relay.stop()
            db.close()


def measure() -> Sequence[Line]:
    line = Line(what="400 events to a webhook that refuses one in 20", unit="s", at_most=30)
    for _ in harness.rounds():
        line.add(_round())
    return [line]


def _round() -> float:
    receiver = Receiver()
    try:
        with delivering(receiver) as (db, relay):
            began_at = time.perf_counter()
            rows = [_row(number) for number in range(EVENTS)]
            db.transact(lambda conn: events.insert(conn, rows))
            relay.wake()
            harness.until(lambda: len(receiver.taken) == EVENTS, "all events", timeout_s=120)
            return time.perf_counter() - began_at
    finally:
        receiver.shutdown()
        receiver.server_close()


def _row(number: int) -> dict[str, Any]:
    node = str(uuid.UUID(int=number % OBJECTS))
    event = events.Event(object="node", object_uuid=node, action="update", status="end")
    return events.encode(event)


if __name__ == "__main__":
    harness.main(measure)
