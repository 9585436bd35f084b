"""Histories and journals: the oldest go when a node has more than it may keep."""

from __future__ import annotations

import uuid as uuids
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery.conductor.periodics import housekeeping
from bloomery.db import rows, steps
from bloomery.db.engine import Meter
from bloomery.db.tables import CONDUCTORS, NODE_HISTORY, STEP_RUNS
from bloomery.model.step import Run, Step, StepRun
from tests.kit.servers import peers


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
    housekeeping.trim_history(site.runtime)
    assert kept(site, long) == ["entry 2", "entry 3", "entry 4"]
    assert kept(site, short) == ["entry 0", "entry 1"]


def crowd_histories(site):
    for _ in range(2):
        write(site, site.enrol(), 6)


def crowd_flows(site):
    node = site.enrol()
    for n in range(7):
        flow(site, node, f"flow-{n}", Run.DONE, Run.DONE)


def crowd_conductors(site):
    for n in range(5):
        peers.leave(site.db, peers.join(site.db, f"gone-{n}") and f"gone-{n}")
    changed = {"updated_at": rows.now() - timedelta(days=400)}
    gone = CONDUCTORS.c.hostname.like("gone-%")
    site.db.transact(lambda conn: conn.execute(sa.update(CONDUCTORS).where(gone).values(changed)))


@pytest.mark.parametrize(
    ("run", "table", "crowd", "left"),
    [
        (housekeeping.trim_history, NODE_HISTORY, crowd_histories, 2),
        (housekeeping.trim_steps, STEP_RUNS, crowd_flows, 2),
        (housekeeping.trim_conductors, CONDUCTORS, crowd_conductors, 1),
    ],
    ids=["history", "steps", "conductors"],
)
def test_a_run_ends_when_nothing_is_too_much(make_site, monkeypatch, run, table, crowd, left):
    """A batch bounds a transaction, not a day: a large site would grow for ever."""
    monkeypatch.setattr(housekeeping, "_FLOWS_AT_ONCE", 2)
    site = make_site(
        node_history_max_entries=1, node_history_cleanup_batch_count=2, step_flows_max_entries=1,
        conductor_cleanup_batch_size=2, heartbeat_interval=3600,
    )  # fmt: skip
    crowd(site)
    meter = Meter(site.db)
    run(site.runtime)
    assert len(site.rows(table)) == left
    assert meter.commits > 2, "each batch is a transaction"


@pytest.mark.parametrize("most", [0, 5])
def test_nothing_goes_where_nothing_is_too_much(make_site, most):
    site = make_site(node_history_max_entries=most)
    node = site.enrol()
    write(site, node, 5)
    housekeeping.trim_history(site.runtime)
    assert len(kept(site, node)) == 5


def flow(site, node, name, *states):
    """Write the journal of a flow; the states of its steps."""
    found = [
        StepRun(
            flow=name, node_uuid=node, phase="deploy", position=at, state=state,
            step=Step(interface="deploy", step=f"step-{at}"),
        )
        for at, state in enumerate(states)
    ]  # fmt: skip
    site.db.transact(lambda conn: steps.insert(conn, steps.encode(found)))


def flows(site, node):
    return list(dict.fromkeys(run["flow"] for run in site.runs(node)))


def test_journals_of_the_newest_flows_are_kept(make_site):
    site = make_site(step_flows_max_entries=2)
    busy, calm = site.enrol(), site.enrol()
    for n in range(5):
        flow(site, busy, f"busy-{n}", Run.DONE, Run.DONE, Run.SKIPPED)
    flow(site, calm, "calm-0", Run.FAILED)
    housekeeping.trim_steps(site.runtime)
    assert flows(site, busy) == ["busy-3", "busy-4"]
    assert len(site.runs(busy)) == 6
    assert flows(site, calm) == ["calm-0"]


@pytest.mark.parametrize("state", [Run.RUNNING, Run.AGAIN, Run.WAITING, Run.HELD, Run.PLANNED])
def test_the_journal_of_a_flow_that_goes_on_stays(make_site, state):
    site = make_site(step_flows_max_entries=1, check_provision_state_interval=0)
    node = site.enrol()
    flow(site, node, "open", Run.DONE, state)
    for n in range(3):
        flow(site, node, f"later-{n}", Run.DONE)
    housekeeping.trim_steps(site.runtime)
    assert flows(site, node) == ["open", "later-2"]


def test_zero_keeps_every_journal(make_site):
    site = make_site(step_flows_max_entries=0)
    node = site.enrol()
    for n in range(5):
        flow(site, node, f"flow-{n}", Run.DONE)
    housekeeping.trim_steps(site.runtime)
    assert len(flows(site, node)) == 5


def test_other_writers_get_their_turn_while_journals_are_trimmed(make_site, monkeypatch):
    monkeypatch.setattr(housekeeping, "_FLOWS_AT_ONCE", 3)
    site = make_site(step_flows_max_entries=1, heartbeat_interval=3600)
    node = site.enrol()
    for n in range(10):
        flow(site, node, f"flow-{n}", Run.DONE, Run.DONE)
    meter = Meter(site.db)
    housekeeping.trim_steps(site.runtime)
    assert flows(site, node) == ["flow-9"]
    assert meter.commits == 3, "nine flows, three at a time"


@pytest.mark.parametrize("count", [3, 30])
def test_journals_are_read_once_however_many_are_old(make_site, monkeypatch, count):
    monkeypatch.setattr(housekeeping, "_NODES_AT_ONCE", 2)
    site = make_site(step_flows_max_entries=1, heartbeat_interval=3600)
    site.service.periodics.stop()
    nodes = [site.enrol() for _ in range(5)]
    for node in nodes:
        for n in range(count):
            flow(site, node, f"{node[:8]}-{n}", Run.DONE)
    meter = Meter(site.db)
    housekeeping.trim_steps(site.runtime)
    assert [flows(site, node) for node in nodes] == [[f"{node[:8]}-{count - 1}"] for node in nodes]
    reads = [text for text in meter.statements if "FROM step_runs" in text and "rank" in text]
    assert len(reads) == 3, "two nodes, two, and one"


def test_a_node_takes_its_journal_along(site):
    node = site.enrol()
    flow(site, node, "last", Run.DONE)
    site.order("destroy_node", node)
    assert site.rows(STEP_RUNS) == []
