"""What must hold when conductors come, go, and come back: for the tests, and for the mutants."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conductor import task_manager
from bloomery.db import conductors, locks
from tests.kit import peers
from tests.kit.probes import context_of
from tests.kit.site import Site

PEER = "host-b"


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
    assert peers.bury(site.db, host)
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
    assert not site.db.transact(lambda conn: conductors.bury(conn, seen))
    assert peers.beat(site.db, PEER)
