"""Values from outside of a stack: nodes that fit, and outputs of another stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import IMAGE, enrol, ironic, node_of, why_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

NODES = {
    "type": "OS::Ironic::NodeLookup",
    "properties": {"resource_class": "bm.test", "traits": ["CUSTOM_A"], "addresses": True},
}
NET = {"type": "OS::Heat::StackOutputs", "properties": {"stack": "net", "outputs": ["address"]}}
ADDRESS = {"address": {"type": "string", "default": "10.0.0.1"}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def value_of(name: str, *path: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": [name, *path]}}}


def outputs_of(site: Orchestration, path: str) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in site.stack(path)["outputs"]}


def write(folder: Path, contents: dict[str, Any]) -> str:
    file = folder / "template.json"
    file.write_text(json.dumps(contents), encoding="utf-8")
    return str(file)


def steps_of(site: Orchestration, *arguments: str) -> dict[str, Any]:
    planned = run(site, "stack", "plan", *arguments, "--json")
    assert planned.exit_code == 0, planned.output
    return {each["resource"]: each for each in json.loads(planned.stdout)["plan"]["steps"]}


def differences(step: dict[str, Any]) -> dict[str, Any]:
    return {each["path"]: (each["before"], each["after"]) for each in step["differences"]}


def test_nodes_are_looked_up_by_class_traits_and_filters(
    site: Orchestration, tmp_path: Path
) -> None:
    enrol(site, "n1", ports=[{"address": "52:54:00:00:00:01"}])
    enrol(site, "n2", ports=[], traits=["CUSTOM_A", "CUSTOM_B"])
    enrol(site, "n3", ports=[], traits=["CUSTOM_B"])
    enrol(site, "other", ports=[], resource_class="bm.other")
    assert ironic(site, "PUT", "/v1/nodes/n2/maintenance", {"reason": "r"})[0] == 202
    ready = {**NODES, "properties": {**NODES["properties"], "filters": {"maintenance": False}}}
    outputs = {
        name: {"value": {"get_attr": ["nodes", name]}}
        for name in ("names", "uuids", "count", "free", "capacity", "addresses")
    } | {"ready": {"value": {"get_attr": ["ready", "names"]}}}
    contents = template({"nodes": NODES, "ready": ready}, outputs=outputs)
    file = write(tmp_path, contents)
    seen = differences(steps_of(site, file, "web")["nodes"])
    assert seen["names"][1] == ["n1", "n2"]
    saved = str(tmp_path / "plan.json")
    assert run(site, "stack", "plan", file, "web", "--out", saved).exit_code == 0
    assert ironic(site, "PUT", "/v1/nodes/n1/maintenance", {"reason": "r"})[0] == 202
    stale = run(site, "stack", "up", "--plan", saved, "--yes")
    assert "it would do something else now: nodes: create, names ['n1', 'n2'], free 0" in (
        stale.output
    )
    assert ironic(site, "DELETE", "/v1/nodes/n1/maintenance")[0] == 202
    path = site.create("web", contents)
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs_of(site, path) == {
        "names": ["n1", "n2"],
        "uuids": [node_of(site, "n1")["uuid"], node_of(site, "n2")["uuid"]],
        "count": 2,
        "free": 1,
        "capacity": [
            {"resource_class": "bm.test", "traits": ["CUSTOM_A"], "nodes": 1, "free": 1},
            {"resource_class": "bm.test", "traits": ["CUSTOM_A", "CUSTOM_B"], "nodes": 1,
             "free": 0},
        ],
        "addresses": {"n1": ["52:54:00:00:00:01"], "n2": []},
        "ready": ["n1"],
    }  # fmt: skip
    small = {**NODES, "properties": {"resource_class": "bm.other", "minimum": 2}}
    failed = site.create("small", template({"nodes": small}))
    shown = site.wait_for(failed, "CREATE_FAILED")
    assert "1 node fits, and minimum is 2" in shown["stack_status_reason"]
    refused = steps_of(site, write(tmp_path, template({"nodes": small})), "third")["nodes"]
    assert (refused["action"], refused["reason"]) == (
        "refuse", "cannot use nodes: 1 node fits, and minimum is 2",
    )  # fmt: skip


def test_the_addresses_of_the_machine_of_an_instance(site: Orchestration, tmp_path: Path) -> None:
    """The node that a resource runs on is known to the plan once it runs."""
    enrol(site, "n1", ports=[{"address": "52:54:00:00:00:01"}])
    enrol(site, "n2", ports=[{"address": "52:54:00:00:00:02"}])
    machine = {"type": "OS::Ironic::Instance", "properties": {"node": "n2", "image": IMAGE}}
    properties = {"candidate_nodes": [{"get_resource": "machine"}], "addresses": True}
    where = {"type": "OS::Ironic::NodeLookup", "properties": properties}
    outputs = {"addresses": {"value": {"get_attr": ["where", "addresses"]}}}
    contents = template({"machine": machine, "where": where}, outputs=outputs)
    file = write(tmp_path, contents)
    assert differences(steps_of(site, file, "web")["where"]) == {}  # not known yet
    path = site.create("web", contents)
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs_of(site, path) == {"addresses": {"n2": ["52:54:00:00:00:02"]}}
    assert steps_of(site, file, "web") == {}
    port = {"node_uuid": node_of(site, "n2")["uuid"], "address": "52:54:00:00:00:03"}
    assert ironic(site, "POST", "/v1/ports", port)[0] == 201
    [(name, step)] = steps_of(site, file, "web").items()
    assert (name, step["action"], step["certain"]) == ("where", "patch", True)


def test_the_plan_of_an_update_reads_the_nodes_again(site: Orchestration, tmp_path: Path) -> None:
    enrol(site, "n1", ports=[])
    kept = {**NODES, "properties": {"resource_class": "bm.test", "refresh": False}}
    contents = template({
        "nodes": NODES, "kept": kept, "count": value_of("nodes", "count"),
        "first": value_of("kept", "count"),
    })  # fmt: skip
    file = write(tmp_path, contents)
    path = site.create("web", contents)
    site.wait_for(path, "CREATE_COMPLETE")
    assert steps_of(site, file, "web") == {}
    saved = str(tmp_path / "plan.json")
    assert run(site, "stack", "plan", file, "web", "--out", saved).exit_code == 0
    enrol(site, "n2", ports=[])
    stale = run(site, "stack", "up", "--plan", saved, "--yes")
    assert stale.exit_code == 1
    assert "values of nodes" in stale.output
    steps = steps_of(site, file, "web")
    assert {name: each["action"] for name, each in steps.items()} == {
        "nodes": "patch", "count": "patch",
    }  # fmt: skip
    assert differences(steps["nodes"])["names"] == (["n1"], ["n1", "n2"])
    assert differences(steps["count"]) == {"value": (1, 2)}
    assert steps["count"]["certain"]
    assert run(site, "stack", "plan", file, "web", "--out", saved).exit_code == 0
    done = run(site, "stack", "up", "--plan", saved, "--yes")
    assert done.exit_code == 0, done.output
    values = {name: each["physical_resource_id"] for name, each in site.resources(path).items()}
    assert set(values) == {"nodes", "kept", "count", "first"}
    assert site.stack(path)["stack_status"] == "UPDATE_COMPLETE"
    assert steps_of(site, file, "web") == {}


def net() -> dict[str, Any]:
    own = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "address"}}}
    outputs = {
        "address": {"value": {"get_attr": ["own", "value"]}},
        "zone": {"value": "example.org"},
    }
    return template({"own": own}, outputs=outputs, parameters=ADDRESS)


def drifted(site: Orchestration, path: str) -> list[str]:
    drift = site.service.stacks.engine.drift
    assert drift is not None
    drift.look()
    return [text for each in why_of(site, path)["drifted"] for text in each["differences"].values()]


def test_outputs_of_another_stack_are_read_and_their_change_is_drift(
    site: Orchestration, tmp_path: Path
) -> None:
    contents = template(
        {"net": NET, "use": value_of("net", "outputs", "address")},
        outputs={"address": {"value": {"get_attr": ["use", "value"]}}},
    )
    file = write(tmp_path, contents)
    missing = steps_of(site, file, "web")["net"]
    assert missing["action"] == "refuse"
    assert "The Stack (net) could not be found" in missing["reason"]
    other = site.create("net", net())
    site.wait_for(other, "CREATE_COMPLETE")
    assert differences(steps_of(site, file, "web")["use"]) == {}
    assert differences(steps_of(site, file, "web")["net"])["outputs.address"][1] == "10.0.0.1"
    path = site.create("web", contents)
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs_of(site, path) == {"address": "10.0.0.1"}
    assert site.ask("POST", f"{path}/actions", {"check": None})[0] in (200, 201)
    site.wait_for(path, "CHECK_COMPLETE")

    assert site.ask("PATCH", other, {"parameters": {"address": "10.0.0.2"}})[0] == 202
    site.wait_for(other, "UPDATE_COMPLETE")
    assert outputs_of(site, path) == {"address": "10.0.0.1"}
    steps = steps_of(site, file, "web")
    assert differences(steps["net"]) == {"outputs.address": ("10.0.0.1", "10.0.0.2")}
    assert differences(steps["use"]) == {"value": ("10.0.0.1", "10.0.0.2")}
    text = "output address of stack net is '10.0.0.2' and was '10.0.0.1'"
    assert drifted(site, path) == [text]
    assert ("net", "DRIFT_FAILED") in site.events(path)
    shown = run(site, "stack", "plan", file, "web")
    assert "differs since" not in shown.output  # the update of the plan reads it again
    assert "10.0.0.1 -> 10.0.0.2" in shown.output
    assert site.ask("POST", f"{path}/actions", {"check": None})[0] in (200, 201)
    failed = site.wait_for(path, "CHECK_FAILED")
    assert text in failed["stack_status_reason"]
    updated = run(site, "stack", "up", file, "web", "--yes")
    assert updated.exit_code == 0, updated.output
    assert outputs_of(site, path) == {"address": "10.0.0.2"}
    assert steps_of(site, file, "web") == {}
    assert drifted(site, path) == []


def test_an_output_with_a_secret_is_used_and_not_shown(site: Orchestration, tmp_path: Path) -> None:
    secret = {"type": "string", "hidden": True, "default": "s3cret"}
    shown = {"password": {"value": {"list_join": ["-", ["x", {"get_param": "password"}]]}}}
    other = site.create("db", template({}, parameters={"password": secret}, outputs=shown))
    site.wait_for(other, "CREATE_COMPLETE")
    outer = {"type": "OS::Heat::StackOutputs", "properties": {"stack": "db"}}
    contents = template({"db": outer, "use": value_of("db", "outputs", "password")})
    file = write(tmp_path, contents)
    planned = run(site, "stack", "plan", file, "web", "--json")
    assert "s3cret" not in planned.output
    path = site.create("web", contents)
    site.wait_for(path, "CREATE_COMPLETE")
    assert site.ask("PATCH", other, {"parameters": {"password": "0ther"}})[0] == 202
    site.wait_for(other, "UPDATE_COMPLETE")
    assert drifted(site, path) == ["output password of stack db has changed"]
    planned = run(site, "stack", "plan", file, "web", "--json")
    steps = {each["resource"]: each for each in json.loads(planned.stdout)["plan"]["steps"]}
    assert steps["db"]["differences"][0]["hidden"] == "it depends on a secret of the other stack"
    shown_files = [planned.output, *(site.ask("GET", f"{path}{part}")[1] for part in ("/events",))]
    assert all(word not in str(shown_files) for word in ("s3cret", "0ther"))
    file = str(tmp_path / "web.json")
    saved = run(site, "stack", "plan", write(tmp_path, contents), "web", "--out", file)
    assert saved.exit_code == 0, saved.output
    assert all(word not in Path(file).read_text() for word in ("s3cret", "0ther"))
    done = run(site, "stack", "up", "--plan", file, "--yes")
    assert done.exit_code == 0, done.output


def test_a_stack_at_work_is_waited_for_and_its_own_outputs_are_refused(
    site: Orchestration, tmp_path: Path
) -> None:
    """An output that nobody has, a stack of nobody, and the stack itself fail by name."""
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    gate = {
        "type": "OS::Heat::WaitCondition",
        "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
    }
    outputs = {"data": {"value": {"get_attr": ["gate", "data"]}}}
    other = site.create("slow", template({"handle": handle, "gate": gate}, outputs=outputs))
    outer = {"type": "OS::Heat::StackOutputs", "properties": {"stack": "slow"}}
    contents = template({"slow": outer})
    path = site.create("web", contents)
    wait_for(lambda: "CREATE_IN_PROGRESS" in json.dumps(why_of(site, path)) or None, "the cause")
    planned = run(site, "stack", "plan", write(tmp_path, contents), "third", "--json")
    [warning] = json.loads(planned.stdout)["plan"]["warnings"]
    assert "slow: cannot read the outputs of stack slow yet: it is CREATE_IN_PROGRESS" in warning
    wait_for(lambda: "gate" in site.resources(other) or None, "the gate")
    signal = {"id": "a", "status": "SUCCESS", "data": "42"}
    assert site.ask("POST", f"{other}/resources/handle/signal", signal)[0] == 200
    site.wait_for(path, "CREATE_COMPLETE")
    attributes = site.ask("GET", f"{path}/resources/slow")[1]["resource"]["attributes"]
    assert json.loads(attributes["outputs"]["data"]) == {"a": "42"}
    for name, stack, names, sentence in (
        ("own", "own", None, "it is the same stack, or a part of it"),
        ("none", "nobody", None, "The Stack (nobody) could not be found"),
        ("other", "slow", ["date"], "cannot find output 'date' of stack slow"),
    ):
        properties = {"stack": stack} | ({"outputs": names} if names else {})
        failed = site.create(name, template({"x": {**outer, "properties": properties}}))
        shown = site.wait_for(failed, "CREATE_FAILED")
        assert sentence in shown["stack_status_reason"]


def test_a_rollback_takes_back_the_values_that_were_read_before(
    site: Orchestration, tmp_path: Path
) -> None:
    other = site.create("net", net())
    site.wait_for(other, "CREATE_COMPLETE")
    parts = {"net": NET, "use": value_of("net", "outputs", "address")}
    outputs = {"address": {"value": {"get_attr": ["use", "value"]}}}
    path = site.create("web", template(parts, outputs=outputs))
    site.wait_for(path, "CREATE_COMPLETE")
    assert site.ask("PATCH", other, {"parameters": {"address": "10.0.0.2"}})[0] == 202
    site.wait_for(other, "UPDATE_COMPLETE")
    bad = {"type": "OS::Heat::TestResource", "depends_on": "use", "properties": {"fail": True}}
    order = {"template": template(parts | {"bad": bad}, outputs=outputs)}
    assert site.ask("PUT", path, order | {"disable_rollback": False})[0] == 202
    site.wait_for(path, "ROLLBACK_COMPLETE")
    assert outputs_of(site, path) == {"address": "10.0.0.1"}
    file = write(tmp_path, template(parts, outputs=outputs))
    assert differences(steps_of(site, file, "web")["use"]) == {"value": ("10.0.0.1", "10.0.0.2")}
