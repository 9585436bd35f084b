"""The dependency graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, KeysView
from typing import Generic, TypeVar

from bloomery.orchestration.graph.walk import Cycle, Walk, circle_among

K = TypeVar("K", bound=Hashable)


class Graph(Generic[K]):
    """A dependency graph.  None is no key: the edge (x, None) only adds the key x.

    Methods raise KeyError for an unknown key.
    """

    __slots__ = ("_required_by", "_requires")

    def __init__(self, edges: Iterable[tuple[K, K | None]] = ()) -> None:
        # Dictionaries whose values are None serve as sets that keep the order of insertion.
        self._requires: dict[K, dict[K, None]] = {}
        self._required_by: dict[K, dict[K, None]] = {}
        for requirer, required in edges:
            self.add(requirer, required)

    # ----------------------------------------------------------------------------------- changes

    def add(self, requirer: K, required: K | None = None) -> None:
        """Add a key, or an edge to the key that it requires; a repetition changes nothing."""
        self._register(requirer)
        if required is not None:
            self._register(required)
            self._requires[requirer][required] = None
            self._required_by[required][requirer] = None

    def remove(self, key: K) -> None:
        """Remove a key and all its edges."""
        for required in self._requires.pop(key):
            del self._required_by[required][key]
        for requirer in self._required_by.pop(key):
            del self._requires[requirer][key]

    def bypass(self, key: K) -> None:
        """Remove a key, and add edges from its requirers to its requirements."""
        requirers, required = tuple(self._required_by[key]), tuple(self._requires[key])
        self.remove(key)
        for requirer in requirers:
            for each in required:
                self.add(requirer, each)

    def _register(self, key: K) -> None:
        if key not in self._requires:
            self._requires[key] = {}
            self._required_by[key] = {}

    # ------------------------------------------------------------------------------------- queries

    def keys(self) -> KeysView[K]:
        """Return all keys in the order of insertion; the graph may have cycles."""
        return self._requires.keys()

    def requires(self, key: K) -> KeysView[K]:
        """Return the direct requirements of ``key``: a view, which follows later changes."""
        return self._requires[key].keys()

    def required_by(self, key: K) -> KeysView[K]:
        """Return the direct requirers of ``key``: a view, which follows later changes."""
        return self._required_by[key].keys()

    def edges(self) -> Iterator[tuple[K, K | None]]:
        """Yield edges that make an equal graph; (x, None) only for a key without any edge."""
        for key, needs in self._requires.items():
            for required in needs:
                yield key, required
            if not needs and not self._required_by[key]:
                yield key, None

    def walk(self) -> Walk[K]:
        """Begin a walk through the graph, at the keys that require nothing."""
        return Walk(self._requires, self._required_by)

    def order(self) -> list[K]:
        """Return the keys, each after its requirements.  Raises Cycle, which names the keys."""
        walk, order = self.walk(), list[K]()
        ready = deque(walk.first)
        while ready:
            key = ready.popleft()
            order.append(key)
            ready.extend(walk.finish(key))
        circle = circle_among(walk.left, self._requires)
        if circle:
            raise Cycle(circle)
        return order

    # ------------------------------------------------------------------------------------- copies

    def copy(self) -> Graph[K]:
        graph = Graph[K]()
        graph._requires = _copied(self._requires)
        graph._required_by = _copied(self._required_by)
        return graph

    def reverse(self) -> Graph[K]:
        """Return a copy with all edges reversed: the order of deletion."""
        graph = Graph[K]()
        graph._requires = _copied(self._required_by)
        graph._required_by = _copied(self._requires)
        return graph

    # --------------------------------------------------------------------- as an ordinary container

    def __contains__(self, key: object) -> bool:
        return key in self._requires

    def __len__(self) -> int:
        return len(self._requires)

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in the order of creation.  Raises Cycle before the first key."""
        return iter(self.order())

    def __eq__(self, other: object) -> bool:
        return self._requires == other._requires if isinstance(other, Graph) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Graph({list(self.edges())!r})"


def _copied(sides: dict[K, dict[K, None]]) -> dict[K, dict[K, None]]:
    return {key: others.copy() for key, others in sides.items()}
