"""Every situation that keeps a node: its cause, since when, and what to do, each in a sentence."""

from __future__ import annotations

import contextlib
import json
import re
import uuid as uuids
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import console, runner, tasks, writes
from bloomery.conductor.periodics import power_sync
from bloomery.db import nodes, rows
from bloomery.db.tables import STEP_RUNS
from bloomery.model.node import FLOW_RETRY
from bloomery.model.node_facts import BMC_LOG
from bloomery.rpc.liveness import Liveness
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.servers import peers
from tests.kit.waiting import wait_for

PASSWORD = "hunter2-situations"
OURS, PEER = "host-a", "host-b"
AGO = timedelta(seconds=90)
COMMAND = re.compile(r"\b(baremetal|openstack|bloomery) [a-z]+")
OPTION = re.compile(r"\[\w+\]\w+")
REST = re.compile(r"\bwait\b|^nothing needs to be done: [^;]*$")  # nobody has to do anything
UNKNOWN = "unknown"  # a time that is nowhere recorded
ORDER = re.compile(r"\b(ask|set|switch|delete|end|raise|change|start)\b")


@dataclass
class Scene:
    """A stage on which a situation is prepared, and a node in it."""

    stage: Any
    bmc: FakeBmc

    def node(self, state="available", **values):
        info = {"redfish_password": PASSWORD, "redfish_address": "https://bmc.test"}
        node = self.stage.bring_to(state, driver_info=info) if state in (
            "manageable", "available", "active",
        ) else self.stage.enrol(driver_info=info)  # fmt: skip
        self.set(node, **values)
        return node

    def set(self, node, **values):
        if values:
            self.stage.site.set(node, **values)
        return node

    def held_by(self, host, purpose="deploy", **values):
        held = {"reservation": host, "reserved_for": purpose, "reserved_at": rows.now() - AGO}
        return self.node(**held | values)

    def deploying(self, **run):
        """Return a node at step deploy.deploy of a deployment; ``run`` changes the step's row."""
        node = self.stage.bring_to("available", {"wait": {"deploy.deploy": -1}})
        self.stage.ask(node, "active")
        self.stage.wait_for(node, "wait call-back")
        if run:
            here = STEP_RUNS.c.node_uuid == node, STEP_RUNS.c.state == "waiting"
            change = sa.update(STEP_RUNS).where(*here).values({"deadline_at": None, **run})
            self.stage.site.db.transact(lambda conn: conn.execute(change))
            self.set(node, provision_state="deploying")
        return node

    def working(self, **run):
        """As ``deploying``, with our own lock on the node."""
        return self.set(self.deploying(**run), reservation=OURS, reserved_for="deploy")

    def peer(self, *, silent_s=0, online=True, drivers=()):
        """Let there be another conductor that sent no heartbeat for so long."""
        db, ring, now = self.stage.site.db, self.stage.services.rpc.ring, [0.0]
        peers.join(db, PEER, drivers)
        peers.beat(db, PEER, online=online)
        ring._clock = lambda: now[0]
        ring.liveness = Liveness.of(self.stage.services.conf, ring._clock)
        ring.refresh()
        while now[0] < silent_s:
            now[0] += 10
            peers.beat(db, OURS)
            ring.refresh()

    def remembers(self, **facts):
        """Let the conductor remember this of every BMC."""
        said = {"last_error": None, "last_error_at": None, "left_alone": False} | facts
        power = self.stage.site.runtime.registry.interfaces["power"]["fake"]
        power.describe_bmc = lambda task: said

    def is_silent(self, at):
        """Let every BMC have failed to answer, once."""
        at = at.isoformat()
        self.remembers(silent_since=at, last_error_at=at, last_error="cannot reach it")

    def nodes_of_peer(self):
        """Return a node that the ring gives to the other conductor."""
        ring, driver = self.stage.services.rpc.ring, "fake-hardware"
        while True:
            uuid = str(uuids.uuid4())
            if ring.find_host(driver=driver, group="", uuid=uuid) == PEER:
                return self.stage.site.enrol(uuid=uuid)


SITUATIONS = {}


def situation(cause, action, since=None):
    """Note what is told of the node that the function returns; ``since``: how long ago, about."""

    def note(prepare):
        SITUATIONS[prepare.__name__] = prepare, cause, action, since
        return prepare

    return note


# --------------------------------------------------------------------------------- conductors


