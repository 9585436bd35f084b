"""``bloomery import ironic``: an older service's machines come over, untouched until told so.

The older service is a Bloomery, whose API is that of Ironic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bloomery.cli.client import ApiError, Client
from bloomery.cli.imports import plan, site, writing
from bloomery.cli.imports.site import AWAITING_TAKE_OVER, LET_GO, NOUNS
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
Import = Callable[..., Result]

SECRET = "hunter2hunter2"
STATES = ("enroll", "manageable", "available", "active", "rescue", "error", "clean failed")
MAC = "52:54:00:00:01:{:02x}"
INSPECTED = {"inventory": {"cpu": {"count": 8}}, "plugin_data": {"lldp": ["a"]}}
COMPARED = (*plan.NODE_FIELDS, "provision_state", "power_state", "last_error", "traits")


@pytest.fixture
def rack() -> Iterator[Rack]:
    with Rack(len(STATES), apart=True) as servers:
        yield servers


@pytest.fixture
def old(tmp_path: Path, rack: Rack) -> Iterator[Client]:
    """A service with a machine in each state, and a record of each noun."""
    conf = Conf(api=Api(port=0), conductor=QUIET)
    with StateDir(tmp_path / "old") as home, Service(conf, home) as running:
        client = Client(running.url)
        fill(client, rack)
        yield client


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Client]:
    busy = Conductor(sync_power_state_interval=1, power_failure_recovery_interval=1)
    conf = Conf(api=Api(port=0), conductor=busy)
    with StateDir(tmp_path / "new") as home, Service(conf, home) as running:
        yield Client(running.url)


@pytest.fixture
def imports(tmp_path: Path, old: Client, new: Client) -> Import:
    """Run ``bloomery import ironic WORDS`` with the password of the BMCs."""
    clouds = {name: {"auth_type": "none", "baremetal_endpoint_override": client.url}
              for name, client in (("old", old), ("new", new))}  # fmt: skip
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
    (tmp_path / "secrets.yaml").write_text(yaml.safe_dump({"*": {"redfish_password": "password"}}))
    runner = CliRunner(env={"OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
                            "OS_CLOUD": "new"})  # fmt: skip

    def run(line: str = "", *, secrets: bool = True) -> Result:
        told = ["--secrets", str(tmp_path / "secrets.yaml")] if secrets else []
        return runner.invoke(main, ["import", "ironic", "--from", "old", *told, *line.split()])

    return run


def fill(old: Client, rack: Rack) -> None:
    chassis = old.post("/v1/chassis", {"description": "rack 1"})["uuid"]
    nodes = [
        {
            "name": f"node-{number}", "driver": "redfish", "driver_info": machine.driver_info,
            "chassis_uuid": chassis, "resource_class": "bm.large", "extra": {"asset": number},
            "properties": {"cpu_arch": "x86_64"}, "ports": [{"address": MAC.format(number)}],
            "imported": {"provision_state": state, "power_state": "power on"},
        }
        for number, (state, machine) in enumerate(zip(STATES, rack.machines, strict=True))
    ]  # fmt: skip
    for result in old.post("/ext/v1/nodes:batch", {"nodes": nodes})["results"]:
        assert result["error"] is None, result
        old.post(f"/ext/v1/nodes/{result['uuid']}/past", {"history": [], "inspected": INSPECTED})
        old.delete(f"/v1/nodes/{result['uuid']}/maintenance")
    old.put("/v1/nodes/node-3/traits", {"traits": ["CUSTOM_FAST"]})
    old.put("/v1/nodes/node-1/maintenance", {"reason": "fan is loud"})
    node = old.get("/v1/nodes/node-3")["uuid"]
    group = old.post("/v1/portgroups", {"node_uuid": node, "name": "bond-3"})["uuid"]
    old.post("/v1/ports", {"node_uuid": node, "address": MAC.format(99), "portgroup_uuid": group})
    old.post("/v1/volume/connectors", {"node_uuid": node, "type": "iqn", "connector_id": "iqn.a"})
    old.post("/v1/volume/targets", {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v-1",
                                    "boot_index": 0})  # fmt: skip
    step = {"interface": "raid", "step": "delete_configuration", "args": {}, "priority": 5}
    old.post("/v1/deploy_templates", {"name": "CUSTOM_FAST", "steps": [step]})
    ordered = {name: value for name, value in step.items() if name != "priority"} | {"order": 1}
    old.post("/v1/runbooks", {"name": "CUSTOM_BOOK", "steps": [ordered]})
    old.post("/v1/inspection_rules", {"actions": [{"op": "fail", "args": {"msg": "no"}}]})
    old.post("/v1/allocations", {"name": "web", "resource_class": "bm.large", "node": node})


def document(client: Client) -> Json:
    return moved.document(client, COMPARED)


def test_nodes_and_records_come_over_as_they_are(imports, old, new):
    result = imports()
    assert (result.exit_code, "refused" in result.output) == (0, False), result.output
    assert SECRET not in result.output
    assert document(new) == document(old)
    reasons = {node["name"]: node["maintenance_reason"] for node in site.read(new).nodes.values()}
    assert reasons.pop("node-1") == f"{AWAITING_TAKE_OVER}; in maintenance: fan is loud"
    assert set(reasons.values()) == {AWAITING_TAKE_OVER}
    again = imports()
    assert (again.exit_code, "create" in again.output, "change" in again.output) == (
        0, False, False
    )  # fmt: skip


def test_a_dry_run_changes_nothing_and_says_what_would_come(imports, new):
    result = imports("--dry-run --json")
    rows = json.loads(result.output)
    assert (result.exit_code, {row["action"] for row in rows}) == (0, {"create"})
    assert {row["kind"] for row in rows} == {"node", *NOUNS}
    assert new.get("/v1/nodes")["nodes"] == []


@pytest.mark.parametrize("skip", [False, True])
def test_a_hidden_password_and_a_missing_driver_are_named_before_anything_is_written(
    imports, old, new, skip
):
    old.post("/v1/nodes", {"driver": "fake-hardware", "name": "other"})
    result = imports("--skip" if skip else "", secrets=False)
    assert result.exit_code == 1
    assert "driver_info/redfish_password is hidden: name it in --secrets" in result.output
    assert ("nothing was written" in result.output) is not skip
    names = [node["name"] for node in new.get("/v1/nodes")["nodes"]]
    assert names == (["other"] if skip else [])


def test_a_value_that_is_not_served_gets_another_one(imports, old, new):
    """The old service has a type that the new one does not enable: its name is changed."""
    old.patch("/v1/nodes/node-1", [{"op": "add", "path": "/resource_class", "value": "odd"}])
    result = imports("--instead resource_class:odd=even")
    assert result.exit_code == 0, result.output
    assert new.get("/v1/nodes/node-1")["resource_class"] == "even"
    refused = imports("--instead driver:redfish=ilo")
    assert "driver: no conductor serves ilo" in refused.output
    assert imports("--instead nonsense").exit_code == 2


def test_a_second_run_brings_what_has_changed(imports, old, new):
    assert imports().exit_code == 0
    old.patch("/v1/nodes/node-1", [{"op": "add", "path": "/extra/asset", "value": 77}])
    old.put("/v1/nodes/node-2/traits", {"traits": ["CUSTOM_NEW"]})
    (port,) = [each for each in old.get("/v1/ports?detail=True")["ports"]
               if each["address"] == MAC.format(2)]  # fmt: skip
    old.patch(f"/v1/ports/{port['uuid']}", [{"op": "add", "path": "/extra/cable", "value": "red"}])
    old.post("/v1/ports", {"node_uuid": port["node_uuid"], "address": MAC.format(55)})
    result = imports()
    assert result.exit_code == 0, result.output
    assert document(new) == document(old)


def test_an_import_that_is_cut_off_at_any_request_is_completed(old, new):
    """No row comes twice, and none is missing."""
    terms = plan.Terms(secrets={"*": {"redfish_password": "password"}})
    old_site, whole = site.read(old), document(old)
    for requests in range(1000):
        cut = Fragile(new, Changes(requests))
        rows = plan.make(old_site, site.read(new), terms)
        try:
            done = list(writing.write(cut, rows))
        except Cut:
            continue
        assert all(row.action != plan.REFUSED for row in done), done
        break
    assert requests > 3
    assert document(new) == whole


def test_the_bmc_of_a_node_is_asked_once_it_is_taken_over(imports, rack):
    """The power sync of the new service runs each second."""
    assert imports().exit_code == 0
    assert imports("node-3 --take-over").exit_code == 0
    wait_for(lambda: asked(rack)[3] > 2, "the power sync of node-3")
    assert [number for number, count in enumerate(asked(rack)) if count] == [3]


def asked(rack: Rack) -> list[int]:
    """How many requests each BMC has got."""
    return [machine.bmc.requests for machine in rack.machines]


def test_a_node_is_taken_over_by_one_service_and_let_go_by_the_other(imports, old, new):
    assert imports().exit_code == 0
    old.patch("/v1/nodes/node-3", [{"op": "add", "path": "/protected", "value": True}])
    result = imports("node-1 node-3 --take-over")
    assert result.exit_code == 0, result.output
    theirs = {name: old.get(f"/v1/nodes/{name}") for name in ("node-1", "node-2", "node-3")}
    assert [node["maintenance_reason"] for node in theirs.values()] == [LET_GO, None, LET_GO]
    ours = {name: new.get(f"/v1/nodes/{name}") for name in theirs}
    assert [node["maintenance_reason"] for node in ours.values()] == [
        "fan is loud",
        AWAITING_TAKE_OVER,
        None,
    ]
    assert (ours["node-3"]["maintenance"], ours["node-3"]["protected"]) == (False, True)
    again = imports()
    assert (again.exit_code, "node node-3: was taken over" in again.output) == (0, True)


def test_history_and_inventory_come_when_a_node_is_taken_over(imports, old, new):
    old.put("/v1/nodes/node-2/states/provision", {"target": "manage"})
    theirs = history(old)
    assert "available" in str(theirs)
    assert imports().exit_code == 0
    assert imports("--take-over").exit_code == 0
    ours = history(new)
    assert [entry for entry in ours if entry in theirs] == theirs
    assert new.get("/v1/nodes/node-2/inventory") == INSPECTED
    with pytest.raises(ApiError, match="not in maintenance"):
        new.post("/ext/v1/nodes/node-2/past", {"history": [], "inspected": INSPECTED})


def history(client: Client) -> list[Json]:
    entries: list[Json] = client.get("/v1/nodes/node-2/history?detail=True")["history"]
    return [{name: value for name, value in entry.items() if name != "links"} for entry in entries]


def test_a_node_that_was_handed_back_keeps_what_is_here_until_it_is_deleted(imports, old, new):
    assert imports().exit_code == 0
    new.put("/v1/nodes/node-3/maintenance", {"reason": LET_GO})  # as an export does
    uuid = new.get("/v1/nodes/node-3")["uuid"]
    result = imports()
    assert (result.exit_code, "node node-3: left out" in result.output) == (0, True)
    assert f"bloomery has handed it over: delete it here (baremetal node delete {uuid})" in (
        result.output
    )
    new.delete("/v1/nodes/node-3")
    assert "node node-3: create" in imports().output


def test_a_node_that_has_changed_or_is_unknown_is_not_taken_over(imports, old):
    assert imports().exit_code == 0
    old.patch("/v1/nodes/node-3", [{"op": "add", "path": "/extra/asset", "value": 78}])
    result = imports("node-3 node-9 --take-over")
    assert result.exit_code == 1
    assert "the import says 'change': run it without --take-over first" in result.output
    assert "the old service has no such node" in result.output
    assert old.get("/v1/nodes/node-3")["maintenance"] is False


def test_a_node_that_the_old_service_works_on_stays_there(old, new):
    terms = plan.Terms(secrets={"*": {"redfish_password": "password"}})
    list(writing.write(new, plan.make(site.read(old), site.read(new), terms)))
    old_site, new_site = site.read(old), site.read(new)
    node = old.get("/v1/nodes/node-3")["uuid"]
    new_site.nodes[node]["provision_state"] = "available"  # as if it had changed since
    row = plan.Row(kind="node", uuid=node, name="node-3", action=writing.TAKE_OVER)
    (done,) = writing.take_over(old_site, new_site, [row])
    assert (done.action, "works on it" in done.faults[0]) == (plan.REFUSED, True)
    assert old.get(f"/v1/nodes/{node}")["maintenance"] is False
    assert new.get(f"/v1/nodes/{node}")["maintenance_reason"] == AWAITING_TAKE_OVER


def test_a_take_over_that_is_cut_off_is_completed(imports, old, new):
    assert imports().exit_code == 0
    old.put("/v1/nodes/node-3/maintenance", {"reason": LET_GO})
    assert imports("--take-over").exit_code == 0
    assert new.get("/v1/nodes/node-3")["maintenance"] is False


def test_an_imported_node_needs_a_known_state(new):
    node = {"name": "x", "driver": "redfish", "imported": {"provision_state": "deploying"}}
    with pytest.raises(ApiError, match="provision_state"):
        new.post("/ext/v1/nodes:batch", {"nodes": [node]})
