"""[events], [oslo_messaging_notifications], [audit] and [tracing]: what leaves the service.

Versioned notifications are sent when [DEFAULT]notification_level is set and a driver is named here,
as in Ironic.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    log: bool = option(False, "write each event as a line of JSON to the logger bloomery.events")
    keep_hours: int = option(168, "hours for which events are kept", least=1)
    max_listeners: int = option(
        1000, "clients of /ext/v1/events that may be connected to one process", least=0
    )
    max_webhooks: int = option(
        20,
        "maximum number of webhooks; each needs a thread in each process, and up to four more "
        "during deliveries",
        least=0,
    )
    webhook_timeout: int = option(10, "seconds that a webhook may take to answer", least=1, most=60)
    webhook_max_failures: int = option(
        20,
        "failures in a row after which a webhook is parked; 20 failures take 14 minutes",
        least=1,
    )
    webhook_allow_local: bool = option(
        False, "let webhooks reach loopback, link-local and cloud metadata addresses"
    )
    nats_servers: tuple[str, ...] = option(
        (),
        "URLs of NATS servers with JetStream, such as nats://user:password@host:4222, separated by "
        "commas; empty: no events to NATS; needs the extra nats",
        secret=True,
    )
    nats_stream: str = option(
        "bloomery",
        "stream of NATS that takes the subjects bloomery.>; created with a maximum age of "
        "keep_hours if it is missing",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloMessagingNotifications:
    driver: tuple[str, ...] = option(
        (),
        "drivers of notifications: messagingv2, messaging, log, routing, noop, test, separated "
        "by commas; empty: none",
    )
    transport_url: str | None = option(
        None,
        "URL of the message broker, such as rabbit://user:password@host:5672/; unset: "
        "[DEFAULT]transport_url",
        secret=True,
    )
    topics: tuple[str, ...] = option(("notifications",), "topics of unversioned notifications")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    file: str | None = option(
        None,
        "file to which APIs append each order, chained by hashes, before it is carried out; "
        "a relative path begins in the state dir; unset: none",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    endpoint: str | None = option(
        None,
        "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "
        "http://127.0.0.1:4318/v1/traces; unset: no traces; needs the extra otel",
    )
    percent: int = option(
        100,
        "share of requests that are traced, in percent; all processes choose the same ones",
        least=1,
        most=100,
    )
