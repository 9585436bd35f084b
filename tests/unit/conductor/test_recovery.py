"""What a start finds, and flows that nobody walks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import recovery, states
from bloomery.conductor.states import STUCK_STATES_TREATED_AS_FAIL
from bloomery.conductor.workers import Slot
from bloomery.db import conductors, locks
from bloomery.db.tables import STEP_RUNS
from bloomery.drivers.base import DriverTask
from bloomery.outcome import Again, Hold, WaitForCall
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.probes import crash_probes
from tests.kit.servers.site import HOST, Site
from tests.kit.waiting import wait_for

MakeSite = Callable[..., Site]

STUCK = {
    "deploying": "deploy failed",
    "cleaning": "clean failed",
    "verifying": "enroll",
    "inspecting": "inspect failed",
    "adopting": "adopt failed",
    "rescuing": "rescue failed",
    "unrescuing": "unrescue failed",
    "deleting": "error",
    "servicing": "service failed",
}


def test_every_stuck_state_is_in_the_table():
    assert set(STUCK) == STUCK_STATES_TREATED_AS_FAIL


def test_nodes_that_nothing_works_on_fail_at_start_and_those_at_rest_stay(site: Site):
    nodes = {
        state: site.enrol(provision_state=state, target_provision_state=states.TARGETS.get(state))
        for state in states.State
    }
    for state in STUCK:
        site.set(nodes[state], reservation=HOST, reserved_for="a former life")
    again = site.restarted()
    for state, node in nodes.items():
        if state not in STUCK:
            assert (again.node(node).provision_state, again.history(node)) == (state, [])
            continue
        found = again.wait_for_state(node, STUCK[state])
        assert state in found.last_error
        assert HOST in found.last_error
        assert again.history(node)[-1]["severity"] == "ERROR"
    again.close()


def test_reservations_of_a_former_life_are_void_at_start(site: Site):
    task = [site.enrol(provision_state="available") for _ in range(3)]
    before = [site.acquire(node).node.lock_generation for node in task]
    again = site.restarted()
    for node, generation in zip(task, before, strict=True):
        found = again.node(node)
        assert (found.reservation, found.reserved_for, found.reserved_at) == (None, None, None)
        assert found.lock_generation > generation
    again.close()


@pytest.mark.parametrize("outcome", [WaitForCall(reason="boots"), Hold(reason="look")])
def test_a_flow_that_waits_waits_on(make_site: MakeSite, outcome: Any):
    script = Script()
    script.add("deploy", "one", in_turn(outcome, None))
    script.add("deploy", "two")
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    waits_in = site.wait_for_state(node, "wait call-back", "deploy hold").provision_state
    again = site.restarted()
    assert again.node(node).provision_state == waits_in
    assert recovery.adopt_all(again.runtime) == 0
    if waits_in == "deploy hold":
        again.provision(node, "unhold")
    again.agent_calls(node)
    again.wait_for_state(node, "active")
    again.close()


def test_a_flow_that_another_walks_is_not_taken_up(make_site: MakeSite):
    script = Script()
    go_on = threading.Event()
    script.add("deploy", "slow", lambda task: go_on.wait(10) and None)
    site = make_site(registry=script.registry(), patience_s=0.01)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: "slow" in script.calls, "the step to run")
    assert recovery.adopt_all(site.runtime) == 0
    recovery.adopt(site.runtime, node)
    go_on.set()
    site.wait_for_state(node, "active")
    assert script.calls.count("slow") == 1
    recovery.adopt(site.runtime, node)
    assert site.node(node).provision_state == "active"


def test_an_orphan_is_taken_up_while_the_conductor_runs(make_site: MakeSite):
    script = Script()
    died = threading.Event()

    def dies_once(task: DriverTask) -> None:
        if not died.is_set():
            died.set()
            raise SystemExit

    script.add("deploy", "one", dies_once)
    site = make_site(registry=script.registry(), check_provision_state_interval=0)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: died.is_set() and site.is_free(node), "the worker to die")
    if site.node(node).provision_state == "deploying":
        assert recovery.adopt_all(site.runtime) == 1
    site.wait_for_state(node, "active", "deploy failed")


def test_a_full_pool_takes_the_orphan_up_later(make_site: MakeSite, monkeypatch):
    monkeypatch.setattr(recovery, "_RETRY_S", 0.02)
    script = Script()
    script.add("deploy", "one")
    site = make_site(registry=script.registry(), workers_pool_size=3)
    node = orphan(site)
    slots: list[Slot] = []

    def take_one() -> bool:
        with contextlib.suppress(errors.NoFreeConductorWorker):  # the start's own work has it
            slots.append(site.runtime.workers.slot())
        return len(slots) == 3

    wait_for(take_one, "every worker to be taken")
    recovery.adopt(site.runtime, node)
    assert site.node(node).provision_state == "deploying"
    for slot in slots:
        with slot:
            pass
    site.wait_for_state(node, "active")


def orphan(site: Site) -> str:
    """A node in the middle of a deployment that nobody walks."""
    node = site.enrol(provision_state="available")
    from bloomery.conductor import deployments, runner
    from bloomery.model.request import ProvisionArguments

    with site.acquire(node) as task:
        flow = runner.plan(
            task, deployments.DEPLOY, deployments.deploy_steps(task, ProvisionArguments())
        )
        task.process_event("deploy", journal=flow.opening)
    return node


def test_a_change_of_power_that_others_have_overtaken_is_not_repeated(make_site: MakeSite):
    """Its conductor died; before anybody took it up the node was deployed anew, and runs."""
    site = make_site(check_provision_state_interval=0)
    node = site.enrol(provision_state="active")
    site.order("change_node_power_state", node, "power off", None)
    wait_for(lambda: site.is_free(node), "the change of power")
    site.provision(node, "rebuild")
    site.wait_for_state(node, "active")
    wait_for(lambda: site.is_free(node), "the deployment")
    (interrupted,) = [run["flow"] for run in site.runs(node) if run["phase"] == "power"]
    leave_running(site, interrupted)
    site.set(node, power_state="power on", target_power_state="power off")
    recovery.adopt(site.runtime, node)
    wait_for(lambda: site.runs(node)[0]["state"] == "failed", "its end")
    found = site.node(node)
    assert (found.power_state, found.target_power_state) == ("power on", None)
    assert "another order came before it could go on" in found.last_error


def test_a_change_of_power_that_nobody_has_overtaken_is_repeated(make_site: MakeSite):
    site = make_site(check_provision_state_interval=0)
    node = site.enrol(provision_state="active")
    site.order("change_node_power_state", node, "power off", None)
    wait_for(lambda: site.is_free(node), "the change of power")
    leave_running(site, site.runs(node)[0]["flow"])
    site.set(node, power_state="power on", target_power_state="power off")
    recovery.adopt(site.runtime, node)
    wait_for(lambda: site.node(node).power_state == "power off", "the change of power")


def leave_running(site: Site, flow: str) -> None:
    """Leave the row of a flow of one step as a conductor does that dies."""
    dead = {"state": "running", "conductor": "host-b", "finished_at": None}
    row = sa.update(STEP_RUNS).where(STEP_RUNS.c.flow == flow)
    site.db.transact(lambda conn: conn.execute(row.values(dead)))


def test_a_flow_goes_on_in_the_name_of_who_asked(make_site: MakeSite):
    site = make_site()
    node = orphan(site)
    asked = site.runs(node)[0]["request_id"]
    recovery.adopt(site.runtime, node)
    site.wait_for_state(node, "active")
    assert {entry["request_id"] for entry in site.history(node)} == {asked}


@pytest.mark.parametrize(
    ("ran_on", "why"),
    [
        ("host-b", "conductor host-b died"),
        (None, "its conductor was stopped"),
        (HOST, "its work there was cut off"),
    ],
)
def test_a_step_that_is_begun_again_is_history(make_site: MakeSite, ran_on: str | None, why: str):
    site = make_site(check_provision_state_interval=0)
    node = orphan(site)
    row = sa.update(STEP_RUNS).where(STEP_RUNS.c.state == "running").values(conductor=ran_on)
    site.db.transact(lambda conn: conn.execute(row))
    recovery.adopt(site.runtime, node)
    site.wait_for_state(node, "active")
    [entry] = [each for each in site.history(node) if each["event_type"] == "recovery"]
    assert entry["event"] == f"Step deploy.prepare begun again by conductor {HOST}: {why}"
    assert entry["state"] == "deploying"


def test_a_moment_without_the_database_fails_no_deployment(make_site: MakeSite, monkeypatch):
    """A full disk, a foreign lock: the flow is taken up again when the database is back."""
    script = Script()
    site = make_site(registry=script.registry())
    failures = [errors.DatabaseBusy(reason="the disk is full") for _ in range(3)]
    plain = site.db.transact

    def refuse(work: Any) -> Any:
        if failures and "one" in script.calls:
            raise failures.pop()
        return plain(work)

    script.add(
        "deploy", "one", lambda task: Again(after_s=0.001, reason="x") if not task.turn else None
    )
    script.add("deploy", "two")
    monkeypatch.setattr(site.db, "transact", refuse)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: not failures, "the faults to be over")
    wait_for(lambda: site.is_free(node), "the node to be free")
    recovery.adopt_all(site.runtime)
    assert site.wait_for_state(node, "active").last_error is None


def test_a_conductor_registers_and_beats(make_site: MakeSite):
    site = make_site(heartbeat_interval=1)

    def row() -> Any:
        with site.db.read() as conn:
            [found] = conductors.list_all(conn)
        return found

    first = row()
    assert (first.hostname, first.online) == (HOST, True)
    assert first.heartbeat >= 1
    wait_for(lambda: row().heartbeat > first.heartbeat, "a second heartbeat")


def test_a_conductor_that_stops_waits_for_its_work_and_goes_off_line(make_site: MakeSite):
    script = Script()
    script.add("deploy", "slow", in_turn(Again(after_s=0.1, reason="slow"), None))
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.service.stop()
    assert site.node(node).provision_state == "active"
    with site.db.read() as conn:
        assert [peer.online for peer in conductors.list_all(conn)] == [False]


def test_a_conductor_that_cannot_wait_leaves_its_work_to_the_next(make_site: MakeSite):
    script = Script()
    script.add("deploy", "slow", in_turn(Again(after_s=30, reason="slow"), None))
    site = make_site(registry=script.registry(), graceful_shutdown_timeout=0)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: any(run["state"] == "again" for run in site.runs(node)), "the pause")
    site.service.stop()
    site.closed = False
    again = site.restarted(graceful_shutdown_timeout=5)
    again.wait_for_state(node, "active")
    again.close()


def test_a_conductor_that_has_stopped_writes_to_no_bmc(tmp_path: Path):
    crash_probes.a_conductor_that_has_stopped_writes_to_no_bmc(tmp_path / "stop.sqlite")


def test_voiding_frees_the_nodes_of_one_host_only(site: Site):
    ours, theirs = site.enrol(), site.enrol()
    now = datetime.now(UTC)
    site.set(ours, reservation=HOST, reserved_at=now)
    site.set(theirs, reservation="host-b", reserved_at=now)
    assert site.db.transact(lambda conn: locks.void_all(conn, "host-b")) == [theirs]
    assert site.node(ours).reservation == HOST
    site.set(ours, reservation=None)
