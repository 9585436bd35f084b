"""A machine's life through the ``baremetal`` command, as an operator types it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.clients.openstack_command import OpenStackCommand


@pytest.fixture
def command(clouds: Path) -> Iterator[OpenStackCommand]:
    env = {"OS_CLIENT_CONFIG_FILE": str(clouds), "OS_CLOUD": "bloomery"}
    command = OpenStackCommand(env, shell="ironicclient.shell")
    yield command
    command.close()


def test_a_node_lives_its_life(command: OpenStackCommand) -> None:
    command.json("node", "create", "--driver", "fake-hardware", "--name", "web-1")
    for verb in ("manage", "provide", "deploy"):
        command.ok("node", verb, "web-1", "--wait", "60")
    command.ok("node", "set", "web-1", "--extra", "rack=4")
    command.ok("node", "power", "on", "web-1")
    assert command.json("node", "list", "--fields", "name", "provision_state", "extra") == [
        {"name": "web-1", "provision_state": "active", "extra": {"rack": 4}}
    ]
    [row] = command.json("node", "list", "--long")
    assert "fake-hardware" in row.values()
    events = [entry["event"] for entry in command.json("node", "history", "list", "web-1")]
    assert events[0] == "enroll -> verifying on manage"
    shown = command.json("node", "show", "web-1")
    assert (shown["provision_state"], shown["power_state"]) == ("active", "power on")
    command.ok("node", "undeploy", "web-1", "--wait", "60")
    command.ok("node", "delete", "web-1")
    assert command.json("node", "list") == []


def test_an_allocation_gets_a_node_and_gives_it_back(command: OpenStackCommand) -> None:
    command.json("node", "create", "--driver", "fake-hardware", "--name", "web-5",
         "--resource-class", "large")  # fmt: skip
    for verb in ("manage", "provide"):
        command.ok("node", verb, "web-5", "--wait", "60")
    command.ok("node", "power", "off", "web-5", "--power-timeout", "60")
    command.ok("node", "add", "trait", "web-5", "CUSTOM_A")
    kind = ("--resource-class", "large", "--trait", "CUSTOM_A", "--candidate-node", "web-5")
    allocation = command.json("allocation", "create", *kind, "--name", "web", "--wait", "60")
    assert allocation["state"] == "active"
    assert command.json("allocation", "show", "web", "--fields", "state") == {"state": "active"}
    [row] = command.json(
        "allocation", "list", "--node", "web-5", "--fields", "name", "resource_class"
    )
    assert row == {"name": "web", "resource_class": "large"}
    command.ok("allocation", "set", "web", "--extra", "rack=4")
    command.ok("allocation", "delete", "web")
    assert command.json("allocation", "list") == []
    command.ok("node", "delete", "web-5")


def test_volumes_of_a_node_are_records(command: OpenStackCommand) -> None:
    node = command.json("node", "create", "--driver", "fake-hardware", "--name", "web-4")["uuid"]
    connector = command.json("volume", "connector", "create", "--node", node, "--type", "iqn",
                     "--connector-id", "iqn.b")["uuid"]  # fmt: skip
    command.json("volume", "target", "create", "--node", node, "--type", "iscsi",
                 "--boot-index", "0", "--volume-id", "v")  # fmt: skip
    assert command.json("volume", "connector", "show", connector)["connector_id"] == "iqn.b"
    [target] = command.json("volume", "target", "list", "--node", node)
    command.ok("volume", "target", "delete", target["uuid"])
    command.ok("volume", "connector", "delete", connector)
    command.ok("node", "delete", "web-4")


def test_a_chassis_is_a_record_that_nodes_name(command: OpenStackCommand) -> None:
    chassis = command.json("chassis", "create", "--description", "row B")["uuid"]
    command.json("node", "create", "--driver", "fake-hardware", "--name", "web-3",
         "--chassis-uuid", chassis)  # fmt: skip
    command.ok("chassis", "set", chassis, "--extra", "rack=4")
    assert command.json("chassis", "show", chassis, "--fields", "extra") == {"extra": {"rack": 4}}
    [node] = command.json("node", "list", "--chassis", chassis, "--fields", "name")
    assert node == {"name": "web-3"}
    command.ok("node", "delete", "web-3")
    command.ok("chassis", "delete", chassis)
    assert command.json("chassis", "list") == []


def test_port_groups_are_records_of_a_node(command: OpenStackCommand) -> None:
    node = command.json("node", "create", "--driver", "fake-hardware", "--name", "web-2")["uuid"]
    command.json("port", "group", "create", "--node", node, "--name", "bond0")
    command.ok("port", "group", "set", "bond0", "--mode", "802.3ad", "--extra", "rack=4")
    [group] = command.json(
        "port", "group", "list", "--node", "web-2", "--fields", "name", "mode", "extra"
    )
    assert list(group.values()) == ["bond0", "802.3ad", {"rack": 4}]
    command.ok("port", "group", "delete", "bond0")
    assert command.json("port", "group", "list") == []


def test_a_raid_configuration_is_set_and_cleared(command: OpenStackCommand, tmp_path: Path) -> None:
    command.json("node", "create", "--driver", "fake-hardware", "--name", "web-5")
    config = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}
    file = tmp_path / "raid.json"
    file.write_text(json.dumps(config))
    command.ok("node", "set", "web-5", "--target-raid-config", str(file))
    assert command.json("node", "show", "web-5", "--fields", "target_raid_config") == {
        "target_raid_config": config
    }
    command.ok("node", "unset", "web-5", "--target-raid-config")
    assert command.json("node", "show", "web-5")["target_raid_config"] == {}
    rows = command.json("driver", "raid", "property", "list", "fake-hardware")
    assert "raid_level" in {value for row in rows for value in row.values()}


def test_vendor_methods_are_listed_and_called(command: OpenStackCommand) -> None:
    command.json("node", "create", "--driver", "fake-hardware", "--name", "web-6")
    rows = {row["Name"]: row for row in command.json("node", "passthru", "list", "web-6")}
    assert rows["second_method"]["Async"] is True
    command.ok("node", "passthru", "call", "web-6", "second_method", "--arg", "bar=meow")
    assert command.json("driver", "passthru", "list", "fake-hardware") == []
