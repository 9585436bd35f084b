"""Webhooks that lag: parked only where their backlog does not shrink."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery.db import rows, webhooks
from bloomery.db.engine import Database
from bloomery.db.tables import EVENT_CURSORS, EVENTS
from bloomery.events.trimmer import CATCH_UP_S, Trimmer
from bloomery.model.webhook import State, Webhook
from tests.kit.clock import HandClock

UUID = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"
HOOK = Webhook(uuid=UUID, url="http://example.org/", secret="sealed")
Happen = Callable[[], int]


@pytest.fixture
def backlog(db: Database, happen: Happen) -> list[int]:
    """Return the numbers of old events that a webhook has not taken."""
    db.transact(lambda conn: webhooks.insert(conn, HOOK, most=1))
    numbers = [happen() for _ in range(4)]
    old = rows.now() - timedelta(hours=2)
    db.transact(lambda conn: conn.execute(sa.update(EVENTS).values(created_at=old)))
    return numbers


def take(db: Database, number: int) -> None:
    """Let the webhook take all up to an event."""
    db.transact(lambda conn: conn.execute(sa.update(EVENT_CURSORS).values(last_id=number)))


def is_parked(db: Database) -> bool:
    with db.read() as conn:
        return webhooks.get(conn, UUID).state == State.PARKED


def test_a_webhook_that_catches_up_after_an_outage_is_not_parked(db: Database, backlog: list[int]):
    clock = HandClock()
    trimmer = Trimmer(db, [], keep_hours=1, clock=clock)
    for number in backlog[:-1]:
        trimmer.trim()
        take(db, number)
        clock.turn(CATCH_UP_S - 1)
        trimmer.trim()
        assert not is_parked(db)
    clock.turn(CATCH_UP_S)
    assert trimmer.trim() == 1, "the last event"
    assert is_parked(db)


def test_a_webhook_that_falls_further_behind_is_parked(
    db: Database, happen: Happen, backlog: list[int]
):
    clock = HandClock()
    trimmer = Trimmer(db, [], keep_hours=1, clock=clock)
    trimmer.trim()
    for number in backlog[:2]:
        happen()
        take(db, number)
        clock.turn(CATCH_UP_S / 2)
        trimmer.trim()
    assert is_parked(db)


def test_a_webhook_made_active_again_has_time_anew(db: Database, backlog: list[int]):
    clock = HandClock()
    trimmer = Trimmer(db, ["a sink that has not begun"], keep_hours=1, clock=clock)
    for _ in range(2):
        trimmer.trim()
        assert not is_parked(db)
        clock.turn(CATCH_UP_S)
        trimmer.trim()
        assert is_parked(db)
        db.transact(lambda conn: webhooks.update(conn, UUID, {"state": State.ACTIVE}))
