"""Each safeguard of webhooks and their workers is switched off in turn, and its test goes red."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any

import pytest

from bloomery import fetching
from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.events import trimmer
from bloomery.events.sink_worker import SinkWorker
from bloomery.events.trimmer import Trimmer
from tests.functional import conftest as functional
from tests.functional.api import test_webhooks as of_site
from tests.kit.clock import HandClock
from tests.unit.events import conftest as unit
from tests.unit.events import test_sink_worker as of_worker
from tests.unit.events import test_trimmer as of_trimmer
from tests.unit.events import test_webhooks as of_sink

Patch = pytest.MonkeyPatch
db, happen, begun = unit.db, unit.happen, of_worker.begun
conf, world = functional.conf, functional.world
backlog = of_trimmer.backlog
receiver, site = of_site.receiver, of_site.site


def a_delivery_ends_no_row_of_failures(patch: Patch) -> None:
    def deliver(self: SinkWorker, batch: Any) -> None:
        failures = self._failures
        try:
            real(self, batch)
        except ConnectionError:
            self._failures = failures
            raise

    real = SinkWorker._deliver
    patch.setattr(SinkWorker, "_deliver", deliver)


def leases_are_not_renewed(patch: Patch) -> None:
    patch.setattr(SinkWorker, "_renew", lambda self: None)


def one_pause_is_waited_for_in_one_piece(patch: Patch) -> None:
    def until_retry_s(self: SinkWorker) -> float:
        return max(self._retry_at - self._clock(), 0.0)

    patch.setattr(SinkWorker, "_until_retry_s", until_retry_s)


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(
    ("off", "test"),
    [
        (a_delivery_ends_no_row_of_failures,
         of_worker.test_a_sink_that_refuses_one_in_twenty_catches_up),
        (leases_are_not_renewed,
         of_worker.test_a_pause_longer_than_the_lease_does_not_lose_the_cursor),
        (one_pause_is_waited_for_in_one_piece,
         of_worker.test_a_pause_longer_than_the_lease_does_not_lose_the_cursor),
    ],
)  # fmt: skip
def test_a_worker_that_is_less_patient_is_noticed(
    db: Database, happen, monkeypatch: Patch, off: Callable[[Patch], None], test: Callable[..., Any]
):
    off(monkeypatch)
    with pytest.raises(AssertionError):
        test(db, happen, HandClock())


OK = of_sink.OK


def heads_may_be_cut(patch: Patch) -> None:
    patch.setattr(fetching.Connection, "response_class", http.client.HTTPResponse)


def bodies_are_not_read(patch: Patch) -> None:
    patch.setattr(fetching.Connection, "content", lambda self, answer, most: b"")


@pytest.mark.parametrize(
    ("off", "reply"),
    [(heads_may_be_cut, OK), (bodies_are_not_read, OK + b"Content-Length: 9\r\n\r\nhalf")],
)
def test_a_sink_that_believes_half_a_reply_is_noticed(
    db: Database, happen, monkeypatch: Patch, off: Callable[[Patch], None], reply: bytes
):
    off(monkeypatch)
    with pytest.raises(pytest.fail.Exception):
        of_sink.test_a_reply_that_was_cut_off_is_a_failure(db, stored(db, happen), reply)


def test_metadata_that_is_open_is_noticed(db: Database, happen, monkeypatch: Patch):
    monkeypatch.setattr(fetching, "METADATA", frozenset())
    refused = of_sink.test_metadata_and_the_machine_itself_are_called_only_where_that_is_allowed
    monkeypatch.setattr(fetching.Connection, "_dialled", lambda self: [*self._addresses("", 1)])
    with pytest.raises((AssertionError, AttributeError)):
        refused(db, stored(db, happen), monkeypatch, "fd00:ec2::254")


def test_a_webhook_that_is_never_parked_for_its_lag_is_noticed(
    site: of_site.Site, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(Trimmer, "_park_laggards", lambda self: None)
    with pytest.raises(AssertionError):
        of_site.test_one_that_lags_too_far_is_parked_and_keeps_no_rows(site, caplog)


@pytest.mark.parametrize(
    "test",
    [of_trimmer.test_a_webhook_that_catches_up_after_an_outage_is_not_parked,
     of_trimmer.test_a_webhook_made_active_again_has_time_anew],
)  # fmt: skip
def test_a_laggard_that_is_parked_at_sight_is_noticed(
    db: Database, backlog: list[int], monkeypatch: Patch, test: Callable[..., Any]
):
    monkeypatch.setattr(trimmer, "CATCH_UP_S", 0.0)
    with pytest.raises(AssertionError):
        test(db, backlog)


def stored(db: Database, happen: Callable[[], int]) -> events.EventRow:
    happen()
    with db.read() as conn:
        return events.list_after(conn, 0, 1)[0]
