"""Queries on webhooks: their settings, and the results of deliveries."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, rows
from bloomery.db.tables import WEBHOOKS
from bloomery.model.webhook import State, Webhook, sink_of

_T = WEBHOOKS.c
_COLUMNS = [_T[field.name] for field in dataclasses.fields(Webhook)]


def list_all(conn: sa.Connection) -> list[Webhook]:
    """Return all webhooks, oldest first."""
    query = sa.select(*_COLUMNS).order_by(_T.id)
    return [Webhook(**row) for row in conn.execute(query).mappings()]


def list_parked_sinks(conn: sa.Connection) -> set[str]:
    """Return the sinks of parked webhooks, which get no events and keep none."""
    return {each.sink for each in list_all(conn) if each.state == State.PARKED}


def get(conn: sa.Connection, uuid: str) -> Webhook:
    row = conn.execute(sa.select(*_COLUMNS).where(_T.uuid == uuid)).mappings().one_or_none()
    if row is None:
        raise errors.WebhookNotFound(webhook=uuid)
    return Webhook(**row)


def insert(conn: sa.Connection, webhook: Webhook, *, most: int) -> None:
    """Insert a webhook, which gets events from now on.  Raises TooManyWebhooks."""
    if conn.execute(sa.select(sa.func.count()).select_from(WEBHOOKS)).scalar_one() >= most:
        raise errors.TooManyWebhooks(most=most)
    conn.execute(sa.insert(WEBHOOKS), dataclasses.asdict(webhook) | {"created_at": rows.now()})
    event_cursors.add_missing(conn, [webhook.sink])


def update(conn: sa.Connection, uuid: str, changes: Mapping[str, Any]) -> None:
    """Change a webhook; activation resets its failures."""
    if changes.get("state") == State.ACTIVE:
        changes = {**changes, "failures": 0, "last_error": None}
    changed = sa.update(WEBHOOKS).where(_T.uuid == uuid).values(**changes, updated_at=rows.now())
    if not conn.execute(changed).rowcount:
        raise errors.WebhookNotFound(webhook=uuid)


def delete(conn: sa.Connection, uuid: str) -> None:
    """Delete a webhook and its cursor.  Raises WebhookNotFound."""
    if not conn.execute(sa.delete(WEBHOOKS).where(_T.uuid == uuid)).rowcount:
        raise errors.WebhookNotFound(webhook=uuid)
    event_cursors.delete(conn, sink_of(uuid))


def note_delivery(conn: sa.Connection, uuid: str) -> None:
    """Reset the failures after a delivery."""
    well = {"state": State.ACTIVE, "failures": 0, "last_error": None}
    mine = sa.update(WEBHOOKS).where(_T.uuid == uuid, _T.state != State.PARKED)
    conn.execute(mine.values(**well, last_delivered_at=rows.now()))


def note_failure(conn: sa.Connection, uuid: str, error: str, *, most: int) -> bool:
    """Count a failure; True for the ``most``-th, which parks the webhook."""
    count = _T.failures + 1
    state = sa.case((count >= most, str(State.PARKED)), else_=str(State.FAILING))
    mine = sa.update(WEBHOOKS).where(_T.uuid == uuid, _T.state != State.PARKED)
    if not conn.execute(mine.values(state=state, failures=count, last_error=error)).rowcount:
        return False
    return conn.execute(sa.select(_T.state).where(_T.uuid == uuid)).scalar() == State.PARKED


def park(conn: sa.Connection, uuid: str, error: str) -> bool:
    """Park a webhook until an operator activates it; False: it is parked already."""
    mine = sa.update(WEBHOOKS).where(_T.uuid == uuid, _T.state != State.PARKED)
    return bool(conn.execute(mine.values(state=State.PARKED, last_error=error)).rowcount)
