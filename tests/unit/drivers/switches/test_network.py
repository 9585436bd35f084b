"""Orders at switches: read back, at all switches at once, and told by name when they fail."""

from __future__ import annotations

import os
import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.drivers.switches import network
from bloomery.drivers.switches.network import IronicNetworking as Interface
from bloomery.drivers.switches.openconfig import OpenConfigDriver
from bloomery.model.portgroup import Portgroup
from bloomery.outcome import DONE, Again
from tests.kit.machines.switches import switch_file
from tests.unit.drivers.switches.conftest import NODE, access, port, task_of

VLAN_20 = {"interface-mode": "ACCESS", "access-vlan": 20}


def test_the_ports_move_and_an_order_that_is_carried_out_is_not_repeated(interface, switches):
    task = task_of(port(1, switches[0]), port(2, switches[1]))
    assert interface.connect(task, "provisioning") == DONE
    assert [switches[0].carries("Ethernet1"), switches[1].carries("Ethernet2")] == [VLAN_20] * 2
    assert switches[0].carries("Ethernet2")["access-vlan"] == 1
    orders = [switch.orders for switch in switches]
    assert interface.connect(task, "provisioning") == DONE
    assert [switch.orders for switch in switches] == orders
    assert task.node.driver_internal_info == {}


def test_both_switches_are_ordered_at_once(interface, switches, monkeypatch):
    both, order = threading.Barrier(2, timeout=10), OpenConfigDriver.order

    def together(self, *args, **more):
        both.wait()  # breaks if the second order waits for the first one
        order(self, *args, **more)

    monkeypatch.setattr(OpenConfigDriver, "order", together)
    task = task_of(port(1, switches[0]), port(2, switches[1]))
    assert interface.connect(task, "provisioning") == DONE


def test_two_nodes_never_order_one_switch_at_once(interface, switches, monkeypatch):
    order, inside, most = OpenConfigDriver.order, [], []

    def counted(self, *args, **more):
        inside.append(1)
        most.append(len(inside))
        order(self, *args, **more)
        inside.pop()

    monkeypatch.setattr(OpenConfigDriver, "order", counted)
    tasks = [task_of(port(number, switches[0])) for number in range(1, 6)]
    threads = [
        threading.Thread(target=interface.connect, args=(task, "provisioning")) for task in tasks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5
    assert {switches[0].carries(f"Ethernet{n}")["access-vlan"] for n in range(1, 6)} == {20}


def test_a_slow_switch_is_looked_at_until_it_shows_the_order(interface, switches):
    switches[0].apply_s = 3600
    task = task_of(port(1, switches[0]))
    outcome = interface.connect(task, "provisioning")
    assert isinstance(outcome, Again)
    assert outcome.reason == "switch tor-1: port Ethernet1 shows VLAN 1, and not VLAN 20"
    orders = switches[0].orders
    assert isinstance(interface.connect(task, "provisioning"), Again)
    assert switches[0].orders == orders
    switches[0]._pending = [(0.0, *rest) for _, *rest in switches[0]._pending]
    assert interface.connect(task, "provisioning") == DONE


def test_a_switch_that_says_ok_and_does_nothing_fails_the_step(interface, switches, monkeypatch):
    switches[0].faults.add(kind="stuck", method="PUT", times=-1)
    task = task_of(port(1, switches[0]))
    assert isinstance(interface.connect(task, "provisioning"), Again)
    later = datetime.now(UTC) + timedelta(seconds=61)
    monkeypatch.setattr(network.clock, "now", lambda: later)
    with pytest.raises(errors.StepFailure) as failed:
        interface.connect(task, "provisioning")
    assert "switch tor-1 accepted the network provisioning" in str(failed.value)
    assert "after 60 s: port Ethernet1 shows VLAN 1, and not VLAN 20" in str(failed.value)
    switches[0].faults.clear()
    assert interface.connect(task, "provisioning") == DONE, "a new attempt orders again"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": "status", "status": 503}, "HTTP 503"),
        ({"kind": "status", "status": 409}, "HTTP 409"),
        ({"kind": "reset"}, "Connection"),
        ({"kind": "nojson"}, "is no JSON object"),
        ({"kind": "truncate"}, ""),
        ({"kind": "after", "status": 500, "method": "PUT"}, "HTTP 500"),
        ({"kind": "hang", "seconds": 5}, "timed out"),
    ],
)
def test_bad_luck_is_borne_and_the_rest_is_ordered(interface, switches, fault, reason):
    switches[0].faults.add(**fault)
    task = task_of(port(1, switches[0]), port(2, switches[1]))
    with pytest.raises(errors.SwitchUnreachable) as silent:
        interface.connect(task, "provisioning")
    assert "cannot reach switch tor-1 at http://127.0.0.1" in str(silent.value)
    assert reason in str(silent.value)
    assert switches[1].carries("Ethernet2") == VLAN_20
    assert interface.connect(task, "provisioning") == DONE
    assert switches[0].carries("Ethernet1") == VLAN_20


