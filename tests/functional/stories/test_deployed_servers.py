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


def send(
    url: str, method: str = "GET", body: Any = None, token: str | None = None
) -> tuple[int, Any]:
    """Send a request without a login, as an agent does."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        target = f"{parts.path}?{parts.query}"
        headers = {"Content-Type": "application/json"} | ({"X-Auth-Token": token} if token else {})
        connection.request(method, target, data, headers)
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


def log_in(login: dict[str, Any], prefix: str = "", **changes: Any) -> tuple[int, str | None, Any]:
    """Log in as keystoneclient does; return the status, the token and the document."""
    values = {key: login[f"{prefix}{key}"] for key in ("auth_url", "user_id", "password")} | changes
    user = {"id": values["user_id"], "password": values["password"]}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    parts = urllib.parse.urlsplit(values["auth_url"])
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{parts.path}/auth/tokens", json.dumps(body), headers)
        answer = connection.getresponse()
        token, text = answer.getheader("X-Subject-Token"), answer.read()
    finally:
        connection.close()
    return answer.status, token, json.loads(text)


def test_an_agent_that_uses_the_api_of_heat_logs_in_for_its_resource(site: Orchestration) -> None:
    """The password of a deployment signals it, that of a server reads its metadata."""
    server = SERVER | {"properties": {"software_config_transport": "POLL_SERVER_HEAT"}}
    properties = DEPLOYMENT["properties"] | {"signal_transport": "HEAT_SIGNAL"}
    parts = PARTS | {"server": server, "greet": DEPLOYMENT | {"properties": properties}}
    outputs = {"url": {"value": {"get_attr": ["server", "os_collect_config", "heat"]}}}
    path = site.create("web", template(parts, outputs=outputs))
    heat: Any = url_of(site, path)
    version = send(heat["auth_url"])[1]["version"]
    assert (version["id"], version["status"]) == ("v3.0", "stable")
    assert version["links"][0]["href"] == f"{heat['auth_url']}/"
    status, token, document = log_in(heat)
    assert status == 201
    [service] = document["token"]["catalog"]
    url = f"{service['endpoints'][0]['url']}/stacks/{heat['stack_id']}/resources"

    def metadata() -> Any:
        found = send(f"{url}/server/metadata", token=token)[1]["metadata"]
        return next(iter(found["deployments"]), None)

    inputs = inputs_of(wait_for(metadata, "the deployment"))
    assert inputs["deploy_signal_transport"] == "HEAT_SIGNAL"
    assert send(f"{url}/greet/signal", "POST", {}, token=token)[0] == 404  # of the server
    status, token, _ = log_in(inputs, "deploy_")
    assert status == 201
    assert send(f"{url}/greet/metadata", token=token)[0] == 404
    assert send(f"{url}/server/metadata", token=token)[0] == 404
    wrong = (
        {"password": "signal-no"}, {"user_id": "nobody"}, {"user_id": heat["user_id"]},
        {"password": ""},
    )  # fmt: skip
    for changes in wrong:
        assert log_in(inputs, "deploy_", **changes)[:2] == (401, None)
    assert send(f"{heat['auth_url']}/auth/tokens", "POST", {"auth": 1})[0] == 400
    assert send(f"{heat['auth_url']}/auth/tokens")[0] == 405
    assert send(f"{heat['auth_url']}/users")[0] == 404
    answer = {"deploy_stdout": "Ahoy", "deploy_stderr": "", "deploy_status_code": 0}
    assert send(f"{url}/greet/signal", "POST", answer, token=token)[0] == 200
    site.wait_for(path, "CREATE_COMPLETE")


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
