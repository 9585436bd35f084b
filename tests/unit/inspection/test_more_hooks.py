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
    {
        "name": "eth0",
        "mac_address": A,
        "ipv4_address": "192.0.2.5",
        "ipv6_address": "2001:db8:a::5",
        "lldp": [CHASSIS, PORT],
    },
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
    previous: dict[str, Any] | None = None,
    **conf: Any,
) -> Draft:
    inventory = {"interfaces": NICS} | (inventory or {})
    subject = Node(uuid="n", driver="fake-hardware", **(node or {}))
    draft = Draft.of(subject, ports, inventory, plugin_data or {})
    draft.previous = previous
    hooks.run(hooks.pipeline(tuple(names.split())), draft, Inspector(**conf))
    return draft


def ports(**more: Any) -> tuple[Port, ...]:
    return tuple(Port(uuid=f"p-{mac}", address=mac, node_uuid="n", **more) for mac in (A, B))


# ------------------------------------------------------------------------------------------- LLDP


def lag(support: bool, enabled: bool, number: int) -> dict[str, Any]:
    prefix = "switch_port_link_aggregation"
    return {f"{prefix}_support": support, f"{prefix}_enabled": enabled, f"{prefix}_id": number}


def physical(support: bool, enabled: bool, capabilities: list[str], mau: str | None = None):
    prefix = "switch_port"
    said = {f"{prefix}_autonegotiation_support": support,
            f"{prefix}_autonegotiation_enabled": enabled,
            f"{prefix}_physical_capabilities": capabilities}  # fmt: skip
    return said | ({f"{prefix}_mau_type": mau} if mau else {})


def protocol_vlan(support: bool, enabled: bool) -> dict[str, Any]:
    prefix = "switch_port_protocol_vlan"
    return {f"{prefix}_support": support, f"{prefix}_enabled": enabled, f"{prefix}_ids": [100]}


def abilities(support: list[str], enabled: list[str]) -> dict[str, Any]:
    prefix = "switch_capabilities"
    return {f"{prefix}_support": support, f"{prefix}_enabled": enabled}


