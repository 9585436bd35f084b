"""Circles among requirements: how one is found, and how it is told."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


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


def among(left: Mapping[K, object], requires: Mapping[K, Collection[K]]) -> tuple[K, ...] | None:
    """Find one circle among the keys that a walk could not reach; None if ``left`` is empty.

    Each of them needs another of them, or it would have been reached: following needs from any
    one must come back to where it was.  The key that stands first in ``requires`` is told first.
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
