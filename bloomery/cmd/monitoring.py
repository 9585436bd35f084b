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
            readiness, metrics = Readiness(parts), scrape.make(gauges)

            def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
                path = environ.get("PATH_INFO", "")
                if path == scrape.METRICS:
                    environ[scrape.SEES_NODES] = scrape.is_near(conf, environ)
                    return metrics(environ, start_response)
                reply = replies.second_form(404)
                if path == "/healthz":
                    reply = replies.document({"alive": True})
                elif path == "/readyz":
                    reply = replies.ready(readiness.missing())
                answer: Iterable[bytes] = reply(environ, start_response)
                return answer

            self._server = Server(app, settings, has_probes=True)

    def start(self) -> None:
        if self._server is not None:
            self._server.start()

    def stop(self) -> None:
        """Stop last, so that probes see the process until its end."""
        if self._server is not None:
            self._server.stop(0)
