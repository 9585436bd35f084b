"""What `make run` shows: simulated servers enrolled, and three of them deployed by a stack."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, create
from bloomery.cli.service import demo
from bloomery.cli.service.demo import DemoLife
from bloomery.cli.stacks import StackRun, StackStuck
from bloomery.lab import rack
from tests.kit.servers.orchestration import Orchestration
from tests.kit.servers.served import Served
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
        run.create({"template": demo._template("http://127.0.0.1/any.iso")})
        with pytest.raises(StackStuck, match=r"CREATE_FAILED: .*resource class bm\.demo"):
            run.watch("CREATE_COMPLETE")


def test_the_rack_keeps_living(tmp_path: Path) -> None:
    pause = threading.Event().wait
    with rack.Rack(4, apart=True, power_s=0.02) as servers, Orchestration(tmp_path / "s") as site:
        api = Client(site.service.url)
        machines = [demo._enrolled(*each) for each in enumerate(servers.machines, 1)]
        for machine in machines:
            create(api, machine)
        fleet = Fleet(api, [machine.name for machine in machines])
        fleet.take("manage", "manageable")
        fleet.take("provide", "available")
        life = DemoLife(api, servers, lambda seconds: pause(min(seconds, 0.05)))
        assert life.show_failures(demo._name) == ["rack-1-u3", "rack-1-u4"]
        states = {each["name"]: each["provision_state"] for each in api.get("/v1/nodes")["nodes"]}
        assert states == dict.fromkeys(("rack-1-u1", "rack-1-u2", "rack-1-u3"), "available") | {
            "rack-1-u4": "deploy failed"
        }
        assert "locked by another session" in api.get("/ext/v1/nodes/rack-1-u4/why")["cause"]
        for verb, state in (("active", "active"), ("deleted", "available")):
            assert life.wait_and_order()
            wait_for(lambda state=state: _state(api, "rack-1-u1") == state, verb, timeout_s=30)
        Fleet(api, ["rack-1-u4"]).take("active", "active")  # as its page offers


def _state(api: Client, node: str) -> str:
    return str(api.get(f"/v1/nodes/{node}")["provision_state"])


def test_serve_opens_the_pages_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {opened}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    with Served(tmp_path / "state", more=["--open"]) as served:
        served.wait_until_it_answers()
        wait_for(lambda: opened.exists() and opened.read_text(), "the browser", timeout_s=30)
        assert opened.read_text() == f"{served.url}/ui/"
