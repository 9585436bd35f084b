"""One conductor sums the rows of counts, and corrects counts that differ from the nodes."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bloomery.conductor.periodics import housekeeping
from bloomery.db import node_counts
from bloomery.db.engine import Meter
from bloomery.db.tables import NODE_COUNTS, NODES


@pytest.fixture
def quiet(site):
    """A site whose periodics do not run by themselves."""
    site.service.periodics.stop()
    return site


def count_rows(site):
    return len(site.rows(NODE_COUNTS))


def set_owner(site, owner):
    site.db.transact(lambda conn: conn.execute(sa.update(NODES).values(owner=owner)))


def test_few_rows_are_left_and_many_are_summed(quiet):
    quiet.enrol()
    for number in range(housekeeping._LEAST_FOLDED // 2):
        set_owner(quiet, f"p{number % 2}")
    meter = Meter(quiet.db)
    before = count_rows(quiet)
    housekeeping.fold_counts(quiet.runtime)
    assert (count_rows(quiet), meter.commits) == (before, 0)
    for number in range(3):
        set_owner(quiet, f"p{number}")
    housekeeping.fold_counts(quiet.runtime)
    assert count_rows(quiet) == 2  # where the node is, and where it arrived


def test_all_rows_are_summed_in_several_transactions(quiet, monkeypatch):
    monkeypatch.setattr(housekeeping, "_COUNTS_FOLDED", 40)
    for _ in range(housekeeping._LEAST_FOLDED + 50):
        quiet.enrol()
    housekeeping.fold_counts(quiet.runtime)
    assert count_rows(quiet) < 40


def test_more_conditions_than_one_transaction_takes_have_an_end(quiet, monkeypatch):
    """Each node has an owner of its own: sums are as many rows as there are nodes."""
    monkeypatch.setattr(housekeeping, "_COUNTS_FOLDED", 40)
    calls, fold = [], node_counts.fold

    def counted(conn, *, at_most):
        calls.append(at_most)
        assert len(calls) < 50, "it goes on for ever"
        return fold(conn, at_most=at_most)

    monkeypatch.setattr(node_counts, "fold", counted)
    nodes = [quiet.enrol() for _ in range(housekeeping._LEAST_FOLDED + 50)]
    for number, node in enumerate(nodes):
        quiet.set(node, owner=f"p{number}")
    housekeeping.fold_counts(quiet.runtime)
    with quiet.db.read() as conn:
        assert node_counts.count_surplus(conn) == 0
        assert node_counts.compare(conn) == {}


def test_lost_counts_are_corrected_and_logged_once(quiet, caplog):
    quiet.enrol()
    housekeeping.check_counts(quiet.runtime)
    assert not [text for text in caplog.messages if "counts of nodes" in text]
    quiet.db.transact(lambda conn: conn.execute(sa.delete(NODE_COUNTS)))
    for _ in range(2):
        housekeeping.check_counts(quiet.runtime)
    [text] = [text for text in caplog.messages if "counts of nodes" in text]
    assert "+1 of" in text
    with quiet.db.read() as conn:
        assert [each.nodes for each in node_counts.list_groups(conn)] == [1]
    set_owner(quiet, "p1")
    housekeeping.check_counts(quiet.runtime)
    assert len([text for text in caplog.messages if "counts of nodes" in text]) == 1


def test_another_conductor_leads(quiet, monkeypatch):
    quiet.enrol()
    monkeypatch.setattr(quiet.runtime.ring, "leads", lambda _host: False)
    meter = Meter(quiet.db)
    housekeeping.fold_counts(quiet.runtime)
    housekeeping.check_counts(quiet.runtime)
    assert (meter.commits, meter.statements) == (0, [])
