"""Pictures: boxes, boxes inside boxes, and edges; their places and routes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bloomery.orchestration.drawing import layers

OUTSIDE: Final = -1  # the number of the parent of the outermost boxes
PADDING: Final = 16.0  # within a cluster
HEADER: Final = 30.0  # of a cluster: its name
_GAP: Final = 14.0  # between boxes of a column
_PASS_GAP: Final = 7.0  # below an edge that passes a column
_COLUMN_GAP: Final = (46.0, 90.0)  # least and most, between columns
_COLUMN_GAP_PER_EDGE: Final = 1.2
_ASPECT: Final = 1.5  # preferred ratio of width to height
_LEAST_HEIGHT: Final = 330.0

Size = tuple[float, float]  # width, height
Run = tuple[float, float, float]  # a level piece of an edge: from x, to x, at y


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node, or a cluster if ``inside`` is not None."""

    key: str  # unique in its picture
    name: str
    kind: str = ""
    inside: Sequence[Box] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """``edges`` are pairs of keys (requirer, required) of boxes in the same cluster."""

    title: str = ""
    boxes: Sequence[Box] = field(default_factory=tuple)
    edges: Iterable[tuple[str, str]] = field(default_factory=tuple)


class Tree:
    """The boxes of a picture, numbered so that each comes after its parent.

    Raises ValueError for a duplicate key, and for an edge with an unknown key or across a border.
    """

    def __init__(self, picture: Picture) -> None:
        self.boxes: list[Box] = []
        self.parent: list[int] = []
        self.depth: list[int] = []
        self.inside: dict[int, list[int]] = {OUTSIDE: []}
        self.number: dict[str, int] = {}
        todo = [(box, OUTSIDE) for box in reversed(picture.boxes)]
        while todo:
            box, parent = todo.pop()
            number = len(self.boxes)
            if self.number.setdefault(box.key, number) != number:
                raise ValueError(f"cannot draw {box.key!r} twice: give each box a key of its own")
            self.boxes.append(box)
            self.parent.append(parent)
            self.depth.append(0 if parent == OUTSIDE else self.depth[parent] + 1)
            self.inside[parent].append(number)
            if box.inside is not None:
                self.inside[number] = []
                todo += [(inner, number) for inner in reversed(box.inside)]
        self.edges: list[tuple[int, int]] = []  # (required, requirer), each once
        for pair in dict.fromkeys(picture.edges):
            try:
                requirer, required = (self.number[key] for key in pair)
            except KeyError as exc:
                raise ValueError(f"cannot draw an edge to {exc}: no box has this key") from exc
            if self.parent[required] != self.parent[requirer]:
                raise ValueError(
                    f"cannot draw an edge from {pair[1]!r} to {pair[0]!r}: they are in different "
                    "clusters"
                )
            self.edges.append((required, requirer))

    def is_cluster(self, number: int) -> bool:
        return number in self.inside


@dataclass(frozen=True, slots=True)
class Place:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Edge:
    """``runs``: level pieces from left to right; curves join them."""

    required: int
    requirer: int
    runs: Sequence[Run]


@dataclass(slots=True)
class Layout:
    places: dict[int, Place]
    edges: list[Edge]
    width: float
    height: float


def laid_out(tree: Tree, sizes: Mapping[int, Size], headers: Mapping[int, float]) -> Layout:
    """Lay out the boxes, from the innermost cluster out.

    ``sizes``: of nodes; ``headers``: widths of the names of clusters.
    """
    size_of, inner = dict(sizes), dict[int, Layout]()
    pairs: dict[int, list[layers.Pair]] = {cluster: [] for cluster in tree.inside}
    for left, right in tree.edges:
        pairs[tree.parent[left]].append((left, right))
    for cluster in sorted(tree.inside, reverse=True):  # inner ones have higher numbers
        inner[cluster] = _arranged(tree.inside[cluster], pairs[cluster], size_of)
        if cluster != OUTSIDE:
            width = max(inner[cluster].width, headers[cluster]) + 2 * PADDING
            size_of[cluster] = width, inner[cluster].height + HEADER + PADDING
    whole = inner.pop(OUTSIDE)
    for cluster in sorted(inner):
        part, outer = inner[cluster], whole.places[cluster]
        x, y = outer.x + PADDING, outer.y + HEADER
        for box, at in part.places.items():
            whole.places[box] = Place(x + at.x, y + at.y, at.width, at.height)
        for edge in part.edges:
            runs = [(x + start, x + end, y + top) for start, end, top in edge.runs]
            whole.edges.append(Edge(edge.required, edge.requirer, runs))
    return whole


def _arranged(
    boxes: Sequence[int], pairs: Sequence[layers.Pair], size_of: Mapping[int, Size]
) -> Layout:
    """Lay out one cluster: columns side by side, each in the middle of the height.

    Edges with a common source run together through the columns between.  So a box that all others
    require has one trunk with branches, not a thousand parallel lines.
    """
    local = {box: at for at, box in enumerate(boxes)}
    sizes = [size_of[box] for box in boxes]
    heights = [height + _GAP for _, height in sizes]
    area = sum((width + _COLUMN_GAP[0]) * (height + _GAP) for width, height in sizes)
    limit = max([_LEAST_HEIGHT, math.sqrt(area / _ASPECT), *heights])
    edges = [(local[left], local[right]) for left, right in pairs]
    columns, passing = layers.arranged(heights, edges, limit)

    def height_of(cell: int) -> float:
        return heights[cell] if cell < len(boxes) else _PASS_GAP

    height = max((sum(map(height_of, column)) for column in columns), default=0.0)
    column_of = {cell: at for at, column in enumerate(columns) for cell in column}
    leaving = [0] * len(columns)
    for left, _ in edges:
        leaving[column_of[left]] += 1
    top, starts, ends, x = dict[int, float](), list[float](), list[float](), 0.0
    for at, column in enumerate(columns):
        y = (height - sum(map(height_of, column))) / 2
        for cell in column:
            top[cell] = y
            y += height_of(cell)
        starts.append(x)
        ends.append(x + max((sizes[cell][0] for cell in column if cell < len(boxes)), default=0))
        x = ends[-1] + min(_COLUMN_GAP[0] + _COLUMN_GAP_PER_EDGE * leaving[at], _COLUMN_GAP[1])

    def runs(left: int, right: int) -> list[Run]:
        column, width = column_of[left], sizes[left][0]
        passed = range(column + 1, column_of[right])
        start, end = starts[column] + width, starts[column_of[right]]
        return [
            (start, ends[column], top[left] + sizes[left][1] / 2),
            *((starts[at], ends[at], top[passing[left, at]]) for at in passed),
            (end, end, top[right] + sizes[right][1] / 2),
        ]

    return Layout(
        places={
            box: Place(starts[column_of[at]], top[at], *sizes[at]) for box, at in local.items()
        },
        edges=[Edge(*pair, runs(*edge)) for pair, edge in zip(pairs, edges, strict=True)],
        width=ends[-1] if ends else 0.0,
        height=max(height - _GAP, 0.0),
    )
