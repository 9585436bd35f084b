"""A graph of dependencies: its vertices and edges, their order, and cycles.

A key is anything hashable; an edge is a pair (requirer, required).  Results keep the order of
insertion, so that the same input is always walked, printed and drawn alike.  No function recurses
or reads an edge twice: ten thousand keys are an ordinary graph::

    needs = Graph([("server", "port"), ("port", "net"), ("volume", None)])
    list(needs)  # ["net", "volume", "port", "server"]: what is required comes first
    list(needs.reverse())  # the order of deletion

This module imports nothing else of Bloomery, and defines its own error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, KeysView, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Walk(Generic[K]):
    """Counts the unmet requirements of each key, so that no step searches all waiting keys.

    The time of a whole walk is linear in keys and edges.  The graph must not change meanwhile::

        walk = needs.walk()
        ready = list(walk.first)
        while ready:
            ready += walk.finish(ready.pop())
        walk.unmet  # empty, unless some keys need each other
    """

    def __init__(
        self, requires: Mapping[K, Collection[K]], required_by: Mapping[K, Collection[K]]
    ) -> None:
        self._required_by = required_by
        self.unmet = {key: len(needs) for key, needs in requires.items()}
        self.first = [key for key, count in self.unmet.items() if not count]

    def finish(self, key: K) -> list[K]:
        """Take ``key`` off the graph, once; return the keys that waited for nothing else."""
        unmet = self.unmet
        del unmet[key]
        ready = []
        for dependant in self._required_by[key]:
            unmet[dependant] -= 1
            if not unmet[dependant]:
                ready.append(dependant)
        return ready


class Cycle(Exception):
    """Some keys need each other.

    ``keys`` holds one circle: each needs the next, and the last needs the first.
    ``names`` is the same as text, closed, ready for a message: ["a", "b", "a"].
    """

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self.keys = tuple(keys)
        super().__init__(self.keys)

    @property
    def names(self) -> list[str]:
        return [str(key) for key in (*self.keys, *self.keys[:1])]

    def __str__(self) -> str:
        return " -> ".join(self.names)


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
        if not walk.unmet:
            return order
        # Each of these keys requires another one of them: following requirements must return to a
        # visited key.  The cycle begins with the key that was added first.
        key, seen = next(iter(walk.unmet)), dict[K, int]()
        while key not in seen:
            seen[key] = len(seen)
            key = next(need for need in self._requires[key] if need in walk.unmet)
        circle = list(seen)[seen[key] :]
        inside = set(circle)
        at = circle.index(next(each for each in self._requires if each in inside))
        raise Cycle((*circle[at:], *circle[:at]))

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
