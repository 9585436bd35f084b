"""What must hold when a process dies: for the tests, and for the mutants."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import uuid
from datetime import timedelta
from pathlib import Path

from bloomery import errors
from bloomery.conductor import task_manager
from bloomery.conductor.periodics import timeouts
from bloomery.conductor.periodics.leases import Leases
from bloomery.conf.default import Database as Settings
from bloomery.db import rows
from bloomery.drivers.base import DriverTask
from bloomery.outcome import Again
from bloomery.rpc.ring import Ring
from bloomery.state_dir import StateDir
from tests.kit.machines.scripted import Script
from tests.kit.probes.probes import context_of
from tests.kit.servers import peers
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.waiting import wait_for

SHORT_S = 2.0


def _die_in_a_deployment(path: Path, commits: int) -> tuple[Site, str]:
    """Let a process die so many commits after it was told to deploy; return what is left."""
    script = Script()
    script.add("deploy", "one")
    script.add("deploy", "two")
    db = database(path, Mortal)
    assert isinstance(db, Mortal)
    site = Site(path, db=db, registry=script.registry())
    node = site.enrol(provision_state="available")
    db.lives = db.commits + commits
    with contextlib.suppress(Dead):
        site.deploy(node)
    assert db.died.wait(SHORT_S)
    site.close()
    return site, node


def a_deployment_goes_on_after_a_crash(path: Path) -> None:
    """Move, first step; then the process dies, and the next one ends the deployment."""
    dead, node = _die_in_a_deployment(path, 2)
    site = dead.restarted()
    try:
        site.wait_for_state(node, "active", timeout_s=SHORT_S)
        assert [run["state"] for run in site.runs(node)] == ["done", "done", "done"]
    finally:
        site.close()


def an_allocation_gets_its_node_after_a_crash(path: Path) -> None:
    """The process dies once the allocation is stored; the next one looks for its node."""
    db = database(path, Mortal)
    assert isinstance(db, Mortal)
    dead = Site(path, db=db)
    node = dead.enrol(provision_state="available", resource_class="large")
    dead.set(node, power_state="power off")
    db.lives = db.commits + 1
    values = {"uuid": str(uuid.uuid4()), "resource_class": "large"}
    with contextlib.suppress(Dead):
        dead.order("create_allocation", values, None)
    assert db.died.wait(SHORT_S)
    site = dead.restarted()
    try:
        wait_for(
            lambda: site.node(node).allocation_uuid == values["uuid"], "the allocation's node",
            timeout_s=SHORT_S,
        )  # fmt: skip
    finally:
        site.close()


def no_reservation_outlives_its_process(path: Path) -> None:
    """The process dies while it holds the node; the next one does not find it held."""
    dead, node = _die_in_a_deployment(path, 1)
    assert dead.node(node).reservation is not None
    site = dead.restarted()
    try:
        wait_for(lambda: site.is_free(node), "the node to be free", timeout_s=SHORT_S)
    finally:
        site.close()


def a_dead_peer_loses_its_nodes(site: Site) -> None:
    """A peer whose counter stands still for the time-out on our clock is dead."""
    peer = site.another_host("host-b")
    peers.join(site.db, "host-b")
    node = site.enrol(provision_state="available")
    task_manager.acquire(context_of(peer, site), node)
    now, limit_s = [0.0], site.runtime.conf.conductor.heartbeat_timeout
    ring = Ring(site.db, site.runtime.conf, lambda: now[0])
    watch = Leases(dataclasses.replace(site.runtime, ring=ring))

    def look_on(seconds: int) -> None:
        for _ in range(seconds // 10):
            watch.run()
            now[0] += 10
            peers.beat(site.db, site.runtime.host)
        watch.run()

    look_on(limit_s - 10)
    peers.beat(site.db, "host-b")
    look_on(limit_s - 10)
    assert site.node(node).reservation == "host-b", "a living peer lost its node"
    look_on(20)
    assert site.node(node).reservation is None


def a_conductor_that_has_stopped_writes_to_no_bmc(path: Path) -> None:
    """The grace is over while a step waits for its BMC; what it would send then is not sent."""
    script, answered, sent = Script(), threading.Event(), list[str]()

    def order(task: DriverTask) -> None:
        assert answered.wait(SHORT_S * 5), "the BMC was never let answer"
        task.assert_lease()
        sent.append(task.node.uuid)

    script.add("deploy", "one", order)
    site = Site(path, registry=script.registry())
    stop = threading.Thread(target=site.service.stop, kwargs={"grace_s": 0})
    try:
        node = site.enrol(provision_state="available")
        site.deploy(node)
        wait_for(lambda: "one" in script.calls, "the step to begin")
        stop.start()
        wait_for(lambda: not site.runtime.timers._thread.is_alive(), "the grace to be over")
        answered.set()
        stop.join()
        assert sent == []
        assert site.node(node).provision_state == "deploying", "it goes on with the next start"
    finally:
        answered.set()
        site.close()


def a_second_state_dir_is_refused_the_database(path: Path) -> None:
    """Two state dirs name one SQLite file, as a copied configuration does."""
    settings = Settings(connection=f"sqlite:///{path}.sqlite")
    with StateDir(path / "one") as one, StateDir(path / "two") as two:
        one.open_database(settings)
        try:
            two.open_database(settings)
        except errors.DatabaseInUse:
            return
    raise AssertionError("two processes would serve one database")


def a_graceful_stop_counts_for_nothing(path: Path) -> None:
    """The step that waits when its conductor stops has not killed anybody."""
    script = Script()
    script.add("deploy", "long", lambda _task: Again(after_s=60, reason="slow"))
    site = Site(path, registry=script.registry())
    try:
        node = site.enrol(provision_state="available")
        site.deploy(node)
        _wait_for_the_pause(site, node)
        for _ in range(3):
            site.service.stop(grace_s=0)
            site = site.restarted()
            _wait_for_the_pause(site, node)
        assert [run["recovery_weight"] for run in site.runs(node)] == [0, 0]
    finally:
        site.close()


def _wait_for_the_pause(site: Site, node: str) -> None:
    wait_for(lambda: "again" in [run["state"] for run in site.runs(node)], "the pause")


def a_wall_clock_that_is_set_back_holds_no_wait(site: Site) -> None:
    """Somebody sets the clock while a node waits for a call; it waits as long as it may."""
    node = site.enrol(provision_state="wait call-back", target_provision_state="active")
    site.set(node, provision_updated_at=rows.now())
    limit_s, own_s, wall = site.runtime.conf.conductor.deploy_callback_timeout, [0.0], [rows.now()]
    watch = timeouts.Watch(clock=lambda: own_s[0], wall=lambda: wall[0])
    timeouts.run(site.runtime, watch)
    wall[0] -= timedelta(hours=1)
    own_s[0] += limit_s + 1
    timeouts.run(site.runtime, watch)
    site.wait_for_state(node, "deploy failed", timeout_s=SHORT_S)
