"""Histories: the oldest entries go when a node has more than it may keep."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery.conductor.periodics import trim_history
from bloomery.db import rows
from bloomery.db.tables import NODE_HISTORY


def write(site, node, count):
    entries = [
        {
            "uuid": str(uuids.uuid4()), "node_uuid": node, "severity": "INFO",
            "event": f"entry {n}", "created_at": rows.now(),
        }
        for n in range(count)
    ]  # fmt: skip
    site.db.transact(lambda conn: conn.execute(NODE_HISTORY.insert(), entries))


def kept(site, node):
    return [row["event"] for row in site.history(node)]


def test_newest_entries_of_each_node_are_kept(make_site):
    site = make_site(node_history_max_entries=3)
    long, short = site.enrol(), site.enrol()
    write(site, long, 5)
    write(site, short, 2)
    trim_history.run(site.house)
    assert kept(site, long) == ["entry 2", "entry 3", "entry 4"]
    assert kept(site, short) == ["entry 0", "entry 1"]


def test_one_pass_drops_so_many(make_site):
    site = make_site(node_history_max_entries=1, node_history_cleanup_batch_count=2)
    node = site.enrol()
    write(site, node, 5)
    lengths = []
    for _ in range(3):
        trim_history.run(site.house)
        lengths.append(len(kept(site, node)))
    assert lengths == [3, 1, 1]
    assert kept(site, node) == ["entry 4"]


@pytest.mark.parametrize("most", [0, 5])
def test_nothing_goes_where_nothing_is_too_much(make_site, most):
    site = make_site(node_history_max_entries=most)
    node = site.enrol()
    write(site, node, 5)
    trim_history.run(site.house)
    assert len(kept(site, node)) == 5
