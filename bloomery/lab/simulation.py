"""A scenario that runs: its racks, agents and events.

with Simulation(scenario, folder=Path("/tmp/lab")) as lab:
    lab.rack.address, lab.nodes()
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self

from bloomery.lab import models, overview, rack
from bloomery.lab.agents import Crew
from bloomery.lab.bmc import Rules, SimulatedBmc
from bloomery.lab.ipmi import IpmiMachine, IpmiRack
from bloomery.lab.model import merged
from bloomery.lab.refusal import Refusal
from bloomery.lab.scenario import Event, Group, Scenario
from bloomery.lab.seconds import draw
from bloomery.lab.system import Spec, System

Json = dict[str, Any]
_POLL_S: Final = 0.5  # between two looks at the power of an IPMI machine


class Simulation:
    """``port``: of the first BMC, the others follow; 0: any free ones.  ``folder``: for files."""

    def __init__(self, scenario: Scenario, *, folder: Path, port: int = 0) -> None:
        self.scenario, self._stack = scenario, ExitStack()
        self._groups: dict[str, list[SimulatedBmc]] = {}
        self.ipmi: dict[str, IpmiRack] = {}
        self.crew = Crew(folder)
        first = 0
        for group in scenario.groups:
            if group.protocol == "redfish":
                self._groups[group.name] = self._bmcs(group, first)
            else:
                self.ipmi[group.name] = IpmiRack(
                    folder, group.count, prefix=group.name, first=first
                )
            first += group.count
        built = [bmc for group in self._groups.values() for bmc in group]
        self.rack = rack.Rack(built=built, port=port)
        self.rack.overview = self.overview

    def _random(self, what: object) -> random.Random:
        return random.Random(f"{self.scenario.seed} {what}")  # noqa: S311  of a simulation

    def _bmcs(self, group: Group, first: int) -> list[SimulatedBmc]:
        make = models.of(group.model)
        specs = rack.specs(group.count, prefix=group.name, first=first, **make.machine)
        rules = Rules(late_s=group.answer_s, idle_s=group.idle_s)
        bmcs = rack.bmcs(
            [self._with_power(spec, group) for spec in specs], rules, make,
            apart=group.apart, seed=f"{self.scenario.seed} ",
        )  # fmt: skip
        for bmc in bmcs:
            for fault in group.faults:
                bmc.faults.add(**fault)
        return bmcs

    def _with_power(self, spec: Spec, group: Group) -> Spec:
        return dataclasses.replace(spec, power_s=draw(group.power_s, self._random(spec.name)))

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
        return [
            merged((redfish | ipmi)[name], group.node)
            for group in self.scenario.groups
            for name in self._names(group)
        ]

    def _names(self, group: Group) -> Iterator[str]:
        return (f"{group.name}-{n:04d}" for n in range(group.count))

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
            self._give_agents()
            for number, event in enumerate(self.scenario.events):
                self.crew.timers.call_in(
                    event.at_s, lambda n=number, e=event: self._happen(n, e)  # type: ignore[misc]
                )  # fmt: skip
            self.crew.start()
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _give_agents(self) -> None:
        for group in self.scenario.groups:
            if group.agent is None:
                continue
            ipmi = self.ipmi[group.name].machines if group.name in self.ipmi else []
            for machine in ipmi or self.systems(group.name):
                self.crew.join(machine, group.agent, self._random(f"agent {machine.name}"))
            for machine in ipmi:
                self._watch(machine)

    def _watch(self, machine: IpmiMachine) -> None:
        machine.look()
        self.crew.timers.call_in(_POLL_S, lambda: self._watch(machine))

    def _happen(self, number: int, event: Event) -> None:
        """Carry out an event of the timeline."""
        systems = self.systems(event.group)
        chosen = self._random(f"event {number}").sample(systems, round(len(systems) * event.share))
        for system in chosen:
            if event.reset is not None:
                with suppress(Refusal):  # its power is so already
                    system.reset(event.reset)
        idents = {system.id for system in chosen}
        for bmc in self.rack.bmcs:
            if idents.isdisjoint(bmc.systems):
                continue
            if event.fault is not None:
                bmc.faults.add(**event.fault)
            elif event.clear:
                bmc.faults.clear()
