"""The graph of one traversal: planned once, in its first turn, and stored with the stack.

The graph is never planned again: after a crash, a new plan would start from half-done work.
Each vertex names its row and its verb, so that a resumed traversal need not derive them::

    ["web", "make", "", "unchanged", "<uuid of the row>", false]

A resource that exists has a second vertex, which deletes its row if the first one replaces it.
Most of these find nothing to do.  They are not stored, because the first vertex implies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.orchestration import plan as plans
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import ExistingStack
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.template_side import TemplateSide

MAY_CHANGE: Final = frozenset({Verb.UNCHANGED.value, Verb.TAKE_BACK.value})


@dataclass(frozen=True, slots=True)
class Vertex:
    """``verb``: UNCHANGED may become any other; TAKE_BACK makes a left-over row current.

    ``row``: its UUID.  ``keep``: the row goes without a deletion, here or in the implied vertex.
    """

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
        implied = _implied(self.vertices)
        stored = {key: each for key, each in self.vertices.items() if key not in implied}
        numbers = {key: number for number, key in enumerate([*stored, *implied])}
        edges = []
        for key, number in numbers.items():
            own_make = Key(key.name, MAKE) if key in implied else None
            if needs := [numbers[need] for need in self.graph.requires(key) if need != own_make]:
                edges.append([number, *needs])
        return {
            "action": self.action.value,
            "extra": dict(self.extra),
            "vertices": [[*key, each.verb, each.row, each.keep] for key, each in stored.items()],
            "edges": edges,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TraversalGraph:
        vertices = {Key(*each[:3]): Vertex(*each[3:]) for each in document["vertices"]}
        implied = _implied(vertices)
        keys = [*vertices, *implied]
        graph = Graph[Key]((key, None) for key in keys)
        for key in implied:
            graph.add(key, Key(key.name, MAKE))
        for number, *needs in document["edges"]:
            for need in needs:
                graph.add(keys[number], keys[need])
        action, extra = Action(document["action"]), document["extra"]
        return cls(action=action, graph=graph, vertices=vertices | implied, extra=extra)


def planned(
    stack: EngineStack, action: Action, old: TemplateSide, new: TemplateSide, **more: Any
) -> TraversalGraph:
    """Plan a traversal from one template to another, over the rows of the stack."""
    rows, leftovers = stack.rows, stack.leftovers
    if stack.partial is not None:
        names, new = stack.partial.names, stack.partial.stack
        old = old.only(names) if isinstance(old, Stack) else old
        rows = {name: rows[name] for name in names if name in rows}
        leftovers = {name: leftovers[name] for name in names if name in leftovers}
    existing = ExistingStack.of_rows(old, rows, leftovers)
    plan = plans.traversal(old, new, existing, rollback=action is Action.ROLLBACK)
    graph = plan.own()
    vertices = {}
    for key in graph.keys():  # noqa: SIM118  # no order
        planned_action, is_make = plan.actions[key], key.phase == MAKE
        record, verb = planned_action.record, planned_action.verb
        uuid = None if record is None else record.uuid
        row = stack.find_row(uuid, key.name)
        if is_make and row is not None and not row.is_current:
            verb = Verb.TAKE_BACK
        end = plan.actions.get(Key(key.name, CLEAN), planned_action) if is_make else planned_action
        vertices[key] = Vertex(verb.value, uuid, end.verb is Verb.KEEP)
    return TraversalGraph(action=action, graph=graph, vertices=vertices, **more)


def _implied(vertices: Mapping[Key, Vertex]) -> dict[Key, Vertex]:
    """Return the vertices that delete the rows of other vertices, if those are replaced."""
    return {
        Key(key.name, CLEAN): Vertex(Verb.DELETE.value, each.row, each.keep)
        for key, each in vertices.items()
        if key.phase == MAKE and each.verb in MAY_CHANGE
    }


def over_rows(stack: EngineStack, action: Action, **more: Any) -> TraversalGraph:
    """Put every resource of the template in order, for an action that changes no definition."""
    graph = Graph[Key]()
    for name in stack.template.definitions:
        graph.add(Key(name, MAKE))
        for required in stack.required(name):
            if required in stack.template.definitions:
                graph.add(Key(name, MAKE), Key(required, MAKE))
    if action is Action.SUSPEND:
        graph = graph.reverse()
    vertices = {key: Vertex(action.value) for key in graph.keys()}  # noqa: SIM118  # no order
    return TraversalGraph(action=action, graph=graph, vertices=vertices, **more)
