"""Notifications through oslo.messaging's drivers: the sink of events, and sensor data.

The drivers log failed deliveries and continue; here a failed delivery is raised, and the relay
repeats it.  The message of an event and its id are the same on each delivery, so that consumers
detect repetitions.  oslo.messaging is imported when the first event is sent; the process has chosen
threads for oslo.service by then (``cmd.threads``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.db.events import EventRow
from bloomery.notifications import routes

LOG = logging.getLogger(__name__)

EXCHANGE: Final = "ironic"
LEVELS: Final = ("debug", "info", "warning", "error", "critical")  # ascending
_NEEDS_NO_BROKER: Final = frozenset({"log", "noop", "test"})


class OsloSink:
    """Send events of notification_level and above, and those of stacks and resources."""

    name = "oslo"

    def __init__(self, conf: Conf, config_files: Sequence[str] = ()) -> None:
        """``config_files``: where oslo.messaging finds its own options."""
        self._conf = conf
        self._config_files = config_files
        self._least = conf.default.notification_level
        self.wants_snapshots = self._least is not None  # versioned notifications need them
        self._transport: Any = None
        self._of_stacks: Any = None

    def open(self) -> None:
        """Load the drivers; the first message connects to the broker."""
        conf = self._conf
        if self._transport is None and self._least is not None:
            topics = conf.default.versioned_notifications_topics
            self._transport = open_transport(conf, self._config_files, EXCHANGE, topics)
        if self._of_stacks is None:
            topics = conf.oslo_messaging_notifications.topics
            self._of_stacks = open_transport(
                conf, self._config_files, routes.STACK_EXCHANGE, topics
            )

    def send(self, event: EventRow) -> None:
        if event.object in routes.STACK_OBJECTS:
            # Heat's notification of a stack, or ours of its resource
            level = event.level
            if level != "error":
                level = self._conf.engine.default_notification_level
            publisher = event.publisher or f"orchestration.{self._conf.default.host}"
            payload = routes.stack_payload(event.object_uuid, event.facts)
            message = _envelope(event, publisher, level, payload)
            self._of_stacks.send(request_context(event.request_id), message)
        elif self._least is not None and passes(event.level, self._least):
            versioned = _versioned_payload(event)
            if versioned is not None:
                message = _envelope(event, event.publisher, event.level, versioned)
                self._transport.send(request_context(event.request_id), message)

    def close(self) -> None:
        for transport in (self._transport, self._of_stacks):
            if transport is not None:
                transport.close()
        self._transport = self._of_stacks = None


def passes(level: str, least: str) -> bool:
    """Is a message of ``level`` sent at the level ``least``?"""
    return LEVELS.index(level) >= LEVELS.index(least)


def _versioned_payload(event: EventRow) -> dict[str, Any] | None:
    """Return the payload of an event, or None where it has none, or an invalid one."""
    kind, snapshot = routes.find(event.object, event.action), event.snapshot
    if kind is None or snapshot is None:
        return None
    from bloomery.notifications import messages

    try:
        return messages.payload(kind, snapshot, event.facts)
    except (TypeError, ValueError) as exc:
        LOG.warning("cannot tell of event %d, %s: %s", event.id, event.event_type, exc)
        return None


def _envelope(
    event: EventRow, publisher: str | None, level: str, payload: dict[str, Any]
) -> dict[str, Any]:
    return {
        "message_id": event.message_id,
        "publisher_id": publisher,
        "event_type": event.event_type,
        "priority": level.upper(),
        "payload": payload,
        "timestamp": f"{event.created_at:%Y-%m-%d %H:%M:%S.%f}",
    }


def request_context(request_id: str | None) -> dict[str, Any]:
    """Return the keys of a request context for consumers on AMQP, with the request's id."""
    return {
        "user": None,
        "project_id": None,
        "system_scope": None,
        "project": None,
        "domain": None,
        "user_domain": None,
        "project_domain": None,
        "is_admin": False,
        "read_only": False,
        "show_deleted": False,
        "auth_token": None,
        "request_id": request_id,
        "global_request_id": None,
        "resource_uuid": None,
        "roles": [],
        "user_identity": "- - - - -",
        "is_admin_project": True,
        "auth_token_info": None,
    }


def open_transport(
    conf: Conf, config_files: Sequence[str], exchange: str, topics: Sequence[str]
) -> Any:
    from oslo_config import cfg

    from bloomery.notifications import oslo_transport

    options = conf.oslo_messaging_notifications
    source = cfg.ConfigOpts()
    oslo_transport.register_driver_options(source, options.driver)
    try:
        source(args=[], project="bloomery", default_config_files=list(config_files))
    except cfg.Error as exc:
        raise errors.CannotStart(reason=f"cannot send notifications: {exc}") from exc
    url = options.transport_url
    if url is None and set(options.driver) <= _NEEDS_NO_BROKER:
        url = "fake://"
    return oslo_transport.OsloTransport(
        source,
        url=url,
        exchange=exchange,
        drivers=list(options.driver),
        topics=list(topics),
    )


class SensorMessages:
    """Notifications of sensor data, as Ironic sends them: unversioned, and sent once.

    They pass no event rows, because the next reading replaces a lost one.  They go to
    [oslo_messaging_notifications]topics; the first message loads oslo.messaging.
    """

    def __init__(self, conf: Conf, config_files: Sequence[str] = ()) -> None:
        self._conf, self._config_files = conf, config_files
        self._one_at_a_time = threading.Lock()
        self._transport: Any = None

    def send(self, driver: str, payload: Mapping[str, Any]) -> None:
        """Send the sensor data of a node; a failed delivery is logged."""
        message = {
            "message_id": payload["message_id"],
            "publisher_id": f"ironic-conductor.{self._conf.default.host}",
            "event_type": f"hardware.{driver}.metrics",
            "priority": "INFO",
            "payload": dict(payload),
            "timestamp": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}",
        }
        try:
            with self._one_at_a_time:
                if self._transport is None:
                    topics = self._conf.oslo_messaging_notifications.topics
                    self._transport = open_transport(
                        self._conf, self._config_files, EXCHANGE, topics
                    )
                self._transport.send(request_context(None), message)
        except Exception as exc:  # noqa: BLE001  any driver of oslo.messaging may fail in any way
            LOG.warning("cannot send sensor data: %s", secrets.brief(exc))

    def close(self) -> None:
        with self._one_at_a_time:
            if self._transport is not None:
                self._transport.close()
                self._transport = None
