"""``bloomery activity``: what happened on a site, from a terminal."""

from __future__ import annotations

import json

from bloomery.cli.client import Client
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for


def test_flows_failures_and_slow_steps_are_printed(site: Orchestration, run: Run) -> None:
    api = Client(site.service.url)
    info = {"fake": {"fail": ["power.get_power_state"]}}
    api.post("/v1/nodes", {"driver": "fake-hardware", "name": "fine"})
    api.post("/v1/nodes", {"driver": "fake-hardware", "name": "broken", "driver_info": info})
    nodes = {node["name"]: node["uuid"] for node in api.get("/v1/nodes")["nodes"]}
    for uuid in nodes.values():
        api.put(f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
        wait_for(lambda uuid=uuid: not api.get(f"/v1/nodes/{uuid}")["target_provision_state"], "it")
    text = run("activity --hours 1").output
    assert "THE LAST 1 h" in text
    assert "verify" in text
    assert "█" in text
    assert "broken" in text
    assert "no step of deploy ended" in run("activity --phase deploy").output
    document = json.loads(run("activity --json").output)
    assert {each["phase"] for each in document["steps"]} == {"verify"}