def test_a_half_configured_switch_is_completed(interface, switches):
    """The VLAN was made and the first port moved when the connection broke."""
    switches[0].faults.add(kind="reset", method="PUT", skip=1)
    task = task_of(port(1, switches[0]), port(2, switches[0]))
    with pytest.raises(errors.SwitchUnreachable):
        interface.connect(task, "provisioning")
    carried = [switches[0].carries(f"Ethernet{n}")["access-vlan"] for n in (1, 2)]
    assert sorted(carried) == [1, 20]
    assert interface.connect(task, "provisioning") == DONE
    assert [switches[0].carries(f"Ethernet{n}") for n in (1, 2)] == [VLAN_20] * 2


def test_a_switch_that_is_away_is_left_alone_after_some_failures(interface, switches):
    switches[0].faults.add(kind="reset", times=-1)
    task = task_of(port(1, switches[0]))
    for _ in range(2):
        with pytest.raises(errors.SwitchUnreachable):
            interface.connect(task, "provisioning")
    requests = switches[0].requests
    with pytest.raises(errors.SwitchLeftAlone, match="left alone after 2 failures in a row"):
        interface.connect(task, "provisioning")
    assert switches[0].requests == requests


@pytest.mark.parametrize(
    ("keys", "name", "reason"),
    [
        ({"password": "wrong"}, "Ethernet1", "HTTP 401.*correct username and password"),
        ({}, "Ethernet77", "port Ethernet77: it has none"),
    ],
)
def test_a_refusal_names_switch_and_reason(make_conf, switches, keys, name, reason):
    refused = Interface(make_conf(provisioning_network="access/native_vlan=20", keys=keys))
    with pytest.raises(errors.SwitchRefused, match=reason) as refusal:
        refused.connect(task_of(port(1, switches[0], name)), "provisioning")
    assert "switch tor-1" in str(refusal.value)
    assert "wrong" not in str(refusal.value)


def test_a_lag_comes_with_its_user_and_goes_with_the_agent(interface, switches):
    lag = {
        "mode": "trunk", "native_vlan": 1, "allowed_vlans": [30], "aggregation_mode": "static",
        "mtu": 9000,
    }  # fmt: skip
    group = Portgroup(uuid=str(uuid.UUID(int=50)), node_uuid=NODE, name="bond0", extra={"lag": lag})
    ports = [port(n, switches[0], portgroup_uuid=group.uuid) for n in (1, 2)]
    task = task_of(*ports, groups=(group,))
    assert interface.connect(task, "tenant") == DONE
    shown = switches[0].shown()["interfaces"]
    assert (shown["bond0"]["lag-type"], shown["bond0"]["mtu"]) == ("STATIC", 9000)
    assert shown["bond0"]["carries"]["trunk-vlans"] == [1, 30]
    assert [shown[f"Ethernet{n}"]["lag"] for n in (1, 2)] == ["bond0"] * 2
    assert interface.connect(task, "provisioning") == DONE
    assert "bond0" not in switches[0].shown()["interfaces"]
    assert [switches[0].carries(f"Ethernet{n}") for n in (1, 2)] == [VLAN_20] * 2


