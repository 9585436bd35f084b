"""Gauges when what they ask is away."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors, metrics
from bloomery.cmd import gauges
from bloomery.db import event_cursors, event_numbers, rows, webhooks
from bloomery.db.engine import Meter
from bloomery.db.tables import EVENTS
from bloomery.metrics import Gauge
from bloomery.model.webhook import Webhook
from tests.kit.servers.site import Site

HOUR = timedelta(hours=1)


def lines(*shown: metrics.AnyGauge) -> list[str]:
    return metrics.render(shown, metrics.read_database(shown)).decode().splitlines()


def failures() -> float:
    name = 'bloomery_gauge_failures_total{gauge="nodes"}'
    return sum((float(line.split()[-1]) for line in lines() if line.startswith(name)), 0.0)


@pytest.mark.parametrize(
    "fault",
    [errors.DatabaseBusy(reason="it is away"), sa.exc.OperationalError("", {}, OSError("gone"))],
    ids=["refused", "gone"],
)
def test_a_gauge_whose_database_is_away_is_left_out_and_counted(fault):
    def read() -> Any:
        raise fault

    before = failures()
    shown = lines(
        Gauge("nodes", "Nodes.", ("state",), read, from_database=True),
        Gauge("workers", "W.", (), lambda: {(): 2.0}),
    )
    assert "bloomery_workers 2.0" in shown
    assert not [line for line in shown if line.startswith("bloomery_nodes")]
    assert f'bloomery_gauge_failures_total{{gauge="nodes"}} {before + 1}' in shown


@pytest.mark.parametrize(
    ("is_connected", "shown"),
    [
        (None, []),
        (True, ["bloomery_message_broker_connected 1.0"]),
        (False, ["bloomery_message_broker_connected 0.0"]),
    ],
)
def test_a_broker_is_shown_where_there_is_one(is_connected, shown):
    calls: Any = SimpleNamespace(is_connected=is_connected)
    text = lines(*gauges.of_broker(calls))
    assert [line for line in text if line.startswith("bloomery_message_broker")] == shown


def series(site: Site) -> list[str]:
    shown = lines(
        *gauges.of_process(site.db), *gauges.of_site(site.db, site.runtime.ring),
        *gauges.of_conductor(site.service),
    )  # fmt: skip
    ours = [line for line in shown if not line.startswith(("#", "bloomery_api"))]
    return [line.rpartition(" ")[0] for line in ours]


def test_the_number_of_series_does_not_grow_with_nodes(site: Site):
    site.enrol(maintenance=True)
    for _ in range(2):
        site.wait_for_state(site.enrol(), "enroll")
    few = series(site)
    for _ in range(40):
        site.enrol()
    assert series(site) == few
    assert sum(name.startswith("process_cpu_seconds_total") for name in few) == 1


def test_a_scrape_reads_each_table_once_however_many_nodes_there_are(site: Site):
    for _ in range(40):
        site.enrol()
    read = gauges.of_site(site.db, site.runtime.ring)
    meter = Meter(site.db)
    lines(*read)
    assert len(meter.statements) <= len(read) + 3


def test_conductors_and_maintenance_are_counted_by_state(site: Site):
    site.enrol(maintenance=True)
    site.enrol(maintenance=True, fault="power failure")
    shown = lines(*gauges.of_site(site.db, site.runtime.ring))
    assert 'bloomery_conductors{state="online"} 1.0' in shown
    assert 'bloomery_conductors{state="dead"} 0.0' in shown
    assert 'bloomery_nodes_in_maintenance{fault="none"} 1.0' in shown
    assert 'bloomery_nodes_in_maintenance{fault="power failure"} 1.0' in shown


def test_a_sink_lags_by_its_oldest_event_unless_it_is_parked(site: Site):
    hook = Webhook(uuid="hook", url="https://x", secret="s")
    site.db.transact(lambda conn: event_cursors.add_missing(conn, ["behind", "ahead"]))
    site.db.transact(lambda conn: webhooks.insert(conn, hook, most=1))
    site.enrol()
    if not site.db.is_sqlite:
        site.db.transact(event_numbers.assign)
    site.db.transact(lambda conn: event_cursors.delete(conn, "ahead"))
    site.db.transact(lambda conn: event_cursors.add_missing(conn, ["ahead"]))
    site.db.transact(
        lambda conn: conn.execute(sa.update(EVENTS).values(created_at=rows.now() - HOUR))
    )

    def lags() -> dict[str, float]:
        [gauge] = [
            each for each in gauges.of_site(site.db, site.runtime.ring)
            if each.name == "event_sink_lag_seconds"
        ]  # fmt: skip
        return {sink: lag_s for (sink,), lag_s in gauge.read().items()}

    assert 3600 <= lags()["behind"] == pytest.approx(lags()[hook.sink], abs=60)
    assert lags()["ahead"] == 0
    site.db.transact(lambda conn: webhooks.park(conn, "hook", "gone"))
    assert set(lags()) == {"behind", "ahead"}
