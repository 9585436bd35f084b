"""The contents of a picture: boxes, boxes inside boxes, and edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

OUTSIDE: Final = -1  # the number of the parent of the outermost boxes


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
            number = self._enter(box, parent)
            todo += [(inner, number) for inner in reversed(box.inside or ())]
        self.edges = self._numbered(picture.edges)

    def _enter(self, box: Box, parent: int) -> int:
        number = len(self.boxes)
        if self.number.setdefault(box.key, number) != number:
            raise ValueError(f"cannot draw {box.key!r} twice: give each box a key of its own")
        self.boxes.append(box)
        self.parent.append(parent)
        self.depth.append(0 if parent == OUTSIDE else self.depth[parent] + 1)
        self.inside[parent].append(number)
        if box.inside is not None:
            self.inside[number] = []
        return number

    def _numbered(self, edges: Iterable[tuple[str, str]]) -> list[tuple[int, int]]:
        """Return the edges as pairs (required, requirer), each once."""
        try:
            pairs = [(self.number[required], self.number[requirer]) for requirer, required in edges]
        except KeyError as exc:
            raise ValueError(f"cannot draw an edge to {exc}: no box has this key") from exc
        for pair in pairs:
            one, other = (self.boxes[at].key for at in pair)
            if self.parent[pair[0]] != self.parent[pair[1]]:
                raise ValueError(
                    f"cannot draw an edge from {one!r} to {other!r}: they are in different clusters"
                )
        return list(dict.fromkeys(pairs))

    def is_cluster(self, number: int) -> bool:
        return number in self.inside
