"""oslo.messaging's notifier, which raises failed deliveries.

The import loads oslo.messaging.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport

from bloomery import errors


class _Transport(NotificationTransport):
    """Store the error that a messaging driver swallows."""

    fault: Exception | None = None

    def _send_notification(self, *args: Any, **more: Any) -> None:
        try:
            super()._send_notification(*args, **more)
        except Exception as exc:
            self.fault = exc
            raise


class _Notifier(oslo_messaging.Notifier):
    """Load the drivers; each gets the message unchanged."""

    def names(self) -> set[str]:
        return set(self._driver_mgr.names())

    def hand_over(self, context: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        for extension in self._driver_mgr:
            extension.obj.notify(context, dict(message), message["priority"], self.retry)


class OsloTransport:
    """One transport and its drivers; ``send`` raises the errors of deliveries."""

    def __init__(
        self,
        source: cfg.ConfigOpts,
        *,
        url: str | None,
        exchange: str,
        drivers: list[str],
        topics: list[str],
    ) -> None:
        """``source`` holds oslo.messaging's own options.  Raises CannotStart."""
        # Failed deliveries are raised below; the driver would log the whole message as well.
        logging.getLogger("oslo_messaging.notify.messaging").setLevel(logging.CRITICAL)
        oslo_messaging.set_transport_defaults(exchange)
        plain = oslo_messaging.get_notification_transport(source, url)
        source.set_override("driver", drivers, group="oslo_messaging_notifications")
        # oslo.messaging has no public name
        self._transport = _Transport(plain._driver)  # noqa: SLF001
        # One attempt: the relay retries, so that an absent broker does not block a stop.
        self._notifier = _Notifier(self._transport, retry=0, topics=topics)
        if missing := set(drivers) - self._notifier.names():
            raise errors.CannotStart(
                reason=f"cannot send notifications: there is no driver {', '.join(sorted(missing))}"
                "; see driver in [oslo_messaging_notifications]",
            )

    def send(self, context: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self._transport.fault = None
        self._notifier.hand_over(context, message)
        if self._transport.fault is not None:
            raise self._transport.fault

    def close(self) -> None:
        self._transport.cleanup()
