"""``bloomery export ironic``: machines go to another service, without a boot on the way.

The other service is a Bloomery, whose API is that of Ironic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bloomery.cli import handover
from bloomery.cli.client import Client
from bloomery.cli.imports import plan, site
from bloomery.cli.imports.site import LET_GO
from bloomery.cli.main import main
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.lab.rack import Rack
from bloomery.state_dir import StateDir
from tests.kit.clients import moved
from tests.kit.clients.fragile import Changes, Cut, Fragile
from tests.kit.servers.orchestration import QUIET
from tests.kit.waiting import wait_for

Json = dict[str, Any]
Export = Callable[..., Result]

STATES = ("enroll", "manageable", "available", "active")
SECRETS = {"*": {"fake_password": "hunter2hunter2"}}
MAC = "52:54:00:00:02:{:02x}"
COMPARED = set(plan.NODE_FIELDS) - {"driver_info"} | {"provision_state", "traits", "protected"}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "_POLL_S", 0.01)


def service(path: Path, conductor: Conductor = QUIET) -> Iterator[Client]:
    conf = Conf(api=Api(port=0), conductor=conductor)
    with StateDir(path) as home, Service(conf, home) as running:
        yield Client(running.url)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Client]:
    yield from service(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Client]:
    """Its power sync, like Ironic's, drives a machine to the recorded state."""
    busy = Conductor(sync_power_state_interval=1, power_failure_recovery_interval=1)
    yield from service(tmp_path / "theirs", busy)


