"""Rows of conductors that went long ago go, unless anything still bears their name."""

from __future__ import annotations

import uuid as uuids
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery.conductor.periodics import housekeeping
from bloomery.db import conductors, records, rows
from bloomery.db.tables import CONDUCTORS, STEP_RUNS
from bloomery.model.nouns import ALLOCATION
from tests.kit.servers import peers

GONE, DAY = "host-gone", timedelta(days=1)


def register(site, host=GONE, *, age=15 * DAY, online=False):
    site.db.transact(
        lambda conn: conductors.register(
            conn, hostname=host, group="", drivers=["fake-hardware"], interfaces=[]
        )
    )
    values = {"online": online, "updated_at": rows.now() - age}
    here = CONDUCTORS.c.hostname == host
    site.db.transact(lambda conn: conn.execute(sa.update(CONDUCTORS).where(here).values(values)))


def hosts(site):
    return [row["hostname"] for row in site.rows(CONDUCTORS)]


def trim(site):
    site.runtime.ring.refresh()
    housekeeping.trim_conductors(site.runtime)
    return hosts(site)


def test_who_went_long_ago_is_dropped(site):
    register(site)
    assert trim(site) == [site.runtime.host]


@pytest.mark.parametrize("values", [{"age": 13 * DAY}, {"online": True}])
def test_who_went_lately_or_never_signed_off_stays(site, values):
    register(site, **values)
    assert trim(site) == [site.runtime.host, GONE]


def hold_node(site):
    site.set(site.enrol(), reservation=GONE)


def run_flow(site):
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "active")
    values = {"conductor": GONE, "state": "waiting"}
    last = sa.select(sa.func.max(STEP_RUNS.c.id)).scalar_subquery()
    change = sa.update(STEP_RUNS).where(STEP_RUNS.c.id == last).values(values)
    site.db.transact(lambda conn: conn.execute(change))


def wait_for_node(site):
    record = ALLOCATION.value(
        uuid=str(uuids.uuid4()), resource_class="large", conductor_affinity=GONE
    )
    site.db.transact(lambda conn: records.insert(conn, ALLOCATION, record))


@pytest.mark.parametrize("leave_behind", [hold_node, run_flow, wait_for_node])
def test_who_left_anything_behind_stays(site, leave_behind):
    register(site)
    leave_behind(site)
    assert GONE in trim(site)


def test_who_comes_back_meanwhile_stays(site):
    register(site)
    with site.db.read() as conn:
        [gone] = conductors.list_gone(conn, rows.now() - 14 * DAY, at_most=9)
    peers.beat(site.db, GONE, online=False)
    assert not site.db.transact(lambda conn: conductors.delete_gone(conn, gone))


def test_time_that_a_pause_could_last_drops_nobody(make_site):
    site = make_site(conductor_cleanup_timeout=179, heartbeat_timeout=60)
    register(site)
    assert GONE in trim(site)


def test_one_conductor_does_it_for_all(make_site):
    site = make_site(host="host-z")
    register(site)
    register(site, "host-b", online=True, age=timedelta())
    assert GONE in trim(site)
