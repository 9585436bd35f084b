"""[tracing]: what is told to an OpenTelemetry collector."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


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
