"""Hooks: which interfaces count, which ports come of them, and what else an inventory says."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf.inspection import Inspector
from bloomery.inspection import base, hooks
from bloomery.inspection.draft import Draft
from bloomery.model.node import Node
from bloomery.model.port import Port

A, B, C = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:0c"
INVENTORY: dict[str, Any] = {
    "interfaces": [
        {"name": "eth0", "mac_address": A.upper(), "ipv4_address": "192.0.2.5", "client_id": "ff"},
        {"name": "eth1", "mac_address": B},
        {"name": "lo", "mac_address": "00:00:00:00:00:00", "ipv4_address": "127.0.0.1"},
        {"name": "ib0", "mac_address": "not one"},
        {"mac_address": C},
        "nonsense",
    ],
    "cpu": {"architecture": "x86_64", "count": "8", "flags": ["vmx", "aes", "fpu"]},
    "memory": {"physical_mb": 4096},
    "boot": {"current_boot_mode": "uefi", "pxe_interface": f"01-{A.replace(':', '-')}"},
}
WITHOUT_BOOT = {k: v for k, v in INVENTORY.items() if k != "boot"}


def run(
    names: str,
    inventory: dict[str, Any] = INVENTORY,
    ports: tuple[Port, ...] = (),
    plugin_data: dict[str, Any] | None = None,
    **conf: Any,
) -> Draft:
    node = Node(uuid="n", driver="fake-hardware", properties={"capabilities": "raid:yes"})
    draft = Draft.of(node, ports, inventory, plugin_data or {})
    hooks.run(hooks.pipeline(tuple(names.split())), draft, Inspector(**conf))
    return draft


def port(address: str, **more: Any) -> Port:
    return Port(uuid=f"port-{address}", address=address, node_uuid="n", **more)


@pytest.mark.parametrize(
    ("add_ports", "inventory", "names"),
    [
        ("pxe", INVENTORY, {"eth0"}),
        ("pxe", WITHOUT_BOOT, {"eth0", "eth1"}),
        ("active", INVENTORY, {"eth0"}),
        ("all", INVENTORY, {"eth0", "eth1"}),
        ("disabled", INVENTORY, {"eth0", "eth1"}),
    ],
)
def test_interfaces_are_chosen_as_the_option_says(add_ports, inventory, names):
    data = run("validate-interfaces", inventory, add_ports=add_ports).plugin_data
    assert set(data["valid_interfaces"]) == names
    assert set(data["all_interfaces"]) == {"eth0", "eth1", "lo"}
    assert data["macs"] == [nic["mac_address"] for nic in data["valid_interfaces"].values()]


@pytest.mark.parametrize(
    "interfaces", [[], None, 5, [{"name": "a"}], [{"name": "lo", "mac_address": A}]]
)
def test_an_inventory_without_a_usable_interface_fails(interfaces):
    with pytest.raises(errors.HardwareInspectionFailure, match="interface"):
        run("validate-interfaces", {"interfaces": interfaces})


def test_valid_interfaces_become_ports():
    [new] = run("validate-interfaces ports").new_ports
    assert (new.address, new.pxe_enabled, new.extra) == (A, True, {"client-id": "ff"})
    assert run("validate-interfaces ports", add_ports="disabled").new_ports == []


def test_where_nobody_tells_what_boots_each_port_may():
    draft = run("validate-interfaces ports", WITHOUT_BOOT, (port(C, pxe_enabled=False),))
    assert [(each.address, each.pxe_enabled) for each in draft.new_ports] == [(A, True), (B, True)]
    assert draft.ports[0].pxe_enabled is False


@pytest.mark.parametrize(
    ("keep_ports", "kept"), [("all", {A, B, C}), ("present", {A, B}), ("added", {A})]
)
def test_ports_are_kept_as_the_option_says(keep_ports, kept):
    ports = tuple(port(address) for address in (A, B, C))
    draft = run("validate-interfaces ports", ports=ports, keep_ports=keep_ports)
    assert {each.address for each in draft.ports} == kept
    assert {each.address for each in draft.removed_ports} == {A, B, C} - kept
    assert draft.new_ports == []


@pytest.mark.parametrize(("update", "flags"), [(True, [True, False]), (False, [False, True])])
def test_pxe_enabled_follows_what_booted(update, flags):
    ports = (port(A, pxe_enabled=False), port(B))
    draft = run("validate-interfaces ports", ports=ports, update_pxe_enabled=update)
    assert [each.pxe_enabled for each in draft.ports] == flags


def test_what_an_agent_reports_as_its_error_fails():
    with pytest.raises(errors.HardwareInspectionFailure, match="no disk"):
        run("ramdisk-error", plugin_data={"error": "no disk"})


def test_an_inventory_sets_properties_and_capabilities():
    properties = run("architecture cpus memory boot-mode cpu-capabilities").node.properties
    assert properties == {
        "cpu_arch": "x86_64",
        "cpus": 8,
        "memory_mb": 4096,
        "capabilities": "raid:yes,boot_mode:uefi,cpu_vt:true,cpu_aes:true",
    }


@pytest.mark.parametrize("inventory", [{}, {"cpu": 5, "memory": [], "boot": None}])
def test_what_an_inventory_does_not_say_nobody_sets(inventory):
    draft = run("architecture cpus memory boot-mode cpu-capabilities", inventory)
    assert draft.node.properties == {"capabilities": "raid:yes"}


def test_hooks_that_need_others_stand_behind_them():
    with pytest.raises(errors.HardwareInspectionFailure, match="validate-interfaces before it"):
        hooks.pipeline(("ports", "validate-interfaces"))
    with pytest.raises(errors.HardwareInspectionFailure, match="no inspection hook nonsense"):
        hooks.pipeline(("nonsense",))


def test_a_hook_that_breaks_fails_the_inspection_by_name():
    class Broken(base.Hook):
        def process(self, inspection):
            return inspection.inventory["not there"]

    node = Node(uuid="n", driver="fake-hardware")
    with pytest.raises(errors.HardwareInspectionFailure, match="hook mine cannot use"):
        hooks.run((("mine", Broken()),), Draft.of(node, (), {}, {}), Inspector())


def test_a_draft_shares_nothing_with_what_it_is_made_of():
    inventory = copy.deepcopy(INVENTORY)
    ports = (port(A, pxe_enabled=False),)
    run("validate-interfaces ports architecture", inventory, ports)
    assert inventory == INVENTORY
    assert ports[0].pxe_enabled is False
