"""A machine whose ports move at two switches through its life: ``ironic-networking``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from bloomery.conf.agent import Agent as AgentOptions
from bloomery.conf.agent import Deploy
from bloomery.conf.drivers import IronicNetworking
from bloomery.drivers import registry
from bloomery.lab.rack import Machine, Rack
from bloomery.lab.switch import SimulatedSwitch
from tests.functional.redfish.agents.conftest import AGENT, INSTANCE, MAC
from tests.functional.redfish.conftest import conf, manageable
from tests.kit.machines.switches import serving, switch_file
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

VLANS = {
    "inspection": 11, "cleaning": 12, "provisioning": 13, "rescuing": 14, "servicing": 15,
    "idle": 16,
}  # fmt: skip
OTHER = "52:54:00:00:00:78"


@pytest.fixture
def switches() -> Iterator[tuple[SimulatedSwitch, ...]]:
    made = (SimulatedSwitch("tor-1"), SimulatedSwitch("tor-2"))
    with Rack(built=made) as rack:
        yield serving(rack, *made)


@pytest.fixture
def stage(make_site, switches, tmp_path) -> Iterator[Stage]:
    plain = conf()
    networks = {f"{role}_network": f"access/native_vlan={vlan}" for role, vlan in VLANS.items()}
    changed = dataclasses.replace(
        plain,
        default=dataclasses.replace(
            plain.default,
            enabled_deploy_interfaces=("ramdisk", "direct"),
            enabled_network_interfaces=("ironic-networking", "noop"),
            enabled_inspect_interfaces=("redfish", "agent"),
        ),
        agent=AgentOptions(
            certificates_path=str(tmp_path / "certificates"), command_timeout=3,
            post_deploy_get_power_state_retry_interval=0,
        ),
        deploy=Deploy(
            erase_devices_priority=0, http_root=str(tmp_path / "http"), http_url="http://web.test"
        ),
        ironic_networking=IronicNetworking(
            switch_config_file=str(switch_file(tmp_path / "switches.conf", switches)),
            switch_timeout=3, switch_apply_timeout=1, **networks,
        ),
    )  # fmt: skip
    stage = Stage(make_site(registry=registry.load(changed), bmc_outage_budget=60))
    stage.configure("agent", certificates_path=str(tmp_path / "certificates"))
    yield stage
    assert stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def node(stage: Stage, machine: Machine, switches) -> str:
    """A node with a port at each switch, whose networks are VLAN 100, and 200 with 300 tagged."""
    node = manageable(stage, machine, deploy_iso=AGENT)
    stage.patch(
        node, deploy_interface="direct", rescue_interface="agent", inspect_interface="agent",
        network_interface="ironic-networking",
        instance_info=INSTANCE,
    )  # fmt: skip
    trunk = {"mode": "trunk", "native_vlan": 200, "allowed_vlans": [300]}
    for address, switch, own in (
        (MAC, switches[0], {"mode": "access", "native_vlan": 100}),
        (OTHER, switches[1], trunk),
    ):
        answer = stage.api.post("/v1/ports", {
            "node_uuid": node, "address": address, "pxe_enabled": switch is switches[0],
            "local_link_connection": {"switch_id": switch.mac, "port_id": "Ethernet3"},
            "extra": {"switchport": own},
        })  # fmt: skip
        assert answer.status == 201, answer.json
    return node


def moves(switches: tuple[SimulatedSwitch, ...]) -> list[list[str]]:
    """Return what each switch's port carried since the last call, in order."""
    seen = [[what.removeprefix("Ethernet3: ") for _, what in each.history] for each in switches]
    for each in switches:
        each.history.clear()
    return seen


def both(*roles: str) -> list[list[str]]:
    return [[f"VLAN {VLANS[role]}" for role in roles]] * 2


OWN = ["VLAN 100"], ["trunk of VLAN 200, 300, native 200"]


def test_the_ports_follow_the_life_of_a_machine(stage, node, ramdisk, switches):
    assert stage.api.get(f"/v1/nodes/{node}/validate").json["network"] == {"result": True}
    stage.ask(node, "provide")
    assert ramdisk.live_until(node, "available", "clean failed")["last_error"] is None
    assert moves(switches) == both("cleaning", "idle")
    stage.ask(node, "active")
    assert ramdisk.live_until(node, "active", "deploy failed")["last_error"] is None
    assert moves(switches) == [["VLAN 13", *own] for own in OWN]
    stage.ask(node, "rescue", rescue_password="opensesame")
    assert ramdisk.live_until(node, "rescue", "rescue failed")["last_error"] is None
    assert moves(switches) == both("rescuing")
    stage.ask(node, "unrescue")
    assert ramdisk.live_until(node, "active", "unrescue failed")["last_error"] is None
    assert moves(switches) == [list(own) for own in OWN]
    stage.ask(node, "deleted")
    assert ramdisk.live_until(node, "available", "clean failed")["last_error"] is None
    assert moves(switches) == both("idle", "cleaning", "idle")
    assert "switch_orders" not in stage.show(node)["driver_internal_info"]


