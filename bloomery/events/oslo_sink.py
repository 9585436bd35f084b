"""The sink of versioned notifications: oslo.messaging's drivers, without their deafness.

The drivers log what they cannot deliver and go on; here a failed delivery is noticed, raised,
and tried again by the relay.  The message of an event is the same each time, its id included,
so that consumers may tell a repetition.  oslo.messaging is imported when the first event is to
be sent; whoever starts the process has chosen threads for oslo.service by then
(``cmd.threads``).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any, Final

from bloomery.conf import Conf
from bloomery.db.events import Stored
from bloomery.notifications import payloads

LOG = logging.getLogger(__name__)

EXCHANGE: Final = "ironic"
LEVELS: Final = ("debug", "info", "warning", "error", "critical")  # from least to most
_NEEDS_NO_BROKER: Final = frozenset({"log", "noop", "test"})


class OsloSink:
    """Sends what passes notification_level; an event that cannot be told is logged and skipped."""

    name = "oslo"

    def __init__(self, conf: Conf, config_files: Sequence[str] = ()) -> None:
        """``config_files``: where oslo.messaging finds options of its own."""
        self._conf = conf
        self._config_files = config_files
        self._least = conf.default.notification_level or "critical"
        self._transport: Any = None

    def open(self) -> None:
        """Load the drivers; a broker is connected to when the first message leaves."""
        if self._transport is None:
            self._transport = _open(self._conf, self._config_files)

    def send(self, event: Stored) -> None:
        if not passes(event.level, self._least):
            return
        if (message := _message(event)) is not None:
            self._transport.send(_request_context(event), message)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None


def passes(level: str, least: str) -> bool:
    """Tell whether a message of ``level`` is sent where ``least`` is asked."""
    return LEVELS.index(level) >= LEVELS.index(least)


def _message(event: Stored) -> dict[str, Any] | None:
    """Return what goes on the wire; None where the event has no payload, or none that fits."""
    kind, snapshot = payloads.find(event.object, event.action), event.snapshot
    if kind is None or snapshot is None:
        return None
    from bloomery.notifications import messages

    try:
        payload = messages.payload(kind, snapshot, event.facts)
    except (TypeError, ValueError) as exc:
        LOG.warning("cannot tell of event %d, %s: %s", event.id, event.event_type, exc)
        return None
    same_each_time = uuid.uuid5(uuid.UUID(event.object_uuid), f"{event.id} {event.created_at}")
    return {
        "message_id": str(same_each_time),
        "publisher_id": event.publisher,
        "event_type": event.event_type,
        "priority": event.level.upper(),
        "payload": payload,
        "timestamp": f"{event.created_at:%Y-%m-%d %H:%M:%S.%f}",
    }


def _request_context(event: Stored) -> dict[str, Any]:
    """Return the keys of a request context that consumers on AMQP know, with the request's id."""
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
        "request_id": event.request_id,
        "global_request_id": None,
        "resource_uuid": None,
        "roles": [],
        "user_identity": "- - - - -",
        "is_admin_project": True,
        "auth_token_info": None,
    }


def _open(conf: Conf, config_files: Sequence[str]) -> Any:
    from oslo_config import cfg

    from bloomery.notifications import oslo_transport

    options = conf.oslo_messaging_notifications
    source = cfg.ConfigOpts()
    source(args=[], project="bloomery", default_config_files=list(config_files))
    url = options.transport_url
    if url is None and set(options.driver) <= _NEEDS_NO_BROKER:
        url = "fake://"
    return oslo_transport.OsloTransport(
        source,
        url=url,
        exchange=EXCHANGE,
        drivers=list(options.driver),
        topics=list(conf.default.versioned_notifications_topics),
    )