@situation(
    "conductor host-b holds the node for deploy, and sent no heartbeat for 60 s",
    r"look at conductor host-b \(bloomery conductor list\); another conductor frees its nodes and "
    "continues their flows after 60 s", since=60,
)  # fmt: skip
def conductor_dead(scene):
    scene.peer(silent_s=60)
    return scene.held_by(PEER)


@situation("host-b holds the node for deploy, and sent no heartbeat for 30 s",
           "look at conductor host-b", since=30)  # fmt: skip
def conductor_paused(scene):
    scene.peer(silent_s=30)
    return scene.held_by(PEER)


@situation("conductor host-b holds the node for deploy, is off line and ends its work",
           "wait: when it ends the node is free", since=90)  # fmt: skip
def conductor_draining(scene):
    scene.peer(online=False)
    return scene.held_by(PEER)


@situation("conductor host-z holds the node for deploy, and is not registered",
           r"start conductor host-z again \(bloomery conductor\): it frees", since=90)  # fmt: skip
def conductor_gone_for_good(scene):
    return scene.held_by("host-z")


@situation("no conductor serves the node: .*driver 'redfish' is installed, but no conductor has it",
           "start a conductor with this driver and conductor group .*, or change")  # fmt: skip
def none_for_driver(scene):
    return scene.node("enroll", driver="redfish")


@situation("no conductor serves the node: .*in conductor group 'east'; it is served in ''",
           "start a conductor with this driver and conductor group")  # fmt: skip
def none_for_group(scene):
    return scene.node("enroll", conductor_group="east")


@situation("no conductor serves the node: .*no conductor of driver 'redfish' .* is alive: host-b "
           "sent no heartbeat for 60 s", "start a conductor with this driver")  # fmt: skip
def all_of_driver_dead(scene):
    scene.peer(silent_s=60, drivers=["redfish"])
    return scene.node("enroll", driver="redfish")


@situation(
    "conductor host-b serves the node and cannot be asked from here: it is not in",
    "check the connection to conductor host-b: its network, the message broker .*, its process",
)
def broker_away(scene):
    scene.peer(drivers=["fake-hardware"])
    return scene.nodes_of_peer()


@situation("conductor host-b serves the node and cannot be asked .* no heartbeat for 30 s",
           "check the connection to conductor host-b", since=30)  # fmt: skip
def serving_conductor_paused(scene):
    scene.peer(drivers=["fake-hardware"], silent_s=30)
    return scene.nodes_of_peer()


@situation(
    "conductor host-a cannot use the node's driver: .*nonsense",
    "enable it on that conductor .*, or change the node's driver or interfaces",
)
def interface_not_enabled(scene):
    return scene.node("enroll", power_interface="nonsense")


@situation("^nothing is wrong: it is in enroll$", "ask for manage")
def conductor_of_another_release(scene):
    def describe_work(request, node_uuid):
        raise errors.MethodUnknown(method="describe_work", version="1.0", host=OURS, known="1.0")

    scene.stage.site.service.manager.describe_work = describe_work
    return scene.node("enroll")


# -------------------------------------------------------------------------------------- flows


@situation("step deploy.deploy of deploy waits for a call of the agent, which sent no heartbeat in "
           "this boot",
           "wait for the call, or ask for abort .*: waiting for the fake", since=0)  # fmt: skip
def agent_silent(scene):
    return scene.deploying()


@situation("step deploy.deploy .* agent, whose last heartbeat came at 2026-01-02T03:04:05.* from https://a",
           "wait for the call, or ask for abort", since=0)  # fmt: skip
def agent_fell_silent(scene):
    info = {"agent_last_heartbeat": "2026-01-02T03:04:05.000000", "agent_url": "https://a"}
    return scene.set(scene.deploying(), driver_internal_info=rows.dump(info))


@situation("clean is held: a hold step", "unhold it to continue, or abort it", since=0)
def step_held(scene):
    node = scene.stage.bring_to("manageable")
    hold = {"interface": "deploy", "step": "hold", "args": {}}
    scene.stage.ask(node, "clean", clean_steps=[hold])
    scene.stage.wait_for(node, "clean hold")
    return node


@situation("step deploy.deploy of deploy is tried again: the BMC does not answer",
           "look at the BMC .*, or wait: the BMC does not answer", since=0)  # fmt: skip
def step_bears_an_outage(scene):
    later = rows.now() + AGO
    return scene.working(state="again", reason="the BMC does not answer", due_at=later,
                         deadline_at=later)  # fmt: skip


