"""Who is told what happened: the event relay, and oslo.messaging's notifier.

Versioned notifications leave when [DEFAULT] notification_level is set and a driver is named
here, as in Ironic.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    log: bool = option(False, "write each event as a line of JSON to the logger bloomery.events")
    keep_hours: int = option(168, "hours that an event is kept after it happened", least=1)
    max_listeners: int = option(
        1000, "clients of /ext/v1/events that may stay connected to one process at once", least=0
    )
    max_webhooks: int = option(
        20,
        "webhooks that there may be; each costs a thread in each process, and up to four more "
        "while it is told of events",
        least=0,
    )
    webhook_timeout: int = option(10, "seconds that a webhook may take to answer", least=1, most=60)
    webhook_max_failures: int = option(
        20,
        "failures in a row after which a webhook is parked; the first 20 take 14 minutes",
        least=1,
    )
    webhook_allow_local: bool = option(
        False,
        "let webhooks reach addresses of this machine, of its link and of clouds' metadata",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloMessagingNotifications:
    driver: tuple[str, ...] = option(
        (),
        "messagingv2, messaging, log, routing, noop, test; several by comma; empty: none",
    )
    transport_url: str | None = option(
        None,
        "URL of the broker, such as rabbit://user:password@host:5672/; unset: transport_url of "
        "[DEFAULT]",
        secret=True,
    )
    topics: tuple[str, ...] = option(("notifications",), "topics of unversioned messages")