@pytest.mark.parametrize(
    ("tlv", "parsed"),
    [
        (CHASSIS, {"switch_chassis_id": "64:64:9b:32:f3:00"}),
        ([1, "0501c0000207"], {"switch_chassis_id": "192.0.2.7"}),
        ([1, "050220010db8000000000000000000000007"], {"switch_chassis_id": "2001:db8::7"}),
        ([1, "07" + b"leaf-1".hex()], {"switch_chassis_id": "leaf-1"}),
        ([1, "06" + b"mgmt0".hex()], {"switch_chassis_id": "mgmt0"}),
        ([1, "08" + b"x".hex()], {}), ([1, "00" + b"x".hex()], {}),
        (PORT, {"switch_port_id": "Ethernet1/18"}),
        ([2, "03525400000001"], {"switch_port_id": "52:54:00:00:00:01"}),
        ([2, "0401c0000207"], {"switch_port_id": "192.0.2.7"}),
        ([2, "07" + b"512".hex()], {"switch_port_id": "512"}),
        ([4, b"to rack 4".hex()], {"switch_port_description": "to rack 4"}),
        ([4, ""], {"switch_port_description": ""}),
        ([5, b"leaf-1\0".hex()], {"switch_system_name": "leaf-1"}),
        ([7, "00140004"], abilities(["Bridge", "Router"], ["Bridge"])),
        ([7, "07fe0000"], abilities(
            ["Repeater", "Bridge", "WLAN", "Router", "Telephone", "DOCSIS cable device",
             "Station only", "C-Vlan", "S-Vlan", "TPMR"], [])),
        ([7, "f8010000"], abilities([], [])),
        ([7, "0014"], {}), ([7, "0014000400"], {}), ([7, ""], {}),
        ([8, "0501c0000207020000000100"], {"switch_mgmt_addresses": ["192.0.2.7"]}),
        ([8, "0706525400000001020000000100"], {"switch_mgmt_addresses": ["52:54:00:00:00:01"]}),
        ([127, "0080c20100c8"], {"switch_port_untagged_vlan_id": 200}),
        ([127, "0080c201c8"], {}),
        ([127, "0080c202060064"], protocol_vlan(True, True)),
        ([127, "0080c202000064"], protocol_vlan(False, False)),
        ([127, "0080c2020600"], {}),
        ([127, "0080c20300c8036e6574"], {"switch_port_vlans": [{"id": 200, "name": "net"}]}),
        ([127, "0080c20300c800"], {"switch_port_vlans": [{"id": 200, "name": ""}]}),
        ([127, "0080c20300c8026e6574"], {"switch_port_vlans": [{"id": 200, "name": "ne"}]}),
        ([127, "0080c20300c8056e6574"], {}),
        ([127, "0080c2040288cc"], {"switch_protocol_identities": ["88cc"]}),
        ([127, "0080c20600c8"], {"switch_port_management_vlan_id": 200}),
        ([127, "0080c2070300000005"], lag(True, True, 5)),
        ([127, "0080c20500000000"], {}),
        ([127, "00120f01036c110010"], physical(
            True, True,
            ["1000BASE-T fdx", "100BASE-TX fdx", "100BASE-TX hdx", "10BASE-T fdx", "10BASE-T hdx",
             "Asym and Sym PAUSE fdx"], "100BASE-TX full duplex")),
        ([127, "00120f010000000000"], physical(False, False, [], "Unknown")),
        ([127, "00120f01010000001e"], physical(True, False, [], "1000BASE-T full duplex")),
        ([127, "00120f010200010035"], physical(False, True, ["1000BASE-T fdx"], "1000BASE-PX20U")),
        ([127, "00120f0102000100ff"], physical(False, True, ["1000BASE-T fdx"])),
        ([127, "00120f0103"], {}), ([127, "00120f02070101"], {}),
        ([127, "00120f030300000005"], lag(True, True, 5)),
        ([127, "00120f030100000000"], lag(True, False, 0)),
        ([127, "00120f042400"], {"switch_port_mtu": 9216}),
        ([127, "00120f0424"], {}),
        ([0, ""], {}), ([1, ""], {}), ([1, "04ff"], {}), ([1, "0501ff"], {}), ([2, "05ff00ff"], {}),
        ([5, "zz"], {}), ([5, 5], {}), (["x", "00"], {}), ([5], {}), ("x", {}), ([8, "05"], {}),
        ([127, "00"], {}), ([127, "0080c203"], {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_switch_tells_is_read_and_nonsense_left_out(tlv, parsed):
    assert lldp.parse([tlv]) == parsed


def test_the_first_of_equal_values_counts_and_lists_grow():
    tlvs = [[5, b"a".hex()], [5, b"b".hex()], [127, "00120f042400"], [127, "00120f0405dc"],
            [127, "0080c20300010161"], [127, "0080c20300020162"]]  # fmt: skip
    assert lldp.parse(tlvs) == {
        "switch_system_name": "a", "switch_port_mtu": 9216,
        "switch_port_vlans": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    }  # fmt: skip


@pytest.mark.parametrize("tlvs", [None, 5, {}, "x"])
def test_what_is_no_list_tells_nothing(tlvs):
    assert lldp.parse(tlvs) == {}


def test_parsed_lldp_is_kept_wherever_the_agent_put_it():
    said = {"switch_chassis_id": "64:64:9b:32:f3:00", "switch_port_id": "Ethernet1/18"}
    assert run("parse-lldp").plugin_data["parsed_lldp"] == {"eth0": said}
    beside = run("parse-lldp", plugin_data={"lldp_raw": {"eth1": [PORT]}}).plugin_data
    assert beside["parsed_lldp"]["eth1"] == {"switch_port_id": "Ethernet1/18"}


NAME = [5, b"leaf-1".hex()]
LINK = {"switch_id": "64:64:9b:32:f3:00", "port_id": "Ethernet1/18", "switch_info": "leaf-1"}


@pytest.mark.parametrize(
    ("tlvs", "before", "after"),
    [
        ([CHASSIS, PORT, NAME], {}, LINK),
        ([CHASSIS], {}, {"switch_id": "64:64:9b:32:f3:00"}),
        ([PORT], {}, {"port_id": "Ethernet1/18"}),
        ([NAME], {}, {"switch_info": "leaf-1"}),
        ([[1, "07" + b"leaf-1".hex()], PORT], {}, {"port_id": "Ethernet1/18"}),
        ([[1, "0501c0000207"], PORT], {}, {"port_id": "Ethernet1/18"}),
        ([CHASSIS, [2, "05"], [5, ""]], {}, {"switch_id": "64:64:9b:32:f3:00"}),
        ([CHASSIS, PORT, NAME], {"switch_info": "mine"}, LINK | {"switch_info": "mine"}),
        ([CHASSIS, PORT, NAME], {"network_type": "managed"}, LINK | {"network_type": "managed"}),
        ([CHASSIS, PORT, NAME], {"hostname": "h", "port_id": "rep0"},
         LINK | {"hostname": "h", "port_id": "rep0"}),
        ([], {"switch_info": "mine"}, {"switch_info": "mine"}),
    ],
    ids=str,
)  # fmt: skip
def test_ports_learn_the_switch_that_they_do_not_know(tlvs, before, after):
    names = "validate-interfaces local-link-connection"
    nics = [NICS[0] | {"lldp": tlvs}, NICS[1]]
    port, other = run(names, {"interfaces": nics}, ports=ports(local_link_connection=before)).ports
    assert port.local_link_connection == after
    assert other.local_link_connection == before


def test_what_somebody_else_has_parsed_counts():
    switch = "64:64:9b:32:f3:01"
    parsed = {"eth1": {"switch_chassis_id": switch, "switch_port_id": "p"}, "eth0": 5, "x": {}}
    names = "validate-interfaces local-link-connection"
    _, other = run(names, plugin_data={"parsed_lldp": parsed}, ports=ports()).ports
    assert other.local_link_connection == {"switch_id": switch, "port_id": "p"}


# --------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize(
    ("cidr_map", "networks"),
    [
        ((), [None, None]),
        (("192.0.2.0/24:a", "2001:db8::/48:b"), ["a", "b"]),
        (("192.0.2.0/25:first", "192.0.2.0/24:second"), ["first", None]),
        (("2001:db8:a::/64:six",), ["six", None]),
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
        (None, {"size": 5}, True, 0),
        (None, {"name": "x"}, True, None),
    ],
    ids=str,
)
def test_the_root_device_gives_the_size(hints, root_disk, spacing, local_gb):
    node = {"properties": {"root_device": hints} if hints else {}}
    draft = run("root-device", {"disks": DISKS}, {"root_disk": root_disk}, node=node,
                disk_partitioning_spacing=spacing)  # fmt: skip
    assert draft.node.properties.get("local_gb") == local_gb
    assert draft.plugin_data.get("local_gb") == local_gb


def test_a_machine_without_disks_has_no_local_gb():
    draft = run("root-device", {"disks": []}, node={"properties": {"local_gb": 99}})
    assert (draft.node.properties["local_gb"], draft.plugin_data["local_gb"]) == (0, 0)


def test_the_root_device_is_none_of_the_skipped_ones():
    properties = {"root_device": {"size": ">= 50"}, "skip_block_devices": [{"name": "/dev/sda"}]}
    draft = run("root-device", {"disks": DISKS}, node={"properties": properties})
    assert draft.plugin_data["root_disk"] == DISKS[1]
    properties["skip_block_devices"] = [{"size": ">= 50"}]
    with pytest.raises(errors.HardwareInspectionFailure, match="none of 0 disks"):
        run("root-device", {"disks": DISKS}, node={"properties": properties})


@pytest.mark.parametrize("hints", [{"serial": "z"}, {"nonsense": 1}, {"size": "x"}, 5, "x"])
def test_hints_that_no_disk_fits_fail(hints):
    with pytest.raises(errors.HardwareInspectionFailure):
        run("root-device", {"disks": DISKS}, node={"properties": {"root_device": hints}})


@pytest.mark.parametrize(
    ("disks", "previous", "hints", "root_device"),
    [
        (DISKS, DISKS[:1], None, {"serial": "b"}),
        (DISKS[1:], DISKS[:1], None, {"serial": "b"}),
        (DISKS, None, None, None),
        (DISKS, [], None, None),
        (DISKS[:1], DISKS, None, None),
        ([{"name": "x", "serial": None}], DISKS, None, None),
        (DISKS, DISKS[:1], {"serial": "a"}, {"serial": "a"}),
    ],
    ids=["new", "swapped", "first", "two-new", "gone", "no-serial", "hints"],
)
def test_the_disk_that_is_new_is_the_root_device(disks, previous, hints, root_device):
    inventory = None if previous is None else {"disks": previous}
    node = {"properties": {"root_device": hints} if hints else {}}
    draft = run("raid-device", {"disks": disks}, node=node, previous=inventory)
    assert draft.node.properties.get("root_device") == root_device
    assert draft.node.extra == {}


# ------------------------------------------------------------------------------------ PCI, extra


def test_pci_devices_are_counted_by_alias():
    node = {"properties": {"capabilities": "old:3,raid:yes"}}
    data = {"pci_devices": [T4, T4, "nonsense", {}]}
    json_form = '{"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}'
    for aliases in (("10DE:1eb8:t4,8086:1572:old",), (json_form, "8086:1572:old")):
        properties = run(
            "pci-devices", plugin_data=data, node=node, pci_device_alias=aliases
        ).node.properties
        assert properties["capabilities"] == "raid:yes,t4:2"


@pytest.mark.parametrize("entry", ["x", "{", '{"vendor_id": "10de"}', '{"a": 1}:b:c', "1:2:"])
def test_an_alias_that_is_none_fails_by_name(entry):
    with pytest.raises(errors.HardwareInspectionFailure, match="pci_device_alias"):
        run("pci-devices", pci_device_alias=(entry,))


def test_accelerators_are_known_ones(tmp_path):
    data = {"pci_devices": [T4, T4 | {"product_id": "ffff"}]}
    [card] = run("accelerators", plugin_data=data).node.properties["accelerators"]
    assert (card["type"], card["pci_address"]) == ("GPU", "0000:03:00.0")
    path = tmp_path / "known.yaml"
    path.write_text("pci_devices: [{vendor_id: 10de, device_id: ffff, type: FPGA}]")
    properties = run("accelerators", plugin_data=data, known_accelerators=str(path)).node.properties
    assert [each["type"] for each in properties["accelerators"]] == ["FPGA"]
    gone = {"properties": {"accelerators": [card]}}
    unknown = {"pci_devices": [T4 | {"product_id": "ffff"}]}
    properties = run("accelerators", plugin_data=unknown, node=gone).node.properties
    assert properties == {"accelerators": []}
    with pytest.raises(errors.HardwareInspectionFailure, match="known_accelerators"):
        run("accelerators", plugin_data=data, known_accelerators=str(tmp_path / "none"))


def test_measurements_become_an_object():
    lines = [
        ["cpu", "logical", "number", "8"],
        ["disk", "sda", "vendor", "X"],
        ["x"],
        5,
        ["disk", "sda", "temperature", "-5"],
    ]
    data = run("extra-hardware", plugin_data={"data": lines}).plugin_data
    disk = {"vendor": "X", "temperature": -5}
    assert data == {"extra": {"cpu": {"logical": {"number": 8}}, "disk": {"sda": disk}}}


@pytest.mark.parametrize("data", [{}, {"pci_devices": 5, "data": "x", "lldp_raw": []}])
def test_hooks_without_anything_to_read_change_nothing(data):
    names = "parse-lldp raid-device pci-devices accelerators extra-hardware"
    draft = run(names, {"interfaces": None, "disks": 5}, data)
    assert draft.node.properties == {}
    assert draft.plugin_data == data
