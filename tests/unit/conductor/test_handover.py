"""A conductor that stops leaves its flows to one that lives on, at their next pause."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.conductor import runner
from bloomery.outcome import Again, WaitForCall
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.probes import life_probes
from tests.kit.servers import peers
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

HEIR = "host-b"
MakeSite = Callable[..., Site]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def site(make_site: MakeSite, script: Script) -> Site:
    return make_site(registry=script.registry(), heartbeat_interval=1)


@pytest.fixture
def heir(site: Site, script: Script) -> Iterator[Site]:
    """Another conductor on the same database, which has joined once the node is deployed."""
    other = Site(site.path, host=HEIR, registry=script.registry(), heartbeat_interval=1)
    yield other
    other.close()


def deploy_at_first(site: Site) -> str:
    """Deploy a node in the hands of ``site``, whoever else is there."""
    node = site.enrol(provision_state="available")
    site.deploy(node)
    return node


def conductors_of(site: Site, node: str) -> dict[str, str | None]:
    return {run["step"]: run["conductor"] for run in site.runs(node)}


def pauses(site: Site, node: str) -> bool:
    return any(run["state"] == "again" for run in site.runs(node))


def test_a_flow_that_pauses_is_left_at_once(tmp_path: Path):
    life_probes.who_stops_leaves_a_flow_that_pauses(tmp_path / "two.sqlite")


def test_the_next_step_is_begun_by_the_heir_alone(site: Site, script: Script, heir: Site):
    go_on = threading.Event()
    script.add("deploy", "first", lambda task: go_on.wait(10) and None)
    script.add("deploy", "once", resumable=False)
    node = deploy_at_first(site)
    wait_for(lambda: "first" in script.calls, "the first step")
    site.service.begin_stop()
    go_on.set()
    heir.wait_for_state(node, "active")
    assert script.calls.count("first") == script.calls.count("once") == 1
    ran = conductors_of(site, node)
    assert (ran["first"], ran["once"]) == (site.runtime.host, HEIR)
    assert all(run["started_at"] for run in site.runs(node))


def test_a_step_that_may_not_be_repeated_is_ended_where_it_began(
    site: Site, script: Script, heir: Site
):
    script.add("deploy", "write", in_turn(Again(after_s=0.2, reason="slow"), None), resumable=False)
    node = deploy_at_first(site)
    wait_for(lambda: pauses(site, node), "the pause")
    site.service.begin_stop()
    heir.wait_for_state(node, "active")
    assert script.calls.count("write") == 2
    assert conductors_of(site, node)["write"] == site.runtime.host


def test_a_heir_that_cannot_begin_at_once_finds_the_step_not_begun(
    site: Site, script: Script, heir: Site
):
    """It dies before its first turn: the step that may run once has still not run."""
    go_on = threading.Event()
    script.add("deploy", "first", lambda task: go_on.wait(10) and None)
    script.add("deploy", "once", resumable=False)
    heir.service.periodics.stop()
    node = deploy_at_first(site)
    wait_for(lambda: "first" in script.calls, "the first step")
    site.service.begin_stop()
    go_on.set()
    wait_for(lambda: site.is_free(node), "the node to be free")
    handed_over = next(run for run in site.runs(node) if run["step"] == "once")
    assert (handed_over["state"], handed_over["conductor"], handed_over["started_at"]) == (
        "again", None, None,
    )  # fmt: skip
    assert site.runtime.host in handed_over["reason"]


def test_the_last_conductor_ends_its_flows_itself(site: Site, script: Script):
    script.add("deploy", "write", in_turn(Again(after_s=0.1, reason="slow"), None))
    node = deploy_at_first(site)
    wait_for(lambda: pauses(site, node), "the pause")
    site.service.begin_stop()
    site.wait_for_state(node, "active")
    assert conductors_of(site, node)["write"] == site.runtime.host


def test_a_drain_without_a_peer_ends_its_flows_and_begins_no_other(site: Site, script: Script):
    """Its agents can call nobody else: it stays on line until the last flow has ended."""
    script.add("deploy", "write", in_turn(WaitForCall(reason="the agent boots"), None))
    node, other = deploy_at_first(site), site.enrol(provision_state="available")
    site.wait_for_state(node, "wait call-back")
    drain = threading.Thread(target=site.service.finish_work, args=(30.0,))
    drain.start()
    wait_for(site.runtime.draining.is_set, "the drain")
    with pytest.raises(errors.ConductorDrains, match=f"{other}.* drains"):
        site.deploy(other)
    assert drain.is_alive()
    assert peers.look(site.db, site.runtime.host).state == "online"
    site.agent_calls(node)
    drain.join()
    assert site.node(node).provision_state == "active"


def test_a_drain_waits_for_a_flow_whose_last_step_had_waited(
    site: Site, script: Script, monkeypatch: pytest.MonkeyPatch
):
    """Between the end of that step and of its flow no row is open: the lock alone shows it."""
    script.add("deploy", "write", in_turn(WaitForCall(reason="the agent boots"), None))
    node = deploy_at_first(site)
    site.wait_for_state(node, "wait call-back")
    may_end, finish, has_flows = threading.Event(), runner._finish, site.service._has_flows
    monkeypatch.setattr(runner, "_finish", lambda flow: may_end.wait(60) and finish(flow))

    def call_and_look() -> bool:
        monkeypatch.setattr(site.service, "_has_flows", has_flows)
        site.agent_calls(node)
        wait_for(lambda: not has_flows(), "the last row to end")
        threading.Timer(0.3, may_end.set).start()  # a drain that is over by then is over too early
        return has_flows()

    monkeypatch.setattr(site.service, "_has_flows", call_and_look)
    site.service.finish_work(60.0)
    assert site.node(node).provision_state == "active"


def test_a_drain_with_a_peer_leaves_the_flows_to_it(site: Site, script: Script, heir: Site):
    script.add("deploy", "write", in_turn(WaitForCall(reason="the agent boots"), None))
    node = deploy_at_first(site)
    site.wait_for_state(node, "wait call-back")
    site.runtime.ring.refresh()
    site.service.finish_work(30.0)
    assert peers.look(site.db, site.runtime.host).state == "draining"
    heir.agent_calls(node)
    heir.wait_for_state(node, "active")
