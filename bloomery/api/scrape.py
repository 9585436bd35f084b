"""``/metrics`` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bloomery import metrics
from bloomery.http_server.wsgi import Wsgi


def make(gauges: tuple[metrics.AnyGauge, ...]) -> Wsgi:
    """Return the application that shows the process's metrics and ``gauges``."""

    def scrape(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = metrics.render(gauges)
        headers = [("Content-Type", metrics.CONTENT_TYPE), ("Content-Length", str(len(body)))]
        start_response("200 OK", headers)
        return [body]

    return scrape
