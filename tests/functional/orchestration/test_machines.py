"""Stacks of machines on a whole service with fake hardware: enrolled, deployed and freed."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.api.versions import MAX
from bloomery.db.tables import EVENTS
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

CLASS = "bm.test"
IMAGE = {"source": "http://images/a.img", "os_hash_algo": "sha256", "os_hash_value": "0" * 64}
NODE = {
    "type": "OS::Ironic::Node",
    "properties": {
        "name": "n1", "driver": "fake-hardware", "resource_class": CLASS, "traits": ["CUSTOM_A"],
        "driver_info": {"fake_password": "s3cret"}, "ports": [{"address": "52:54:00:00:00:01"}],
    },
}  # fmt: skip
PORT = {
    "type": "OS::Ironic::Port",
    "properties": {"node": {"get_resource": "node"}, "address": "52:54:00:00:00:02"},
}
SLOT = {"type": "OS::Ironic::Allocation", "properties": {"resource_class": CLASS}}
WEB = {
    "type": "OS::Ironic::Instance",
    "properties": {"allocation": {"get_resource": "slot"}, "image": IMAGE, "name": "web"},
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def ironic(site: Orchestration, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(*site.service.api.address, timeout=60)
    headers = {"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": f"1.{MAX}"}
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(text) if text else None


def why_of(site: Orchestration, path: str, part: str = "why") -> dict[str, Any]:
    connection = http.client.HTTPConnection(*site.service.orchestration_api.address, timeout=60)
    try:
        connection.request("GET", f"/ext/v1/stacks/{path.rsplit('/', 1)[1]}/{part}")
        return dict(json.loads(connection.getresponse().read()))
    finally:
        connection.close()


def node_of(site: Orchestration, ident: str = "n1") -> dict[str, Any]:
    return dict(ironic(site, "GET", f"/v1/nodes/{ident}")[1])


def enrol(site: Orchestration, name: str = "n1", **more: Any) -> str:
    """Make a stack of a node; return the path of the stack."""
    node = {**NODE, "properties": {**NODE["properties"], "name": name, **more}}
    path = site.create(f"rack-{name}", template({"node": node}))
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def test_one_template_enrols_and_deploys(site: Orchestration) -> None:
    """A machine whose power no driver can read is switched off, so that it can be allocated."""
    slot = {**SLOT, "depends_on": "node"}
    path = site.create("all", template({"node": NODE, "slot": slot, "web": WEB}))
    site.wait_for(path, "CREATE_COMPLETE")
    assert (node_of(site)["provision_state"], node_of(site)["power_state"]) == (
        "active", "power on",
    )  # fmt: skip


def test_a_rack_and_its_tenant(site: Orchestration) -> None:
    rack = site.create("rack", template({"node": NODE, "port": PORT}))
    site.wait_for(rack, "CREATE_COMPLETE")
    node = node_of(site)
    assert (node["provision_state"], node["traits"]) == ("available", ["CUSTOM_A"])
    assert node["extra"]["stack"]["resource"] == "node"
    ports = ironic(site, "GET", "/v1/ports/detail")[1]["ports"]
    assert {port["node_uuid"] for port in ports} == {node["uuid"]}
    assert len(ports) == 2

    outputs = {
        "node": {"value": {"get_attr": ["web", "node_name"]}},
        "state": {"value": {"get_attr": ["web", "provision_state"]}},
    }
    web = site.create("web", template({"slot": SLOT, "web": WEB}, outputs=outputs))
    shown = site.wait_for(web, "CREATE_COMPLETE")
    told = {output["output_key"]: output["output_value"] for output in shown["outputs"]}
    assert told == {"node": "n1", "state": "active"}
    node = node_of(site)
    assert (node["provision_state"], node["instance_name"]) == ("active", "web")
    assert node["instance_info"]["image_source"] == IMAGE["source"]
    assert node["instance_info"]["stack"]["resource"] == "web"

    assert site.ask("DELETE", rack)[0] == 204  # somebody's system is on it
    site.wait_for(rack, "DELETE_FAILED")
    assert "instance" in site.resources(rack)["node"]["resource_status_reason"]

    assert site.ask("DELETE", web)[0] == 204
    site.wait_for(web, "DELETE_COMPLETE")
    assert ironic(site, "GET", "/v1/allocations")[1]["allocations"] == []
    assert "stack" not in node_of(site)["instance_info"]
    assert site.ask("DELETE", rack)[0] == 204
    site.wait_for(rack, "DELETE_COMPLETE")
    assert ironic(site, "GET", "/v1/nodes")[1]["nodes"] == []


def test_a_new_image_is_written_to_the_same_machine(site: Orchestration) -> None:
    enrol(site)
    web = site.create("web", template({"slot": SLOT, "web": WEB}))
    site.wait_for(web, "CREATE_COMPLETE")
    before = node_of(site)
    other = {**WEB["properties"], "image": {**IMAGE, "source": "http://images/b.img"}}
    new = template({"slot": SLOT, "web": {**WEB, "properties": other}})
    assert site.ask("PUT", web, {"template": new})[0] == 202
    site.wait_for(web, "UPDATE_COMPLETE")
    after = node_of(site)
    assert after["uuid"] == before["uuid"]
    assert after["instance_uuid"] == before["instance_uuid"]
    assert after["instance_info"]["image_source"] == "http://images/b.img"
    assert after["provision_updated_at"] > before["provision_updated_at"]
    history = ironic(site, "GET", f"/v1/nodes/{after['uuid']}/history")[1]["history"]
    assert not [each for each in history if each["severity"] == "ERROR"]


def test_an_instance_is_replaced_on_its_node_after_the_cleaning(site: Orchestration) -> None:
    """The allocation goes with the old instance, and is there again for the new one."""
    enrol(site)
    pinned = {**WEB["properties"], "image_update_policy": "replace"}
    web = site.create("web", template({"slot": SLOT, "web": {**WEB, "properties": pinned}}))
    site.wait_for(web, "CREATE_COMPLETE")
    before = site.resources(web)["slot"]["physical_resource_id"]
    pinned = {**pinned, "image": {**IMAGE, "source": "http://images/b.img"}}
    new = template({"slot": SLOT, "web": {**WEB, "properties": pinned}})
    assert site.ask("PUT", web, {"template": new})[0] == 202
    site.wait_for(web, "UPDATE_COMPLETE")
    node = node_of(site)
    assert (node["provision_state"], node["allocation_uuid"]) == ("active", before)
    assert node["instance_info"]["image_source"] == "http://images/b.img"


def test_suspend_powers_off_and_check_tells_it(site: Orchestration) -> None:
    enrol(site)
    web = site.create("web", template({"slot": SLOT, "web": WEB}))
    site.wait_for(web, "CREATE_COMPLETE")
    assert site.ask("POST", f"{web}/actions", {"suspend": None})[0] in (200, 202)
    site.wait_for(web, "SUSPEND_COMPLETE")
    assert node_of(site)["power_state"] == "power off"
    assert site.ask("POST", f"{web}/actions", {"resume": None})[0] in (200, 202)
    site.wait_for(web, "RESUME_COMPLETE")
    assert node_of(site)["power_state"] == "power on"
    assert site.ask("POST", f"{web}/actions", {"check": None})[0] in (200, 201, 202)
    site.wait_for(web, "CHECK_COMPLETE")
    ironic(site, "PUT", "/v1/nodes/n1/maintenance", {"reason": "broken"})
    assert site.ask("POST", f"{web}/actions", {"check": None})[0] in (200, 201, 202)
    site.wait_for(web, "CHECK_FAILED")
    assert "maintenance is True" in site.resources(web)["web"]["resource_status_reason"]


def test_an_instance_is_protected_released_and_shut_down(site: Orchestration) -> None:
    enrol(site)
    more = {"network_data": "auto", "tags": ["blue"], "teardown": {"secure_power_off": "soft"}}
    outputs = {"macs": {"value": {"get_attr": ["web", "mac_addresses"]}}}

    def web(**protected: bool) -> dict[str, Any]:
        properties = {**WEB["properties"], **more, **protected}
        resources = {"slot": SLOT, "web": {**WEB, "properties": properties}}
        return template(resources, outputs=outputs)

    path = site.create("web", web(protected=True))
    shown = site.wait_for(path, "CREATE_COMPLETE")
    assert shown["outputs"][0]["output_value"] == ["52:54:00:00:00:01"]
    assert node_of(site)["protected"] is True
    assert site.ask("PUT", path, {"template": web(protected=False)})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert node_of(site)["protected"] is False
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")
    assert node_of(site)["instance_info"] == {}


def test_a_machine_of_another_stack_is_not_touched(site: Orchestration) -> None:
    enrol(site)
    named = {"type": WEB["type"], "properties": {"node": "n1", "image": IMAGE}}
    first = site.create("first", template({"web": named}))
    site.wait_for(first, "CREATE_COMPLETE")
    before = node_of(site)
    second = site.create("second", template({"web": named}))
    site.wait_for(second, "CREATE_FAILED")
    assert "another stack has it" in site.resources(second)["web"]["resource_status_reason"]
    assert site.ask("DELETE", second)[0] == 204
    site.wait_for(second, "DELETE_COMPLETE")
    assert node_of(site)["instance_info"] == before["instance_info"]


def test_a_selector_that_finds_nothing_says_what_is_missing(site: Orchestration) -> None:
    wanted = {"selector": {"resource_class": "none.such"}, "image": IMAGE}
    web = site.create("web", template({"web": {"type": WEB["type"], "properties": wanted}}))
    site.wait_for(web, "CREATE_FAILED")
    assert "none.such" in site.resources(web)["web"]["resource_status_reason"]
    assert site.ask("DELETE", web)[0] == 204
    site.wait_for(web, "DELETE_COMPLETE")
    assert ironic(site, "GET", "/v1/allocations")[1]["allocations"] == []


def test_a_failed_deployment_says_what_the_node_says(site: Orchestration) -> None:
    enrol(site, driver_info={"fake": {"fail": ["deploy.deploy"]}})
    web = site.create("web", template({"slot": SLOT, "web": WEB}))
    site.wait_for(web, "CREATE_FAILED")
    reason = site.resources(web)["web"]["resource_status_reason"]
    assert node_of(site)["last_error"] in reason
    assert site.ask("DELETE", web)[0] == 204
    site.wait_for(web, "DELETE_COMPLETE")
    assert node_of(site)["instance_uuid"] is None


def test_hardware_is_configured_before_it_is_given_away(site: Orchestration) -> None:
    enrol(site, target_state="manageable")
    hardware = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {
            "node": "n1",
            "bios": {"settings": {"ProcTurboMode": "Enabled"}},
            "raid": {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]},
            "allow_destructive": True,
        },
    }
    path = site.create("hardware", template({"hardware": hardware}))
    site.wait_for(path, "CREATE_COMPLETE")
    settings = ironic(site, "GET", "/v1/nodes/n1/bios")[1]["bios"]
    assert {"name": "ProcTurboMode", "value": "Enabled"}.items() <= settings[0].items()
    assert node_of(site)["raid_config"]["logical_disks"][0]["raid_level"] == "1"
    moved = node_of(site)["provision_updated_at"]
    changed = {**hardware["properties"], "timeout": 60}
    new = template({"hardware": {**hardware, "properties": changed}})
    assert site.ask("PUT", path, {"template": new})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert node_of(site)["provision_updated_at"] == moved  # nothing differs from what was applied
    del changed["allow_destructive"]
    status, answer = site.ask("PUT", path, {"template": new})
    assert (status, "allow_destructive" in json.dumps(answer)) == (400, True)


def test_steps_run_on_an_instance_once_for_each_change(site: Orchestration) -> None:
    enrol(site)
    properties = {
        "instance": {"get_resource": "web"},
        "steps": [{"interface": "vendor", "step": "log_passthrough"}],
    }
    smoke = {"type": "OS::Ironic::RunbookExecution", "properties": properties}
    outputs = {"result": {"value": {"get_attr": ["smoke", "result"]}}}
    resources = {"slot": SLOT, "web": WEB, "smoke": smoke}
    path = site.create("web", template(resources, outputs=outputs))
    shown = site.wait_for(path, "CREATE_COMPLETE")
    assert shown["outputs"][0]["output_value"] == "success"
    moved = node_of(site)["provision_updated_at"]
    resources["smoke"] = {**smoke, "properties": {**properties, "triggers": {"a": 1}}}
    assert site.ask("PUT", path, {"template": template(resources, outputs=outputs)})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert node_of(site)["provision_updated_at"] > moved
    assert node_of(site)["provision_state"] == "active"


def test_an_instance_waits_until_its_system_has_come_up(site: Orchestration) -> None:
    enrol(site)
    handle = {"type": "OS::Ironic::FirstBoot", "properties": {"timeout": 600}}
    told = {"NOTIFY": {"get_attr": ["ready", "curl_cli"]}}
    script = {"str_replace": {"template": "NOTIFY --data-binary '{}'", "params": told}}
    more = {"user_data": script, "first_boot": {"get_resource": "ready"}}
    web = {**WEB, "properties": {**WEB["properties"], **more}}
    path = site.create("web", template({"ready": handle, "slot": SLOT, "web": web}))
    wait_for(lambda: node_of(site)["provision_state"] == "active", "the deployment")
    assert site.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
    assert site.stack(path)["timeout_mins"] == 240
    assert site.ask("POST", f"{path}/resources/ready/signal", {"status": "SUCCESS"})[0] == 200
    site.wait_for(path, "CREATE_COMPLETE")
    assert node_of(site)["instance_info"]["configdrive"] == "******"


def test_a_system_that_says_it_is_broken_fails_its_instance(site: Orchestration) -> None:
    enrol(site)
    web = {**WEB, "properties": {**WEB["properties"], "first_boot": {"get_resource": "ready"}}}
    path = site.create(
        "web", template({"ready": {"type": "OS::Ironic::FirstBoot"}, "slot": SLOT, "web": web})
    )
    wait_for(lambda: node_of(site)["provision_state"] == "active", "the deployment")
    signal = {"status": "FAILURE", "reason": "no network"}
    assert site.ask("POST", f"{path}/resources/ready/signal", signal)[0] == 200
    site.wait_for(path, "CREATE_FAILED")
    assert "no network" in site.resources(path)["web"]["resource_status_reason"]
    assert node_of(site)["provision_state"] == "active"  # to be looked at


def test_a_service_that_starts_again_waits_for_what_was_ordered(site: Orchestration) -> None:
    """A node that waits for its agent is deployed once, whichever engine looks."""
    enrol(site, driver_info={"fake": {"wait": {"deploy.deploy": 1.5}}})
    web = site.create("web", template({"slot": SLOT, "web": WEB}))
    wait_for(lambda: node_of(site)["provision_state"] == "wait call-back", "the agent's turn")
    site.restart()
    site.wait_for(web, "CREATE_COMPLETE", timeout_s=60)
    assert node_of(site)["provision_state"] == "active"
    moves = sa.select(EVENTS.c.facts).where(EVENTS.c.object_uuid == node_of(site)["uuid"])
    with site.service.db.read() as conn:
        events = [json.loads(row.facts).get("event") for row in conn.execute(moves)]
    assert events.count("deploy") == 1


def test_deployments_over_the_budget_are_queued(tmp_path: Path) -> None:
    """Two at a time; who waits says so, and goes on when another ends, not at its next look."""
    with Orchestration(tmp_path / "small", deploy_budget_percent=1) as site:
        waits = {"fake": {"wait": {"deploy.deploy": 0.2}}}
        nodes = {
            f"n{n}": {**NODE, "properties": {
                **NODE["properties"], "name": f"n{n}", "driver_info": waits, "ports": [],
            }} for n in range(5)
        }  # fmt: skip
        site.wait_for(site.create("rack", template(nodes)), "CREATE_COMPLETE")
        instance = {"selector": {"resource_class": CLASS}, "image": IMAGE}
        webs = {f"w{n}": {"type": WEB["type"], "properties": instance} for n in range(5)}
        path = site.create("webs", template(webs))
        why: list[str] = []

        def looks() -> bool:
            why.extend(each["for"] for each in why_of(site, path)["waiting"])
            return site.stack(path)["stack_status"] == "CREATE_COMPLETE"

        wait_for(looks, "the deployments", timeout_s=25, every_s=0.05)
        with site.service.db.read() as conn:
            facts = [json.loads(row.facts) for row in conn.execute(
                sa.select(EVENTS.c.facts).where(EVENTS.c.action == "provision_set")
                .order_by(EVENTS.c.id))]  # fmt: skip
    deploying = most = 0
    for each in facts:
        deploying += each["event"] == "deploy"
        deploying -= each["provision_state"] == "active"
        most = max(most, deploying)
    assert most == 2
    assert any(each.startswith("queued: 2 nodes are being deployed") for each in why)


def test_machines_of_an_abandoned_stack_are_adopted_and_freed(tmp_path: Path) -> None:
    """The mark of the stack that was abandoned goes; the next one has its own, and may undeploy."""
    options = {"enable_stack_abandon": True, "enable_stack_adopt": True}
    with Orchestration(tmp_path / "adopting", **options) as site:
        enrol(site)
        first = site.create("first", template({"slot": SLOT, "web": WEB}))
        site.wait_for(first, "CREATE_COMPLETE")
        status, left = site.ask("DELETE", f"{first}/abandon")
        assert status == 200
        wait_for(lambda: "stack" not in node_of(site)["instance_info"], "the mark to go")
        assert node_of(site)["provision_state"] == "active"
        body = {"stack_name": "second", "adopt_stack_data": json.dumps(left)}
        status, answer = site.ask("POST", "/stacks", body)
        assert status == 201, answer
        second = f"/stacks/second/{answer['stack']['id']}"
        site.wait_for(second, "ADOPT_COMPLETE")
        mark = node_of(site)["instance_info"]["stack"]
        assert mark["stack_id"] == answer["stack"]["id"]
        assert site.ask("DELETE", second)[0] == 204
        site.wait_for(second, "DELETE_COMPLETE")
        assert node_of(site)["instance_uuid"] is None
        assert ironic(site, "GET", "/v1/allocations")[1]["allocations"] == []


def test_a_password_of_a_bmc_is_not_told(site: Orchestration, tmp_path: Path) -> None:
    rack = enrol(site)
    status, document = site.ask("GET", f"{rack}/resources/node")
    assert status == 200
    assert "s3cret" not in json.dumps(document)
    event = site.ask("GET", f"{rack}/resources/node/events")[1]["events"][0]
    path = f"{rack}/resources/node/events/{event['id']}"
    assert "s3cret" not in json.dumps(site.ask("GET", path)[1])
