"""What must hold when conductors come, go, and come back: for the tests, and for the mutants."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.conductor import task_manager
from bloomery.db import conductors, locks
from bloomery.outcome import Again
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.probes.probes import context_of
from tests.kit.servers import peers
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

PEER = "host-b"
_SHORT_S = 3.0


def a_start_frees_its_own_name_only(site: Site) -> None:
    """A conductor starts beside another one, which holds a node."""
    peers.join(site.db, PEER)
    ours, theirs = (site.enrol(provision_state="available") for _ in range(2))
    task_manager.acquire(context_of(site.another_host(PEER), site), theirs)
    task_manager.acquire(context_of(site.another_host(site.runtime.host), site), ours)
    again = site.restarted()
    try:
        assert again.node(ours).reservation is None
        assert again.node(theirs).reservation == PEER
    finally:
        again.close()


def who_was_declared_dead_begins_anew(site: Site) -> None:
    """A conductor was mute for too long; its nodes were taken over, and now it beats again."""
    host, node = site.runtime.host, site.enrol(provision_state="available")
    task = site.acquire(node)
    before = peers.look(site.db, host).incarnation
    assert peers.fence_out(site.db, host)
    site.db.transact(lambda conn: locks.void_all(conn, host))
    with pytest.raises(errors.LockLost):
        site.acquire(site.enrol(provision_state="available"), retry=False)
    site.service._beat()
    row = peers.look(site.db, host)
    assert row.online
    assert row.incarnation not in (None, before)
    with pytest.raises(errors.LockLost):
        task.assert_lease()
    with pytest.raises(errors.LockLost):
        task.save(lambda conn: None)
    task.release_resources()
    with site.acquire(node) as new:
        new.assert_lease()


def who_stirs_is_not_buried(site: Site) -> None:
    """It was seen to stand still, and beats before that is written."""
    peers.join(site.db, PEER)
    seen = peers.look(site.db, PEER)
    assert peers.beat(site.db, PEER)
    assert not site.db.transact(lambda conn: conductors.fence_out(conn, seen))
    assert peers.beat(site.db, PEER)


def who_stops_leaves_a_flow_that_pauses(path: Path) -> None:
    """A flow waits an hour for its next turn; its conductor stops, and another one goes on."""
    script = Script()
    script.add("deploy", "write", in_turn(Again(after_s=3600, reason="slow disks"), None))
    with contextlib.ExitStack() as until:
        ours, heir = (
            Site(path, host=host, registry=script.registry(), heartbeat_interval=1)
            for host in ("host-a", PEER)
        )
        until.callback(ours.close)
        until.callback(heir.close)
        node = ours.enrol(provision_state="available")
        ours.deploy(node)
        wait_for(lambda: any(run["state"] == "again" for run in ours.runs(node)), "the pause")
        ours.service.begin_stop()
        assert heir.wait_for_state(node, "active", timeout_s=_SHORT_S).last_error is None
        runs = ours.runs(node)
        assert {run["conductor"] for run in runs if run["step"] == "write"} == {PEER}
        assert {run["recovery_weight"] for run in runs} == {0}, "nobody has died"
        assert not ours.runtime.node_locks.in_use
