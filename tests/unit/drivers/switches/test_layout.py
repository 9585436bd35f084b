"""What a node wants of its switches: networks as Ironic writes them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.switches import contract, inventory, layout
from bloomery.drivers.switches.contract import Lag, Layout, Port
from bloomery.model.portgroup import Portgroup
from tests.unit.drivers.switches.conftest import NODE, access, port, task_of

TRUNK = {"mode": "trunk", "native_vlan": 1, "allowed_vlans": [30, 31]}


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("access/native_vlan=100", Port(mode="access", native_vlan=100)),
        (
            "trunk/native_vlan=100/allowed_vlans=200,300-302",
            Port(mode="trunk", native_vlan=100, vlans=frozenset({100, 200, 300, 301, 302})),
        ),
        (
            "hybrid/native_vlan=1/allowed_vlans=3",
            Port(mode="trunk", native_vlan=1, vlans=frozenset({1, 3})),
        ),
    ],
)
def test_a_network_is_read_as_ironic_writes_it(text: str, network: Port) -> None:
    assert layout.parse(text, "x") == network


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("access", "is not of the form MODE/native_vlan=N"),
        ("access/vlan=5", "is not of the form"),
        ("access/native_vlan=5/allowed_vlans=6", "access takes none"),
        ("trunk/native_vlan=5", "trunk and hybrid need allowed_vlans"),
        ("trunk/native_vlan=5/allowed_vlans=", "trunk and hybrid need allowed_vlans"),
        ("bogus/native_vlan=5", "mode must be access, trunk or hybrid"),
        ("access/native_vlan=4095", "4095 is no VLAN from 1 to 4094"),
        ("trunk/native_vlan=5/allowed_vlans=9-7", "'9-7'"),
        ("trunk/native_vlan=5/allowed_vlans=x", "'x'"),
    ],
)
def test_an_unfit_network_is_named_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(errors.InvalidParameterValue) as refused:
        layout.parse(text, "[ironic_networking]idle_network")
    assert "[ironic_networking]idle_network" in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("switchport", "reason"),
    [
        ([1], "it must be an object"),
        ({"mode": "access"}, "native_vlan is missing"),
        (access(5, vlans=6), "unknown keys vlans; known are allowed_vlans, lag_name, mode, mtu"),
        (access("5"), "'5' is no VLAN"),
        (access(True), "True is no VLAN"),
        (access(5, allowed_vlans=[6]), "access takes none"),
        (access(5, mtu=9217), "mtu must be a number from 68 to 9216"),
        (access(5, lag_name=""), "lag_name must be a text"),
        ({"mode": "trunk", "native_vlan": 1, "allowed_vlans": []}, "need allowed_vlans"),
        (TRUNK | {"allowed_vlans": list(range(1, 102))}, "up to 100 VLANs"),
        (TRUNK, "a port with pxe_enabled needs mode access"),
    ],
)
def test_an_unfit_switchport_names_its_port(switchport: Any, reason: str) -> None:
    bad = port(1, None, switchport=switchport)
    with pytest.raises(errors.InvalidParameterValue) as refused:
        layout.switchport(bad)
    assert f"extra.switchport of port {bad.uuid}" in str(refused.value)
    assert reason in str(refused.value)


@pytest.fixture
def of(switches, make_conf):
    """Return the layouts of a node by the names of switches."""

    def layouts(task: Any, role: str, **options: Any) -> dict[str, Layout]:
        conf = make_conf(**options)
        made = layout.of(task, role, inventory.of(conf), conf)
        return {switch.name: each for switch, each in made.items()}

    return layouts


def test_a_role_without_a_network_has_those_of_the_ports(of, switches):
    task = task_of(
        port(1, switches[0], switchport=access(7)),
        port(2, switches[1], switchport=TRUNK, pxe_enabled=False),
        port(3, switches[1]),
        port(4, None, switchport=access(7)),
    )
    own = {
        "tor-1": Layout(ports={"Ethernet1": Port(mode="access", native_vlan=7)}),
        "tor-2": Layout(
            ports={"Ethernet2": Port(mode="trunk", native_vlan=1, vlans=frozenset({1, 30, 31}))}
        ),
    }
    assert of(task, "tenant") == own
    assert of(task, "cleaning") == own
    assert of(task, "idle") == {}
    all_ports = of(task, "cleaning", cleaning_network="access/native_vlan=9")
    assert {name: set(each.ports) for name, each in all_ports.items()} == {
        "tor-1": {"Ethernet1"}, "tor-2": {"Ethernet2", "Ethernet3"},
    }  # fmt: skip
    task.driver_info["cleaning_network"] = "access/native_vlan=10"
    (first, *_) = of(task, "cleaning", cleaning_network="access/native_vlan=9").values()
    assert first.ports["Ethernet1"].native_vlan == 10


def test_a_group_is_a_lag_for_its_user_and_single_ports_for_all_else(of, switches):
    lag = TRUNK | {"aggregation_mode": "lacp"}
    group = Portgroup(uuid=str(uuid.UUID(int=50)), node_uuid=NODE, name="bond0", extra={"lag": lag})
    task = task_of(
        port(1, switches[0], portgroup_uuid=group.uuid),
        port(2, switches[0], portgroup_uuid=group.uuid),
        groups=(group,),
    )
    carries = Port(mode="trunk", native_vlan=1, vlans=frozenset({1, 30, 31}))
    assert of(task, "tenant") == {
        "tor-1": Layout(
            ports={"Ethernet1": Port(lag="bond0"), "Ethernet2": Port(lag="bond0")},
            lags={"bond0": Lag(carries=carries, aggregation="lacp")},
        )
    }
    cleaned = of(task, "cleaning", cleaning_network="access/native_vlan=9")["tor-1"]
    assert cleaned.lags == {"bond0": None}
    assert {each.lag for each in cleaned.ports.values()} == {None}


def test_an_unknown_switch_and_a_forbidden_vlan_are_refused(of, switches):
    lost = port(1, None, switchport=access(7))
    lost.local_link_connection = {"switch_id": "00:00:00:00:00:01", "port_id": "1"}
    with pytest.raises(errors.InvalidParameterValue, match="known are tor-1, tor-2"):
        of(task_of(lost), "tenant")
    task = task_of(port(1, switches[0], switchport=access(7)))
    with pytest.raises(errors.InvalidParameterValue, match=r"\[ironic_networking\]allowed_vlans"):
        of(task, "tenant", allowed_vlans="8-9")
    with pytest.raises(errors.InvalidParameterValue, match="VLAN 7"):
        of(task, "tenant", allowed_vlans="")
    with pytest.raises(errors.InvalidParameterValue, match="allowed_vlans of switch tor-1"):
        of(task, "tenant", allowed_vlans="7", keys={"allowed_vlans": "8"})
    assert of(task, "tenant", allowed_vlans="8", keys={"allowed_vlans": "7"})


def test_vlans_are_listed_as_ranges() -> None:
    assert contract.ranges({7, 1, 3, 2, 9, 10}) == "1-3,7,9-10"
    assert contract.parse_vlans("1-3, 7,9-10", "x") == {1, 2, 3, 7, 9, 10}
    assert contract.parse_vlans("[]", "x") == frozenset() == contract.parse_vlans(" ", "x")
