"""The graph of one traversal: planned once, in its first turn, and stored with the stack.

The graph is never planned again: after a crash, a new plan would start from half-done work.
Each vertex names its row and its verb, so that a resumed traversal need not derive them::

    ["web", "make", "", "update", "<uuid of the row>", false]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.orchestration import plan as plans
from bloomery.orchestration.engine import stack_resources
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import Plan, Present
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.stack import Stack, variants


@dataclass(frozen=True, slots=True)
class Vertex:
    """``verb``: the forecast; TAKE_BACK makes a left-over row current.  ``row``: its UUID."""

    verb: str
    row: str | None = None
    keep: bool = False


@dataclass(slots=True, kw_only=True)
class TraversalGraph:
    """``extra``: the arguments of the order."""

    action: Action
    graph: Graph[Key]
    vertices: dict[Key, Vertex]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        numbers = {key: number for number, key in enumerate(self.vertices)}
        return {
            "action": self.action.value,
            "extra": dict(self.extra),
            "vertices": [
                [*key, each.verb, each.row, each.keep] for key, each in self.vertices.items()
            ],
            "edges": [
                [number, *(numbers[need] for need in self.graph.requires(key))]
                for key, number in numbers.items()
                if self.graph.requires(key)
            ],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TraversalGraph:
        keys = [Key(name, phase, part) for name, phase, part, *_rest in document["vertices"]]
        vertices = [Vertex(*rest) for _name, _phase, _part, *rest in document["vertices"]]
        graph = Graph[Key]((key, None) for key in keys)
        for number, *needs in document["edges"]:
            for need in needs:
                graph.add(keys[number], keys[need])
        return cls(
            action=Action(document["action"]),
            graph=graph,
            vertices=dict(zip(keys, vertices, strict=True)),
            extra=document["extra"],
        )


def planned(
    stack: EngineStack, action: Action, old: TemplateSide, new: TemplateSide, **more: Any
) -> TraversalGraph:
    """Plan a traversal from one template to another, over the rows of the stack."""
    rows, leftovers = stack.rows, stack.leftovers
    if stack.part is not None:
        names, new = stack.part.names, stack.part.stack
        old = variants.only(old, names) if isinstance(old, Stack) else old
        rows = {name: rows[name] for name in names if name in rows}
        leftovers = {name: leftovers[name] for name in names if name in leftovers}
    present = Present.of_rows(old, rows, leftovers)
    plan = plans.traversal(old, new, present, rollback=action is Action.ROLLBACK)
    graph = plan.own()
    vertices = {key: _vertex(stack, plan, key) for key in graph.keys()}  # noqa: SIM118  # no order
    return TraversalGraph(action=action, graph=graph, vertices=vertices, **more)


def _vertex(stack: EngineStack, plan: Plan, key: Key) -> Vertex:
    action = plan.actions[key]
    uuid = None if action.record is None else action.record.uuid
    row = stack_resources.find(stack, uuid, key.name)
    if key.phase == MAKE and row is not None and not row.is_current:
        return Vertex(Verb.TAKE_BACK.value, uuid)
    return Vertex(action.verb.value, uuid, action.verb is Verb.KEEP)


def over_rows(stack: EngineStack, action: Action, **more: Any) -> TraversalGraph:
    """Put every resource of the template in order, for an action that changes no definition."""
    graph = Graph[Key]()
    for name in stack.template.definitions:
        graph.add(Key(name, MAKE))
        for required in stack_resources.required(stack, name):
            if required in stack.template.definitions:
                graph.add(Key(name, MAKE), Key(required, MAKE))
    if action is Action.SUSPEND:
        graph = graph.reverse()
    vertices = {key: Vertex(action.value) for key in graph.keys()}  # noqa: SIM118  # no order
    return TraversalGraph(action=action, graph=graph, vertices=vertices, **more)


def sweeps(rows: Iterable[Any]) -> dict[Key, Vertex]:
    """Return vertices that delete rows which were replaced against the forecast."""
    return {Key(row.name, CLEAN, row.uuid): Vertex(Verb.DELETE.value, row.uuid) for row in rows}
