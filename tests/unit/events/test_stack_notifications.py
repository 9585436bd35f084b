"""Stacks are told of as Heat does, whatever the level of versioned notifications."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.engine import Engine
from bloomery.conf.notifications import OsloMessagingNotifications
from bloomery.db import trees as rows
from bloomery.db.engine import Database
from bloomery.db.events import EventRow, insert, list_after
from bloomery.events.oslo_sink import OsloSink
from bloomery.model.stacks import Turn
from tests.kit.stacks import trees
from tests.kit.stacks.trees import ident

WEB = ident("web")


@pytest.fixture
def sent() -> Iterator[list[Any]]:
    """What oslo.messaging's ``test`` driver was given: context, message, priority, retry."""
    from oslo_messaging.notify import _impl_test

    _impl_test.reset()
    yield _impl_test.NOTIFICATIONS
    _impl_test.reset()


def stored(db: Database, status: str, **more: Any) -> EventRow:
    stack = trees.stack(user="ann", tags=("b", "a"))
    row = rows.relay_row(trees.event(status, reason="why"), stack, **more)
    db.transact(lambda conn: insert(conn, [row]))
    with db.read() as conn:
        return list_after(conn, 0, 100)[-1]


def tell(event: EventRow, **engine: Any) -> None:
    conf = Conf(
        default=Default(host="host-a"),
        engine=Engine(**engine),
        oslo_messaging_notifications=OsloMessagingNotifications(driver=("test",)),
    )
    sink = OsloSink(conf)
    sink.open()
    sink.send(event)
    sink.close()


def test_the_message_is_the_one_of_heat(db: Database, sent: list[Any]) -> None:
    tell(stored(db, "COMPLETE", publisher="orchestration.host-b"))
    [(_, message, priority, _)] = sent
    assert (message["event_type"], priority) == ("orchestration.stack.create.end", "INFO")
    assert message["publisher_id"] == "orchestration.host-b"
    assert message["payload"] == {
        "tenant_id": "p1",
        "user_id": "ann",
        "user_identity": "ann",
        "username": "ann",
        "stack_identity": f"arn:openstack:heat::p1:stacks/web/{WEB}",
        "stack_name": "web",
        "state": "CREATE_COMPLETE",
        "state_reason": "why",
        "create_at": "2026-11-22T08:30:00Z",
        "updated_at": None,
        "description": None,
        "tags": ["b", "a"],
    }


def test_the_start_is_told_by_whoever_accepted_it(db: Database, sent: list[Any]) -> None:
    tell(stored(db, "IN_PROGRESS"), default_notification_level="debug")
    [(_, message, priority, _)] = sent
    assert (message["event_type"], priority) == ("orchestration.stack.create.start", "DEBUG")
    assert message["publisher_id"] == "orchestration.host-a"


def test_a_failure_is_an_error_whatever_the_level(db: Database, sent: list[Any]) -> None:
    tell(stored(db, "FAILED"), default_notification_level="debug")
    [(_, message, priority, _)] = sent
    assert (message["event_type"], priority) == ("orchestration.stack.create.error", "ERROR")


def test_a_resource_is_told_of_with_its_stack(db: Database, sent: list[Any]) -> None:
    event = trees.event(
        "FAILED", name="server", type="OS::Heat::Value", physical_id="7", reason="why",
        stack_name="web", project="p1",
    )  # fmt: skip
    encoded = rows.encode(Turn(events=[event]), trees.SEALER, traversals={})
    db.transact(lambda conn: insert(conn, [row for _, row in encoded.relay]))
    with db.read() as conn:
        (stored_event,) = list_after(conn, 0, 100)
    tell(stored_event)
    [(_, message, priority, _)] = sent
    assert (message["event_type"], priority) == ("orchestration.resource.create.error", "ERROR")
    assert message["payload"] == {
        "tenant_id": "p1",
        "user_id": None,
        "user_identity": None,
        "username": None,
        "stack_identity": f"arn:openstack:heat::p1:stacks/web/{WEB}",
        "stack_name": "web",
        "state": "CREATE_FAILED",
        "state_reason": "why",
        "create_at": None,
        "updated_at": None,
        "description": None,
        "tags": [],
        "resource_name": "server",
        "resource_type": "OS::Heat::Value",
        "physical_resource_id": "7",
    }
