"""What tests of simulations need: stacks from text, and their events as short lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bloomery import plugins
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import STACK_TYPE
from bloomery.orchestration.simulation import Event
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import kinds, parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.environment import Environment
from tests.kit.stacks.memory_machines import MemoryMachines, MemorySoftware


@dataclass
class MemorySite:
    """A ``simulation.Site`` without a service; its machines do at once what they are told."""

    machines: MemoryMachines = field(default_factory=MemoryMachines)
    software: MemorySoftware = field(default_factory=MemorySoftware)

    def machines_of(self, _stack: object) -> MemoryMachines:
        return self.machines

    def software_of(self, _project: str) -> MemorySoftware:
        return self.software

    def run_due(self) -> bool:
        return False

    def due_at(self) -> float | None:
        return None


def stack(
    text: str,
    *,
    given: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    more: Mapping[str, type[base.Resource]] | None = None,
    timeout_s: float = 3600,
) -> Stack:
    """A stack called S; ``more``: kinds beside the installed ones."""
    document = parse.document(f"heat_template_version: 2021-04-16\n{text}")
    template = versions.template_class(document)(document, files or {})
    offered = {**plugins.loaders("bloomery.resources")}
    offered |= {name: (lambda kind=kind: kind) for name, kind in (more or {}).items()}
    definition = Definition(
        template=template,
        environment=Environment.of(environment, kinds.Kinds(offered)),
        identity=Identity(name="S"),
        user_parameters=given or {},
    )
    return Stack(definition, timeout_s=timeout_s)


def lines(events: Sequence[Event], depth: int = 0) -> list[str]:
    """``who STATE`` of each event; S stands for the stack, however it is called."""
    return [
        f"{'S' if event.type == STACK_TYPE else event.resource} {event.state}"
        for event in events
        if event.depth == depth
    ]


def expand(text: str) -> list[str]:
    """Spell out a trace: ``a C+`` is a CREATE_IN_PROGRESS and a CREATE_COMPLETE, ``a C!`` fails."""
    lines = []
    for line in filter(None, (part.strip() for part in text.split(","))):
        who, what = line.split()
        action = ACTIONS[what[0]]
        states = {">": ["IN_PROGRESS"], "+": ["IN_PROGRESS", "COMPLETE"], ".": ["COMPLETE"]}
        states |= {"!": ["IN_PROGRESS", "FAILED"], "x": ["FAILED"]}
        lines += [f"{who} {action}_{state}" for state in states[what[1]]]
    return lines


ACTIONS = {
    "C": "CREATE", "U": "UPDATE", "D": "DELETE", "R": "ROLLBACK", "S": "SIGNAL", "I": "INIT",
    "A": "ADOPT", "K": "CHECK",
}  # fmt: skip
