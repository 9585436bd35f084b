"""A way through a graph, one finished key at a time."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Walk(Generic[K]):
    """Counts what each key still waits for, so that nobody ever looks through all who wait.

    A whole walk costs as much as the graph has keys and edges.  The graph must not change
    meanwhile::

        walk = needs.walk()
        ready = list(walk.first)
        while ready:
            ready += walk.finish(ready.pop())
        walk.left  # empty, unless some keys need each other
    """

    def __init__(
        self, requires: Mapping[K, Collection[K]], required_by: Mapping[K, Collection[K]]
    ) -> None:
        self._required_by = required_by
        self.left = {key: len(needs) for key, needs in requires.items()}
        self.first = [key for key, unmet in self.left.items() if not unmet]

    def finish(self, key: K) -> list[K]:
        """Take ``key`` off the graph, once; return the keys that waited for nothing else."""
        left = self.left
        del left[key]
        ready = []
        for dependant in self._required_by[key]:
            left[dependant] -= 1
            if not left[dependant]:
                ready.append(dependant)
        return ready