@situation(
    "step deploy.deploy of deploy is due, and no worker of conductor host-a is free",
    "wait, or give that conductor more workers: .conductor.workers_pool_size",
    since=90,
)
def worker_pool_full(scene):
    """The turn comes while all workers are busy, and is tried again after a while."""
    node = scene.working(state="again", due_at=rows.now() - AGO)
    runtime = scene.stage.site.runtime
    task = SimpleNamespace(runtime=runtime, node=SimpleNamespace(uuid=node))
    with contextlib.ExitStack() as slots:
        while not runtime.workers.missing_since:
            with contextlib.suppress(errors.NoFreeConductorWorker):
                slots.enter_context(runtime.workers.slot())
                continue
            runner.start_attempt(SimpleNamespace(task=task))
    runtime.workers.missing_since[node] -= AGO
    return node


@situation("step deploy.deploy of deploy runs: waiting for power off",
           "wait: step deploy.deploy of deploy runs", since=0)  # fmt: skip
def turn_that_takes_long(scene):
    """A worker is at it: the row keeps the time of the first of many turns."""
    return scene.working(state="again", reason="waiting for power off", due_at=rows.now() - AGO)


@situation(
    "step deploy.deploy of deploy waits .waiting for power off.: the BMC does not answer since "
    "[0-9:]* UTC, asked last at [0-9:]*: cannot reach it",
    "look at the BMC .*, or wait: step deploy.deploy goes on when it answers, or fails",
    since=0,
)
def bmc_silent_in_a_step(scene):
    node = scene.working(state="again", reason="waiting for power off", due_at=rows.now() - AGO)
    scene.is_silent(rows.now())
    return node


@situation("step deploy.deploy of deploy runs: waiting for power off",
           "wait: step deploy.deploy of deploy runs", since=0)  # fmt: skip
def bmc_silent_before_a_step_that_has_not_asked_it(scene):
    scene.is_silent(rows.now() - AGO)
    return scene.working(state="again", reason="waiting for power off", due_at=rows.now() - AGO)


@situation("step deploy.deploy of deploy runs: disks are slow",
           "wait: step deploy.deploy of deploy runs", since=0)  # fmt: skip
def step_waits_for_its_turn(scene):
    return scene.working(state="again", reason="disks are slow", due_at=rows.now() + AGO)


@situation("step deploy.deploy of deploy runs on child node 1be26c0b",
           "wait: step deploy.deploy of deploy runs", since=0)  # fmt: skip
def parent_waits_for_child(scene):
    return scene.working(state="running", facts=rows.dump({"child": "1be26c0b"}))


@situation("step deploy.deploy of deploy runs; it was repeated after an interruption",
           "wait: step deploy.deploy of deploy runs", since=0)  # fmt: skip
def step_repeated(scene):
    return scene.working(state="running", recovery_weight=1)


@situation("no conductor runs its flow, left by conductor host-z: step deploy.deploy",
           "wait: conductor host-a continues the flow within 60 s", since=0)  # fmt: skip
def flow_orphaned(scene):
    return scene.deploying(state="running", conductor="host-z")


@situation("it is cleaning, and has no flow",
           "wait: the conductor ends this state at its next check")  # fmt: skip
def state_without_flow(scene):
    return scene.node("enroll", provision_state="cleaning", target_provision_state="available")


@situation("conductor host-a holds the node for power on; its power changes to power on",
           "wait: the lock is free when that is done", since=90)  # fmt: skip
def lock_of_a_power_order(scene):
    return scene.held_by(OURS, "power on", target_power_state="power on")


@situation("conductor host-a holds the node for vendor call", "wait: the lock is free", since=90)
def lock_of_a_call(scene):
    return scene.held_by(OURS, "vendor call")


# --------------------------------------------------------------------------------- left alone


@situation("the BMC does not answer: .*no route",
           "look at the BMC .*: maintenance ends by itself when it answers again; it is asked "
           "after 300 to 1200 s, and within 300 s once anything has reached it")  # fmt: skip
def bmc_dead(scene):
    node = scene.stage.bring_to("active")
    scene.stage.power(node, "power on")
    scene.bmc.reads, scene.bmc.one = UNREACHABLE, {}
    sync = power_sync.PowerSync(scene.stage.site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle, "the slow look")
    return node


