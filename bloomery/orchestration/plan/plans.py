"""A plan: what is done, and what must be done before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass, field

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.actions import BATCH, CHANGES, MAKE, Action, Key, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``graph`` may hold keys without an action: no-op vertices, which are done when reached.

    ``outputs``  by name: those created, updated, deleted by the template itself
    ``differs``  whether anything differs, though no resource may change
    """

    graph: Graph[Key]
    actions: Mapping[Key, Action]
    outputs: Mapping[str, Verb] = field(default_factory=dict)
    differs: bool = False

    def __iter__(self) -> Iterator[tuple[Key, Action]]:
        """Yield what is done in an order that may be walked."""
        for key in self.graph.order():
            if key in self.actions:
                yield key, self.actions[key]

    def requires(self, key: Key) -> KeysView[Key]:
        return self.graph.requires(key)

    def own(self) -> Graph[Key]:
        """The graph without no-op vertices and members: what the stack does itself, in its order.

        Members are their group's business; whoever walks a stack begins a resource in the turn in
        which nothing stands before it, and not a turn later because of a no-op.
        """
        made = self.graph.copy()
        for key in self.graph.order():  # leaves first, so that a no-op has few keys before it
            if key not in self.actions or "/" in key.name or key.phase == BATCH:
                made.bypass(key)
        return made

    def of(self, name: str) -> list[Action]:
        """All that is done to one resource."""
        return [action for key, action in self if key.name == name]

    def verb(self, name: str) -> Verb:
        """What becomes of a resource of the new template."""
        return self.actions[Key(name, MAKE)].verb

    @property
    def changes(self) -> dict[Key, Action]:
        """All but what stays as it is; empty for a template that asks for nothing new."""
        return {key: action for key, action in self if action.verb in CHANGES}

    @property
    def refused(self) -> dict[Key, Action]:
        return {key: each for key, each in self.changes.items() if each.verb is Verb.REFUSE}

    def counts(self) -> Counter[Verb]:
        return Counter(action.verb for action in self.actions.values())
