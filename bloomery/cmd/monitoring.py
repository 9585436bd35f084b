"""``/metrics``, ``/healthz`` and ``/readyz`` of roles that have no API; [monitoring] says where.

monitor = Monitor(conf, "conductor_port", gauges, service.missing)    # bound, or of no port
monitor.start()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

from bloomery.api import replies, scrape, server
from bloomery.api.layers import Wsgi
from bloomery.conf import Conf, rpc
from bloomery.metrics import Gauge

_THREADS: Final = 2


class Monitor:
    """Nothing listens where the option is 0."""

    def __init__(
        self,
        conf: Conf,
        option: str,
        gauges: tuple[Gauge, ...],
        missing: Callable[[], list[str]],
    ) -> None:
        """``missing``: what keeps the process from its work, or nothing.  Raises CannotStart."""
        self._server: server.Server | None = None
        if port := getattr(conf.monitoring, option):
            app = _app(scrape.make(gauges), missing)
            settings = _settings(conf, port)
            self._server = server.Server(app, settings, port_option=f"[monitoring]{option}")

    def start(self) -> None:
        if self._server is not None:
            self._server.start()

    def stop(self) -> None:
        """Answer to the end: whoever watches sees that the process ends its work."""
        if self._server is not None:
            self._server.stop(0)


def _settings(conf: Conf, port: int) -> Conf:
    """Return those of a server with which nobody can order anything, wherever it listens."""
    api = dataclasses.replace(
        conf.api, host_ip=conf.monitoring.host_ip, port=port, threads=_THREADS,
        enable_ssl_api=False, insecure_listen=True,
    )  # fmt: skip
    default = dataclasses.replace(conf.default, rpc_transport=rpc.NONE)
    return dataclasses.replace(conf, api=api, default=default)


def _app(metrics: Wsgi, missing: Callable[[], list[str]]) -> Wsgi:
    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return metrics(environ, start_response)
        answered: Iterable[bytes] = _health(path, missing)(environ, start_response)
        return answered

    return answer


def _health(path: str, missing: Callable[[], list[str]]) -> Any:
    if path == "/healthz":
        return replies.document({"alive": True})
    if path != "/readyz":
        return replies.second_form(404)
    reasons = missing()
    document = {"ready": not reasons, "missing": reasons}
    return replies.document(document, 503 if reasons else 200)