@situation(
    "^it is active; power sync: was power off, recorded power on: switched on again .at ",
    "find what switches it other than Bloomery .its system, heat, a power supply",
    since=0,
)
def machine_switched_itself_off(scene):
    node = scene.stage.bring_to("active")
    scene.stage.power(node, "power on")
    scene.bmc.one[node] = "power off"
    runtime = scene.stage.site.runtime
    options = replace(runtime.conf.conductor, power_state_sync_max_retries=1)
    conf = replace(runtime.conf, conductor=options)
    sync = power_sync.PowerSync(replace(runtime, conf=conf))
    sync.run()
    wait_for(lambda: scene.stage.show(node)["reservation"] is None and sync.is_idle, "the power")
    return node


@situation("the BMC refuses the login; attempts so far: 3",
           "correct user name and password in driver_info .*: the next attempt is "
           "at 2026-01-02 04:00:00 UTC, or", since=None)  # fmt: skip
def wrong_password(scene):
    scene.remembers(login_refused={
        "since": "2026-01-02T03:00:00+00:00", "tries": 3,
        "next_try_at": "2026-01-02T04:00:00+00:00",
    })  # fmt: skip
    return scene.node("enroll")


@situation(
    "the BMC failed again and again and is left alone: no route",
    "look at the BMC .*; it is tried again at 2026-01-02 04:00:00 UTC, and at once by an order",
)
def breaker_open(scene):
    scene.remembers(left_alone=True, last_error="no route",
                    last_error_at="2026-01-02T03:00:00+00:00",
                    next_try_at="2026-01-02T04:00:00+00:00")  # fmt: skip
    return scene.node("active")


@situation(
    "it is active, and the BMC does not answer since [0-9:]* UTC, asked last at .*: cannot",
    "look at the BMC .*: nothing that needs it can be done; once it answers again, nothing needs",
    since=90,
)
def bmc_silent(scene):
    scene.is_silent(rows.now() - AGO)
    return scene.node("active")


@situation("it is in clean failed, for a cause that may pass: no route",
           "wait: retry 2 of 3 begins by itself after 2026-01-02 03:00:00 UTC; to stop it, ask for "
           "manage", since=0)  # fmt: skip
def retry_due(scene):
    scene.stage.configure("conductor", failed_flow_retries=3)
    note = {"attempt": 2, "of": 3, "due_at": "2026-01-02T03:00:00+00:00"}
    return scene.node(
        "manageable", provision_state="clean failed", last_error="no route",
        provision_updated_at=rows.now(), driver_internal_info=rows.dump({FLOW_RETRY: note}),
    )  # fmt: skip


@situation("an operator has set maintenance: new fans",
           r"end maintenance .* is done \(baremetal node maintenance unset\)", since=0)  # fmt: skip
def maintenance_by_hand(scene):
    node = scene.node("active")
    scene.stage.api.put(f"/v1/nodes/{node}/maintenance", {"reason": "new fans"})
    return node


@situation(
    "it is in clean failed, and in maintenance for clean failure: .*vendor",
    "correct the cause of the error, end maintenance, and ask for manage and then for provide "
    r"\(baremetal node manage, baremetal node provide\)",
    since=0,
)
def maintenance_by_fault(scene):
    node = scene.stage.bring_to("manageable", {"fail": ["vendor"]})
    scene.stage.ask(node, "provide")
    scene.stage.wait_for(node, "clean failed")
    return node


@situation("its console is enabled, and conductor host-a could not start it: cannot restart the "
           "console: .*told to fail",
           "nothing needs to be done: .*; correct the cause, and enable")  # fmt: skip
def console_down(scene):
    scene.stage.site.service.periodics.stop()
    node = scene.stage.bring_to("active", {"fail": ["console.start_console"]})
    scene.set(node, console_enabled=True)
    console.take_over_all(scene.stage.site.runtime)
    return node


# ------------------------------------------------------------------------- what may be asked


@situation(
    "3 deployments run, the limit of .conductor.max_concurrent_deploy: another one is",
    "deploy it when a user needs .*; wait for others to end first, or raise .conductor.max_",
)
def limit_of_deployments(scene):
    scene.stage.configure("conductor", max_concurrent_deploy=3)
    node = scene.node("available")
    fill(scene, "wait call-back", 3)
    return node


@situation(
    "2 cleanings run, the limit of .conductor.max_concurrent_clean: another one is",
    "ask for provide, .*; wait for others to end first, or raise .conductor.max_",
)
def limit_of_cleanings(scene):
    scene.stage.configure("conductor", max_concurrent_clean=2)
    node = scene.node("manageable")
    fill(scene, "clean wait", 2)
    return node


