"""Simulated machines: the conductor's own code decides, on fake hardware and a clock that jumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bloomery.cli.service.template import template

ISO = "http://images.example.org/a.iso"
INSTANCE = {"type": "OS::Ironic::Instance", "properties": {"image": {"boot_iso": ISO}}}


def run(folder: Path, resources: dict[str, Any], *words: str) -> Result:
    file = folder / "t.yaml"
    outputs = {name: {"value": {"get_attr": [name, "show"]}} for name in resources}
    document = {"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return CliRunner().invoke(template, ["run", str(file), *words])


def document(folder: Path, **resources: dict[str, Any]) -> Any:
    done = run(folder, resources, "--json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def node(**fake: Any) -> dict[str, Any]:
    properties = {
        "name": "n1", "driver": "fake-hardware", "driver_info": {"fake": fake}, "inspect": "none",
        "resource_class": "bm",
    }  # fmt: skip
    return {"type": "OS::Ironic::Node", "properties": properties}


def instance(**properties: Any) -> dict[str, Any]:
    return INSTANCE | {"properties": INSTANCE["properties"] | properties}


def last_time(done: Result) -> float:
    *_, last = (line for line in done.stdout.splitlines() if " s  " in line)
    return float(last.split()[0])


def test_a_delay_of_fake_hardware_passes_on_the_simulated_clock(tmp_path: Path) -> None:
    web = instance(node={"get_resource": "n"})
    done = run(tmp_path, {"n": node(delay={"deploy.deploy": 1800}), "web": web})
    assert "CREATE_COMPLETE: " in done.stdout
    assert 1800 <= last_time(done) < 1900


def test_an_agent_calls_at_once(tmp_path: Path) -> None:
    web = instance(node={"get_resource": "n"})
    done = run(tmp_path, {"n": node(wait={"deploy.deploy": 1800}), "web": web})
    assert "CREATE_COMPLETE: " in done.stdout
    assert last_time(done) < 60


def test_a_failed_deployment_has_the_conductor_s_reason(tmp_path: Path) -> None:
    web = instance(node={"get_resource": "n"})
    result = document(tmp_path, n=node(fail=["deploy.deploy"]), web=web)
    assert result["status"] == "CREATE_FAILED"
    assert "the BMC of node n1 at fake refused" in result["error"]["message"]
    assert "(deploy step deploy.deploy)" in result["error"]["message"]


def test_an_allocation_takes_an_enrolled_node_first(tmp_path: Path) -> None:
    first, second = ({"type": "OS::Ironic::Allocation", "depends_on": ["n"]} for _ in range(2))
    first["properties"] = second["properties"] = {"resource_class": "bm"}
    result = document(tmp_path, n=node(), a=first, b=second)
    assert result["status"] == "CREATE_COMPLETE", result["error"]
    uuids = [result["outputs"][name]["value"]["node_uuid"] for name in "ab"]
    enrolled = result["outputs"]["n"]["value"]["uuid"]
    assert uuids.count(enrolled) == 1
    assert len({*uuids}) == 2


def test_candidates_that_are_named_are_added_under_their_names(tmp_path: Path) -> None:
    properties = {"resource_class": "bm", "candidate_nodes": ["rack-1-u7"], "traits": ["CUSTOM_A"]}
    result = document(tmp_path, a={"type": "OS::Ironic::Allocation", "properties": properties})
    assert result["status"] == "CREATE_COMPLETE", result["error"]
    web = instance(selector=properties)
    result = document(
        tmp_path, a={"type": "OS::Ironic::Allocation", "properties": properties}, web=web
    )
    assert "none of the requested nodes are available" in result["error"]["message"]


@pytest.mark.parametrize("runbook", ["CUSTOM_BURN_IN", "6f2b1f5e-6d0c-4f0a-9d0b-5f2b7c1d9e10"])
def test_a_runbook_of_the_site_runs_on_a_node_of_the_site(runbook: str, tmp_path: Path) -> None:
    web = instance(node="rack-1-u7", runbook_before=runbook)
    assert document(tmp_path, web=web)["status"] == "CREATE_COMPLETE"


def test_a_step_of_an_agent_s_own_succeeds(tmp_path: Path) -> None:
    steps = [{"interface": "deploy", "step": "burn_in_disks", "args": {"hours": 2}}]
    book = {"type": "OS::Ironic::RunbookExecution"}
    book["properties"] = {"node": {"get_resource": "n"}, "steps": steps, "mode": "clean"}
    enrolled = node()
    enrolled["properties"]["target_state"] = "manageable"
    result = document(tmp_path, n=enrolled, book=book)
    assert result["status"] == "CREATE_COMPLETE", result["error"]


def test_a_hardware_type_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    enrolled = node()
    enrolled["properties"] |= {"driver": "abacus", "driver_info": {}}
    assert "abacus" in document(tmp_path, n=enrolled)["error"]["message"]
