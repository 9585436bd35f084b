"""A scenario that runs: its racks, agents and events.

with Simulation(scenario, folder=Path("/tmp/lab")) as lab:
    lab.rack.address, lab.nodes()
"""

from __future__ import annotations

import itertools
import random
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from bloomery.lab import models, overview, rack
from bloomery.lab.agents import Crew
from bloomery.lab.bmc import Rules, SimulatedBmc
from bloomery.lab.ipmi import IpmiMachine, IpmiRack
from bloomery.lab.model import merged
from bloomery.lab.refusal import Refusal
from bloomery.lab.scenario import Event, Scenario
from bloomery.lab.switch import SimulatedSwitch
from bloomery.lab.system import System
from bloomery.lab.timers import draw

Json = dict[str, Any]
_POLL_S: Final = 0.5  # between two polls of the power of an IPMI machine


class Simulation:
    """``port``: of the first BMC, the others follow; 0: any free ones.  ``folder``: for files.

    ``first``, ``tls``, ``consoles``: as in ``Rack``.  ``switches``: their number; the machines are
    at their ports, one after the other.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        folder: Path,
        port: int = 0,
        first: str | None = None,
        tls: tuple[str, str] | None = None,
        switches: int = 0,
        consoles: bool = False,
    ) -> None:
        self.scenario, self._stack = scenario, ExitStack()
        self._groups: dict[str, list[SimulatedBmc]] = {}
        self.ipmi: dict[str, IpmiRack] = {}
        self.crew = Crew(folder)
        number = 0
        for group in scenario.groups:
            if group.protocol == "redfish":
                make = models.of(group.model)
                specs = rack.specs(group.count, prefix=group.name, first=number, **make.machine)
                specs = [
                    replace(spec, power_s=draw(group.power_s, self._random(spec.name)))
                    for spec in specs
                ]
                bmcs = self._groups[group.name] = rack.bmcs(
                    specs,
                    Rules(late_s=group.answer_s, idle_s=group.idle_s, is_new=group.is_new), make,
                    apart=group.apart, seed=f"{scenario.seed} ",
                )  # fmt: skip
                for bmc, fault in itertools.product(bmcs, group.faults):
                    bmc.faults.add(**fault)
            else:
                self.ipmi[group.name] = IpmiRack(
                    folder, group.count, prefix=group.name, first=number
                )
            number += group.count
        built = [bmc for group in self._groups.values() for bmc in group]
        each = -(-number // max(switches, 1))
        self.switches = [SimulatedSwitch(f"tor-{n + 1}", ports=each) for n in range(switches)]
        self.rack = rack.Rack(
            built=[*built, *self.switches], port=port, first=first, tls=tls, consoles=consoles
        )
        self.rack.overview = self.overview

    def _random(self, what: object) -> random.Random:
        return random.Random(f"{self.scenario.seed} {what}")  # noqa: S311  of a simulation

    def systems(self, group: str | None = None) -> list[System]:
        """Return the Redfish machines of a group, or of all groups."""
        chosen = [group] if group is not None else list(self._groups)
        return [s for name in chosen for bmc in self._groups[name] for s in bmc.systems.values()]

    def machines(self) -> list[System | IpmiMachine]:
        return [*self.systems(), *(each for one in self.ipmi.values() for each in one.machines)]

    def nodes(self) -> list[Json]:
        """Return the nodes to enrol, with their ports."""
        redfish = {machine.name: machine.node for machine in self.rack.machines}
        ipmi = {each.name: each.node for one in self.ipmi.values() for each in one.machines}
        nodes = [
            merged((redfish | ipmi)[name], group.node)
            for group in self.scenario.groups
            for name in (f"{group.name}-{number:04d}" for number in range(group.count))
        ]
        for number, node in enumerate(nodes if self.switches else ()):
            place, at = divmod(number, len(self.switches))
            switch = self.switches[at]
            node["ports"][0]["local_link_connection"] = {
                "switch_id": switch.mac, "switch_info": switch.name,
                "port_id": f"Ethernet{place + 1}",
            }  # fmt: skip
        return nodes

    def switch_file(self) -> str:
        """Return the file of switches for [ironic_networking]switch_config_file."""
        sections = []
        for switch in self.switches:
            user, password = next(iter(switch.rules.users.items()))
            sections.append(
                f"[switch:{switch.name}]\ndriver_type = openconfig\n"
                f"address = {self.rack.address_of(switch)}\nusername = {user}\n"
                f"password = {password}\nmac_address = {switch.mac}\n"
            )
        return "\n".join(sections)

    def overview(self) -> Json:
        return overview.document(self.rack.bmcs, self.machines(), self.crew.states)

    # ------------------------------------------------------------------------------- running

    def start(self) -> Self:
        """Serve, and begin the timeline.  Raises CannotStart."""
        with ExitStack() as stack:
            stack.callback(self.crew.stop)
            stack.enter_context(self.rack)
            for one in self.ipmi.values():
                stack.enter_context(one)
            for group in self.scenario.groups:
                if group.agent is None:
                    continue
                ipmi = self.ipmi[group.name].machines if group.name in self.ipmi else []
                for machine in ipmi or self.systems(group.name):
                    self.crew.join(machine, group.agent, self._random(f"agent {machine.name}"))
                for machine in ipmi:
                    self._watch(machine)
            for number, event in enumerate(self.scenario.events):
                self.crew.timers.call_in(event.at_s, partial(self._carry_out, number, event))
            self.crew.start()
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _watch(self, machine: IpmiMachine) -> None:
        machine.poll()
        self.crew.timers.call_in(_POLL_S, lambda: self._watch(machine))

    def _carry_out(self, number: int, event: Event) -> None:
        """Carry out an event of the timeline."""
        systems = self.systems(event.group)
        chosen = self._random(f"event {number}").sample(systems, round(len(systems) * event.share))
        for system in chosen:
            if event.reset is not None:
                with suppress(Refusal):  # its power is so already
                    system.reset(event.reset)
            if event.log is not None:
                system.log_event(event.log)
        idents = {system.id for system in chosen}
        for bmc in self.rack.bmcs:
            if idents.isdisjoint(bmc.systems):
                continue
            if event.fault is not None:
                bmc.faults.add(**event.fault)
            elif event.clear:
                bmc.faults.clear()
