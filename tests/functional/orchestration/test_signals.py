"""Stacks of a running service that are signalled over HTTP: by their owner, and by a token."""

from __future__ import annotations

import http.client
import json
import urllib.parse

import pytest

from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

WAIT = template(
    {
        "h": {"type": "OS::Heat::WaitConditionHandle"},
        "w": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "h"}, "timeout": 600, "count": 2},
        },
    },
    outputs={
        "data": {"value": {"get_attr": ["w", "data"]}},
        "endpoint": {"value": {"get_attr": ["h", "endpoint"]}},
        "token": {"value": {"get_attr": ["h", "token"]}},
    },
)
SCALED = template(
    {
        "g": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1,
                "max_size": 3,
                "resource": {"type": "OS::Heat::Value", "properties": {"value": "x"}},
            },
        },
        "up": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "g"},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": 1,
            },
        },
    },
    outputs={
        "size": {"value": {"get_attr": ["g", "current_size"]}},
        "alarm": {"value": {"get_attr": ["up", "alarm_url"]}},
    },
)
DEPLOYED = template(
    {
        "c": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"config": "echo", "group": "script", "outputs": [{"name": "url"}]},
        },
        "d": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "c"}, "server": "server-1"},
        },
    },
    outputs={"url": {"value": {"get_attr": ["d", "url"]}}},
)


@pytest.fixture
def site(tmp_path):
    with Orchestration(tmp_path / "state") as running:
        yield running


def outputs(site, path):
    return {each["output_key"]: each["output_value"] for each in site.stack(path)["outputs"]}


def in_progress(site, path, name):
    """Wait until a resource is at work."""

    def begun():
        return site.resources(path).get(name, {}).get("resource_status") == "CREATE_IN_PROGRESS"

    wait_for(begun, f"{name} to begin")


def signal(site, path, name, details=None):
    status, _ = site.ask("POST", f"{path}/resources/{name}/signal", details)
    assert status == 200


def post(url, details=None, **headers):
    """Post to an address as a machine would that has nothing but it."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    place = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(
            "POST",
            place,
            json.dumps(details or {}),
            {"Content-Type": "application/json", **headers},
        )
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_stack_waits_for_signals_over_http_and_over_a_restart(site):
    path = site.create("web", WAIT)
    in_progress(site, path, "w")
    signal(site, path, "h", {"data": "one"})
    site.restart()
    given = outputs(site, path)
    assert post(given["endpoint"], {"id": "x"}, **{"X-Auth-Token": given["token"]}) == 200
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs(site, path)["data"] == '{"1": "one", "x": null}'
    assert ("h", "SIGNAL_COMPLETE") in site.events(path)


def test_a_failure_that_is_signalled_fails_the_stack(site):
    path = site.create("web", WAIT)
    in_progress(site, path, "w")
    signal(site, path, "h", {"status": "MAYBE"})
    signal(site, path, "h", {"status": "FAILURE", "reason": "no disk"})
    stack = site.wait_for(path, "CREATE_FAILED")
    assert stack["stack_status_reason"] == (
        "Resource CREATE failed: WaitConditionFailure: resources.w: no disk"
    )


def test_a_group_grows_by_signals_until_its_bound(site):
    path = site.create("web", SCALED)
    site.wait_for(path, "CREATE_COMPLETE")
    sizes = []
    for _ in range(3):
        before = outputs(site, path)["size"]
        signal(site, path, "up", {"current": "alarm"})
        if before < 3:
            wait_for(lambda: outputs(site, path)["size"] > before, "the group to grow")  # noqa: B023
            child = site.resources(path)["g"]["physical_resource_id"]
            wait_for(lambda: child_state(site, child) == "UPDATE_COMPLETE", "the child to end")  # noqa: B023
        sizes.append(outputs(site, path)["size"])
    assert sizes == [2, 3, 3]
    assert site.stack(path)["stack_status"] == "CREATE_COMPLETE"


def child_state(site, uuid):
    _, document = site.ask("GET", f"/stacks/{uuid}")
    return document["stack"]["stack_status"]


def test_an_alarm_needs_nothing_but_its_address(site):
    path = site.create("web", SCALED)
    site.wait_for(path, "CREATE_COMPLETE")
    alarm = outputs(site, path)["alarm"]
    assert post(alarm) == 200
    wait_for(lambda: outputs(site, path)["size"] == 2, "the group to grow")
    assert post(alarm[:-4] + "0000") in {401, 403, 404}


def deployed(site):
    """What an agent on the server fetches; the stack may not have written yet what it did."""
    return site.ask("GET", "/software_deployments/metadata/server-1")[1]["metadata"]


def test_a_server_answers_its_deployment(site):
    path = site.create("web", DEPLOYED)
    (config,) = wait_for(lambda: deployed(site), "the config of the server")
    assert config["config"] == "echo"
    inputs = {each["name"]: each["value"] for each in config["inputs"]}
    assert post(inputs["deploy_signal_id"], {"url": "u", "deploy_status_code": 0}) == 200
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs(site, path)["url"] == "u"
    status, _ = site.ask("DELETE", path)
    assert status == 204
    wait_for(lambda: site.ask("GET", "/software_configs")[1] == {"software_configs": []}, "its end")


def test_a_deployment_may_be_answered_at_its_own_address(site):
    path = site.create("web", DEPLOYED)
    wait_for(lambda: deployed(site), "the config of the server")
    (entry,) = site.ask("GET", "/software_deployments")[1]["software_deployments"]
    deployment = entry["id"]
    answer = {"status": "COMPLETE", "output_values": {"url": "v"}}
    status, document = site.ask("PUT", f"/software_deployments/{deployment}", answer)
    assert status == 200, document
    site.wait_for(path, "CREATE_COMPLETE")
    assert outputs(site, path)["url"] == "v"
