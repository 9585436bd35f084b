"""Looks of the pulse at real BMCs: what they read, and what they leave to a task."""

from __future__ import annotations

import dataclasses
import time
from unittest.mock import Mock

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers.bmc.connection import Connection
from bloomery.drivers.redfish import look as redfish_look
from bloomery.lab.bmc import Rules
from bloomery.lab.tls import certificate
from tests.kit.machines.power_watch import PowerWatch
from tests.kit.waiting import wait_for

INTERVAL_S = 120


class Watch(PowerWatch):
    """``tasks``: how many there were since the node was watched."""

    def __init__(self, stage, machine, monkeypatch, **driver_info):
        own = machine.driver_info | driver_info
        super().__init__(stage, "redfish", own, sync_power_state_interval=INTERVAL_S)
        self.machine, self.tasks = machine, 0
        made = TaskManager.__init__

        def counted(task, *args, **more):
            self.tasks += 1
            made(task, *args, **more)

        monkeypatch.setattr(TaskManager, "__init__", counted)


@pytest.fixture
def rack(make_rack):
    return make_rack(power_s=0.1)


@pytest.fixture
def watch(stage, rack, monkeypatch):
    return Watch(stage, rack.machines[0], monkeypatch)


def test_a_machine_that_is_as_recorded_needs_no_task(watch):
    logins = watch.machine.bmc.counted()["logins"]
    watch.run(3)
    assert (watch.tasks, watch.machine.bmc.counted()["logins"]) == (0, logins)


def test_a_pressed_power_button_is_corrected_by_a_task(watch):
    watch.machine.system.reset("On")
    wait_for(lambda: watch.machine.system.power == "On", "the machine to start")
    sync = PowerSync(watch.stage.site.runtime)  # whose timers turn by themselves
    sync.run()
    wait_for(lambda: sync.is_idle, "the look to end")
    watch.stage.wait_until_free(watch.node)
    assert watch.machine.system.power == "Off", "the machine follows the record"
    assert watch.tasks


def test_a_new_health_is_recorded_by_a_task(watch):
    document = {"Status": {"Health": "Critical"}}
    watch.machine.bmc.faults.add(kind="shows", document=document, path="/Systems/", times=-1)
    watch.run()
    assert watch.row.health == "Critical"


def test_a_session_that_the_bmc_ended_is_opened_again_by_a_task(watch):
    watch.machine.bmc.faults.add(kind="expire")
    watch.run()
    assert (watch.tasks, watch.sync.suspects()) == (1, 0)
    watch.run(2)
    assert watch.tasks == 1


ODD = {
    "status 503": {"kind": "status", "status": 503},
    "status 404": {"kind": "status", "status": 404},
    "a page": {"kind": "nojson"},
    "a list": {"kind": "status", "status": 200, "body": []},
    "no system": {"kind": "status", "status": 200, "body": {}},
    "elsewhere": {"kind": "status", "status": 302, "headers": {"Location": "http://192.0.2.1/x"}},
}


@pytest.mark.parametrize("case", ODD)
def test_an_answer_that_is_no_reading_is_left_to_a_task(watch, case):
    watch.machine.bmc.faults.add(**ODD[case], path="/Systems/", times=1)
    watch.run()
    assert (watch.tasks, watch.sync.suspects(), watch.row.maintenance) == (1, 0, False)
    watch.run()
    assert watch.tasks == 1, "the next look is one again"


def test_a_kept_connection_that_breaks_off_is_replaced_once(watch):
    watch.machine.bmc.faults.add(kind="truncate", path="/Systems/", times=1)
    watch.run()
    assert watch.tasks == 0
    watch.machine.bmc.faults.add(kind="truncate", path="/Systems/", times=2)
    watch.run()
    assert (watch.tasks, watch.sync.suspects()) == (1, 0)


@pytest.mark.parametrize("kind", ["hang", "reset"])
def test_a_bmc_that_falls_silent_is_asked_again_without_tasks_until_it_is_given_up(watch, kind):
    more = {"seconds": 60} if kind == "hang" else {}
    watch.machine.bmc.faults.add(kind=kind, path="/Systems/", times=-1, **more)
    watch.run()
    assert watch.sync.suspects() == 1
    watch.machine.bmc.faults.clear()
    while watch.clock.is_armed:
        watch.clock.turn_to_next()
        wait_for(lambda: watch.sync.is_idle, "the look to end")
    assert (watch.sync.suspects(), watch.row.maintenance) == (0, False)


def test_a_bmc_that_is_gone_costs_one_task_in_all(watch, rack):
    rack.stop()
    watch.run()
    while watch.clock.is_armed:
        watch.clock.turn_to_next()
        wait_for(lambda: watch.sync.is_idle, "the look to end")
    row = watch.row
    assert (row.fault, row.power_state) == ("power failure", None)
    assert "Connection refused" in row.last_error
    assert watch.tasks == 1