def fill(scene, state, count):
    for _ in range(count):
        scene.set(scene.stage.site.enrol(), provision_state=state)


@situation(
    "it is protected: deleted and rebuild are refused .pet of the house.",
    "nothing needs to be done: .*; set protected to false before deleted or rebuild",
)
def protected(scene):
    return scene.node("active", protected=True, protected_reason="pet of the house")


@situation("it is retired: it will not become available .too old.",
           "delete the node .baremetal node delete., or end its retirement .*, and")  # fmt: skip
def retired(scene):
    return scene.node("manageable", retired=True, retired_reason="too old")


@situation("it is retired: it will not become available .too old.",
           r"nothing .*; after deleted \(baremetal node undeploy\) it is cleaned and")  # fmt: skip
def retired_and_active(scene):
    return scene.node("active", retired=True, retired_reason="too old")


@situation("it is retired: no allocation takes it .too old.",
           r"nothing .*; after deleted \(baremetal node undeploy\) it is available,")  # fmt: skip
def retired_and_active_and_never_cleaned(scene):
    return scene.node("active", retired=True, retired_reason="too old", automated_clean=False)


@situation(
    "it is retired: no allocation takes it .too old.",
    r"ask for manage, .* \(baremetal node manage\); or end its retirement \(baremetal node unset",
)
def retired_and_available(scene):
    return scene.node("available", retired=True, retired_reason="too old")


@situation("a user has reserved it for instance 8d5a2f52",
           r"ask for active, or remove its instance \(baremetal node deploy, ")  # fmt: skip
def taken_by_hand(scene):
    return scene.node("available", instance_uuid="8d5a2f52-97b1-4b0a-a9c4-7a7de1a3e1b5")


@situation(
    "it is in deploy failed: .*deploy.deploy",
    "correct the cause of the error, and deploy it again, or undeploy it",
    since=0,
)
def deployment_failed(scene):
    node = scene.stage.bring_to("available", {"fail": ["deploy.deploy"]})
    scene.stage.ask(node, "active")
    scene.stage.wait_for(node, "deploy failed")
    return node


@situation("it is in enroll: .*no route",
           "correct the cause of the error, and ask for manage again")  # fmt: skip
def verification_failed(scene):
    node = scene.node("enroll")
    scene.bmc.reads = UNREACHABLE
    scene.stage.ask(node, "manage")
    scene.stage.wait_for(node, "enroll")
    return node


@situation(
    "it is available, and in maintenance for clean failure: .*vendor",
    "^end maintenance .baremetal node maintenance unset.; then deploy it when a user needs",
    since=UNKNOWN,
)
def provided_with_maintenance_of_a_failure(scene):
    return scene.node("available", maintenance=True, fault="clean failure",
                      maintenance_reason="vendor step failed")  # fmt: skip


@situation("it is active; the last error is: failed power: cannot reach the BMC",
           "correct the cause of the error .*, and repeat what failed; or nothing needs",
           since=0)  # fmt: skip
def order_failed(scene):
    return scene.node("active", last_error="failed power: cannot reach the BMC")


@situation("it is active; the last error is: no boot; the BMC logged: DIMM A3 at 12:04:05 UTC; the "
           "BMC's clock is 3600 s ahead, so that certificates may look invalid$",
           "correct the cause of the error", since=0)  # fmt: skip
def bmc_logged_beside_a_failure(scene):
    scene.remembers(clock_difference_s=3600.0)
    node = scene.node("active", last_error="no boot")
    runtime = scene.stage.site.runtime
    context = tasks.background_context(runtime)
    with runtime.db.read() as conn:
        row = nodes.get(conn, node)
    facts = (
        ("the BMC logged: a fan", {"event_type": BMC_LOG}), ("no boot", {"event_type": "deploy"}),
        ("the BMC logged: DIMM A3 at 12:04:05 UTC", {"event_type": BMC_LOG}),
    )  # fmt: skip
    for text, more in facts:
        failed = more["event_type"] != BMC_LOG
        runtime.db.transact(writes.history_entry(context, row, text, failed=failed, **more))
    return node


@situation("it is available; the BMC's clock is 3600 s behind, so that certificates may look",
           "^set the clock of the BMC, or its NTP server; .*management.set_bmc_clock .*; deploy it",
           since=UNKNOWN)  # fmt: skip
def wrong_clock(scene):
    scene.remembers(clock_difference_s=-3600.0)
    return scene.node("available")


