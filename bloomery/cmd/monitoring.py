"""``/metrics``, ``/healthz`` and ``/readyz`` of roles without an API, as [monitoring] says.

monitor = Monitor(conf, "conductor_port", gauges, parts)    # binds its port, if any
monitor.start()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bloomery.api import replies, scrape
from bloomery.conf import Conf
from bloomery.http_server.readiness import Readiness
from bloomery.http_server.server import Server, Settings
from bloomery.http_server.wsgi import Wsgi
from bloomery.metrics import AnyGauge

_THREADS: Final = 2


class Monitor:
    """A server of probes and metrics; none where the option is 0."""

    def __init__(
        self,
        conf: Conf,
        option: str,
        gauges: tuple[AnyGauge, ...],
        parts: Mapping[str, Callable[[], list[str]]],
    ) -> None:
        """``parts``: what may make the process unready (see ``Readiness``).  Raises CannotStart."""
        self._server: Server | None = None
        if port := getattr(conf.monitoring, option):
            settings = Settings(
                host=conf.monitoring.host_ip, port=port, threads=_THREADS, name="monitor",
                advice=f"choose another [monitoring]{option} or host_ip",
            )  # fmt: skip
            readiness = Readiness(parts)
            app = _app(scrape.make(gauges), readiness, conf)
            self._server = Server(app, settings, has_probes=True)

    def start(self) -> None:
        if self._server is not None:
            self._server.start()

    def stop(self) -> None:
        """Stop last, so that probes see the process until its end."""
        if self._server is not None:
            self._server.stop(0)


def _app(metrics: Wsgi, readiness: Readiness, conf: Conf) -> Wsgi:
    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == scrape.METRICS:
            environ[scrape.SEES_NODES] = scrape.is_near(conf, environ)
            return metrics(environ, start_response)
        answered: Iterable[bytes] = _health(path, readiness)(environ, start_response)
        return answered

    return answer


def _health(path: str, readiness: Readiness) -> Any:
    if path == "/healthz":
        return replies.document({"alive": True})
    if path != "/readyz":
        return replies.second_form(404)
    return replies.ready(readiness.missing())
