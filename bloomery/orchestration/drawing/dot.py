"""A picture as DOT, for Graphviz and other programs."""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.drawing import style
from bloomery.orchestration.drawing.layout import OUTSIDE, Picture, Tree

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
    ids, title = _ids(tree), _quoted(picture.title)
    lines = [
        f"digraph {title} {{",
        f"  graph [label={title}, {_GRAPH}];",
        f"  node [{_NODE}];",
        f'  edge [color="{style.LINE}", arrowsize=0.7];',
    ]
    open_depth = 0
    for at, box in enumerate(tree.boxes):
        depth = tree.depth[at]
        lines += ("  " * each + "}" for each in range(open_depth, depth, -1))
        open_depth = depth + tree.is_cluster(at)
        indent = "  " * (depth + 1)
        parts = [
            _escaped(part if len(part) <= _NAME_CHARS else f"{part[: _NAME_CHARS - 1]}…")
            for part in (box.name, box.kind)
            if part
        ]
        tooltip = f"tooltip={_quoted(box.name)}"
        if not tree.is_cluster(at):
            label = "\\n".join(parts)
            look = f'label="{label}", {tooltip}, color="{style.kind_colour(box.kind)}"'
            lines.append(f"{indent}{ids[at]} [{look}];")
            continue
        fill, edge = style.CLUSTERS[depth % len(style.CLUSTERS)]
        look = f'style="rounded,filled"; fillcolor="{fill}"; color="{edge}";'
        label = " \\n".join(parts)
        lines.append(f"{indent}subgraph {_cluster_id(at)} {{")
        lines.append(f'{indent}  label="{label}"; {tooltip}; {look}')
        if not tree.inside[at]:
            lines.append(f'{indent}  {ids[at]} [label="", shape=point, style=invis];')
    lines += ("  " * each + "}" for each in range(open_depth, 0, -1))
    for required, requirer in tree.edges:  # of a cluster: it joins a node inside, and is cut
        cuts = [f"ltail={_cluster_id(required)}"] if tree.is_cluster(required) else []
        cuts += [f"lhead={_cluster_id(requirer)}"] if tree.is_cluster(requirer) else []
        tail, head = ids[_node_in(tree, required)], ids[_node_in(tree, requirer)]
        cut = f" [{', '.join(cuts)}]" if cuts else ""
        lines.append(f"  {tail} -> {head}{cut};")
    return "\n".join([*lines, "}"]) + "\n"


def _node_in(tree: Tree, box: int) -> int:
    """Return the first node in a cluster, or the invisible node of an empty cluster."""
    while tree.inside.get(box):
        box = tree.inside[box][0]
    return box


def _ids(tree: Tree) -> list[str]:
    """Return the keys as IDs, with a number if some characters must be replaced."""
    ids = []
    for at, box in enumerate(tree.boxes):
        clean = style.clean(box.key)
        key = clean if clean == box.key else f"{clean} ({at})"
        while key != box.key and key in tree.number:
            key += "'"
        ids.append(f'"{_escaped(key)}"')
    return ids


def _cluster_id(at: int) -> str:
    return f'"cluster_{at - OUTSIDE}"'


def _escaped(text: str) -> str:
    return style.clean(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text[: style.TITLE_CHARS])}"'
