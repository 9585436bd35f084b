"""The layout of all clusters, from the innermost out: places of boxes and routes of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bloomery.orchestration.drawing import layers, levels
from bloomery.orchestration.drawing.levels import BORDER, Arrangement, Link, Run, Size
from bloomery.orchestration.drawing.picture import OUTSIDE, Tree

PADDING: Final = 16.0  # within a cluster
HEADER: Final = 30.0  # of a cluster: its name


@dataclass(frozen=True, slots=True)
class Place:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Edge:
    """``runs``: level pieces from left to right; ``turned``: the required box is on the right."""

    required: int
    requirer: int
    runs: Sequence[Run]
    turned: bool


@dataclass(slots=True)
class Layout:
    places: dict[int, Place]
    edges: list[Edge]
    width: float
    height: float


Name = tuple[str, int]  # of a link in a cluster


class _Joint(NamedTuple):
    """A link between boxes, and the names of the links that continue its edge inside them."""

    left: int
    right: int
    trunk: Name  # also of the link within ``left`` that leads to its border
    entry: Name  # of the link within ``right`` that begins at its border


@dataclass(slots=True)
class _Level:
    """The state of one cluster during the layout."""

    links: dict[Name, _Joint] = field(default_factory=dict)
    arrangement: Arrangement | None = None
    ports: dict[Name, float] = field(default_factory=dict)  # where an edge crosses the border


@dataclass(frozen=True, slots=True)
class _Passage:
    """An edge as the names of its links, from the innermost left cluster to the innermost right."""

    required: int
    requirer: int
    turned: bool
    parts: Sequence[tuple[int, Name]]  # cluster, link


def laid_out(tree: Tree, sizes: Mapping[int, Size], headers: Mapping[int, float]) -> Layout:
    """Lay out the boxes; ``sizes``: of nodes, ``headers``: widths of the names of clusters."""
    return _Work(tree, sizes, headers).layout()


class _Work:
    def __init__(self, tree: Tree, sizes: Mapping[int, Size], headers: Mapping[int, float]) -> None:
        self.tree = tree
        self.sizes = dict(sizes)
        self.headers = headers
        self.levels = {cluster: _Level() for cluster in tree.inside}
        self.orders: dict[int, list[int]] = {}  # by cluster: its boxes, counted from 0
        self.passages = self._passages()

    def layout(self) -> Layout:
        for cluster in sorted(self.levels, reverse=True):  # inner ones have higher numbers
            self._arrange(cluster)
        places = self._places()
        outside = self.levels[OUTSIDE].arrangement
        assert outside is not None
        return Layout(places, self._edges(places), outside.width, outside.height)

    def _passages(self) -> list[_Passage]:
        ways = {pair: self.tree.ways_up(*pair) for pair in self.tree.edges}
        routes = {pair: way for pair, way in ways.items() if way is not None}
        rank = self._ranks([(ups[-1], downs[-1]) for ups, downs in routes.values()])
        passages = []
        for number, ((required, requirer), (ups, downs)) in enumerate(routes.items()):
            turned = rank[ups[-1]] > rank[downs[-1]]
            left, right = (downs, ups) if turned else (ups, downs)
            parts = self._parts(number, left, right)
            passages.append(_Passage(required, requirer, turned, parts))
        return passages

    def _ranks(self, pairs: Sequence[layers.Pair]) -> dict[int, int]:
        """Order the boxes of each cluster; return the place of each box."""
        tree, rank = self.tree, dict[int, int]()
        local = {box: at for boxes in tree.inside.values() for at, box in enumerate(boxes)}
        by_cluster: dict[int, list[layers.Pair]] = {cluster: [] for cluster in tree.inside}
        for left, right in pairs:
            by_cluster[tree.parent[left]].append((local[left], local[right]))
        for cluster, boxes in tree.inside.items():
            order = layers.in_order(len(boxes), by_cluster[cluster])
            self.orders[cluster] = order
            rank.update((boxes[box], place) for place, box in enumerate(order))
        return rank

    def _parts(
        self, number: int, left: Sequence[int], right: Sequence[int]
    ) -> list[tuple[int, Name]]:
        """Enter the links of one edge: out of clusters, across, into others."""
        out, into = ("out", left[0]), ("in", right[0])
        parts = [self._enter(out, _Joint(box, BORDER, out, into)) for box in left[:-1]]
        parts.append(self._enter(("across", number), _Joint(left[-1], right[-1], out, into)))
        parts += [self._enter(into, _Joint(BORDER, box, into, into)) for box in right[-2::-1]]
        return parts

    def _enter(self, name: Name, joint: _Joint) -> tuple[int, Name]:
        cluster = self.tree.parent[joint.right if joint.left == BORDER else joint.left]
        self.levels[cluster].links[name] = joint
        return cluster, name

    def _arrange(self, cluster: int) -> None:
        boxes, level = self.tree.inside[cluster], self.levels[cluster]
        local = {box: at for at, box in enumerate(boxes)} | {BORDER: BORDER}
        links = [
            Link(
                left=local[joint.left],
                right=local[joint.right],
                trunk=joint.trunk,
                left_port=self._port(joint.left, joint.trunk),
                right_port=self._port(joint.right, joint.entry),
            )
            for joint in level.links.values()
        ]
        level.arrangement = levels.arranged(
            [self.sizes[box] for box in boxes], links, self.orders[cluster]
        )
        for name, way in zip(level.links, level.arrangement.ways, strict=True):
            if name[0] != "across":
                level.ports[name] = way[-1 if name[0] == "out" else 0][2] + HEADER
        if cluster != OUTSIDE:
            width = max(level.arrangement.width, self.headers[cluster]) + 2 * PADDING
            self.sizes[cluster] = (width, level.arrangement.height + HEADER + PADDING)

    def _port(self, box: int, name: Name) -> float:
        """Return the height within a box at which an edge leaves or enters it."""
        if box == BORDER:
            return 0.0
        inner = self.levels.get(box)
        if inner is not None and name in inner.ports:
            return inner.ports[name]
        return self.sizes[box][1] / 2

    def _origin(self, places: Mapping[int, Place], cluster: int) -> tuple[float, float]:
        if cluster == OUTSIDE:
            return 0.0, 0.0
        return places[cluster].x + PADDING, places[cluster].y + HEADER

    def _places(self) -> dict[int, Place]:
        places: dict[int, Place] = {}
        for cluster, boxes in self.tree.inside.items():  # outer ones come first
            arrangement = self.levels[cluster].arrangement
            assert arrangement is not None
            left, top = self._origin(places, cluster)
            for at, box in enumerate(boxes):
                x, y = arrangement.corners[at]
                places[box] = Place(left + x, top + y, *self.sizes[box])
        return places

    def _edges(self, places: Mapping[int, Place]) -> list[Edge]:
        ways: dict[tuple[int, Name], list[Run]] = {}
        for cluster, level in self.levels.items():
            assert level.arrangement is not None
            left, top = self._origin(places, cluster)
            for name, way in zip(level.links, level.arrangement.ways, strict=True):
                ways[cluster, name] = [(left + x, left + to, top + y) for x, to, y in way]
        return [
            Edge(
                each.required,
                each.requirer,
                [run for part in each.parts for run in ways[part]],
                each.turned,
            )
            for each in self.passages
        ]