# ------------------------------------------------------------------------------------- settings


def test_validate_and_ineffective_settings_name_what_is_wrong(interface, switches):
    task = task_of(port(1, switches[0], switchport=access(7)), cleaning_network="none")
    with pytest.raises(errors.InvalidParameterValue, match="driver_info/cleaning_network"):
        interface.validate(task)
    task.driver_info.clear()
    interface.validate(task)
    task.driver.power.only_restarts = True
    with pytest.raises(errors.InvalidParameterValue, match="switches the machine off"):
        interface.validate(task)
    loose = port(2, None, switchport=access(7))
    task.ports = (*task.ports, loose)
    (named,) = interface.list_ineffective(task)
    assert loose.uuid in named


def test_wrong_options_end_the_start(make_conf, tmp_path):
    for options, reason in (
        ({"idle_network": "vlan 5"}, "idle_network"),
        ({"allowed_vlans": "5000"}, "allowed_vlans"),
        ({"switch_config_file": str(tmp_path / "none")}, "No such file"),
        ({"enabled_switch_drivers": ("acme",)}, "acme not installed"),
        ({"keys": {"persist": "true"}}, "persist"),
        ({"keys": {"driver_type": "acme"}}, "driver_type acme of switch tor-1"),
        ({"keys": {"port": "x"}}, "port is a number"),
        ({"keys": {"address": ""}}, "tor-1 has no address"),
        ({"keys": {"mac_address": "52:54:00:00:00:01"}}, "that of two switches"),
        ({"keys": {"verify_ca": "/none"}}, "verify_ca /none"),
    ):
        with pytest.raises(errors.CannotStart, match=reason):
            Interface(make_conf(**options))


def test_a_changed_file_counts_and_a_broken_one_does_not(interface, switches, tmp_path, caplog):
    switches[0].name = "tor-9"
    file = switch_file(tmp_path / "switches.conf", switches[:1], colour="red")
    assert [switch.name for switch in interface._inventory.switches()] == ["tor-9"]
    assert "its keys colour have no effect" in caplog.text
    file.write_text("password = opensesame")
    os.utime(file, ns=(1, 1))
    assert [switch.name for switch in interface._inventory.switches()] == ["tor-9"]
    assert "is left as it was before" in caplog.text
    assert "opensesame" not in caplog.text


# ----------------------------------------------------------------------------------------- VIFs


def test_a_vif_takes_a_port_and_moves_it_while_the_node_is_active(make_conf, switches):
    interface = Interface(make_conf(idle_network="access/native_vlan=4"))
    task = task_of(
        port(1, switches[0], switchport=access(7)), port(2, switches[1], switchport=access(8))
    )
    interface.vif_attach(task, {"id": "a"})
    assert switches[0].orders == 0, "an idle node's ports move with its deployment"
    task.node.provision_state = State.ACTIVE
    interface.vif_attach(task, {"id": "b", "port_uuid": task.ports[1].uuid})
    assert switches[1].carries("Ethernet2")["access-vlan"] == 8
    assert switches[0].orders == 0
    assert interface.vif_list(task) == [{"id": "a"}, {"id": "b"}]
    with pytest.raises(errors.Conflict, match="VIF a: it is attached"):
        interface.vif_attach(task, {"id": "a"})
    with pytest.raises(errors.InvalidParameterValue, match="are none"):
        interface.vif_attach(task, {"id": "c"})
    interface.vif_detach(task, "b")
    assert switches[1].carries("Ethernet2")["access-vlan"] == 4
    with pytest.raises(errors.InvalidParameterValue, match="has a"):
        interface.vif_detach(task, "b")
    switches[1].faults.add(kind="stuck", method="PUT", times=-1)
    with pytest.raises(errors.Conflict, match=r"switch tor-2.*ask again"):
        interface.vif_attach(task, {"id": "b"})
    assert interface.vif_list(task) == [{"id": "a"}]
