"""Network data that a ramdisk could follow, and the places of what it could not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bloomery import errors
from bloomery.model.rules import network_data

MAC = "52:54:00:12:34:56"
ROUTE = {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"}
GOOD: dict[str, Any] = {
    "links": [
        {"id": "eth0", "type": "phy", "ethernet_mac_address": MAC, "mtu": 1500, "ours": [1]},
        {"id": "b", "type": "bond", "ethernet_mac_address": MAC, "bond_mode": "active-backup",
         "bond_links": ["eth0"]},
        {"id": "v", "type": "vlan", "vlan_mac_address": MAC, "vlan_id": 5, "vlan_link": "eth0",
         "mtu": None},
    ],
    "networks": [
        {"id": "n0", "type": "ipv4", "link": "eth0", "network_id": "x", "ip_address": "10.0.0.2",
         "netmask": "255.255.255.0", "routes": [ROUTE]},
        {"id": "n1", "type": "ipv6", "link": "eth0", "network_id": "x",
         "ip_address": "2001:db8::2/64", "netmask": "ffff:ffff:ffff:ffff::"},
        {"id": "n2", "type": "ipv4_dhcp", "link": "v", "network_id": "x"},
    ],
    "services": [{"type": "dns", "address": "8.8.8.8"}, {"type": "dns", "address": "2001::1"}],
}  # fmt: skip


def test_what_a_ramdisk_could_follow_is_accepted():
    network_data.check(GOOD)
    network_data.check({"links": [], "networks": [], "services": []})


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("links", 5, 'network_data/links: 5 is not of type "array"'),
        ("services", None, 'network_data: "services" is a required property'),
        ("links/0", 5, "network_data/links/0"),
        ("links/0/type", "wifi", "network_data/links/0/type: 'wifi' is not one of bridge"),
        ("links/0/ethernet_mac_address", "zz", 'ethernet_mac_address: "zz" is not a "MAC address"'),
        ("links/0/mtu", 0, "links/0/mtu"),
        ("links/1/bond_mode", "x", "links/1/bond_mode"),
        ("links/1/bond_links", None, "bond_links"),
        ("links/2/vlan_id", "5", "links/2/vlan_id"),
        ("networks/0/link", None, '"link" is a required property'),
        ("networks/0/network_id", None, "network_id"),
        ("networks/0/type", "ipx", "networks/0/type"),
        ("networks/0/ip_address", "::1", 'ip_address: "::1" is not a "IPv4 address"'),
        ("networks/0/netmask", "255.0.255.0", "netmask"),
        ("networks/0/routes/0/gateway", "here", "networks/0/routes/0/gateway"),
        ("networks/1/netmask", "255.255.255.0", "networks/1/netmask"),
        ("services/0/type", "ntp", "services/0/type"),
        ("services/1/address", "x", 'services/1/address: "x" is not a "IP address"'),
    ],
)
def test_the_place_of_what_it_could_not_is_named(place: str, value: Any, sentence: str):
    document = copy.deepcopy(GOOD)
    *above, last = (int(key) if key.isdigit() else key for key in place.split("/"))
    inside: Any = document
    for key in above:
        inside = inside[key]
    if value is None:
        del inside[last]
    else:
        inside[last] = value
    with pytest.raises(errors.InvalidParameterValue) as refusal:
        network_data.check(document)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("value", [None, [], "x", {}])
def test_no_network_data_are_no_document(value: Any):
    with pytest.raises(errors.InvalidParameterValue, match="network_data"):
        network_data.check(value)
