"""Several conductors share the work of the periodics: each node is somebody's, and one's only."""

from __future__ import annotations

import dataclasses
import uuid as uuids
from datetime import timedelta

import pytest

from bloomery.conductor.periodics import boot_retries, table
from bloomery.conductor.workers import Workers
from bloomery.conf.drivers import SensorData
from bloomery.db import conductors, records, rows
from bloomery.db.engine import Meter
from bloomery.db.tables import ALLOCATIONS
from bloomery.drivers import base
from bloomery.model.node import FLOW_RETRY
from bloomery.model.nouns import ALLOCATION
from bloomery.rpc.ring import Ring
from tests.kit.clock import HandClock
from tests.kit.machines.bmc import FakeBmc
from tests.kit.servers import peers
from tests.kit.waiting import wait_for

HOSTS = ("host-a", "host-b")
NODES = 12


class Pair:
    """Two conductors on one database, whose nodes speak to one rack of BMCs."""

    def __init__(self, make_site):
        self.bmc, self.calls = FakeBmc(), []
        registry = self.bmc.registry()
        look = base.Periodic(
            states=("wait call-back",), look=lambda task: self.calls.append(task.node.uuid)
        )
        registry.interfaces["deploy"]["fake"].periodics = lambda: (look,)
        self.site = make_site(registry=registry, periodic_max_workers=NODES)
        self.site.service.periodics.stop()
        self.register("host-b")
        self.clock = HandClock()
        self.runtimes = {host: self.runtime(host) for host in HOSTS}
        self.nodes = [self.site.enrol(uuid=str(uuids.UUID(int=n))) for n in range(1, NODES + 1)]

    def register(self, host):
        self.site.db.transact(
            lambda conn: conductors.register(
                conn, hostname=host, group="", drivers=["fake-hardware"], interfaces=[]
            )
        )

    def runtime(self, host):
        ours = self.site.runtime if host == "host-a" else self.site.another_host(host)
        ring = Ring(self.site.db, ours.conf, self.clock)
        return dataclasses.replace(
            ours, registry=self.site.runtime.registry, ring=ring, workers=Workers(20)
        )

    def share(self, host):
        ring = Ring(self.site.db, self.site.runtime.conf)
        place = {"driver": "fake-hardware", "group": ""}
        return [node for node in self.nodes if ring.host_of_node(uuid=node, **place) == host]

    def set(self, **values):
        for node in self.nodes:
            self.site.set(node, **values)

    def run(self, name, host):
        """Let one conductor do its job to the end."""
        [periodic] = [periodic for periodic in table.TABLE if periodic.name == name]
        runtime = self.runtimes[host]
        job = periodic.make(runtime)
        job()
        wait_for(lambda: getattr(job, "is_idle", True), "its polls to end")
        wait_for(lambda: not runtime.workers.busy, "its workers to end")


def looked_at(pair):
    return pair.bmc.looks


def failed(pair):
    return [n for n in pair.nodes if pair.site.node(n).provision_state == "deploy failed"]


OLD = rows.now() - timedelta(days=1)
IDLE = {"provision_state": "active", "power_state": "power on"}
FAULTY = IDLE | {"maintenance": True, "fault": "power failure"}
WAITING = {"provision_state": "wait call-back", "provision_updated_at": OLD}
CONSOLE = IDLE | {"console_enabled": True}
STUCK = {"provision_state": "deploying", "target_provision_state": "active"}

RETRY = {
    "provision_state": "inspect failed",
    "driver_internal_info": rows.dump(
        {FLOW_RETRY: {"attempt": 1, "of": 1, "due_at": OLD.isoformat()}}
    ),
}


def begun_again(pair):
    return [n for n in pair.nodes if pair.site.node(n).provision_state != "inspect failed"]


SHARED = {
    "sync_power": (IDLE, looked_at),
    "recover_power": (FAULTY, looked_at),
    "time_out": (WAITING, failed),
    "adopt_orphans": (STUCK, failed),
    "take_over_consoles": (
        CONSOLE,
        lambda pair: [
            node for node in pair.nodes if "console" in pair.site.node(node).driver_internal_info
        ],
    ),
    "retry_flows": (RETRY, begun_again),
    "ask_agents": (WAITING, lambda pair: pair.calls),
}
ONCE = {  # by one for all
    "trim_history", "trim_steps", "trim_conductors", "trim_commit_tokens", "fold_counts",
    "check_counts",
}  # fmt: skip
APART = {
    "watch_leases", "adopt_allocations", "send_sensors", "retry_boots",  # tested below
    "checkpoint",  # of SQLite, which has one conductor
    "free_strays",  # looks at what the rows say is its own
    "remove_boot_files",  # of its own host
    "explain_bios",  # of nodes that it has verified
}  # fmt: skip


