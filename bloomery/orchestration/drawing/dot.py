"""A picture as DOT, for Graphviz and other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomery.orchestration.drawing import style
from bloomery.orchestration.drawing.picture import OUTSIDE, Box, Picture, Tree

_NAME_CHARS: Final = 48
_GRAPH: Final = (
    'labelloc=t, labeljust=l, rankdir=LR, compound=true, fontname="Helvetica", '
    "nodesep=0.2, ranksep=0.7"
)
_NODE: Final = (
    'shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11'
)


def written(picture: Picture) -> str:
    """Write the whole picture.  Raises ValueError for keys and edges as ``Tree`` does."""
    tree = Tree(picture)
    ids = _ids(tree)
    title = _quoted(picture.title)
    lines = [
        f"digraph {title} {{",
        f"  graph [label={title}, {_GRAPH}];",
        f"  node [{_NODE}];",
        f'  edge [color="{style.LINE}", arrowsize=0.7];',
        *_inside(tree, ids),
        *(_edge(tree, ids, *pair) for pair in tree.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _inside(tree: Tree, ids: list[str]) -> Iterator[str]:
    """Yield the lines of nodes and clusters, in the order of the tree."""
    depth = 0
    for at, box in enumerate(tree.boxes):
        while depth > tree.depth[at]:
            yield "  " * depth + "}"
            depth -= 1
        indent = "  " * (depth + 1)
        if not tree.is_cluster(at):
            yield f"{indent}{ids[at]} [{_look(box)}];"
        else:
            yield f"{indent}subgraph {_cluster_id(at)} {{"
            yield f"{indent}  {_cluster_look(box, tree.depth[at])}"
            depth += 1
            if not tree.inside[at]:
                yield f'{indent}  {ids[at]} [label="", shape=point, style=invis];'
    while depth:
        yield "  " * depth + "}"
        depth -= 1


def _look(box: Box) -> str:
    label = "\\n".join(_text(part) for part in (box.name, box.kind) if part)
    return f'label="{label}", tooltip={_quoted(box.name)}, color="{style.kind_colour(box.kind)}"'


def _cluster_look(box: Box, depth: int) -> str:
    fill, edge = style.CLUSTERS[depth % len(style.CLUSTERS)]
    label = " \\n".join(_text(part) for part in (box.name, box.kind) if part)
    return (
        f'label="{label}"; tooltip={_quoted(box.name)}; style="rounded,filled"; '
        f'fillcolor="{fill}"; color="{edge}";'
    )


def _edge(tree: Tree, ids: list[str], required: int, requirer: int) -> str:
    """Return an edge; the edge of a cluster joins a node inside and is cut at the border."""
    ends = [f"ltail={_cluster_id(required)}"] if tree.is_cluster(required) else []
    ends += [f"lhead={_cluster_id(requirer)}"] if tree.is_cluster(requirer) else []
    tail, head = ids[_node_in(tree, required)], ids[_node_in(tree, requirer)]
    cut = f" [{', '.join(ends)}]" if ends else ""
    return f"  {tail} -> {head}{cut};"


def _node_in(tree: Tree, box: int) -> int:
    """Return the first node in a cluster, or the invisible node of an empty cluster."""
    while tree.inside.get(box):
        box = tree.inside[box][0]
    return box


def _ids(tree: Tree) -> list[str]:
    """Return the keys as IDs, with a number if some characters must be replaced."""
    ids = []
    for at, box in enumerate(tree.boxes):
        plain = style.clean(box.key)
        key = plain if plain == box.key else f"{plain} ({at})"
        while key != box.key and key in tree.number:
            key += "'"
        ids.append(f'"{_escaped(key)}"')
    return ids


def _cluster_id(at: int) -> str:
    return f'"cluster_{at - OUTSIDE}"'


def _text(text: str) -> str:
    """Return text for quotes, shortened and with escapes."""
    text = text if len(text) <= _NAME_CHARS else f"{text[: _NAME_CHARS - 1]}…"
    return _escaped(text)


def _escaped(text: str) -> str:
    return style.clean(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text[: style.TITLE_CHARS])}"'
