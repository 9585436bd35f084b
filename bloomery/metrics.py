"""Metrics: declared here, sent as to ironic-lib's ``MetricLogger``, exported to Prometheus.

ironic-lib itself, retired upstream, is not imported: 20 modules come with it, and pkg_resources
where setuptools is older than 82.

    METRICS.send_counter("api_requests:GET:200", 1)
    with METRICS.timer("lock_wait"):
        ...

A name is a row of ``DECLARED``, then the values of its labels.  Timers are sent in milliseconds, as
in that API, and exported in seconds, as in Prometheus.  A ``Gauge`` is read at each scrape.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import prometheus_client
import sqlalchemy as sa
from prometheus_client import exposition, multiprocess, values
from prometheus_client.core import GaugeMetricFamily

from bloomery import errors

LOG = logging.getLogger(__name__)

DATABASE_ANSWERS: Final = "database_answers"  # the gauge of the look at all others of the database
SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client at its import
CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)

Readings = Mapping[tuple[str, ...], float]


class Metric(NamedTuple):
    kind: str  # counter or timer
    help: str
    labels: tuple[str, ...] = ()


DECLARED: Final[dict[str, Metric]] = {
    "api_requests": Metric("counter", "Answers of the API.", ("method", "status")),
    "api_request": Metric("timer", "Time to answer a request.", ("method",)),
    "lock_wait": Metric("timer", "Time that a caller waited for a busy node."),
    "conductor_call": Metric(
        "timer", "Time of one call of a conductor in another process.", ("method",)
    ),
    "conductor_call_faults": Metric(
        "counter", "Calls of conductors in other processes that got no answer.", ("fault",)
    ),
    "step": Metric("timer", "Time of one call of a step.", ("phase", "interface")),
    "stack_wake_lag": Metric("timer", "From a stack that is due, or woken, to its worker."),
    "stack_turn": Metric("timer", "Time of one turn of a stack, its commit included."),
    "stack_drift": Metric(
        "counter", "Differences between machines and stacks: begun, ended.", ("change",)
    ),
    "stack_drift_page": Metric("timer", "Time of one look at a page of machines of stacks."),
    "power_corrections": Metric(
        "counter",
        "Machines in another power state than recorded: switched back, or recorded.",
        ("actual", "action"),
    ),
    "gauge_failures": Metric("counter", "Gauges that the database did not answer for.", ("gauge",)),
    "bmc_call": Metric("timer", "Time of one call of a BMC.", ("driver",)),
    "bmc_faults": Metric(
        "counter", "Calls of BMCs that failed, by code of the error.", ("driver", "fault")
    ),
}


class Gauge(NamedTuple):
    """A gauge that is read at each scrape."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[], Readings]
    from_database: bool = False


class Series(NamedTuple):
    """One value of a gauge whose name is known only at run time."""

    name: str
    label_names: tuple[str, ...]
    labels: tuple[str, ...]
    value: float


class SeriesGauges(NamedTuple):
    """Gauges that come and go; ``read`` returns their series at each scrape."""

    help: str
    read: Callable[[], list[Series]]

    def collect(self) -> list[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for one in self.read():
            family = families.get(one.name)
            if family is None:
                family = GaugeMetricFamily(one.name, self.help, labels=one.label_names)
                families[one.name] = family
            family.add_metric(list(one.labels), one.value)
        return list(families.values())


AnyGauge: TypeAlias = Gauge | SeriesGauges


class Exporter:
    """Collect metrics in a Prometheus registry; ``on_timer`` is told of each timer, too."""

    on_timer: Callable[[str, float], None] | None = None

    def __init__(self) -> None:
        self._declare()

    def share(self, folder: Path) -> None:
        """Count from now on in files of ``folder``: each process there exports the sums.

        What was counted before is left out.
        """
        os.environ[SHARED_FOLDER] = str(folder)
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        self._series.cache_clear()
        self._declare()

    def _declare(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for name, metric in DECLARED.items():
            if metric.kind == "counter":
                self._metrics[name] = prometheus_client.Counter(
                    f"bloomery_{name}", metric.help, metric.labels, registry=self.registry,
                )  # fmt: skip
            else:
                self._metrics[name] = prometheus_client.Histogram(
                    f"bloomery_{name}_seconds", metric.help, metric.labels, registry=self.registry,
                    buckets=_BUCKETS_S,
                )  # fmt: skip

    @functools.lru_cache(maxsize=4096)  # noqa: B019  one exporter per process
    def _series(self, name: str) -> Any:
        metric, *labels = name.split(":")
        series = self._metrics[metric]
        return series.labels(*labels) if labels else series

    def send_counter(self, name: str, value: float) -> None:
        self._series(name).inc(value)

    def send_timer(self, name: str, value: float) -> None:
        """Record a duration in milliseconds."""
        self._series(name).observe(value / 1000)
        if self.on_timer is not None:
            self.on_timer(name, value)

    @contextlib.contextmanager
    def timer(self, name: str) -> Iterator[None]:
        """Record the duration of the block, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.send_timer(name, (time.perf_counter() - began) * 1000)


class _Watch:
    """Reads the process's gauges when the registry is rendered."""

    def __init__(self, gauges: tuple[AnyGauge, ...], of_database: Mapping[str, Readings]) -> None:
        self._gauges, self._of_database = gauges, of_database

    def collect(self) -> Any:
        for gauge in self._gauges:
            if isinstance(gauge, SeriesGauges):
                yield from gauge.collect()
                continue
            family = GaugeMetricFamily(f"bloomery_{gauge.name}", gauge.help, labels=gauge.labels)
            readings = self._of_database.get(gauge.name) if gauge.from_database else gauge.read()
            if readings is None:
                METRICS.send_counter(f"gauge_failures:{gauge.name}", 1)
                continue
            for labels, value in readings.items():
                family.add_metric(list(labels), value)
            yield family


METRICS: Final = Exporter()


def read_database(gauges: tuple[AnyGauge, ...]) -> dict[str, Readings]:
    """Read the gauges of the database, up to the first that it does not answer for."""
    readings: dict[str, Readings] = {}
    for gauge in gauges:
        if isinstance(gauge, SeriesGauges) or not gauge.from_database:
            continue
        try:
            readings[gauge.name] = gauge.read()
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("gauge %s was not read: %s", gauge.name, errors.brief(exc))
            break
    return readings


def render(
    gauges: tuple[AnyGauge, ...] = (), of_database: Mapping[str, Readings] = MappingProxyType({})
) -> bytes:
    """Return all metrics in Prometheus' text format, with current ``gauges``.

    ``of_database``: what ``read_database`` returned.  A gauge that is not among it is left out, and
    counted.  ``process_*`` describe this process; where several share a port, they are left out.
    """
    fresh = prometheus_client.CollectorRegistry()
    fresh.register(_Watch(gauges, of_database))
    if SHARED_FOLDER not in os.environ:  # else the next scrape may meet another process
        prometheus_client.ProcessCollector(registry=fresh)
    read_now = exposition.generate_latest(fresh)  # counts its failures
    registry = METRICS.registry
    if SHARED_FOLDER in os.environ:
        registry = prometheus_client.CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return exposition.generate_latest(registry) + read_now
