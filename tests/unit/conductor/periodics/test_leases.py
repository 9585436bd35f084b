"""Leases: a conductor whose counter stands still is dead, and what it held goes on elsewhere."""

from __future__ import annotations

import dataclasses
import uuid

import pytest

from bloomery import errors
from bloomery.conductor import recovery, task_manager
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.periodics import leases as watch
from bloomery.conductor.periodics.leases import Leases
from bloomery.conductor.runtime import Context
from bloomery.db import conductors, locks
from bloomery.outcome import Again
from bloomery.rpc.ring import Ring
from tests.kit.clock import HandClock
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.servers import peers
from tests.kit.waiting import wait_for

PEER = "host-b"
TIMEOUT_S = 60


class Later:
    """Timers that keep what they should call."""

    def __init__(self):
        self.calls = []

    def after(self, delay_s, call, *args):
        self.calls.append((call, args))


@pytest.fixture
def script():
    return Script()


@pytest.fixture
def site(make_site, script):
    return make_site(registry=script.registry(), heartbeat_timeout=TIMEOUT_S)


@pytest.fixture
def clock():
    return HandClock()


class Looks:
    """What looks at the peers, every ten seconds of the clock; our own counter moves."""

    def __init__(self, site, clock):
        self.site, self.clock = site, clock
        ring = Ring(site.db, site.runtime.conf, clock)
        self.leases = Leases(dataclasses.replace(site.runtime, ring=ring))
        self.looked_at = None

    def run(self):
        now = self.clock.now
        while self.looked_at is not None and self.looked_at + 10 < now:
            self.looked_at += 10
            self._look(self.looked_at)
        self.looked_at = now
        self._look(now)

    def _look(self, now):
        self.clock.now = now
        host = self.site.runtime.host
        peers.beat(self.site.db, host)
        self.leases.run()


@pytest.fixture
def leases(site, clock):
    return Looks(site, clock)


@pytest.fixture
def peer(site, script):
    """The house of another conductor, on line, whose timers do nothing by themselves."""
    runtime = dataclasses.replace(
        site.another_host(PEER), registry=site.runtime.registry, timers=Later(),
    )  # fmt: skip
    peers.join(site.db, PEER)
    return runtime


def beat(site):
    return peers.beat(site.db, PEER)


def is_online(site):
    with site.db.read() as conn:
        return conductors.get(conn, PEER).online


def hold(site, peer, node):
    return task_manager.acquire(Context(runtime=peer, request=site.request()), node, purpose="work")


def test_counter_that_stands_still_for_the_timeout_voids_the_reservations(
    site, peer, leases, clock,
):  # fmt: skip
    node = site.enrol()
    hold(site, peer, node)
    leases.run()
    clock.now += TIMEOUT_S - 1
    leases.run()
    assert site.node(node).reservation == PEER
    clock.now += 1
    leases.run()
    assert site.node(node).reservation is None
    assert not is_online(site)


def test_counter_that_moves_is_left_alone_however_slowly(site, peer, leases, clock):
    node = site.enrol()
    task = hold(site, peer, node)
    for _ in range(5):
        leases.run()
        clock.now += TIMEOUT_S - 1
        beat(site)
    leases.run()
    assert site.node(node).reservation == PEER
    assert is_online(site)
    task.release_resources()


def test_clock_of_the_other_machine_does_not_count(site, peer, leases, clock):
    """A row that was last touched long ago is not older than our first look at it."""
    node = site.enrol()
    task = hold(site, peer, node)
    clock.now += 10 * TIMEOUT_S
    leases.run()
    assert site.node(node).reservation == PEER
    task.release_resources()


def test_we_never_bury_ourselves(site, leases, clock):
    node = site.enrol()
    with site.acquire(node):
        leases.run()
        clock.now += 10 * TIMEOUT_S
        leases.run()
        assert site.node(node).reservation == site.runtime.host


