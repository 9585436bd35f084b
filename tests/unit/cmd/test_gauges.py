"""Gauges when what they ask is away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors, metrics
from bloomery.cmd import gauges
from bloomery.metrics import Gauge


def lines(*shown: Gauge) -> list[str]:
    return metrics.render(shown).decode().splitlines()


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
        Gauge("nodes", "Nodes.", ("state",), read), Gauge("workers", "W.", (), lambda: {(): 2.0})
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
