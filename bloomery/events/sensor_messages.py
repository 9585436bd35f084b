"""Notifications of sensor data, as Ironic sends them: unversioned, and sent once.

They pass no event rows, because the next reading replaces a lost one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bloomery import secrets
from bloomery.conf import Conf
from bloomery.events import oslo_sink

LOG = logging.getLogger(__name__)


class SensorMessages:
    """Sends to [oslo_messaging_notifications]topics; the first message loads oslo.messaging."""

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
                self._open().send(oslo_sink.request_context(None), message)
        except Exception as exc:  # noqa: BLE001  any driver of oslo.messaging may fail in any way
            LOG.warning("cannot send sensor data: %s", secrets.brief(exc))

    def _open(self) -> Any:
        if self._transport is None:
            topics = self._conf.oslo_messaging_notifications.topics
            self._transport = oslo_sink.open_transport(
                self._conf, self._config_files, oslo_sink.EXCHANGE, topics
            )
        return self._transport

    def close(self) -> None:
        with self._one_at_a_time:
            if self._transport is not None:
                self._transport.close()
                self._transport = None
