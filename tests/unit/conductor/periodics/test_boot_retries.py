"""Boot retries: whose machine is restarted once, and whose is left alone."""

from __future__ import annotations

import contextlib
import dataclasses
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery.conductor.periodics import boot_retries, timeouts
from bloomery.conf.agent import Pxe
from bloomery.db import rows
from bloomery.db.tables import STEP_RUNS
from bloomery.drivers.agent import ramdisk
from bloomery.outcome import WaitForCall
from tests.kit.machines.scripted import Script
from tests.kit.servers.site import HOST
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

LATE = timedelta(seconds=700)


def info(**values):
    return lambda site, node: site.set(
        node, driver_internal_info=rows.dump(site.node(node).driver_internal_info | values)
    )


def row(**values):
    return lambda site, node: site.set(node, **values)


def waits_since_now(site, node):
    site.set(node, provision_updated_at=rows.now())


def was_switched_by_a_user(site, node):
    info(last_power_state_change=rows.now().replace(tzinfo=None).isoformat())(site, node)


def was_retried(site, node):
    now = rows.now().isoformat()
    info(agent_boot_retries={"count": 1, "since": now, "last": now})(site, node)


def boots_with(*capabilities):
    def change(site, node):
        site.runtime.registry.interfaces["boot"]["fake"].capabilities = frozenset(capabilities)

    return change


def has_no_bmc(site, node):
    site.runtime.registry.interfaces["power"]["fake"].only_restarts = True


SPARED = {
    "in maintenance": row(maintenance=True),
    "not late yet": waits_since_now,
    "an agent calls": info(agent_url="https://agent"),
    "an agent looked up": info(agent_looked_up=True),
    "retried just now": was_retried,
    "switched by a user": was_switched_by_a_user,
    "boots no agent": boots_with(),
    "has no BMC": has_no_bmc,
}


@pytest.fixture
def script() -> Script:
    script = Script()
    script.add("deploy", "boot", lambda task: ramdisk.boot(task, {}, "provisioning"))
    return script


@pytest.fixture
def site(make_site, script):
    site = make_site(registry=script.registry())
    Stage(site).configure("pxe", boot_retry_timeout=600)
    return site


def wait_in_deployment(site):
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "wait call-back")
    site.set(node, provision_updated_at=rows.now() - LATE)
    return node


@pytest.fixture
def node(site):
    return wait_in_deployment(site)


def retry(site, node, runtime=None):
    """Let the periodic run; return how often machines were restarted in all."""
    boot_retries.run(runtime or site.runtime, timeouts.Watch())
    site.wait_for_state(node, "wait call-back")
    return len([entry for entry in site.history(node) if "is restarted" in entry["event"]])


def test_a_machine_is_restarted_once_in_each_time(site, script, node):
    began = site.node(node).provision_updated_at
    assert [retry(site, node) for _ in range(2)] == [1, 1]
    retries = site.node(node).driver_internal_info["agent_boot_retries"]
    long_ago = {"last": (rows.now() - LATE).isoformat()}
    info(agent_boot_retries=retries | long_ago)(site, node)
    assert [retry(site, node) for _ in range(2)] == [2, 2]
    assert script.calls.count("boot") == 3
    assert site.node(node).provision_updated_at == began
    assert "; the machine was restarted 2 times (" in site.runs(node)[-1]["reason"]


@pytest.mark.parametrize("capability", ["pxe_boot", "ramdisk_boot"])
def test_a_lost_boot_is_retried_wherever_it_came_from(site, script, node, capability):
    boots_with(capability)(site, node)
    assert (retry(site, node), script.calls.count("boot")) == (1, 2)


def test_the_retry_of_a_boot_concerns_no_later_wait(site, script):
    script.add("deploy", "write", lambda task: WaitForCall(reason="the agent writes"))
    node = wait_in_deployment(site)
    retry(site, node)
    began = site.node(node).provision_updated_at
    site.agent_calls(node)
    wait_for(lambda: script.calls[-1] == "write", "the next step")
    assert site.wait_for_state(node, "wait call-back").provision_updated_at > began + LATE
    assert [run["reason"] for run in site.runs(node)][-1] == "the agent writes"


@pytest.mark.parametrize("name", SPARED)
def test_a_machine_is_left_alone(site, script, node, name):
    SPARED[name](site, node)
    locked = site.node(node).lock_generation
    assert (retry(site, node), script.calls.count("boot")) == (0, 1)
    assert site.node(node).lock_generation == locked, "the node was locked for nothing"


class ChangesMeanwhile:
    """Capabilities whose first reader looks without the lock; the node then changes."""

    def __init__(self, change):
        self.changes = [change]

    def __contains__(self, name):
        for change in self.changes:
            change()
        self.changes = []
        return name == "pxe_boot"


@pytest.mark.parametrize("name", ["in maintenance", "an agent looked up"])
def test_a_node_that_changes_before_it_is_locked_is_left_alone(site, node, name):
    boot = site.runtime.registry.interfaces["boot"]["fake"]
    boot.capabilities = ChangesMeanwhile(lambda: SPARED[name](site, node))
    assert retry(site, node) == 0


def test_a_flow_that_a_dead_conductor_has_left_is_left_to_recovery(site, node):
    site.db.transact(lambda conn: conn.execute(sa.update(STEP_RUNS).values(state="running")))
    assert retry(site, node) == 0
    site.db.transact(lambda conn: conn.execute(sa.update(STEP_RUNS).values(state="waiting")))


def test_a_step_that_waits_for_something_else_is_left_alone(site, script):
    script.when("boot", lambda task: WaitForCall(reason="the agent writes", then="same"))
    assert retry(site, wait_in_deployment(site)) == 0


def test_a_locked_node_is_restarted_in_a_later_round(site, node):
    boot, holders = site.runtime.registry.interfaces["boot"]["fake"], []
    boot.capabilities = ChangesMeanwhile(lambda: holders.append(site.acquire(node)))
    boot_retries.run(site.runtime, timeouts.Watch())
    holders[0].release_resources()
    assert retry(site, node) == 1


def test_workers_reserved_for_users_restart_no_machine(make_site, script):
    site = make_site(registry=script.registry(), reserved_workers_pool_percentage=50)
    Stage(site).configure("pxe", boot_retry_timeout=600)
    node, workers = wait_in_deployment(site), site.runtime.workers
    with contextlib.ExitStack() as busy:
        for _ in range(workers.size - workers.size // 2):
            busy.enter_context(workers.slot())
        assert retry(site, node) == 0
    assert retry(site, node) == 1


def test_a_second_conductor_sees_that_the_machine_was_restarted(site, node):
    other = site.another_host(HOST)
    other = dataclasses.replace(
        other, conf=site.runtime.conf, registry=site.runtime.registry, ring=site.runtime.ring
    )
    assert (retry(site, node), retry(site, node, other)) == (1, 1)


def test_a_time_out_that_leaves_no_time_is_named(make_site, caplog):
    site = make_site(clean_callback_timeout=600, rescue_callback_timeout=0)
    Stage(site).configure("pxe", **dataclasses.asdict(Pxe(boot_retry_timeout=600)))
    boot_retries.make(site.runtime)
    [line] = [each for each in caplog.messages if "boot_retry_timeout" in each]
    assert "[conductor]clean_callback_timeout" in line
