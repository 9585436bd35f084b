"""What must hold between us and BMCs, as functions that fail when it does not."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import BmcOptions
from bloomery.db import locks
from bloomery.drivers.bmc.gateway import Gateway
from bloomery.drivers.redfish import access
from bloomery.drivers.redfish.boot import RedfishVirtualMedia
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.lab.rack import Rack
from tests.kit.machines.driver_task import FakeTask, walk
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.servers.site import Site

ADDRESS = "https://bmc-1"
SILENT = errors.BmcLeftAlone(node="n", address=ADDRESS, reason="no route", retry_after_s=0.01)


def a_silent_bmc_is_left_alone() -> None:
    """Two failures open the breaker; of ten calls no more than these reach the BMC."""
    gateway = Gateway(Conf(bmc=BmcOptions(breaker_failures=2)))
    asked = 0
    for _ in range(10):
        with (
            contextlib.suppress(errors.BmcUnreachable),
            gateway.guard(ADDRESS, FakeTask({}), write=False),
        ):
            asked += 1
            raise errors.BmcUnreachable(node="n", address=ADDRESS, reason="no route")
    assert asked == 2


def a_wrong_password_is_shown_once() -> None:
    way = access.of(conf := Conf())
    with Rack(1) as rack:
        machine = rack.machines[0]
        task = FakeTask(machine.driver_info | {"redfish_password": "mistyped"})
        for _ in range(4):
            with pytest.raises((errors.BmcLoginRefused, errors.BmcLeftAlone)):
                way.read(task, lambda system: system.power_state)
        assert machine.bmc.refused == 1
    assert way.conf is conf


def secure_boot_lasts_as_long_as_its_instance() -> None:
    """Agents boot without it, before the instance and after it."""
    conf = Conf()
    boot, management = RedfishVirtualMedia(conf), RedfishManagement(conf)
    with Rack(1) as rack:
        machine = rack.machines[0]
        agent = {"deploy_iso": "http://images.test/agent.iso"}
        asks = {"capabilities": {"secure_boot": "true"}}
        task: Any = FakeTask(machine.driver_info | agent, instance_info=asks)
        power = SimpleNamespace(set_power_state=lambda *_: None)
        task.driver = SimpleNamespace(management=management, power=power)
        parts = (
            lambda: boot.prepare_instance(task), lambda: boot.prepare_ramdisk(task, {}),
            lambda: boot.prepare_instance(task), lambda: boot.clean_up_instance(task),
        )  # fmt: skip
        for part, is_on in zip(parts, (True, False, True, False), strict=True):
            walk(task, part)
            assert machine.system.secure_next is is_on


def a_deployment_bears_a_silent_bmc(site: Site) -> None:
    """On a site of its own beside ``site``, whose steps bear nothing."""
    script = Script()
    script.add("deploy", "one", in_turn(SILENT, SILENT, None))
    path = site.path.with_name("outage.sqlite")
    bearing = Site(path, registry=script.registry(), bmc_outage_budget=300)
    try:
        node = bearing.enrol(provision_state="available")
        bearing.deploy(node)
        bearing.wait_for_state(node, "active", "deploy failed")
        assert bearing.node(node).provision_state == "active"
    finally:
        bearing.close()


def nothing_is_written_without_a_lease(site: Site, node: str) -> None:
    gateway = Gateway(Conf())
    with site.acquire(node) as task:
        site.runtime.lease.revoke()
        with gateway.guard(ADDRESS, task, write=False):
            pass
        with pytest.raises(errors.LockLost), gateway.guard(ADDRESS, task, write=True):
            pass


def nothing_is_written_to_a_node_that_was_taken(site: Site, node: str) -> None:
    """Peers took the node over, and the lease does not know: the row does."""
    gateway, now = Gateway(Conf()), [site.runtime.lease.now()]
    site.runtime.lease.now = lambda: now[0]
    with site.acquire(node) as task:
        with gateway.guard(ADDRESS, task, write=True):
            pass
        site.db.transact(lambda conn: locks.void_all(conn, site.runtime.host))
        now[0] += 2
        with pytest.raises(errors.LockLost), gateway.guard(ADDRESS, task, write=True):
            pass


def a_lease_that_ends_within_a_call_ends_its_writes(site: Site, node: str) -> None:
    import sushy

    with Rack(1) as rack, site.acquire(node) as task:
        machine, way = rack.machines[0], access.of(Conf())
        mine = FakeTask(machine.driver_info)
        mine.assert_lease = task.assert_lease  # type: ignore[method-assign]

        def work(system: Any) -> None:
            site.runtime.lease.revoke()
            system.reset_system(sushy.ResetType("On"))

        with pytest.raises(errors.LockLost):
            way.change(mine, work)
        assert machine.system.power == "Off"
        way.close()
