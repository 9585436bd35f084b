"""Software deployments to a machine whose os-collect-config polls this service."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import IMAGE, enrol, node_of, why_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

SERVER = {"type": "OS::Heat::DeployedServer", "metadata": {"role": "web"}}
CONFIG = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {"group": "script", "config": "echo $greeting", "inputs": [{"name": "greeting"}]},
}
DEPLOYMENT = {
    "type": "OS::Heat::SoftwareDeployment",
    "properties": {
        "server": {"get_resource": "server"}, "config": {"get_resource": "config"},
        "input_values": {"greeting": "Ahoy"}, "name": "greet",
    },
}  # fmt: skip
PARTS = {"server": SERVER, "config": CONFIG, "greet": DEPLOYMENT}
URL = {"url": {"value": {"get_attr": ["server", "metadata_url"]}}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def send(url: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    """Send a request without a login, as an agent does."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        target = f"{parts.path}?{parts.query}"
        connection.request(method, target, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(text) if text else None


def url_of(site: Orchestration, path: str) -> str:
    def url() -> str | None:
        outputs = {each["output_key"]: each["output_value"] for each in site.stack(path)["outputs"]}
        return outputs.get("url")

    return wait_for(url, "the address of the metadata")


def deployment_of(url: str) -> dict[str, Any]:
    def deployment() -> dict[str, Any] | None:
        status, document = send(url)
        assert status == 200, document
        return next(iter(document["deployments"]), None)

    return wait_for(deployment, "the deployment")


def inputs_of(deployment: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["value"] for each in deployment["inputs"]}


def test_an_agent_on_a_machine_gets_its_deployments_and_answers(site: Orchestration) -> None:
    """The config drive has the address of the metadata, and the token opens nothing else."""
    enrol(site, "n1", ports=[])
    machine = {
        "type": "OS::Ironic::Instance",
        "properties": {
            "node": "n1", "image": IMAGE, "user_data": {"get_attr": ["server", "cloud_init"]},
        },
    }  # fmt: skip
    outputs = URL | {"said": {"value": {"get_attr": ["greet", "deploy_stdout"]}}}
    path = site.create("web", template(PARTS | {"machine": machine}, outputs=outputs))
    url = url_of(site, path)
    deployment = deployment_of(url)
    inputs = inputs_of(deployment)
    assert (deployment["name"], deployment["group"], inputs["greeting"]) == (
        "greet", "script", "Ahoy",
    )  # fmt: skip
    document = send(url)[1]
    assert document["role"] == "web"
    assert document["os-collect-config"]["request"] == {"metadata_url": url}
    assert send(url, "HEAD") == (200, None)
    wait_for(lambda: node_of(site)["provision_state"] == "active" or None, "the machine")
    why = why_of(site, path)
    server = site.resources(path)["server"]["physical_resource_id"]
    assert f"server {server} has not signalled yet" in why["cause"]
    assert send(url.replace("/metadata?", "/signal?"), "POST", {})[0] in (400, 404)
    assert send(url.replace("server/metadata", "greet/metadata"))[0] == 404
    assert send(inputs["deploy_signal_id"].replace("/signal?", "/metadata?"))[0] == 404
    assert send(f"{url}0")[0] == 404
    assert send(url.split("?")[0], "GET")[0] == 200  # noauth: the path's project
    answer = {"deploy_stdout": "Ahoy", "deploy_stderr": "", "deploy_status_code": 0}
    assert send(inputs["deploy_signal_id"], "POST", answer)[0] == 200
    site.wait_for(path, "CREATE_COMPLETE")
    shown = {each["output_key"]: each["output_value"] for each in site.stack(path)["outputs"]}
    assert shown["said"] == "Ahoy"


REFUSED = {
    "poll by CFN": (
        {"software_config_transport": "POLL_SERVER_CFN"}, "the CloudFormation API is not there",
    ),
    "poll by queue": (
        {"software_config_transport": "ZAQAR_MESSAGE"}, "a message queue is not there",
    ),
    "an object store": (
        {"deployment_swift_data": {"container": "c", "object": "o"}}, "no object store is there",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("properties", "sentence"), [*REFUSED.values()], ids=[*REFUSED])
def test_what_needs_another_service_is_refused_by_name(
    site: Orchestration, properties: dict[str, Any], sentence: str
) -> None:
    body = {"stack_name": "web", "template": template({"s": SERVER | {"properties": properties}})}
    status, document = site.ask("POST", "/stacks", body)
    assert status == 400
    assert sentence in document["error"]["message"]
