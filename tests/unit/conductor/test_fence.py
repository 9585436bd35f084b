"""A conductor that was declared dead and comes back: it writes nothing, and stops."""

from __future__ import annotations

import threading

import pytest

from bloomery.db import locks
from bloomery.drivers.base import DriverTask
from bloomery.outcome import Again
from tests.kit.machines.scripted import Script
from tests.kit.probes import probes
from tests.kit.servers.site import HOST, Site
from tests.kit.waiting import wait_for


def void(site: Site) -> None:
    site.db.transact(lambda conn: locks.void_all(conn, HOST))


@pytest.mark.parametrize("write", ["save", "journal", "release", "process_event"])
def test_a_holder_that_was_voided_writes_nothing(site: Site, write: str):
    probes.a_holder_that_was_voided_writes_nothing(
        site, site.enrol(provision_state="available"), write
    )


def test_a_holder_whose_reservation_is_gone_writes_nothing(site: Site):
    node = site.enrol(provision_state="available")
    with site.acquire(node) as task:
        void(site)
        before = site.everything()
        with pytest.raises(probes.errors.LockLost):
            task.process_event("deploy")
        assert site.everything() == before


@pytest.mark.parametrize("ending", ["saves", "returns", "raises"])
def test_a_worker_that_lost_its_node_ends_and_asks_no_bmc_again(make_site, ending: str):
    script = Script()
    in_step, go_on = threading.Event(), threading.Event()

    def slow(task: DriverTask) -> None:
        in_step.set()
        assert go_on.wait(10)
        if ending == "saves":
            task.save()
            task.node.description = "from beyond"
            task.save()
        if ending == "raises":
            raise LookupError

    script.add("deploy", "slow", slow)
    script.add("deploy", "after")
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    assert in_step.wait(10)
    void(site)
    before = site.everything()
    go_on.set()
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the worker to end")
    wait_for(lambda: site.runtime.workers.busy == 0, "the slot to be free")
    assert site.everything() == before
    assert "after" not in script.calls
    assert "clean_up" not in script.calls or ending == "raises"


def test_a_turn_that_comes_after_the_node_was_lost_asks_no_bmc(make_site):
    script = Script()
    script.add("deploy", "slow", lambda task: Again(after_s=0.2, reason="slow"))
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: "slow" in script.calls, "the step to run")
    wait_for(lambda: site.runtime.workers.busy == 0, "the thread to be free")
    void(site)
    calls = list(script.calls)
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the flow to end")
    assert script.calls == calls


def test_the_next_holder_is_not_disturbed(make_site):
    script = Script()
    script.add("deploy", "slow", lambda task: Again(after_s=0.1, reason="slow"))
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: "slow" in script.calls, "the step to run")
    void(site)
    other = probes.task_manager.acquire(probes.context_of(site.another_host("host-b"), site), node)
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the flow to end")
    assert site.node(node).reservation == "host-b"
    other.node.description = "from the next one"
    other.save()
    other.release_resources()
