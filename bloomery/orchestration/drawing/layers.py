"""A column for each box, and an order within the columns in which few edges cross.

Boxes are numbers from 0.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

Pair = tuple[int, int]  # (left, right)

_SWEEPS: Final = 16
_PATIENCE: Final = 4  # sweeps without fewer crossings


def in_order(size: int, pairs: Iterable[Pair]) -> list[int]:
    """Return the boxes, each after the boxes left of it; cycles begin at the lowest number."""
    rights: list[list[int]] = [[] for _ in range(size)]
    lefts = [0] * size
    for left, right in pairs:
        rights[left].append(right)
        lefts[right] += 1
    ready = deque(box for box in range(size) if not lefts[box])
    seen, order = [False] * size, list[int]()
    rest = iter(range(size))
    while len(order) < size:
        box = ready.popleft() if ready else next(each for each in rest if not seen[each])
        if seen[box]:
            continue
        seen[box] = True
        order.append(box)
        for right in rights[box]:
            lefts[right] -= 1
            if not lefts[right]:
                ready.append(right)
    return order


def columns(
    order: Sequence[int], pairs: Sequence[Pair], heights: Mapping[int, float], limit: float
) -> dict[int, int]:
    """Return the column of each box, right of its requirements; ``limit``: height of a column."""
    column = dict.fromkeys(order, 0)
    rights: dict[int, list[int]] = {box: [] for box in order}
    required: set[int] = set()
    for left, right in pairs:
        rights[left].append(right)
        required.add(right)
    filled: dict[int, float] = {}
    for box in order:
        while filled.get(column[box], 0) and filled[column[box]] + heights[box] > limit:
            column[box] += 1
        filled[column[box]] = filled.get(column[box], 0) + heights[box]
        for right in rights[box]:
            column[right] = max(column[right], column[box] + 1)
    _draw_near(column, [box for box in order if box not in required], rights, heights, limit)
    return column


def _draw_near(
    column: dict[int, int],
    firsts: Sequence[int],
    rights: Mapping[int, Sequence[int]],
    heights: Mapping[int, float],
    limit: float,
) -> None:
    """Move boxes that require nothing next to the first that requires them, if there is room."""
    filled: dict[int, float] = {}
    for box, at in column.items():
        filled[at] = filled.get(at, 0) + heights[box]
    for box in firsts:
        near = min((column[right] for right in rights[box]), default=0) - 1
        if near > column[box] and filled.get(near, 0) + heights[box] <= limit:
            filled[column[box]] -= heights[box]
            filled[near] = filled.get(near, 0) + heights[box]
            column[box] = near


class Crossings:
    """Orders within columns; ``segments`` join cells of neighbouring columns."""

    def __init__(self, layers: Sequence[Sequence[int]], segments: Iterable[Pair]) -> None:
        self.layers = [list(layer) for layer in layers]
        self.lefts: dict[int, list[int]] = {cell: [] for layer in layers for cell in layer}
        self.rights: dict[int, list[int]] = {cell: [] for layer in layers for cell in layer}
        for left, right in segments:
            self.rights[left].append(right)
            self.lefts[right].append(left)
        self.place: dict[int, int] = {}
        for layer in self.layers:
            self._settle(layer)

    def reduce(self) -> list[list[int]]:
        """Sweep to and fro, sort cells by the mean of their neighbours, and return the best."""
        best, kept = self.count(), [list(layer) for layer in self.layers]
        idle = 0
        for sweep in range(_SWEEPS):
            if not best or idle == _PATIENCE:
                break
            self._sweep(forward=sweep % 2 == 0)
            crossings = self.count()
            idle = 0 if crossings < best else idle + 1
            if crossings < best:
                best, kept = crossings, [list(layer) for layer in self.layers]
        return kept

    def count(self) -> int:
        return sum(map(self._between, self.layers))

    def _between(self, layer: Sequence[int]) -> int:
        """Count the crossings between a column and the next: pairs in the wrong order."""
        crossings, seen = 0, list[int]()
        for cell in layer:
            places = sorted(self.place[right] for right in self.rights[cell])
            crossings += sum(len(seen) - bisect.bisect_right(seen, place) for place in places)
            for place in places:
                bisect.insort(seen, place)
        return crossings

    def _sweep(self, *, forward: bool) -> None:
        neighbours = self.lefts if forward else self.rights
        for layer in self.layers if forward else reversed(self.layers):
            layer.sort(key=lambda cell: self._middle(cell, neighbours[cell]))
            self._settle(layer)

    def _middle(self, cell: int, neighbours: Sequence[int]) -> float:
        if not neighbours:
            return self.place[cell]
        return sum(self.place[each] for each in neighbours) / len(neighbours)

    def _settle(self, layer: Sequence[int]) -> None:
        for place, cell in enumerate(layer):
            self.place[cell] = place
