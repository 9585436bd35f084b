"""What becomes of the inventory that a BMC tells: properties, ports, and the inventory itself."""

from __future__ import annotations

import dataclasses
from typing import Any

from bloomery.db import hardware
from bloomery.drivers import registry
from bloomery.lab.rack import Machine
from tests.functional.redfish.conftest import conf, manageable
from tests.kit.servers.stories import Stage


def inspect(stage: Stage, node: str, ends: str = "manageable") -> dict[str, Any]:
    stage.ask(node, "inspect")
    return stage.wait_for(node, ends)


def ports_of(stage: Stage, node: str) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = stage.api.get(f"/v1/nodes/{node}/ports/detail").json["ports"]
    return ports


def test_an_inventory_becomes_ports_and_is_kept(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    assert inspect(stage, node)["last_error"] is None
    kept = stage.api.get(f"/v1/nodes/{node}/inventory").json
    addresses = {nic["mac_address"] for nic in kept["inventory"]["interfaces"]}
    assert {port["address"] for port in ports_of(stage, node)} == addresses
    assert all(port["pxe_enabled"] for port in ports_of(stage, node))
    assert set(kept["plugin_data"]["macs"]) == addresses


def test_a_second_inspection_keeps_the_ports_that_are_there(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    inspect(stage, node)
    before = ports_of(stage, node)
    inspect(stage, node)
    assert ports_of(stage, node) == before


def test_cards_and_switches_are_read_for_hooks_that_use_them(
    make_site: Any, machine: Machine
) -> None:
    hooks = ("validate-interfaces", "ports", "local-link-connection", "accelerators")
    settings = dataclasses.replace(
        conf(), redfish=dataclasses.replace(conf().redfish, inspection_hooks=hooks)
    )
    stage = Stage(make_site(registry=registry.load(settings)))
    node = manageable(stage, machine)
    properties = inspect(stage, node)["properties"]
    assert [card["type"] for card in properties["accelerators"]] == ["GPU"]
    assert [port["local_link_connection"] for port in ports_of(stage, node)] == [
        {"switch_id": "02:00:5e:00:00:01", "port_id": "Ethernet1/0", "switch_info": "leaf-1"}
    ]
    kept = stage.api.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]
    [told] = kept["parsed_lldp"].values()
    assert (told["switch_system_name"], told["switch_mgmt_addresses"]) == ("leaf-1", ["192.0.2.1"])


def test_a_disk_that_the_stored_inventory_has_not_becomes_the_root_device(
    make_site: Any, machine: Machine
) -> None:
    settings = dataclasses.replace(
        conf(), redfish=dataclasses.replace(conf().redfish, inspection_hooks=("raid-device",))
    )
    stage = Stage(make_site(registry=registry.load(settings)))
    node = manageable(stage, machine)
    assert "root_device" not in inspect(stage, node)["properties"]
    stored = stage.api.get(f"/v1/nodes/{node}/inventory").json
    new, *others = stored["inventory"]["disks"]
    older = {"inventory": stored["inventory"] | {"disks": [*others, {"serial": "gone"}]}}
    stage.site.db.transact(lambda conn: hardware.replace_inventory(conn, node, older))
    properties = inspect(stage, node)["properties"]
    assert properties["root_device"] == {"serial": new["serial"]}


RULES = "/v1/inspection_rules"


def add_rule(stage: Stage, *actions: Any, **more: Any) -> str:
    answer = stage.api.post(RULES, {"actions": list(actions)} | more)
    assert answer.status == 201, answer.body
    return str(answer.json["uuid"])


def set_(path: str, value: Any) -> dict[str, Any]:
    return {"op": "set-attribute", "args": {"path": path, "value": value}}


def test_rules_make_of_an_inventory_what_their_authors_say(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    large = {"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]}", 8192]}}
    add_rule(
        stage,
        set_("resource_class", "large"),
        set_("extra/serial", "{inventory[system_vendor][serial_number]}"),
        set_("name", "large-1"),
        set_("driver_info/redfish_password", machine.driver_info["redfish_password"]),
        {"op": "add-trait", "args": ["CUSTOM_LARGE"]},
        {"op": "set-capability", "args": {"name": "size", "value": "large"}},
        {"op": "set-plugin-data", "args": {"path": "ruled/by", "value": "{node.uuid}"}},
        {
            "op": "set-port-attribute",
            "args": {"port_id": "{item[mac_address]}", "path": "physical_network", "value": "a"},
            "loop": "{inventory[interfaces]}",
        },
        conditions=[large],
    )
    add_rule(stage, set_("extra/small", True), conditions=[large | {"op": "!gt"}])
    shown = inspect(stage, node)
    assert shown["last_error"] is None
    assert (shown["name"], shown["resource_class"]) == ("large-1", "large")
    assert set(shown["extra"]) == {"serial"}
    assert shown["traits"] == ["CUSTOM_LARGE"]
    assert "size:large" in shown["properties"]["capabilities"]
    assert {port["physical_network"] for port in ports_of(stage, node)} == {"a"}
    kept = stage.api.get(f"/v1/nodes/{node}/inventory").json
    assert kept["plugin_data"]["ruled"] == {"by": node}
    assert shown["driver_info"]["redfish_password"] == "******"
    assert inspect(stage, node)["last_error"] is None, "the password works as it is stored"


def test_a_rule_that_fails_leaves_the_node_as_it_was(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    fail = {"op": "fail", "args": {"msg": "{inventory[cpu][count]} CPUs are not enough"}}
    add_rule(stage, set_("extra/x", 1), fail, description="CPUs")
    shown = inspect(stage, node, "inspect failed")
    assert "8 CPUs are not enough" in shown["last_error"]
    assert "CPUs)" in shown["last_error"]
    assert shown["extra"] == {}
    assert ports_of(stage, node) == []
    assert stage.api.get(f"/v1/nodes/{node}/inventory").status == 404


def test_a_name_that_another_node_has_fails_the_inspection(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    stage.enrol(driver="redfish", driver_info=machine.driver_info, name="taken")
    add_rule(stage, set_("name", "taken"))
    assert (
        "A node with name taken already exists"
        in inspect(stage, node, "inspect failed")["last_error"]
    )


def test_a_driver_that_is_not_enabled_fails_the_inspection(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    add_rule(stage, set_("driver", "nonsense"))
    assert "nonsense" in inspect(stage, node, "inspect failed")["last_error"]
