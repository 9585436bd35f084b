"""What `make run` shows: simulated servers enrolled, and three of them deployed by a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.client import Client
from bloomery.cli.stacks import StackRun, StackStuck
from bloomery.cmd import demo
from bloomery.lab import rack
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for


def _all_available(api: Client) -> Any:
    """Return the nodes once all are available."""
    nodes = api.get("/v1/nodes/detail")["nodes"]
    return nodes if {node["provision_state"] for node in nodes} == {"available"} else None


def test_a_stack_deploys_servers_of_the_rack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with rack.Rack(demo.NODES, power_s=0.02) as servers, Orchestration(tmp_path / "s") as site:
        deployed = demo._job(site.service, servers)
        api = Client(site.service.url)
        nodes = api.get("/v1/nodes/detail")["nodes"]
        [stack] = site.ask("GET", "/stacks")[1]["stacks"]
        path = f"/stacks/{stack['stack_name']}/{stack['id']}"
        assert site.ask("DELETE", path)[0] == 204
        site.wait_for(path, "DELETE_COMPLETE")
        idle = wait_for(lambda: _all_available(api), "cleaning to end", timeout_s=30)
        assert api.get("/v1/allocations")["allocations"] == []
    for node in idle:
        assert (node["instance_uuid"], node["instance_info"], node["lessee"]) == (None, {}, None)
    active = [node for node in nodes if node["provision_state"] == "active"]
    assert deployed in [node["name"] for node in active]
    assert sorted(node["instance_name"] for node in active) == ["server-1", "server-2", "server-3"]
    assert {node["power_state"] for node in active} == {"power on"}
    assert len(nodes) == demo.NODES
    shown = capsys.readouterr().out
    assert "server-3  OS::Ironic::Instance  CREATE_COMPLETE" in shown
    [first] = [node["name"] for node in active if node["instance_name"] == "server-1"]
    assert f"server-1 runs on {first}" in shown


def test_a_stack_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    with Orchestration(tmp_path / "s") as site:
        run = StackRun(Client(site.url), "servers")
        run.create({"template": demo._template()})
        with pytest.raises(StackStuck, match=r"CREATE_FAILED: .*resource class bm\.demo"):
            run.watch("CREATE_COMPLETE")