@situation("it is active, and is powered off$",
           "power it on .baremetal node power on., unless it shall be off: its user's system does",
           since=0)  # fmt: skip
def powered_off(scene):
    return scene.node("active", power_state="power off")


@situation("it is available, and a deployment would be refused: .*traits that it lacks: "
           "CUSTOM_FAST", "bloomery node deploy --check", since=UNKNOWN)  # fmt: skip
def undeployable_by_its_instance(scene):
    return scene.node("available", instance_info=rows.dump({"traits": ["CUSTOM_FAST"]}))


@situation("it is available; properties/capabilities has no effect with 'boot_mode': write "
           "name:value", "set what is named", since=UNKNOWN)  # fmt: skip
def malformed_capability(scene):
    return scene.node("available", properties=rows.dump({"capabilities": "a:b,boot_mode"}))


@situation("it is available; instance_info/capabilities has no effect with 'boot_mode:efi': .*uefi "
           "or bios", "set what is named", since=UNKNOWN)  # fmt: skip
def unknown_boot_mode(scene):
    return scene.node("available", instance_info=rows.dump({"capabilities": "boot_mode:efi"}))


@situation("it is available; resource_class 'a b' has other characters", "set what is named",
           since=UNKNOWN)  # fmt: skip
def unusual_class(scene):
    return scene.node("available", resource_class="a b")


@situation(
    "^nothing is wrong: it is active$",
    "nothing needs to be done: it runs its user's system",
    since=0,
)
def nothing_is_wrong(scene):
    return scene.node("active")


# --------------------------------------------------------------------------------- the table


@pytest.fixture
def scene(make_stage):
    bmc = FakeBmc()
    scene = Scene(make_stage(registry=bmc.registry(), power_state_sync_max_retries=0), bmc)
    yield scene
    scene.stage.site.db.transact(lambda conn: conn.execute(
        sa.text("UPDATE nodes SET reservation = NULL")
    ))  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_situation_is_told(scene, name):
    prepare, cause, action, since_s = SITUATIONS[name]
    scene.stage.site.service.periodics.stop()
    told = scene.stage.why(prepare(scene))
    assert re.search(cause, told["cause"]), told["cause"]
    assert re.search(action, told["next_action"]), told["next_action"]
    assert_names_a_command(told["next_action"])
    assert PASSWORD not in json.dumps(told)
    if since_s == UNKNOWN:
        assert told["since"] is None
    elif since_s is not None:
        ago = datetime.now(UTC) - datetime.fromisoformat(told["since"])
        assert timedelta(seconds=since_s) <= ago < timedelta(seconds=since_s + 60)


def assert_names_a_command(action):
    """An order of any kind comes with its command or option; else the way is to wait."""
    named = COMMAND.search(action) or OPTION.search(action)
    assert named or (REST.search(action) and not ORDER.search(action)), action


def test_there_are_enough_situations():
    assert len(SITUATIONS) >= 25


def test_validation_names_what_is_probably_a_mistake(scene):
    node = scene.node(
        "manageable", resource_class="a b", properties=rows.dump({"capabilities": "boot_mode"})
    )
    deploy = scene.stage.api.get(f"/v1/nodes/{node}/validate").json["deploy"]
    assert "resource_class 'a b'" in deploy["reason"]
    assert "properties/capabilities has no effect with 'boot_mode'" in deploy["reason"]


def test_a_maintenance_has_a_time_of_its_own(scene):
    """The state's time is another, and maintenance that is set again begins anew."""
    began_at = rows.now()
    node = scene.node("active", provision_updated_at=began_at - 2 * AGO)
    nodes = scene.stage.api

    def since():
        return nodes.get(f"/ext/v1/nodes/{node}/why").json["maintenance"]["since"]

    assert nodes.put(f"/v1/nodes/{node}/maintenance", {"reason": "new fans"}).status == 202
    first = since()
    assert first >= began_at.isoformat()
    assert nodes.get(f"/ext/v1/nodes/{node}/why").json["since"] == first
    scene.set(node, maintenance_at=began_at - AGO, fault="power failure")
    patch = [{"op": "replace", "path": "/maintenance", "value": True}]
    assert nodes.patch(f"/v1/nodes/{node}", patch).status == 200
    assert since() > first, "the operator has taken it over"
    assert nodes.delete(f"/v1/nodes/{node}/maintenance").status == 202
    assert scene.stage.site.node(node).maintenance_at is None
