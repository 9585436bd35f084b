"""The layout of pictures and of the pages' graph: boxes in columns, in which few edges cross.

Boxes are numbers from 0; an edge is a pair (left, right).
"""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

Pair = tuple[int, int]

_SWEEPS: Final = 16
_PATIENCE: Final = 4  # sweeps without fewer crossings


def arranged(
    heights: Sequence[float], pairs: Sequence[Pair], limit: float
) -> tuple[list[list[int]], dict[Pair, int]]:
    """Return the columns, each from top to bottom, and the cells of the edges that pass a column.

    A column is right of the columns of its requirements, and at most ``limit`` high.  The edges of
    one box share a cell in each column that they pass; its key is (box, column).  Cells are numbers
    after those of the boxes.
    """
    size = len(heights)
    order = _in_order(size, pairs)
    column = _columns(order, pairs, heights, limit)
    layers: list[list[int]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for box in order:
        layers[column[box]].append(box)
    boxes = [len(layer) for layer in layers]
    cells: dict[Pair, int] = {}
    segments: dict[Pair, None] = {}
    for left, right in pairs:
        passed = range(column[left] + 1, column[right])
        for at in passed:
            if (left, at) not in cells:  # in the middle, or a wide fan would look like stairs
                cells[left, at] = size + len(cells)
                layers[at].insert(boxes[at] // 2, cells[left, at])
        stops = (left, *(cells[left, at] for at in passed), right)
        segments |= dict.fromkeys(itertools.pairwise(stops))
    return _Crossings(layers, segments).reduce(), cells


def _in_order(size: int, pairs: Iterable[Pair]) -> list[int]:
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


def _columns(
    order: Sequence[int], pairs: Sequence[Pair], heights: Sequence[float], limit: float
) -> dict[int, int]:
    """Return the column of each box.

    A box that requires nothing moves next to the first that requires it, if there is room.
    """
    column = dict.fromkeys(order, 0)
    rights: dict[int, list[int]] = {box: [] for box in order}
    for left, right in pairs:
        rights[left].append(right)
    filled: dict[int, float] = {}
    for box in order:
        while filled.get(column[box], 0) and filled[column[box]] + heights[box] > limit:
            column[box] += 1
        filled[column[box]] = filled.get(column[box], 0) + heights[box]
        for right in rights[box]:
            column[right] = max(column[right], column[box] + 1)
    required = {right for _, right in pairs}
    for box in order:
        near = min((column[right] for right in rights[box]), default=0) - 1
        has_room = filled.get(near, 0) + heights[box] <= limit
        if has_room and near > column[box] and box not in required:
            filled[column[box]] -= heights[box]
            filled[near] = filled.get(near, 0) + heights[box]
            column[box] = near
    return column


class _Crossings:
    """Orders within columns; ``segments`` join cells of neighbouring columns."""

    def __init__(self, layers: Sequence[Sequence[int]], segments: Iterable[Pair]) -> None:
        self.layers = [list(layer) for layer in layers]
        self.lefts: dict[int, list[int]] = {cell: [] for layer in layers for cell in layer}
        self.rights: dict[int, list[int]] = {cell: [] for layer in layers for cell in layer}
        for left, right in segments:
            self.rights[left].append(right)
            self.lefts[right].append(left)
        self.place = {cell: at for layer in layers for at, cell in enumerate(layer)}

    def reduce(self) -> list[list[int]]:
        """Sweep to and fro, sort cells by the mean of their neighbours, and return the best."""
        best, kept = self.count(), [list(layer) for layer in self.layers]
        idle = 0
        for sweep in range(_SWEEPS):
            if not best or idle == _PATIENCE:
                break
            is_forward = sweep % 2 == 0
            neighbours = self.lefts if is_forward else self.rights
            for layer in self.layers if is_forward else reversed(self.layers):
                layer.sort(key=lambda cell: self._middle(cell, neighbours[cell]))
                self.place |= {cell: at for at, cell in enumerate(layer)}
            crossings = self.count()
            idle = 0 if crossings < best else idle + 1
            if crossings < best:
                best, kept = crossings, [list(layer) for layer in self.layers]
        return kept

    def count(self) -> int:
        """Count the crossings between each column and the next: pairs in the wrong order."""
        crossings = 0
        for layer in self.layers:
            seen = list[int]()
            for cell in layer:
                places = sorted(self.place[right] for right in self.rights[cell])
                crossings += sum(len(seen) - bisect.bisect_right(seen, place) for place in places)
                for place in places:
                    bisect.insort(seen, place)
        return crossings

    def _middle(self, cell: int, neighbours: Sequence[int]) -> float:
        if not neighbours:
            return self.place[cell]
        return sum(self.place[each] for each in neighbours) / len(neighbours)