def test_every_periodic_is_here():
    assert {periodic.name for periodic in table.TABLE} == {*SHARED, *ONCE, *APART}


@pytest.fixture
def pair(make_site):
    return Pair(make_site)


@pytest.mark.parametrize("name", SHARED)
def test_each_node_is_asked_by_the_one_that_serves_it(pair, name):
    values, touched = SHARED[name]
    pair.set(**values)
    shares = {host: pair.share(host) for host in HOSTS}
    assert all(shares.values()), "a share for each"
    pair.run(name, "host-b")
    assert sorted(touched(pair)) == sorted(shares["host-b"])
    pair.run(name, "host-a")
    assert sorted(touched(pair)) == sorted(pair.nodes), "and none of them twice"


def test_boots_are_retried_by_the_one_that_serves_the_node(pair, monkeypatch):
    monkeypatch.setattr(boot_retries, "_retry", lambda _, uuid, lasts: pair.calls.append(uuid))
    pair.set(**WAITING)
    for host in HOSTS:
        pair.calls.clear()
        pair.run("retry_boots", host)
        assert sorted(pair.calls) == sorted(pair.share(host))


def test_sensors_are_read_by_the_one_that_serves_the_node(pair):
    management = pair.site.runtime.registry.interfaces["management"]["fake"]
    management.get_sensors_data = lambda task: pair.calls.append(task.node.uuid) or {}
    pair.set(**IDLE)
    for host, runtime in pair.runtimes.items():
        conf = dataclasses.replace(runtime.conf, sensor_data=SensorData(interval=1))
        pair.runtimes[host] = dataclasses.replace(runtime, conf=conf)
    pair.run("send_sensors", "host-b")
    assert sorted(pair.calls) == sorted(pair.share("host-b"))
    pair.run("send_sensors", "host-a")
    assert sorted(pair.calls) == sorted(pair.nodes)


@pytest.mark.parametrize("name", ["sync_power", "time_out", "adopt_orphans"])
def test_nodes_of_another_group_are_left_alone(pair, name):
    values, touched = SHARED[name]
    pair.set(conductor_group="east", **values)
    for host in HOSTS:
        pair.run(name, host)
    assert touched(pair) == []


@pytest.mark.parametrize("name", ["trim_history", "trim_steps"])
def test_what_is_trimmed_for_all_is_trimmed_by_one(pair, name):
    statements = {}
    for host in HOSTS:
        runtime = pair.runtimes[host]
        runtime.ring.refresh()
        statements[host] = count_statements(pair.site.db, lambda h=host: pair.run(name, h))
    assert statements["host-a"] > 0
    assert statements["host-b"] == 0


def count_statements(db, work):
    meter = Meter(db)
    work()
    return len(meter.statements)


def let_die(pair, host):
    """Let a conductor fall silent for the time-out, while the others look and beat."""
    for _ in range(8):
        pair.clock.now += 10
        for other in HOSTS:
            peers.beat(pair.site.db, other)
            pair.runtimes[other].ring.refresh()


def test_nodes_of_the_dead_are_shared_out_among_the_living(pair):
    pair.register("host-c")
    pair.set(reservation="host-c", **STUCK)
    let_die(pair, "host-c")
    pair.run("watch_leases", "host-b")
    assert [pair.site.node(node).reservation for node in pair.nodes] == [None] * NODES
    assert sorted(failed(pair)) == sorted(pair.share("host-b"))
    pair.run("watch_leases", "host-a")
    assert sorted(failed(pair)) == sorted(pair.nodes)


def test_allocations_of_the_dead_are_looked_after_by_one(pair):
    uuid = str(uuids.uuid4())
    record = ALLOCATION.value(uuid=uuid, resource_class="large", conductor_affinity="host-c")
    pair.site.db.transact(lambda conn: records.insert(conn, ALLOCATION, record))
    pair.run("adopt_allocations", "host-b")
    pair.run("adopt_allocations", "host-a")
    [row] = pair.site.rows(ALLOCATIONS, uuid=uuid)
    assert row["conductor_affinity"] == "host-b"