def test_a_node_that_is_changed_while_its_bmc_is_silent_is_not_given_up(watch, rack, make_rack):
    """Its address was wrong, and is corrected before the last look of the pass."""
    rack.stop()
    watch.run()
    for _ in range(2):
        watch.clock.turn_to_next()
        wait_for(lambda: watch.sync.is_idle, "the look to end")
    point_to(watch, make_rack(power_s=0.1).machines[0])
    watch.clock.turn_to_next()
    wait_for(lambda: watch.sync.is_idle, "the last look to end")
    assert not watch.row.maintenance
    watch.run()
    assert (watch.row.maintenance, watch.sync.suspects()) == (False, 0)


def point_to(watch, machine):
    patch = [
        {"op": "replace", "path": f"/driver_info/{key}", "value": value}
        for key, value in machine.driver_info.items()
    ]
    assert watch.stage.api.patch(f"/v1/nodes/{watch.node}", patch).status == 200


def test_a_call_of_a_user_comes_before_a_look(watch):
    slots = watch.runtime.registry.interfaces["power"]["redfish"].access.gateway.bmcs()[0].slots
    taken = [slots.enter(write=False, timeout_s=0) for _ in range(9)]
    asked = watch.machine.bmc.counted()["requests"]
    watch.run()
    assert (watch.machine.bmc.counted()["requests"], watch.sync.suspects()) == (asked, 0)
    for _ in filter(None, taken):
        slots.leave(write=False)


def test_a_node_that_was_changed_is_looked_at_by_its_new_values(watch, make_rack):
    other = make_rack(power_s=0.1).machines[0]
    point_to(watch, other)
    asked = watch.machine.bmc.counted()["requests"]
    watch.run(2)
    assert watch.machine.bmc.counted()["requests"] <= asked + 1, "but for its logout"
    assert other.bmc.counted()["requests"]


def test_a_changed_node_keeps_its_look_and_connection_where_the_bmc_is_the_same(watch):
    connections = watch.machine.bmc.counted()["connections"]
    former = watch.runtime.pulse.former(watch.node)
    watch.stage.api.patch(
        f"/v1/nodes/{watch.node}", [{"op": "add", "path": "/extra/rack", "value": "r1"}]
    )
    asked = watch.machine.bmc.counted()["requests"]
    watch.run()
    assert watch.runtime.pulse.former(watch.node) is former
    assert watch.tasks == 1, "it reads the row, and asks nothing"
    counted = watch.machine.bmc.counted()
    assert (counted["requests"], counted["connections"]) == (asked + 1, connections)


def test_a_node_without_a_look_gets_one_from_its_row_where_its_login_is_open(watch):
    watch.runtime.pulse.drop(watch.node)
    asked, tasks = watch.machine.bmc.counted()["requests"], watch.tasks
    watch.run()
    assert watch.tasks == tasks + 1, "it makes the look"
    assert watch.machine.bmc.counted()["requests"] == asked + 1, "of the look"
    assert Connection.count == 1


def test_looks_are_kept_for_longer_than_an_interval(watch, monkeypatch):
    """However long that is: nobody looks between two passes."""
    monkeypatch.setattr(watch.sync, "_interval_s", 3 * 3600.0)
    looked_at = time.monotonic() + 3.5 * 3600
    monkeypatch.setattr("bloomery.conductor.pulse.time", Mock(monotonic=lambda: looked_at))
    watch.runtime.pulse.drop_unused(watch.sync.unused_s)
    assert watch.runtime.pulse.former(watch.node) is not None


def test_a_look_that_is_closed_while_it_reads_keeps_no_connection(watch, monkeypatch):
    look, request, before = watch.runtime.pulse.former(watch.node), Connection.request, []

    async def closing(connection, *args):
        look.close()
        before.append(Connection.count)
        return await request(connection, *args)

    monkeypatch.setattr(Connection, "request", closing)
    watch.run()
    assert before == [1], "the look had its connection"
    assert Connection.count == 0


def test_a_connection_is_used_before_its_bmc_would_end_it(stage, make_rack, monkeypatch, tmp_path):
    """Once a BMC was seen to end an idle one; with TLS, as a new one costs much there."""
    monkeypatch.setattr(redfish_look, "_KEPT_S", 0.1)
    tls = certificate(tmp_path)
    rack = make_rack(power_s=0.1, tls=tls, rules=Rules(idle_s=0.4))
    machine = rack.machines[0]
    watch = Watch(stage, machine, monkeypatch, redfish_verify_ca=str(tls[0]))
    wait_for(lambda: not Connection.count, "the BMC to end the idle connection")
    watch.run()
    requests = machine.bmc.counted()["requests"]
    wait_for(lambda: machine.bmc.counted()["requests"] > requests, "the look to use it again")
    assert watch.tasks == 0


def test_no_connection_is_kept_where_the_option_says_so(stage, machine, monkeypatch):
    redfish = dataclasses.replace(stage.site.runtime.conf.redfish, connection_idle_time=0)
    access = stage.site.runtime.registry.interfaces["power"]["redfish"].access
    monkeypatch.setattr(access, "conf", dataclasses.replace(access.conf, redfish=redfish))
    watch = Watch(stage, machine, monkeypatch)
    before = machine.bmc.counted()["connections"]
    watch.run(3)
    assert (machine.bmc.counted()["connections"], watch.tasks) == (before + 3, 0)
