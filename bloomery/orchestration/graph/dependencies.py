"""The graph itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, KeysView
from typing import Generic, TypeVar

from bloomery.orchestration.graph.walk import Cycle, Walk, circle_among

K = TypeVar("K", bound=Hashable)


class Graph(Generic[K]):
    """Who requires whom.  None is no key: the edge (x, None) says that x is there.

    Asking about a key that is not there is a KeyError.
    """

    __slots__ = ("_required_by", "_requires")

    def __init__(self, edges: Iterable[tuple[K, K | None]] = ()) -> None:
        # Dictionaries with nothing in them are sets that remember who came first.
        self._requires: dict[K, dict[K, None]] = {}
        self._required_by: dict[K, dict[K, None]] = {}
        for requirer, required in edges:
            self.add(requirer, required)

    # ---------------------------------------------------------------------------- what changes it

    def add(self, requirer: K, required: K | None = None) -> None:
        """Register a key, or that it requires another; said twice, it is the same."""
        self._register(requirer)
        if required is not None:
            self._register(required)
            self._requires[requirer][required] = None
            self._required_by[required][requirer] = None

    def remove(self, key: K) -> None:
        """Take a key away, and every edge that it had."""
        for required in self._requires.pop(key):
            del self._required_by[required][key]
        for requirer in self._required_by.pop(key):
            del self._requires[requirer][key]

    def bypass(self, key: K) -> None:
        """Take a key away and let those who required it require what it required."""
        requirers, required = tuple(self._required_by[key]), tuple(self._requires[key])
        self.remove(key)
        for requirer in requirers:
            for each in required:
                self.add(requirer, each)

    def _register(self, key: K) -> None:
        if key not in self._requires:
            self._requires[key] = {}
            self._required_by[key] = {}

    # ---------------------------------------------------------------------------- what it can tell

    def keys(self) -> KeysView[K]:
        """Every key as it came in; asks no order, so that a cycle is no matter."""
        return self._requires.keys()

    def requires(self, key: K) -> KeysView[K]:
        """What ``key`` requires itself; a view, which follows later changes."""
        return self._requires[key].keys()

    def required_by(self, key: K) -> KeysView[K]:
        """Who requires ``key`` itself; a view, which follows later changes."""
        return self._required_by[key].keys()

    def edges(self) -> Iterator[tuple[K, K | None]]:
        """What makes the same graph again: (x, None) only for a key that has no edge at all."""
        for key, needs in self._requires.items():
            for required in needs:
                yield key, required
            if not needs and not self._required_by[key]:
                yield key, None

    def walk(self) -> Walk[K]:
        """Begin a way through the graph, from the keys that require nothing."""
        return Walk(self._requires, self._required_by)

    def order(self) -> list[K]:
        """Every key after all that it requires.  Raises Cycle, which names the keys."""
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

    # ------------------------------------------------------------------------- what is made of it

    def copy(self) -> Graph[K]:
        graph = Graph[K]()
        graph._requires = _copied(self._requires)
        graph._required_by = _copied(self._required_by)
        return graph

    def reverse(self) -> Graph[K]:
        """A copy in which every edge points the other way: the order of deletion."""
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
        """The order of creation.  Raises Cycle before the first key is handed out."""
        return iter(self.order())

    def __eq__(self, other: object) -> bool:
        return self._requires == other._requires if isinstance(other, Graph) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Graph({list(self.edges())!r})"


def _copied(sides: dict[K, dict[K, None]]) -> dict[K, dict[K, None]]:
    return {key: others.copy() for key, others in sides.items()}
