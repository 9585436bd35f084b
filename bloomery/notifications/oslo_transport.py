"""oslo.messaging's notifier, which raises failed deliveries.

The import loads oslo.messaging.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport

from bloomery import errors, secrets

_DRIVERS: Final = "oslo.messaging.notify.drivers"
_OWN_PACKAGE: Final = "oslo.messaging"  # registers its own options


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
        try:
            transport = oslo_messaging.get_notification_transport(source, url)
        except oslo_messaging.MessagingException as exc:
            raise errors.CannotStart(
                reason=f"cannot send notifications: {secrets.brief(exc)}"
            ) from exc
        source.set_override("driver", drivers, group="oslo_messaging_notifications")
        # oslo.messaging has no public name
        self._transport = _Transport(transport._driver)  # noqa: SLF001
        # One attempt: the relay retries, so that an absent broker does not block a stop.
        self._notifier = _Notifier(self._transport, retry=0, topics=topics)
        if missing := sorted(set(drivers) - self._notifier.names()):
            # oslo.messaging only logs why it has left a driver out
            points = {point.name: point for point in entry_points(group=_DRIVERS)}
            faults = []
            for name in missing:
                fault = f"driver {name} does not load"
                if name not in points:
                    fault = f"there is no driver {name}"
                else:
                    try:
                        points[name].load()(source, topics, self._transport)
                    except Exception as exc:  # noqa: BLE001  code of other packages may raise anything
                        fault += f": {errors.brief(exc)}"
                faults.append(fault)
            raise errors.CannotStart(
                reason=f"cannot send notifications: {'; '.join(faults)}; see driver in "
                "[oslo_messaging_notifications]",
            )

    def send(self, context: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self._transport.fault = None
        self._notifier.hand_over(context, message)
        if self._transport.fault is not None:
            raise self._transport.fault

    def close(self) -> None:
        self._transport.cleanup()


def register_driver_options(source: cfg.ConfigOpts, drivers: Collection[str]) -> None:
    """Register the options of drivers that other packages bring.

    They offer ``register_opts(conf)`` beside the driver, as those for Ironic do, or list their
    options for oslo.config.
    """
    for point in entry_points(group=_DRIVERS):
        if point.name not in drivers or point.dist is None or point.dist.name == _OWN_PACKAGE:
            continue
        try:
            register = getattr(importlib.import_module(point.module), "register_opts", None)
            if register is not None:
                register(source)
                continue
            for listing in point.dist.entry_points.select(group="oslo.config.opts"):
                for group, options in listing.load()():
                    source.register_opts(options, group=group)
        except Exception as exc:  # code of other packages may raise anything
            raise errors.CannotStart(
                reason=f"cannot load the notification driver {point.name}: {errors.brief(exc)}"
            ) from exc
