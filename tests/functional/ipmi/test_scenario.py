"""A group of IPMI machines in a scenario of the lab: agents follow the power of their BMCs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bloomery.lab import scenario
from bloomery.lab.simulation import Simulation
from tests.kit.waiting import wait_for


def test_an_agent_boots_from_the_network_and_ends_with_its_machine(tmp_path: Path) -> None:
    agent = {"api": "http://127.0.0.1:1", "boot_s": 600}
    group = {"count": 1, "protocol": "ipmi", "agent": agent, "node": {"resource_class": "old"}}
    played = scenario.of({"groups": {"old": group}}, "s.yaml")
    with Simulation(played, folder=tmp_path) as simulation:
        [machine] = simulation.ipmi["old"].machines
        [node] = simulation.nodes()
        [emulated] = simulation.crew.agents

        def order(*words: str) -> None:
            info = node["driver_info"]
            subprocess.run(
                ["ipmitool", "-I", "lanplus", "-C", "3", "-H", info["ipmi_address"],
                 "-p", str(info["ipmi_port"]), "-U", info["ipmi_username"],
                 "-P", info["ipmi_password"], "chassis", *words],
                check=True, capture_output=True,
            )  # fmt: skip

        assert (node["name"], node["driver"], node["resource_class"]) == ("old-0000", "ipmi", "old")
        order("power", "on")
        wait_for(lambda: simulation.overview()["power"] == {"on": 1}, "power on")
        assert emulated.state == "off", "a machine that boots its disk has no agent"
        order("power", "off")
        order("bootdev", "pxe")
        order("power", "on")
        wait_for(lambda: emulated.state == "booting", "the agent to boot")
        machine.reset("ForceOff")
        wait_for(lambda: emulated.state == "off", "the agent to end")
        events = [each["event"] for each in simulation.overview()["events"]]
        assert events[0] == "power is Off"
