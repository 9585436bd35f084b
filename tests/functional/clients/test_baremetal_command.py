"""A machine's life through the ``baremetal`` command, as an operator types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "baremetal")


def baremetal(*words: str) -> str:
    done = subprocess.run(
        [COMMAND, *words], check=False, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(*words: str) -> Any:
    return json.loads(baremetal(*words, "-f", "json"))


def test_a_node_lives_its_life(clouds: Path) -> None:
    told("node", "create", "--driver", "fake-hardware", "--name", "web-1")
    for verb in ("manage", "provide", "deploy"):
        baremetal("node", verb, "web-1", "--wait", "60")
    baremetal("node", "set", "web-1", "--extra", "rack=4")
    baremetal("node", "power", "on", "web-1")
    assert told("node", "list", "--fields", "name", "provision_state", "extra") == [
        {"name": "web-1", "provision_state": "active", "extra": {"rack": 4}}
    ]
    [row] = told("node", "list", "--long")
    assert "fake-hardware" in row.values()
    events = [entry["event"] for entry in told("node", "history", "list", "web-1")]
    assert events[0] == "enroll -> verifying on manage"
    shown = told("node", "show", "web-1")
    assert (shown["provision_state"], shown["power_state"]) == ("active", "power on")
    baremetal("node", "undeploy", "web-1", "--wait", "60")
    baremetal("node", "delete", "web-1")
    assert told("node", "list") == []


def test_volumes_of_a_node_are_records(clouds: Path) -> None:
    node = told("node", "create", "--driver", "fake-hardware", "--name", "web-4")["uuid"]
    connector = told("volume", "connector", "create", "--node", node, "--type", "iqn",
                     "--connector-id", "iqn.b")["uuid"]  # fmt: skip
    told("volume", "target", "create", "--node", node, "--type", "iscsi", "--boot-index", "0",
         "--volume-id", "v")  # fmt: skip
    assert told("volume", "connector", "show", connector)["connector_id"] == "iqn.b"
    [target] = told("volume", "target", "list", "--node", node)
    baremetal("volume", "target", "delete", target["uuid"])
    baremetal("volume", "connector", "delete", connector)
    baremetal("node", "delete", "web-4")


def test_a_chassis_is_a_record_that_nodes_name(clouds: Path) -> None:
    chassis = told("chassis", "create", "--description", "row B")["uuid"]
    told("node", "create", "--driver", "fake-hardware", "--name", "web-3",
         "--chassis-uuid", chassis)  # fmt: skip
    baremetal("chassis", "set", chassis, "--extra", "rack=4")
    assert told("chassis", "show", chassis, "--fields", "extra") == {"extra": {"rack": 4}}
    [node] = told("node", "list", "--chassis", chassis, "--fields", "name")
    assert node == {"name": "web-3"}
    baremetal("node", "delete", "web-3")
    baremetal("chassis", "delete", chassis)
    assert told("chassis", "list") == []


def test_port_groups_are_records_of_a_node(clouds: Path) -> None:
    node = told("node", "create", "--driver", "fake-hardware", "--name", "web-2")["uuid"]
    told("port", "group", "create", "--node", node, "--name", "bond0")
    baremetal("port", "group", "set", "bond0", "--mode", "802.3ad", "--extra", "rack=4")
    [group] = told("port", "group", "list", "--node", "web-2", "--fields", "name", "mode", "extra")
    assert list(group.values()) == ["bond0", "802.3ad", {"rack": 4}]
    baremetal("port", "group", "delete", "bond0")
    assert told("port", "group", "list") == []
