"""Switches of a rack: the machines are at their ports, and users see ports move."""

from __future__ import annotations

import dataclasses
import json
import urllib.request
from pathlib import Path
from typing import Any

from bloomery.conf import Conf
from bloomery.conf.drivers import IronicNetworking
from bloomery.drivers.switches import inventory
from bloomery.drivers.switches.contract import Layout, Port
from bloomery.lab.scenario import Group, Scenario
from bloomery.lab.simulation import Simulation


def fetched(address: str) -> Any:
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def test_a_port_that_moves_is_seen_on_the_page_and_at_its_switch(tmp_path: Path) -> None:
    scenario = Scenario(groups=(Group(name="web", count=3),))
    with Simulation(scenario, folder=tmp_path, switches=2) as simulation:
        file = tmp_path / "switches.conf"
        file.write_text(simulation.switch_file())
        options = IronicNetworking(switch_config_file=str(file))
        known = inventory.of(dataclasses.replace(Conf(), ironic_networking=options))
        links = [node["ports"][0]["local_link_connection"] for node in simulation.nodes()]
        places = [(link["switch_info"], link["port_id"]) for link in links]
        assert places == [("tor-1", "Ethernet1"), ("tor-2", "Ethernet1"), ("tor-1", "Ethernet2")]
        switch = known.find(links[2])
        assert switch is not None
        wanted = Layout(ports={"Ethernet2": Port(mode="access", native_vlan=20)})
        known.driver(switch).order(switch, wanted, timeout_s=5)
        assert known.driver(switch).read(switch, wanted, timeout_s=5).vlans == {20}
        events = fetched(f"{simulation.rack.address}/lab/events")["events"]
        assert [(e["machine"], e["event"]) for e in events] == [("tor-1", "Ethernet2: VLAN 20")]
        shown = fetched(f"{switch.address}/lab/switch")
        assert shown["vlans"] == [1, 20]
        assert shown["interfaces"]["Ethernet2"]["carries"]["access-vlan"] == 20
