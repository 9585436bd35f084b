"""A walk through a graph, one finished key at a time, and the cycle that may end it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Walk(Generic[K]):
    """Counts the unmet requirements of each key, so that no step searches all waiting keys.

    The time of a whole walk is linear in keys and edges.  The graph must not change meanwhile::

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


def circle_among(
    left: Mapping[K, object], requires: Mapping[K, Collection[K]]
) -> tuple[K, ...] | None:
    """Return one cycle among the keys that a walk could not reach; None if ``left`` is empty.

    Each of these keys requires another one of them, so that following requirements must return to
    a visited key.  The cycle begins with the key that is first in ``requires``.
    """
    if not left:
        return None
    key, seen = next(iter(left)), dict[K, int]()
    while key not in seen:
        seen[key] = len(seen)
        key = next(need for need in requires[key] if need in left)
    circle = list(seen)[seen[key] :]
    inside = set(circle)
    turn = circle.index(next(each for each in requires if each in inside))
    return (*circle[turn:], *circle[:turn])
