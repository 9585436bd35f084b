"""Simulated switches on loopback, the file that names them, and a node at their ports."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.drivers import BmcOptions, IronicNetworking
from bloomery.drivers.switches.network import IronicNetworking as Interface
from bloomery.lab.rack import Rack
from bloomery.lab.switch import SimulatedSwitch
from bloomery.model.port import Port
from tests.kit.machines.driver_task import FakeTask
from tests.kit.machines.switches import switch_file

NODE = str(uuid.UUID(int=9))


@pytest.fixture
def switches() -> Iterator[list[SimulatedSwitch]]:
    """Two switches that serve."""
    made = [SimulatedSwitch("tor-1"), SimulatedSwitch("tor-2")]
    with Rack(built=made) as rack:
        for switch in made:
            switch.address = rack.address_of(switch)
        yield made


@pytest.fixture
def make_conf(switches, tmp_path) -> Callable[..., Conf]:
    def make(**options: Any) -> Conf:
        file = switch_file(tmp_path / "switches.conf", switches, **options.pop("keys", {}))
        values = {"switch_config_file": str(file), "switch_timeout": 2} | options
        return dataclasses.replace(
            Conf(),
            ironic_networking=IronicNetworking(**values),
            bmc=BmcOptions(breaker_failures=2, breaker_pause=60),
        )

    return make


def port(number: int, switch: SimulatedSwitch | None, name: str = "", **more: Any) -> Port:
    """A port of the node; ``switchport``: its own network."""
    link = (
        {} if switch is None else {"switch_id": switch.mac, "port_id": name or f"Ethernet{number}"}
    )
    network = more.pop("switchport", None)
    return Port(
        uuid=str(uuid.UUID(int=number)), address=f"52:54:00:00:00:{number:02x}", node_uuid=NODE,
        local_link_connection=link, extra={"switchport": network} if network else {}, **more,
    )  # fmt: skip


def access(vlan: int, **more: Any) -> dict[str, Any]:
    return {"mode": "access", "native_vlan": vlan} | more


def task_of(*ports: Port, groups: tuple[Any, ...] = (), **driver_info: Any) -> FakeTask:
    task = FakeTask(driver_info)
    task.ports, task.portgroups = ports, groups
    task.driver = SimpleNamespace(power=SimpleNamespace(only_restarts=False, name="redfish"))
    return task


@pytest.fixture
def interface(make_conf) -> Interface:
    made = Interface(make_conf(provisioning_network="access/native_vlan=20"))
    made.name = "ironic-networking"
    return made
