"""The position of each cell in its column: in the given order, with gaps, near its neighbours."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SWEEPS: Final = 10
EMPTY: Final = 28.0  # the most height of a stripe without cells and edges
_LOOSE: Final = 0.05  # weight of a cell without neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    height: float
    gap: float  # to the next one below
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of an edge between neighbouring columns; ports are heights within the cells."""

    left: int
    left_port: float
    right: int
    right_port: float


def tops(
    layers: Sequence[Sequence[int]], cells: Mapping[int, Cell], segments: Sequence[Segment]
) -> dict[int, float]:
    """Return the top of each cell; the highest has 0, and high empty stripes are removed."""
    pulls: tuple[dict[int, list[tuple[int, float]]], ...] = ({}, {})
    for each in segments:
        drop = each.left_port - each.right_port
        pulls[0].setdefault(each.right, []).append((each.left, drop))
        pulls[1].setdefault(each.left, []).append((each.right, -drop))
    top = _stacked(layers, cells)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            _settle(layer, cells, top, pulls[not forward])
    return _closed_up(cells, top, segments) if top else {}


def _stacked(layers: Sequence[Sequence[int]], cells: Mapping[int, Cell]) -> dict[int, float]:
    """Return the tops with each column stacked up, its middle at 0."""
    top = {}
    for layer in layers:
        at = -sum(cells[cell].height + cells[cell].gap for cell in layer) / 2
        for cell in layer:
            top[cell] = at
            at += cells[cell].height + cells[cell].gap
    return top


def _closed_up(
    cells: Mapping[int, Cell], top: Mapping[int, float], segments: Sequence[Segment]
) -> dict[int, float]:
    """Move up the cells below an empty stripe: parts without a common edge drift apart."""
    spans = [(at, at + cells[cell].height) for cell, at in top.items()]
    for each in segments:
        ends = (top[each.left] + each.left_port, top[each.right] + each.right_port)
        spans.append((min(ends), max(ends)))
    spans.sort()
    highest, lowest = spans[0]
    cuts, lifts = [-math.inf], [highest]  # from where on, how far up
    for start, end in spans:
        if start > lowest + EMPTY:
            cuts.append(start)
            lifts.append(lifts[-1] + start - lowest - EMPTY)
        lowest = max(lowest, end)
    return {cell: at - lifts[bisect.bisect_right(cuts, at) - 1] for cell, at in top.items()}


def _settle(
    layer: Sequence[int],
    cells: Mapping[int, Cell],
    top: dict[int, float],
    pulls: Mapping[int, Sequence[tuple[int, float]]],
) -> None:
    """Move the cells of one column as near to their neighbours as order and heights allow.

    Least squares with fixed order (pool adjacent violators): cells that would overlap join in a
    block, which stands at the weighted mean of their target positions.
    """
    blocks: list[tuple[float, float, int]] = []  # position, weight, number of cells
    stacked = 0.0
    for cell in layer:
        target, weight = _target(cell, cells[cell], top, pulls.get(cell, ()))
        block = (target - stacked, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            block = _joined(blocks.pop(), block)
        blocks.append(block)
        stacked += cells[cell].height + cells[cell].gap
    each, stacked = iter(layer), 0.0
    for at, _weight, count in blocks:
        for _ in range(count):
            cell = next(each)
            top[cell] = at + stacked
            stacked += cells[cell].height + cells[cell].gap


def _target(
    number: int, cell: Cell, top: Mapping[int, float], pulls: Sequence[tuple[int, float]]
) -> tuple[float, float]:
    if not pulls:
        return top[number], _LOOSE
    return sum(top[other] + drop for other, drop in pulls) / len(pulls), cell.weight


def _joined(
    upper: tuple[float, float, int], lower: tuple[float, float, int]
) -> tuple[float, float, int]:
    weight = upper[1] + lower[1]
    return (upper[0] * upper[1] + lower[0] * lower[1]) / weight, weight, upper[2] + lower[2]
