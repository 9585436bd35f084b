"""The arrangement of one cluster: boxes with edges in columns, others in rows, routes of edges.

Edges with a common source run together through the columns between.  So a box that all others
require has one trunk with branches, not a thousand parallel lines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bloomery.orchestration.drawing import layers, places

BORDER: Final = -1  # in place of a box: the edge comes from outside, or goes there

GAP: Final = 14.0  # between boxes of a column
_TRUNK_GAP: Final = 7.0
_TRUNK_WEIGHT: Final = 4.0  # prefers straight trunks to short edges
_COLUMN_GAP: Final = (46.0, 90.0)  # least and most, between columns
_COLUMN_GAP_PER_EDGE: Final = 1.2
_ASPECT: Final = 1.5  # preferred ratio of width to height
_LEAST_HEIGHT: Final = 330.0

Size = tuple[float, float]  # width, height
Run = tuple[float, float, float]  # a level piece of an edge: from x, to x, at y


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge within one cluster; ports are heights within the boxes that it joins."""

    left: int
    right: int
    trunk: Hashable
    left_port: float = 0.0
    right_port: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Top left corners by box, routes by link, the total size."""

    corners: Mapping[int, tuple[float, float]]
    ways: Sequence[Sequence[Run]]
    width: float
    height: float


def arranged(sizes: Sequence[Size], links: Sequence[Link], order: Sequence[int]) -> Arrangement:
    """Arrange the boxes 0, 1, ...; ``order`` has each box after the boxes left of it."""
    linked = {end for link in links for end in (link.left, link.right)} - {BORDER}
    columns = _Columns(sizes, links, [box for box in order if box in linked])
    rows = _rows(sizes, [box for box in range(len(sizes)) if box not in linked], columns)
    corners = columns.corners | rows
    return Arrangement(
        corners=corners,
        ways=[columns.way(link) for link in links],
        width=max((x + sizes[box][0] for box, (x, _) in corners.items()), default=0),
        height=max([columns.height, *(y + sizes[box][1] for box, (_, y) in corners.items())]),
    )


def _good_height(sizes: Sequence[Size], least_gap: float) -> float:
    """Return the height of a picture of these boxes with the preferred ratio."""
    area = sum((width + least_gap) * (height + GAP) for width, height in sizes)
    return max([_LEAST_HEIGHT, math.sqrt(area / _ASPECT), *(height + GAP for _, height in sizes)])


class _Columns:
    """The columns of the boxes with edges."""

    def __init__(self, sizes: Sequence[Size], links: Sequence[Link], order: Sequence[int]) -> None:
        self._sizes = sizes
        self._column = layers.columns(
            order,
            [(link.left, link.right) for link in links if BORDER not in (link.left, link.right)],
            {box: sizes[box][1] + GAP for box in order},
            _good_height([sizes[box] for box in order], _COLUMN_GAP[0]),
        )
        self._count = max(self._column.values(), default=-1) + 1
        self._cells = {box: places.Cell(height=sizes[box][1], gap=GAP) for box in order}
        self._trunks: dict[tuple[Hashable, int], int] = {}  # (trunk, column) to its cell
        self._segments: dict[places.Segment, None] = {}
        self._layers: list[list[int]] = [[] for _ in range(self._count)]
        for box in order:
            self._layers[self._column[box]].append(box)
        for link in links:
            self._lead(link)
        self._layers = [self._middled(layer) for layer in self._layers]
        self._place()

    def _span(self, link: Link) -> tuple[int, int]:
        left = -1 if link.left == BORDER else self._column[link.left]
        return left, self._count if link.right == BORDER else self._column[link.right]

    def _between(self, link: Link) -> range:
        left, right = self._span(link)
        return range(left + 1, right)

    def _lead(self, link: Link) -> None:
        """Give an edge a cell in each column between its ends, or let it share one."""
        stops = [] if link.left == BORDER else [(link.left, link.left_port)]
        stops += [(self._trunk(link.trunk, column), 0.0) for column in self._between(link)]
        stops += [] if link.right == BORDER else [(link.right, link.right_port)]
        for (left, left_port), (right, right_port) in itertools.pairwise(stops):
            self._segments[places.Segment(left, left_port, right, right_port)] = None

    def _trunk(self, trunk: Hashable, column: int) -> int:
        cell = self._trunks.get((trunk, column))
        if cell is None:
            cell = self._trunks[trunk, column] = len(self._sizes) + len(self._trunks)
            self._cells[cell] = places.Cell(height=0, gap=_TRUNK_GAP, weight=_TRUNK_WEIGHT)
            self._layers[column].append(cell)
        return cell

    def _middled(self, layer: Sequence[int]) -> list[int]:
        """Put the trunks in the middle of the boxes, or a wide fan would look like stairs."""
        boxes = [cell for cell in layer if cell < len(self._sizes)]
        half = len(boxes) // 2
        return [*boxes[:half], *layer[len(boxes) :], *boxes[half:]]

    def _place(self) -> None:
        pairs = [(each.left, each.right) for each in self._segments]
        self._layers = layers.Crossings(self._layers, pairs).reduce()
        self._top = places.tops(self._layers, self._cells, list(self._segments))
        self._starts, self._ends = self._abscissas(pairs)
        self.corners = {
            box: (self._starts[column], self._top[box]) for box, column in self._column.items()
        }
        self.width = self._ends[-1] if self._ends else 0.0
        self.height = max(
            (self._top[cell] + each.height for cell, each in self._cells.items()), default=0.0
        )

    def _abscissas(self, pairs: Sequence[layers.Pair]) -> tuple[list[float], list[float]]:
        """Return where each column starts and ends; more edges between two get more room."""
        leaving = [0] * self._count
        at = {cell: number for number, layer in enumerate(self._layers) for cell in layer}
        for left, _right in pairs:
            leaving[at[left]] += 1
        starts, ends, x = list[float](), list[float](), 0.0
        for column, layer in enumerate(self._layers):
            starts.append(x)
            widths = [self._sizes[cell][0] for cell in layer if cell < len(self._sizes)]
            ends.append(x + max(widths, default=0))
            x = ends[-1] + min(
                _COLUMN_GAP[0] + _COLUMN_GAP_PER_EDGE * leaving[column], _COLUMN_GAP[1]
            )
        return starts, ends

    def way(self, link: Link) -> list[Run]:
        """Return the level pieces of an edge, from left to right; curves join them."""
        way: list[Run] = []
        if link.left != BORDER:
            x, top = self.corners[link.left]
            end = self._ends[self._column[link.left]]
            way.append((x + self._sizes[link.left][0], end, top + link.left_port))
        for column in self._between(link):
            y = self._top[self._trunks[link.trunk, column]]
            way.append((self._starts[column], self._ends[column], y))
        if link.right != BORDER:
            x, top = self.corners[link.right]
            way.append((x, x, top + link.right_port))
        return way


def _rows(
    sizes: Sequence[Size], boxes: Sequence[int], columns: _Columns
) -> dict[int, tuple[float, float]]:
    """Return the corners of boxes without edges, row by row, below the columns."""
    room = max(columns.width, _good_height([sizes[box] for box in boxes], GAP) * _ASPECT)
    corners: dict[int, tuple[float, float]] = {}
    x, y, lowest = 0.0, columns.height + (2 * GAP if columns.corners else 0), 0.0
    for box in boxes:
        width, height = sizes[box]
        if x and x + width > room:
            x, y, lowest = 0.0, y + lowest + GAP, 0.0
        corners[box] = (x, y)
        x += width + GAP
        lowest = max(lowest, height)
    return corners
