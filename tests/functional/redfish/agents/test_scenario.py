"""A scenario of the lab: its agents take two machines through their life, over TLS."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.api import app
from bloomery.api import server as api_server
from bloomery.cli.service import lab
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.lab.simulation import Simulation
from tests.functional.redfish.agents.conftest import AGENT, INSTANCE
from tests.kit.servers.stories import Stage

SCENARIO = f"""
seed: 3
groups:
  good:
    count: 1
    power_s: 0.05
    answer_s: {{uniform: [0, 0.01]}}
    agent: {{boot_s: 0.5, write_s: 0.1, erase_s: 0.05, inspects: true, heartbeat_s: 0.2}}
    node: &node
      deploy_interface: direct
      inspect_interface: agent
      driver_info: {{deploy_iso: {AGENT}}}
  bad:
    count: 1
    model: hpe-ilo6
    agent: {{fails: 1, boot_s: 0.5, inspects: true, heartbeat_s: 0.2}}
    node: *node
"""


@pytest.fixture
def simulation(stage: Stage, tmp_path: Path) -> Iterator[Simulation]:
    serving = api_server.make(app.make_app(stage.services), Conf(api=Api(port=0)))
    serving.start()
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    with Simulation(lab.read(file, serving.url), folder=tmp_path) as simulation:
        yield simulation
    serving.stop()


@pytest.fixture
def nodes(stage: Stage, simulation: Simulation) -> list[str]:
    """Nodes of the machines, as the file of ``lab up --write`` has them."""
    enrolled = []
    for fields in simulation.nodes():
        ports = fields.pop("ports")
        enrolled.append(stage.enrol(**fields))
        for port in ports:
            stage.api.post("/v1/ports", {"node_uuid": enrolled[-1]} | port)
        stage.patch(enrolled[-1], instance_info=INSTANCE)
    return enrolled


def test_agents_inspect_clean_deploy_and_free_a_machine(stage, simulation, nodes):
    good, bad = nodes
    for verb, state in (("manage", "manageable"), ("inspect", "manageable")):
        for node in nodes:
            stage.ask(node, verb)
        shown = [stage.wait_for(node, state) for node in nodes]
        assert [each["last_error"] for each in shown] == [None, None]
    assert stage.api.get(f"/v1/nodes/{good}/inventory").json["inventory"]["cpu"]["count"] == 8
    for node in nodes:
        stage.ask(node, "provide")
    shown = stage.wait_for(bad, "clean failed")
    assert "the emulated agent failed, as its scenario orders" in shown["last_error"]
    for verb, state in ((None, "available"), ("active", "active"), ("deleted", "available")):
        if verb is not None:
            stage.ask(good, verb)
        assert stage.wait_for(good, state)["last_error"] is None
    [machine] = simulation.systems("good")
    agent = [what for what in machine.happened if what.startswith("agent: ")]
    assert "agent: inventory posted, HTTP 202" in agent
    assert agent.count("agent: prepare_image ended") == 1
    assert agent.count("agent: execute_clean_step ended") == 2
    assert "agent: standby.power_off" in agent
    assert machine.power == "Off"
    with urllib.request.urlopen(f"{simulation.rack.address}/lab/events") as answer:
        document = json.load(answer)
    assert (document["agents"], document["power"]) == ({"off": 2}, {"off": 2})
    assert document["events"][0]["machine"] in ("good-0000", "bad-0000")
