"""``/metrics`` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bloomery import metrics
from bloomery.api import layers
from bloomery.conf import Conf
from bloomery.http_server.readiness import Questions
from bloomery.http_server.wsgi import Wsgi
from bloomery.operations import agent_callers

NETWORKS: Final = "[metrics]node_networks"
METRICS: Final = "/metrics"
SEES_NODES: Final = "bloomery.sees_nodes"  # in the environ: may the caller see single nodes?
_THIS_HOST: Final = ("127.0.0.0/8", "::1/128")
_DATABASE: Final = "the database"


def make(gauges: tuple[metrics.AnyGauge, ...]) -> Wsgi:
    """Return the application that shows the process's metrics and ``gauges``.

    All gauges of the database are read by one look, in a time that the database does not decide.
    Series of single nodes are for callers with ``SEES_NODES``.
    """
    of_process = tuple(each for each in gauges if isinstance(each, metrics.Gauge))
    names = {each.name for each in of_process if each.from_database}
    database = Questions({_DATABASE: lambda: metrics.read_database(gauges)} if names else {})
    of_nodes = tuple(each for each in gauges if isinstance(each, metrics.SeriesGauges))

    def scrape(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answer = database.ask().get(_DATABASE)
        readings = dict(answer.value or {}) if answer is not None else {}
        readings[metrics.DATABASE_ANSWERS] = {(): float(names <= readings.keys())}
        series = of_nodes if environ.get(SEES_NODES) else ()
        body = metrics.render((*of_process, *series), readings)
        headers = [("Content-Type", metrics.CONTENT_TYPE), ("Content-Length", str(len(body)))]
        start_response("200 OK", headers)
        return [body]

    return scrape


def is_near(conf: Conf, environ: dict[str, Any]) -> bool:
    """Is the caller on this host, or in a network of [metrics]node_networks?

    A proxy on this host does not make its callers near.
    """
    networks = conf.metrics.node_networks
    if not any(name in environ for name in layers.OF_PROXIES):
        networks = (*_THIS_HOST, *networks)
    elif not conf.oslo_middleware.enable_proxy_headers_parsing:
        return False
    return agent_callers.is_among(environ.get("REMOTE_ADDR", ""), NETWORKS, networks)
