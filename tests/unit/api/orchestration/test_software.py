"""Software configurations and deployments over HTTP, with their rows behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery.api.orchestration import app
from tests.fakes.client import Client
from tests.kit.clients.stack_calls import StackCalls
from tests.unit.api.orchestration.conftest import BASE, fault

CONFIGS, DEPLOYMENTS = f"{BASE}/software_configs", f"{BASE}/software_deployments"


@pytest.fixture
def api(tmp_path: Path) -> Client:
    calls = StackCalls(tmp_path)
    return Client(app.make_app(calls.services, calls.operations), version=None)


def made_config(api: Client) -> dict:
    body = {"name": "a", "group": "script", "config": "x", "inputs": [], "outputs": []}
    answer = api.post(CONFIGS, body)
    assert answer.status == 200
    return answer.json["software_config"]


def made_deployment(api: Client) -> dict:
    body = {"config_id": made_config(api)["id"], "server_id": "s1", "input_values": {"n": 2**70}}
    answer = api.post(DEPLOYMENTS, body)
    assert answer.status == 200
    return answer.json["software_deployment"]


def test_config_lives_and_dies(api):
    config = made_config(api)
    assert set(config) == {
        "id", "name", "group", "config", "inputs", "outputs", "options", "creation_time"
    }  # fmt: skip
    assert config["creation_time"].endswith("Z")
    path = f"{CONFIGS}/{config['id']}"
    assert api.get(path).json == {"software_config": config}
    (listed,) = api.get(CONFIGS).json["software_configs"]
    assert listed == {key: config[key] for key in ("id", "name", "group", "creation_time")}
    answer = api.delete(path)
    assert (answer.status, answer.body) == (204, b"")
    assert fault(api.get(path)) == (404, "NotFound")
    assert fault(api.delete(path)) == (404, "NotFound")


def test_config_may_come_without_a_body(api):
    config = api.post(CONFIGS).json["software_config"]
    assert (config["name"], config["group"], config["config"]) == (None, None, None)


def test_list_of_all_projects_names_them(api):
    made_config(api)
    (listed,) = api.get(f"{CONFIGS}?global_tenant=true").json["software_configs"]
    assert listed["project"] == "p1"


def test_config_in_use_is_a_conflict(api):
    deployment = made_deployment(api)
    answer = api.delete(f"{CONFIGS}/{deployment['config_id']}")
    assert fault(answer) == (409, "InvalidRestrictedAction")


def test_deployment_lives_and_dies(api):
    deployment = made_deployment(api)
    assert set(deployment) == {
        "id", "config_id", "server_id", "input_values", "output_values", "action", "status",
        "status_reason", "creation_time", "updated_time",
    }  # fmt: skip
    assert deployment["input_values"] == {"n": 2**70}
    assert deployment["updated_time"] is None
    path = f"{DEPLOYMENTS}/{deployment['id']}"
    after = api.put(path, {"status": "FAILED", "status_reason": "no"}).json["software_deployment"]
    assert after["status"] == "FAILED"
    assert after["updated_time"].endswith("Z")
    assert api.get(path).json == {"software_deployment": after}
    assert api.get(DEPLOYMENTS).json == {"software_deployments": [after]}
    assert api.get(f"{DEPLOYMENTS}?server_id=s2").json == {"software_deployments": []}
    assert api.delete(path).status == 204
    assert fault(api.get(path)) == (404, "NotFound")


def test_agent_of_a_server_gets_its_configs(api):
    deployment = made_deployment(api)
    (config,) = api.get(f"{DEPLOYMENTS}/metadata/s1").json["metadata"]
    assert config["id"] == deployment["config_id"]
    assert api.get(f"{DEPLOYMENTS}/metadata/s2").json == {"metadata": []}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", CONFIGS, {"inputs": [{}]}),
        ("POST", CONFIGS, {"options": "x"}),
        ("POST", DEPLOYMENTS, None),
        ("POST", DEPLOYMENTS, {}),
        ("POST", DEPLOYMENTS, {"config_id": 4}),
        ("PUT", f"{DEPLOYMENTS}/x", None),
        ("GET", f"{CONFIGS}?limit=-1", None),
        ("GET", f"{CONFIGS}?global_tenant=maybe", None),
    ],
)
def test_what_cannot_be_read_is_400(api, method, path, body):
    assert fault(api.ask(method, path, body))[0] == 400