def test_conductor_that_comes_back_writes_nothing_and_is_told(site, peer, leases, clock):
    node = site.enrol()
    task = hold(site, peer, node)
    leases.run()
    clock.now += TIMEOUT_S
    leases.run()
    assert not beat(site), "it hears that it was declared dead"
    before = site.everything()
    task.node.description = "from beyond"
    with pytest.raises(errors.LockLost):
        task.save()
    with pytest.raises(errors.LockLost):
        task.process_event("manage")
    task.release_resources()
    assert site.everything() == before
    assert not is_online(site)


def test_flows_of_the_dead_go_on(site, peer, script, leases, clock):
    script.add("deploy", "write", in_turn(Again(after_s=3600, reason="slow disks"), None))
    node = site.enrol(provision_state="available")
    request = site.request()
    ConductorManager(peer).do_provisioning_action(request, node, "active", {})
    wait_for(lambda: peer.timers.calls, "the other conductor to pause")
    assert site.node(node).reservation == PEER
    leases.run()
    clock.now += TIMEOUT_S
    leases.run()
    site.wait_for_state(node, "active")
    assert script.calls.count("write") == 2
    assert {run["state"] for run in site.runs(node)} == {"done"}
    assert {row["request_id"] for row in site.history(node)} == {request.request_id}

    [(call, args)] = peer.timers.calls  # it wakes up and wants to go on
    before = site.everything()
    call(*args)
    wait_for(lambda: not peer.workers.busy, "the other conductor's worker to end")
    assert script.calls.count("write") == 2, "it asked no hardware"
    assert site.everything() == before


def test_allocations_of_the_dead_are_looked_after(site, peer, leases, clock):
    peer.allocations.close()  # it dies before it looks
    node = site.enrol(resource_class="large")
    site.set(node, provision_state="available", power_state="power off")
    allocation = str(uuid.uuid4())
    values = {"uuid": allocation, "resource_class": "large"}
    ConductorManager(peer).create_allocation(site.request(), values, None)
    leases.run()
    assert site.node(node).allocation_uuid is None
    clock.now += TIMEOUT_S
    leases.run()
    leases.run()
    wait_for(lambda: site.node(node).allocation_uuid == allocation, "the heir to find a node")


def test_step_that_may_not_be_repeated_fails_its_flow_by_name(site, peer, script, leases, clock):
    script.add("deploy", "write", in_turn(Again(after_s=3600, reason="slow")), resumable=False)
    node = site.enrol(provision_state="available")
    ConductorManager(peer).do_provisioning_action(site.request(), node, "active", {})
    wait_for(lambda: peer.timers.calls, "the other conductor to pause")
    leases.run()
    clock.now += TIMEOUT_S
    leases.run()
    shown = site.wait_for_state(node, "deploy failed")
    assert f"conductor {PEER} died while step deploy.write was running" in shown.last_error


def test_node_that_nobody_works_on_is_failed_from_its_transient_state(site):
    node = site.enrol()
    site.set(node, provision_state="cleaning", target_provision_state="available")
    recovery.adopt_all(site.runtime)
    shown = site.wait_for_state(node, "clean failed")
    assert "was in state cleaning" in shown.last_error
    assert shown.target_provision_state == "available"


def test_a_peer_that_came_back_since_it_was_looked_at_keeps_its_nodes(site):
    """It was declared dead before, and left nodes; between a look and what follows it returns."""
    peers.join(site.db, PEER)
    peers.fence_out(site.db, PEER)
    dead = peers.look(site.db, PEER)
    incarnation = peers.join(site.db, PEER)
    node = site.enrol(provision_state="available")
    site.db.transact(
        lambda conn: locks.reserve(
            conn, node, holder=PEER, purpose="test", incarnation=incarnation
        )
    )  # fmt: skip
    assert site.db.transact(lambda conn: watch._fence_out(conn, dead)) == 0
    assert site.node(node).reservation == PEER
    assert peers.beat(site.db, PEER)