def test_a_ports_network_of_a_ramdisk_deployment(stage, node, machine, switches):
    stage.patch(node, deploy_interface="ramdisk", instance_info={"boot_iso": AGENT})
    stage.site.set(node, provision_state="available")
    stage.ask(node, "active")
    assert stage.wait_for(node, "active")["last_error"] is None
    assert moves(switches) == [list(own) for own in OWN]


def test_a_silent_switch_is_waited_for_and_why_names_it(stage, node, ramdisk, switches):
    switches[1].faults.add(kind="status", status=503, times=-1)
    stage.ask(node, "provide")

    def waits() -> bool:
        return "switch tor-2" in stage.api.get(f"/ext/v1/nodes/{node}/why").json["cause"]

    wait_for(waits, "why to name the switch")
    why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    assert why["cause_code"] == "step_waits_for_switch"
    assert "switch tor-2 does not answer" in why["cause"]
    assert "look at the switch" in why["next_action"]
    assert moves(switches) == [["VLAN 12"], []]
    switches[1].faults.clear()
    assert ramdisk.live_until(node, "available", "clean failed")["last_error"] is None
    assert moves(switches) == [["VLAN 16"], ["VLAN 12", "VLAN 16"]]


def test_a_switch_that_changes_nothing_fails_the_flow_by_name(stage, node, ramdisk, switches):
    switches[0].faults.add(kind="stuck", method="PUT", times=-1)
    stage.ask(node, "provide")
    shown = ramdisk.live_until(node, "available", "clean failed")
    assert shown["provision_state"] == "clean failed"
    assert "switch tor-1 accepted the network cleaning" in shown["last_error"]
    assert "port Ethernet3 shows VLAN 1, and not VLAN 12" in shown["last_error"]


def test_a_wrong_network_is_refused_before_the_machine_is_touched(stage, node, machine, switches):
    stage.patch(node, **{"driver_info.cleaning_network": "access/native_vlan=99999"})
    answer = stage.api.get(f"/v1/nodes/{node}/validate").json["network"]
    assert "driver_info/cleaning_network" in answer["reason"]
    stage.site.set(node, provision_state="available")
    machine.system.happened.clear()
    refusal = stage.api.put(f"/v1/nodes/{node}/states/provision", {"target": "active"})
    assert refusal.status >= 400
    assert machine.system.happened == []


def test_vifs_of_an_active_node_move_its_ports(stage, node, switches):
    stage.site.set(node, provision_state="active")
    vifs = f"/v1/nodes/{node}/vifs"
    assert stage.api.post(vifs, {"id": "blue"}).status == 204
    assert stage.api.get(vifs).json == {"vifs": [{"id": "blue"}]}
    assert moves(switches) == [["VLAN 100"], []]
    assert stage.api.delete(f"{vifs}/blue").status == 204
    assert stage.api.get(vifs).json == {"vifs": []}
    assert moves(switches) == [["VLAN 16"], []]


ORDERS_OF_WIRES = {
    "network of a port": ("PATCH", "ports", "/extra/switchport/native_vlan", 101),
    "port with a network": ("DELETE", "ports", None, None),
    "LAG of a port group": ("PATCH", "portgroups", "/extra/lag/native_vlan", 101),
    "name of a LAG": ("PATCH", "portgroups", "/name", "bond1"),
}


@pytest.mark.parametrize(("method", "noun", "path", "value"), ORDERS_OF_WIRES.values(),
                         ids=ORDERS_OF_WIRES)  # fmt: skip
def test_the_wires_of_a_node_in_use_change_in_maintenance_alone(
    stage, node, method, noun, path, value
):
    lag = {"mode": "access", "native_vlan": 100, "aggregation_mode": "lacp"}
    group = {"node_uuid": node, "name": "bond0", "extra": {"lag": lag}}
    made = stage.api.post("/v1/portgroups", group).json
    ports = stage.api.get("/v1/ports").json["ports"]
    (port,) = (each for each in ports if each["address"] == MAC)
    record = f"/v1/{noun}/{(port if noun == 'ports' else made)['uuid']}"
    patch = None if path is None else [{"op": "replace", "path": path, "value": value}]
    stage.site.set(node, provision_state="active")
    refusal = stage.api.ask(method, record, patch)
    assert refusal.status == 409
    assert "set the node to maintenance first" in str(refusal.json)
    harmless = [{"op": "add", "path": "/extra/note", "value": "blue cable"}]
    assert stage.api.patch(record, harmless).status == 200
    stage.site.set(node, maintenance=True)
    assert stage.api.ask(method, record, patch).status in (200, 204)


def test_a_vif_brings_the_network_that_changed_in_maintenance(stage, node, switches):
    (port,) = (p for p in stage.api.get("/v1/ports").json["ports"] if p["address"] == MAC)
    patch = [{"op": "replace", "path": "/extra/switchport/native_vlan", "value": 101}]
    stage.site.set(node, provision_state="active", maintenance=True)
    assert stage.api.patch(f"/v1/ports/{port['uuid']}", patch).status == 200
    named = {"id": "blue", "port_uuid": port["uuid"]}
    assert stage.api.post(f"/v1/nodes/{node}/vifs", named).status == 204
    assert moves(switches) == [["VLAN 101"], []]
