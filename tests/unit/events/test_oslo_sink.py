from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from stevedore.extension import ExtensionManager

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.notifications import OsloMessagingNotifications
from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events import snapshots
from bloomery.events.oslo_sink import OsloSink
from bloomery.events.relay import make_relay
from bloomery.model.node import Node

UUID = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"
SHOT = snapshots.node_snapshot(Node(uuid=UUID, driver="fake-hardware"))


def configured(level: str, *drivers: str, url: str | None = None) -> Conf:
    return Conf(
        default=Default(notification_level=level),
        oslo_messaging_notifications=OsloMessagingNotifications(driver=drivers, transport_url=url),
    )


@pytest.fixture
def sent() -> Iterator[list[Any]]:
    """What oslo.messaging's ``test`` driver was given: context, message, priority, retry."""
    from oslo_messaging.notify import _impl_test

    _impl_test.reset()
    yield _impl_test.NOTIFICATIONS
    _impl_test.reset()


def stored(db: Database, number: int) -> EventRow:
    with db.read() as conn:
        [event] = events.list_after(conn, number - 1, 1)
    return event


def opened(level: str = "info", *drivers: str, url: str | None = None) -> OsloSink:
    sink = OsloSink(configured(level, *(drivers or ("test",)), url=url))
    sink.open()
    return sink


def test_the_message_is_the_reference_s(db: Database, happen, sent):
    event = stored(db, happen(snapshot=SHOT, facts={"event": "done"}))
    opened().send(event)
    [(context, message, priority, _)] = sent
    assert set(message) == {
        "message_id", "publisher_id", "event_type", "priority", "payload", "timestamp",
    }  # fmt: skip
    assert message["publisher_id"] == "ironic-conductor.bm-cond-1"
    assert message["event_type"] == "baremetal.node.provision_set.end"
    assert message["priority"] == priority == "INFO"
    assert message["timestamp"] == f"{event.created_at:%Y-%m-%d %H:%M:%S.%f}"
    assert message["payload"]["ironic_object.name"] == "NodeSetProvisionStatePayload"
    assert message["payload"]["ironic_object.data"]["event"] == "done"
    assert (context["request_id"], context["user_identity"]) == ("req-1", "- - - - -")
    assert len(context) == 18


def test_an_event_that_is_told_again_is_the_same_message(db: Database, happen, sent):
    event, sink = stored(db, happen(snapshot=SHOT)), opened()
    sink.send(event)
    sink.send(event)
    assert sent[0][1] == sent[1][1]
    sink.send(stored(db, happen(snapshot=SHOT)))
    assert sent[2][1]["message_id"] != sent[0][1]["message_id"]


@pytest.mark.parametrize(
    ("least", "told"),
    [
        ("debug", ["INFO", "ERROR"]),
        ("info", ["INFO", "ERROR"]),
        ("error", ["ERROR"]),
        ("critical", []),
    ],
)
def test_only_the_level_that_was_asked_and_above_is_sent(
    db: Database, happen, sent, least: str, told: list[str]
):
    sink = opened(least)
    for level in ("info", "error"):
        sink.send(stored(db, happen(snapshot=SHOT, level=level)))
    assert [priority for _, _, priority, _ in sent] == told


def test_an_event_without_a_snapshot_or_a_payload_is_passed_over(db: Database, happen, sent):
    sink = opened()
    sink.send(stored(db, happen()))
    sink.send(stored(db, happen(action="step", snapshot=SHOT)))
    assert sent == []


def test_an_object_that_does_not_fit_is_logged_and_passed_over(db: Database, happen, sent, caplog):
    caplog.set_level(logging.WARNING)
    opened().send(stored(db, happen(snapshot=SHOT | {"extra": 7})))
    assert sent == []
    assert "provision_set" in caplog.text


def test_the_log_driver_writes_under_the_name_of_the_event(db: Database, happen, caplog):
    caplog.set_level(logging.INFO)
    opened("info", "log").send(stored(db, happen(snapshot=SHOT)))
    [record] = caplog.records
    assert record.name == "oslo.messaging.notification.baremetal.node.provision_set.end"


def test_every_driver_that_is_named_is_told(db: Database, happen, sent, caplog):
    caplog.set_level(logging.INFO)
    opened("info", "test", "log").send(stored(db, happen(snapshot=SHOT)))
    assert len(sent) == len(caplog.records) == 1