@pytest.fixture
def exports(tmp_path: Path, ours: Client, theirs: Client) -> Export:
    clouds = {name: {"auth_type": "none", "baremetal_endpoint_override": client.url}
              for name, client in (("ours", ours), ("theirs", theirs))}  # fmt: skip
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
    (tmp_path / "secrets.yaml").write_text(yaml.safe_dump(SECRETS))
    env = {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"), "OS_CLOUD": "ours"}

    def run(line: str = "", *, secrets: bool = True) -> Result:
        told = ["--secrets", str(tmp_path / "secrets.yaml")] if secrets else []
        words = ["export", "ironic", "--to", "theirs", *told, *line.split()]
        return CliRunner(env=env).invoke(main, words)

    return run


def fill(client: Client, *states: str) -> None:
    chassis = client.post("/v1/chassis", {"description": "rack 1"})["uuid"]
    nodes = [
        {
            "name": f"node-{number}", "driver": "fake-hardware", "resource_class": "bm.large",
            "driver_info": {"fake_password": "hunter2hunter2"}, "chassis_uuid": chassis,
            "automated_clean": True, "ports": [{"address": MAC.format(number)}],
            "imported": {"provision_state": state, "power_state": "power on"},
        }
        for number, state in enumerate(states)
    ]  # fmt: skip
    for result in client.post("/ext/v1/nodes:batch", {"nodes": nodes})["results"]:
        assert result["error"] is None, result
        client.delete(f"/v1/nodes/{result['uuid']}/maintenance")
    step = {"interface": "raid", "step": "delete_configuration", "args": {}, "order": 1}
    client.post("/v1/runbooks", {"name": "CUSTOM_BOOK", "steps": [step]})


def fill_whole(client: Client) -> None:
    fill(client, *STATES)
    client.put("/v1/nodes/node-1/maintenance", {"reason": "fan is loud"})
    client.put("/v1/nodes/node-3/traits", {"traits": ["CUSTOM_FAST"]})
    client.patch("/v1/nodes/node-3", [{"op": "add", "path": "/protected", "value": True}])
    node = client.get("/v1/nodes/node-3")["uuid"]
    client.post("/v1/allocations", {"name": "web", "resource_class": "bm.large", "node": node})


def document(client: Client) -> Json:
    return moved.document(client, COMPARED)


def reasons(client: Client) -> dict[str, str | None]:
    nodes = client.get("/v1/nodes?detail=True")["nodes"]
    return {node["name"]: node["maintenance_reason"] for node in nodes}


def test_nodes_and_records_are_there_as_they_were_here(exports, ours, theirs):
    fill_whole(ours)
    result = exports()
    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    assert document(theirs) == document(ours)
    assert reasons(theirs) == {
        "node-0": None, "node-1": "fan is loud", "node-2": None, "node-3": None,
    }  # fmt: skip
    assert {str(reason)[: len(LET_GO)] for reason in reasons(ours).values()} == {LET_GO}
    theirs.patch("/v1/nodes/node-2", [{"op": "add", "path": "/description", "value": "of there"}])
    again = exports("--json")
    actions = {row["action"] for row in json.loads(again.output)}
    assert actions == {handover.HANDED_OVER, plan.THERE}
    assert theirs.get("/v1/nodes/node-2")["description"] == "of there"


def test_no_machine_is_booted_or_cleaned(exports, ours, theirs):
    fill(ours, "available", "active")
    assert exports().exit_code == 0
    for name in ("node-0", "node-1"):
        history = theirs.get(f"/v1/nodes/{name}/history?detail=True")["history"]
        assert {entry["event_type"] for entry in history} == {"transition"}, history
        assert theirs.get(f"/v1/nodes/{name}")["automated_clean"] is True


def test_an_export_that_is_cut_off_at_any_request_is_completed(ours, theirs):
    fill_whole(ours)
    expected = document(ours)
    terms = plan.Terms(secrets=SECRETS)
    for requests in range(1000):
        changes = Changes(requests)
        sites = [site.read(Fragile(client, changes)) for client in (ours, theirs)]
        try:
            done = list(handover.carry_out(*sites, handover.make(*sites, terms, ())))
        except Cut:
            continue
        assert all(row.action != plan.REFUSED for row in done), done
        break
    assert requests > 3
    assert document(theirs) == expected
    assert reasons(theirs)["node-1"] == "fan is loud"


@pytest.mark.parametrize(
    ("state", "secrets", "refusal"),
    [
        ("rescue", True, "it is rescue: a node is handed over while it is enroll,"),
        ("active", False, "driver_info/fake_password is hidden: name it in --secrets"),
    ],
)
def test_what_cannot_go_is_refused_before_anything_is_written(
    exports, ours, theirs, state, secrets, refusal
):
    fill(ours, "manageable", state)
    result = exports(secrets=secrets)
    assert (result.exit_code, refusal in result.output) == (1, True), result.output
    assert theirs.get("/v1/nodes")["nodes"] == []
    assert reasons(ours) == {"node-0": None, "node-1": None}


def test_named_nodes_go_alone(exports, ours, theirs):
    fill(ours, "manageable", "rescue", "active")
    assert "the service has no such node" in exports("node-9").output
    assert exports("node-0").exit_code == 0
    assert [node["name"] for node in theirs.get("/v1/nodes")["nodes"]] == ["node-0"]


def test_a_node_that_was_taken_over_goes_back_with_what_has_changed(exports, ours, theirs):
    fill(theirs, "active")
    theirs.patch("/v1/nodes/node-0", [{"op": "add", "path": "/driver_info/old", "value": 1}])
    node = theirs.get("/v1/nodes/node-0")["uuid"]
    theirs.put("/v1/nodes/node-0/maintenance", {"reason": LET_GO})
    held = {"provision_state": "active", "power_state": "power on"}
    info = {"driver_info": {"fake_password": "hunter2hunter2", "new_one": 2}}
    body = {"uuid": node, "name": "renamed", "driver": "fake-hardware", "imported": held, **info}
    ours.post("/ext/v1/nodes:batch", {"nodes": [body]})
    ours.delete(f"/v1/nodes/{node}/maintenance")
    result = exports(secrets=False)
    assert result.exit_code == 0, result.output
    assert reasons(theirs) == {"renamed": None}
    info = theirs.get("/v1/nodes/renamed")["driver_info"]
    assert info == {"fake_password": "******", "new_one": 2}
    assert reasons(ours) == {"renamed": LET_GO}


def test_a_machine_that_was_switched_here_is_not_switched_back_there(exports, ours, theirs):
    """The power state that the other service has recorded is as old as the take-over."""
    with Rack(1, apart=True) as rack:
        (machine,) = rack.machines
        body = {"name": "node-0", "driver": "redfish", "driver_info": machine.driver_info}
        (there,) = theirs.post("/ext/v1/nodes:batch", {"nodes": [
            body | {"imported": {"provision_state": "active", "power_state": "power on"}},
        ]})["results"]  # fmt: skip
        theirs.put("/v1/nodes/node-0/maintenance", {"reason": LET_GO})
        ours.post("/ext/v1/nodes:batch", {"nodes": [
            body | {"uuid": there["uuid"],
                    "imported": {"provision_state": "active", "power_state": "power off"}},
        ]})  # fmt: skip
        ours.delete("/v1/nodes/node-0/maintenance")
        assert machine.system.power == "Off"
        result = exports(secrets=False)
        assert result.exit_code == 0, result.output
        asked = machine.bmc.requests
        wait_for(lambda: machine.bmc.requests > asked + 1, "two looks of the power sync")
        assert (machine.system.power, machine.system.happened) == ("Off", [])
        assert theirs.get("/v1/nodes/node-0")["power_state"] == "power off"
