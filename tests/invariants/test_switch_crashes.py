"""The process dies after any commit of a life whose ports move at two switches.

The switches show each order late, so that steps wait for them.  What was ordered is done once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.conf.drivers import IronicNetworking as Options
from bloomery.drivers.registry import Registry
from bloomery.drivers.switches import network
from bloomery.lab.rack import Rack
from bloomery.lab.switch import SimulatedSwitch
from tests.invariants.test_agent_crashes import INSTANCE, LIFE, MAC, TOLD, AgentLife, Directed, Kind
from tests.invariants.test_crashes import assert_clean, crash_and_recover
from tests.kit.machines.agent_server import AgentServer
from tests.kit.machines.switches import serving, switch_file
from tests.kit.sampling import some
from tests.kit.servers.stories import Stage

NETWORKS = {
    f"{role}_network": f"access/native_vlan={vlan}"
    for role, vlan in (("provisioning", 13), ("idle", 16))
}
MOVES = ["VLAN 13", "VLAN 100"]  # deployed, active
APPLY_S = 0.02


class Switched(Directed):
    """As its base, and its network interface is ``ironic-networking``."""

    def registry(self, conf: Any = None) -> Registry:
        found = super().registry(conf)
        options = Options(
            switch_config_file=str(self.folder / "switches.conf"), switch_timeout=5, **NETWORKS
        )
        base = found.interfaces["deploy"]["fake"].conf
        conf = dataclasses.replace(base, ironic_networking=options)
        interfaces = found.interfaces | {"network": {"noop": network.IronicNetworking(conf)}}
        return Registry(found.types, interfaces, dict.fromkeys(interfaces))


class SwitchedLife(AgentLife):
    hardware = Switched

    def plug(self, switches: tuple[SimulatedSwitch, ...]) -> None:
        """Put a port of the node at each switch."""
        api = Stage(self.site).api
        (first,) = api.get("/v1/ports").json["ports"]
        api.delete(f"/v1/ports/{first['uuid']}")
        for number, switch in enumerate(switches):
            switch.history.clear()
            answer = api.post("/v1/ports", {
                "node_uuid": self.node, "address": f"{MAC[:-1]}{number}",
                "local_link_connection": {"switch_id": switch.mac, "port_id": "Ethernet1"},
                "extra": {"switchport": {"mode": "access", "native_vlan": 100}},
            })  # fmt: skip
            assert answer.status == 201, answer.json


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    with AgentServer(tmp_path) as made:
        yield made


@pytest.mark.timeout(400)
@pytest.mark.sampled
def test_ports_move_once_though_the_process_dies_at_any_commit(
    tmp_path: Path, server: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_LOOK_S", APPLY_S)
    kind = Kind(LIFE[2:3], False, TOLD[7:])
    made = (SimulatedSwitch("tor-1", 1), SimulatedSwitch("tor-2", 1))
    with Rack(1, built=made) as rack:
        switches = serving(rack, *made)
        switch_file(tmp_path / "switches.conf", switches)
        for switch in switches:
            switch.apply_s = APPLY_S
        more = (server, "slow", kind, rack.machines[0], INSTANCE)

        def moved() -> list[list[str]]:
            return [
                [what.removeprefix("Ethernet1: ") for _, what in switch.history]
                for switch in switches
            ]

        life = SwitchedLife(tmp_path / "whole.sqlite", *more)
        life.plug(switches)
        began = life.site.db.commits
        for order in life.orders:
            life.obey(order)
        life.die()
        commits = life.site.db.commits - began
        assert moved() == [MOVES] * 2
        for lives in some(range(commits + 1)):
            server.told.clear()
            server.commands.clear()
            life = SwitchedLife(tmp_path / f"{lives}.sqlite", *more)
            life.plug(switches)
            try:
                assert_clean(crash_and_recover(life, lives))
                assert moved() == [MOVES] * 2
                info = life.site.node(life.node).driver_internal_info
                assert "switch_orders" not in info
            except AssertionError as exc:
                exc.add_note(f"the process died after commit {lives}; moves: {moved()}")
                raise
            finally:
                life.die()