def test_a_driver_that_is_not_there_is_named():
    with pytest.raises(errors.CannotStart, match="pigeon"):
        opened("info", "pigeon")


PIGEONS = """
from oslo_config import cfg
from oslo_messaging.notify import notifier

OPTIONS = [cfg.StrOpt("location", required={required})]

{register}

class Driver(notifier.Driver):
    def __init__(self, conf, topics, transport):
        super().__init__(conf, topics, transport)
        self.location = conf.oslo_messaging_notifications.location
        {init}

    def notify(self, context, message, priority, retry):
        with open(self.location, "w") as file:
            file.write(message["event_type"])
"""
BESIDE = """
def register_opts(conf):
    conf.register_opts(OPTIONS, group="oslo_messaging_notifications")
"""
LISTED = """
def list_opts():
    return [("oslo_messaging_notifications", OPTIONS)]
"""


@pytest.mark.parametrize(
    ("register", "init", "location", "words"),
    [
        (BESIDE, "", True, None),
        (LISTED, "", True, None),
        (BESIDE, "", False, "location"),
        (BESIDE, 'raise OSError("the loft is locked")', True, "the loft is locked"),
        ("nonsense", "", True, "nonsense"),
    ],
    ids=["beside", "listed", "without a value", "does not load", "broken"],
)
def test_drivers_of_other_packages_have_their_options_and_are_tried_at_start(
    db: Database, happen, tmp_path, monkeypatch, register, init, location, words
):
    name = f"pigeons_{abs(hash((register, init, location)))}"
    code = PIGEONS.format(required=True, register=register, init=init or "pass")
    (tmp_path / f"{name}.py").write_text(code)
    info = tmp_path / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    listed = f"[oslo.config.opts]\npigeons = {name}:list_opts\n" if register == LISTED else ""
    (info / "entry_points.txt").write_text(
        f"[oslo.messaging.notify.drivers]\n{name} = {name}:Driver\n{listed}"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})
    file = tmp_path / "bloomery.conf"
    value = f"location = {tmp_path / 'note'}\n" if location else ""
    file.write_text(f"[oslo_messaging_notifications]\n{value}")
    conf = configured("info", name, url="fake:///")
    relay = make_relay(conf, db, [str(file)])
    if words is not None:
        with pytest.raises(errors.CannotStart, match=words):
            relay.start()
        return
    sink = OsloSink(conf, [str(file)])
    sink.open()
    sink.send(stored(db, happen(snapshot=SHOT)))
    assert (tmp_path / "note").read_text() == "baremetal.node.provision_set.end"


def test_messages_of_a_broker_go_to_a_queue_per_topic_and_level(db: Database, happen):
    sink = opened("info", "messagingv2", url="fake:///")
    sink.send(stored(db, happen(snapshot=SHOT, level="error")))
    exchanges = sink._transport._transport._driver._exchange_manager._exchanges
    topics = {topic for topic, _ in exchanges["ironic"]._topic_queues}
    assert topics == {"ironic_versioned_notifications.error"}


def test_a_delivery_that_fails_is_not_lost_in_a_driver_s_log(
    db: Database, happen, monkeypatch, caplog
):
    sink = opened("info", "messagingv2", url="fake:///")
    broker = sink._transport._transport._driver

    def refuse(*args: object, **more: object) -> None:
        raise ConnectionRefusedError("the broker is away")

    monkeypatch.setattr(broker, "send_notification", refuse)
    event = stored(db, happen(snapshot=SHOT))
    with pytest.raises(ConnectionRefusedError):
        sink.send(event)
    monkeypatch.undo()
    sink.send(event)


def test_nothing_of_oslo_messaging_is_loaded_while_nobody_wants_versioned_notifications():
    program = (
        "import sys, bloomery.cmd, bloomery.conductor.lifecycle, bloomery.events.relay as relay\n"
        "from bloomery.conf import Conf\n"
        "from bloomery.db.engine import Database\n"
        "relay.make_relay(Conf(), Database('sqlite://'))\n"
        "heavy = ('oslo_messaging', 'oslo_versionedobjects', 'oslo_service', 'eventlet.')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"
