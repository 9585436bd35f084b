"""Connections are kept, and one that died meanwhile is nobody's failure."""

from __future__ import annotations

import dataclasses
import gc
import os
import threading

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import access, wire
from bloomery.lab.rack import Rack
from bloomery.lab.tls import certificate
from tests.kit.machines.driver_task import FakeTask
from tests.kit.waiting import wait_for


def power(system):
    return system.power_state.value


def turn_on(system):
    import sushy

    system.reset_system(sushy.ResetType("On"))


def test_a_walk_over_tls_takes_one_handshake(way, tmp_path):
    with Rack(1, tls=certificate(tmp_path)) as rack:
        machine = rack.machines[0]
        task = FakeTask(machine.driver_info | {"redfish_verify_ca": False})
        for _ in range(5):
            way.read(task, power)
        way.change(task, turn_on)
        way.read(task, lambda system: [manager.identity for manager in system.managers])
        assert machine.bmc.requests > 8
        assert (machine.bmc.connections, machine.bmc.handshakes) == (1, 1)
        way.close()


@pytest.mark.parametrize("change", [False, True])
def test_a_connection_that_the_bmc_closed_is_no_failure(way, rack, task, machine, change):
    way.read(task, power)
    rack._servers[0].hang_up()
    if change:
        way.change(task, turn_on)
        wait_for(lambda: machine.system.power == "On", "the machine to be on")
    else:
        way.read(task, power)
    assert machine.bmc.connections == 2
    assert not way.bmc(task).is_suspect


def test_a_bmc_that_came_back_is_not_asked_on_a_dead_connection(way, task, machine):
    """What a failure leaves open is closed: the one try of a half-open breaker is a fresh one."""
    way.read(task, power)
    machine.bmc.faults.add(kind="truncate", path="/Systems/", times=2)
    with pytest.raises(errors.BmcUnreachable):
        way.read(task, power)
    before = machine.bmc.connections
    way.read(task, power)
    assert machine.bmc.connections == before + 1


def test_a_write_does_not_trust_a_connection_that_was_idle(way, clock, task, machine):
    way.read(task, power)
    clock.now += 6
    way.read(task, power)
    assert machine.bmc.connections == 1
    task.reads = {}
    way.read(task, power)
    clock.now += 6
    way.change(task, turn_on)
    assert machine.bmc.connections == 2


def test_a_connection_is_kept_as_long_as_configured(way, clock, conf, task, machine):
    way.read(task, power)
    clock.now += conf.redfish.connection_idle_time - 1
    way.read(task, power)
    assert machine.bmc.connections == 1
    clock.now += conf.redfish.connection_idle_time + 1
    way.read(task, power)
    assert machine.bmc.connections == 2


def test_a_bmc_says_how_long_it_keeps_connections(way, clock, task, machine):
    headers = {"Keep-Alive": "timeout=15, max=100"}
    machine.bmc.faults.add(kind="status", status=200, body={}, headers=headers, path="Chassis$")
    way.read(task, lambda system: system.root._conn.get("/redfish/v1/Chassis"))
    clock.now += 14.5
    way.read(task, power)
    assert machine.bmc.connections == 2


def test_connections_are_not_kept_where_that_is_configured(machine, task):
    conf = dataclasses.replace(Conf(), redfish=Redfish(connection_idle_time=0))
    way = access.of(conf)
    way.read(task, power)
    way.read(task, power)
    assert machine.bmc.connections == machine.bmc.requests


def test_connections_are_closed_before_descriptors_run_out(way):
    way._most_connected = 2
    with Rack(3, apart=True) as rack:
        helds = [FakeTask(machine.driver_info) for machine in rack.machines]
        for task in (*helds, *helds[1:]):
            way.read(task, power)
        assert [machine.bmc.connections for machine in rack.machines] == [1, 1, 1]
        way.read(helds[0], power)
        assert [machine.bmc.connections for machine in rack.machines] == [2, 1, 1]
        assert [machine.bmc.logins for machine in rack.machines] == [1, 1, 1]
        way.close()


def test_wires_that_trust_the_same_share_it_until_it_changes(conf, tmp_path):
    from bloomery.drivers.redfish import driver_info, wire

    authority = tmp_path / "ca.pem"
    authority.write_text((tmp_path / certificate(tmp_path)[0]).read_text())

    def context(ca):
        info = {"redfish_address": "bmc-1", "redfish_verify_ca": ca}
        return wire.tls_context(driver_info.parse(info, conf.redfish))

    first = context(str(authority))
    assert context(str(authority)) is first
    assert context(False) is context(False)
    assert context(False) is not first
    os.utime(authority, ns=(1, 1))
    assert context(str(authority)) is not first


def test_ciphers_that_nobody_knows_are_told(way, tmp_path):
    with Rack(1, tls=certificate(tmp_path)) as rack:
        info = rack.machines[0].driver_info | {"redfish_verify_ca": False}
        with pytest.raises(errors.BmcUnreachable, match=r"TLS refused: .*cipher"):
            way.read(FakeTask(info | {"redfish_tls_ciphers": "NOSUCH"}), power)
        way.read(FakeTask(info | {"redfish_tls_minimum_version": "1.3"}), power)


def test_threads_that_live_on_keep_nothing_of_their_calls(way, task):
    """Any worker may call any BMC: what each kept of each would grow for weeks."""
    way.read(task, power)
    gc.collect()
    before = sum(isinstance(each, wire.Answer) for each in gc.get_objects())
    everybody_has_called = threading.Barrier(5)
    may_end = threading.Event()

    def call() -> None:
        way.read(task, power)
        everybody_has_called.wait()
        may_end.wait()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    everybody_has_called.wait()
    gc.collect()
    kept = sum(isinstance(each, wire.Answer) for each in gc.get_objects())
    may_end.set()
    for thread in threads:
        thread.join()
    assert kept <= before
