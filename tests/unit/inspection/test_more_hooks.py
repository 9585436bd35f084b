"""Hooks that sites choose: LLDP, networks, disks, PCI devices, measurements."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.conf.inspection import Inspector
from bloomery.inspection import hooks, lldp
from bloomery.inspection.draft import Draft
from bloomery.model.node import Node
from bloomery.model.port import Port

A, B = "52:54:00:00:00:0a", "52:54:00:00:00:0b"
CHASSIS = [1, "0464649b32f300"]
PORT = [2, "05" + b"Ethernet1/18".hex()]
NICS: list[dict[str, Any]] = [
    {"name": "eth0", "mac_address": A, "ipv4_address": "192.0.2.5", "lldp": [CHASSIS, PORT]},
    {"name": "eth1", "mac_address": B, "ipv6_address": "2001:db8::7%eth1"},
]
DISKS = [
    {"name": "/dev/sda", "size": 500 << 30, "serial": "a", "rotational": True},
    {"name": "/dev/sdb", "size": 100 << 30, "serial": "b", "rotational": False},
]
T4 = {"vendor_id": "10de", "product_id": "1eb8", "bus": "0000:03:00.0"}


def run(
    names: str,
    inventory: dict[str, Any] | None = None,
    plugin_data: dict[str, Any] | None = None,
    ports: tuple[Port, ...] = (),
    node: dict[str, Any] | None = None,
    **conf: Any,
) -> Draft:
    inventory = {"interfaces": NICS} | (inventory or {})
    subject = Node(uuid="n", driver="fake-hardware", **(node or {}))
    draft = Draft.of(subject, ports, inventory, plugin_data or {})
    hooks.run(hooks.pipeline(tuple(names.split())), draft, Inspector(**conf))
    return draft


def ports(**more: Any) -> tuple[Port, ...]:
    return tuple(Port(uuid=f"p-{mac}", address=mac, node_uuid="n", **more) for mac in (A, B))


# ------------------------------------------------------------------------------------------- LLDP


@pytest.mark.parametrize(
    ("tlv", "parsed"),
    [
        (CHASSIS, {"switch_chassis_id": "64:64:9b:32:f3:00"}),
        ([1, "0501c0000207"], {"switch_chassis_id": "192.0.2.7"}),
        ([1, "07" + b"leaf-1".hex()], {"switch_chassis_id": "leaf-1"}),
        (PORT, {"switch_port_id": "Ethernet1/18"}),
        ([2, "03525400000001"], {"switch_port_id": "52:54:00:00:00:01"}),
        ([4, b"to rack 4".hex()], {"switch_port_description": "to rack 4"}),
        ([5, b"leaf-1\0".hex()], {"switch_system_name": "leaf-1"}),
        ([8, "0501c0000207020000000100"], {"switch_mgmt_addresses": ["192.0.2.7"]}),
        ([127, "0080c20100c8"], {"switch_port_untagged_vlan_id": 200}),
        ([127, "0080c20300c8036e6574"], {"switch_port_vlans": [{"id": 200, "name": "net"}]}),
        ([127, "00120f042400"], {"switch_port_mtu": 9216}),
        ([127, "00120f030300000005"],
         {"switch_port_link_aggregation_support": True,
          "switch_port_link_aggregation_enabled": True, "switch_port_link_aggregation_id": 5}),
        ([0, ""], {}), ([1, ""], {}), ([1, "04ff"], {}), ([1, "0501ff"], {}), ([2, "05ff00ff"], {}),
        ([5, "zz"], {}), ([5, 5], {}), (["x", "00"], {}), ([5], {}), ("x", {}), ([8, "05"], {}),
        ([127, "00"], {}), ([127, "0080c203"], {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_switch_tells_is_read_and_nonsense_left_out(tlv, parsed):
    assert lldp.parse([tlv]) == parsed


@pytest.mark.parametrize("tlvs", [None, 5, {}, "x"])
def test_what_is_no_list_tells_nothing(tlvs):
    assert lldp.parse(tlvs) == {}


def test_parsed_lldp_is_kept_wherever_the_agent_put_it():
    said = {"switch_chassis_id": "64:64:9b:32:f3:00", "switch_port_id": "Ethernet1/18"}
    assert run("parse-lldp").plugin_data["parsed_lldp"] == {"eth0": said}
    beside = run("parse-lldp", plugin_data={"lldp_raw": {"eth1": [PORT]}}).plugin_data
    assert beside["parsed_lldp"]["eth1"] == {"switch_port_id": "Ethernet1/18"}


def test_ports_learn_their_switch():
    names = "validate-interfaces local-link-connection"
    before = ports(local_link_connection={"switch_info": "leaf"})
    linked, other = run(names, ports=before).ports
    assert linked.local_link_connection == {
        "switch_info": "leaf", "switch_id": "64:64:9b:32:f3:00", "port_id": "Ethernet1/18",
    }  # fmt: skip
    assert other.local_link_connection == {"switch_info": "leaf"}


def test_what_somebody_else_has_parsed_counts():
    parsed = {"eth1": {"switch_chassis_id": "s", "switch_port_id": "p"}, "eth0": 5, "x": {}}
    names = "validate-interfaces local-link-connection"
    _, other = run(names, plugin_data={"parsed_lldp": parsed}, ports=ports()).ports
    assert other.local_link_connection == {"switch_id": "s", "port_id": "p"}


# --------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize(
    ("cidr_map", "networks"),
    [
        ((), [None, None]),
        (("192.0.2.0/24:a", "2001:db8::/32:b"), ["a", "b"]),
        (("192.0.2.0/25:first", "192.0.2.0/24:second"), ["first", None]),
    ],
)
def test_ports_learn_their_physical_network(cidr_map, networks):
    names = "validate-interfaces physical-network"
    draft = run(names, ports=ports(), physical_network_cidr_map=cidr_map)
    assert [port.physical_network for port in draft.ports] == networks


def test_a_physical_network_that_is_set_stays():
    draft = run("validate-interfaces physical-network", ports=ports(physical_network="mine"),
                physical_network_cidr_map=("192.0.2.0/24:a",))  # fmt: skip
    assert draft.ports[0].physical_network == "mine"


def test_networks_that_are_none_fail_by_name():
    with pytest.raises(errors.HardwareInspectionFailure, match="physical_network_cidr_map"):
        run("validate-interfaces physical-network", physical_network_cidr_map=("x:y",))


# ------------------------------------------------------------------------------------------ disks


@pytest.mark.parametrize(
    ("hints", "root_disk", "spacing", "local_gb"),
    [
        ({"rotational": False}, None, True, 99),
        ({"rotational": False}, None, False, 100),
        ({"size": ">= 200"}, DISKS[1], True, 499),
        (None, DISKS[1], True, 99),
        (None, None, True, None),
        (None, "nonsense", True, None),
    ],
    ids=str,
)
def test_the_root_device_gives_the_size(hints, root_disk, spacing, local_gb):
    node = {"properties": {"root_device": hints} if hints else {}}
    draft = run("root-device", {"disks": DISKS}, {"root_disk": root_disk}, node=node,
                disk_partitioning_spacing=spacing)  # fmt: skip
    assert draft.node.properties.get("local_gb") == local_gb


@pytest.mark.parametrize("hints", [{"serial": "z"}, {"nonsense": 1}, {"size": "x"}, 5, "x"])
def test_hints_that_no_disk_fits_fail(hints):
    with pytest.raises(errors.HardwareInspectionFailure):
        run("root-device", {"disks": DISKS}, node={"properties": {"root_device": hints}})


def test_the_disk_that_is_new_is_the_raid():
    first = run("raid-device", {"disks": DISKS[:1]})
    assert first.node.extra == {"block_devices": {"serials": ["a"]}}
    assert "root_device" not in first.node.properties
    second = run("raid-device", {"disks": DISKS}, node={"extra": first.node.extra})
    assert second.node.properties["root_device"] == {"serial": "b"}
    assert second.node.extra == {"block_devices": {"serials": ["a", "b"]}}


def test_two_new_disks_are_one_too_many():
    with pytest.raises(errors.HardwareInspectionFailure, match="2 disks are new"):
        run("raid-device", {"disks": DISKS}, node={"extra": {"block_devices": {"serials": []}}})


# ------------------------------------------------------------------------------------ PCI, extra


def test_pci_devices_are_counted_by_alias():
    node = {"properties": {"capabilities": "old:3,raid:yes"}}
    data = {"pci_devices": [T4, T4, "nonsense", {}]}
    conf = {"pci_device_alias": ("10DE:1eb8:t4", "8086:1572:old")}
    properties = run("pci-devices", plugin_data=data, node=node, **conf).node.properties
    assert properties["capabilities"] == "raid:yes,t4:2"


def test_an_alias_that_is_none_fails_by_name():
    with pytest.raises(errors.HardwareInspectionFailure, match="pci_device_alias"):
        run("pci-devices", pci_device_alias=("x",))


def test_accelerators_are_known_ones(tmp_path):
    data = {"pci_devices": [T4, T4 | {"product_id": "ffff"}]}
    [card] = run("accelerators", plugin_data=data).node.properties["accelerators"]
    assert (card["type"], card["pci_address"]) == ("GPU", "0000:03:00.0")
    path = tmp_path / "known.yaml"
    path.write_text("pci_devices: [{vendor_id: 10de, device_id: ffff, type: FPGA}]")
    properties = run("accelerators", plugin_data=data, known_accelerators=str(path)).node.properties
    assert [each["type"] for each in properties["accelerators"]] == ["FPGA"]
    with pytest.raises(errors.HardwareInspectionFailure, match="known_accelerators"):
        run("accelerators", plugin_data=data, known_accelerators=str(tmp_path / "none"))


def test_measurements_become_an_object():
    lines = [["cpu", "logical", "number", "8"], ["disk", "sda", "vendor", "X"], ["x"], 5]
    data = run("extra-hardware", plugin_data={"data": lines}).plugin_data
    assert data == {"extra": {"cpu": {"logical": {"number": 8}}, "disk": {"sda": {"vendor": "X"}}}}


@pytest.mark.parametrize("data", [{}, {"pci_devices": 5, "data": "x", "lldp_raw": []}])
def test_hooks_without_anything_to_read_change_nothing(data):
    names = "parse-lldp root-device raid-device pci-devices accelerators extra-hardware"
    draft = run(names, {"interfaces": None, "disks": 5}, data)
    assert draft.node.properties == {}
    assert draft.plugin_data == data
