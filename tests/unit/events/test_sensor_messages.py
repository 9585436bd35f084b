from __future__ import annotations

import dataclasses

from bloomery.conf import Conf
from bloomery.conf.notifications import OsloMessagingNotifications
from bloomery.events import oslo_sink, relay
from bloomery.events.oslo_sink import SensorMessages

PAYLOAD = {"message_id": "m-1", "node_uuid": "u-1", "payload": {"Fan": {}}}


class Transport:
    def __init__(self):
        self.sent, self.fault, self.is_closed = [], None, False

    def send(self, context, message):
        if self.fault is not None:
            raise self.fault
        self.sent.append(message)

    def close(self):
        self.is_closed = True


def messages(monkeypatch, *drivers):
    transport, topics = Transport(), []

    def opened(conf, files, exchange, names):
        topics.extend(names)
        return transport

    monkeypatch.setattr(oslo_sink, "open_transport", opened)
    options = OsloMessagingNotifications(driver=drivers)
    conf = dataclasses.replace(Conf(), oslo_messaging_notifications=options)
    return SensorMessages(conf), transport, topics


def test_a_message_goes_to_the_unversioned_topics(monkeypatch):
    sender, transport, topics = messages(monkeypatch, "messagingv2")
    sender.send("redfish", PAYLOAD)
    (message,) = transport.sent
    assert message["event_type"] == "hardware.redfish.metrics"
    assert (message["priority"], message["payload"]) == ("INFO", PAYLOAD)
    assert topics == ["notifications"]
    sender.close()
    assert transport.is_closed


def test_the_relay_sends_and_closes_where_a_driver_is_named(monkeypatch, db):
    _, transport, _ = messages(monkeypatch)
    for drivers, count in (((), 0), (("log",), 1)):
        options = OsloMessagingNotifications(driver=drivers)
        conf = dataclasses.replace(Conf(), oslo_messaging_notifications=options)
        sender = relay.make_relay(conf, db)
        sender.send_sensors("redfish", PAYLOAD)
        assert len(transport.sent) == count
    sender.sensor_messages.close()
    assert transport.is_closed


def test_a_failed_delivery_is_logged_and_forgotten(monkeypatch, caplog):
    sender, transport, _ = messages(monkeypatch, "messagingv2")
    transport.fault = OSError("no broker")
    sender.send("redfish", PAYLOAD)
    transport.fault = None
    sender.send("redfish", PAYLOAD)
    assert len(transport.sent) == 1
    assert "cannot send sensor data" in caplog.text
