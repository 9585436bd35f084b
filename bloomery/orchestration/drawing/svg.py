"""A picture as SVG: one text without references, which any browser shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomery.orchestration.drawing import layout, style
from bloomery.orchestration.drawing.layout import Box, Edge, Picture, Place, Size, Tree

_MARGIN: Final = 24.0
_TOP: Final = 84.0  # title, and what the picture holds
_NAME, _SMALL, _TITLE = 12.5, 10.5, 17.0  # sizes of letters
_CARD: Final = (116.0, 216.0)  # least and most width
_LEFT, _RIGHT = 15.0, 12.0  # room beside the text of a card
_LINE: Final = 15.0
_WIDER: Final = 1.25  # factor for lines in a substitute for Helvetica
_CLUSTER_NAME: Final = 340.0  # most width of a cluster's name

_STYLE: Final = f"""
text{{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif;fill:{style.INK}}}
.t{{font-size:{_TITLE}px;font-weight:bold}}
.n{{font-size:{_NAME}px;font-weight:bold}}
.s{{font-size:{_SMALL}px;fill:{style.FAINT}}}
.c{{fill:{style.PAPER};stroke:{style.CARD_EDGE}}}
.e path{{fill:none;stroke:{style.LINE};stroke-width:1.3;stroke-opacity:.85}}
.e path:hover{{stroke:{style.INK};stroke-width:2.4}}
"""
_HEAD: Final = (
    '<marker id="to" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto">'
    f'<path d="M0 .8 8 4 0 7.2z" fill="{style.LINE}"/></marker>'
)


def drawn(picture: Picture) -> str:
    """Draw the whole picture.  Raises ValueError for keys and edges as ``Tree`` does."""
    tree = Tree(picture)
    cards = {at: box for at, box in enumerate(tree.boxes) if not tree.is_cluster(at)}
    size = _card_size(list(cards.values()))
    headers = {}
    for at, box in enumerate(tree.boxes):
        if at not in cards:
            name, kind = _header(box)
            names_width = style.width(name, _NAME, bold=True) + style.width(kind, _SMALL)
            headers[at] = names_width + 16
    arrangement = layout.laid_out(tree, dict.fromkeys(cards, size), headers)
    title = style.shortened(picture.title, 900, _TITLE, bold=True)
    boxes, edges = len(tree.boxes), len(tree.edges)
    subtitle = f"{boxes} box{'' if boxes == 1 else 'es'}, {edges} edge{'' if edges == 1 else 's'}"
    subtitle += "; an arrow goes from what is required to what requires it" if edges else ""
    heading = max(style.width(title, _TITLE, bold=True), style.width(subtitle, _SMALL)) * _WIDER
    width = f"{max(arrangement.width, heading) + 2 * _MARGIN:.0f}"
    height = f"{arrangement.height + _TOP + _MARGIN:.0f}"
    size_text = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size_text} role="img">',
        f"<style>{_STYLE}</style>",
        f"<defs>{_HEAD}</defs>",
        f'<rect width="100%" height="100%" fill="{style.PAPER}"/>',
        f"<title>{style.title(picture.title)}</title>",
        _text("t", _MARGIN, _MARGIN + 14, title),
        _text("s", _MARGIN, _MARGIN + 34, subtitle),
        f'<g transform="translate({_MARGIN:g} {_TOP:g})">',
        *(
            _cluster(box, arrangement.places[at], tree.depth[at])
            for at, box in enumerate(tree.boxes)
            if tree.is_cluster(at)
        ),
        '<g class="e">',
        *(_edge(tree, edge) for edge in arrangement.edges),
        "</g>",
        *(_card(box, arrangement.places[at]) for at, box in cards.items()),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _card_size(boxes: Sequence[Box]) -> Size:
    """Return one size for all cards, so that columns are straight."""
    widest = max(
        (
            style.width(text[: style.TITLE_CHARS], size, bold=size == _NAME)
            for box in boxes
            for text, size in ((box.name, _NAME), (box.kind, _SMALL))
        ),
        default=0,
    )
    lines = 2 if any(box.kind for box in boxes) else 1
    return min(max(widest + _LEFT + _RIGHT, _CARD[0]), _CARD[1]), lines * _LINE + 13


def _card(box: Box, place: Place) -> str:
    """Return a card with a stripe in the colour of its kind; text in a wide font is clipped."""
    width, height = place.width, place.height
    room = width - _LEFT - _RIGHT + 1
    y = (height - (2 if box.kind else 1) * _LINE) / 2 + 11.5
    texts = _text("n", _LEFT, y, style.shortened(box.name, room, _NAME, bold=True))
    if box.kind:
        texts += _text("s", _LEFT, y + _LINE, style.shortened(box.kind, room, _SMALL))
    return (
        f'<svg x="{_n(place.x)}" y="{_n(place.y)}" width="{_n(width)}" height="{_n(height)}">'
        f'<title>{_full(box)}</title><rect class="c" x=".5" y=".5" '
        f'width="{_n(width - 1)}" height="{_n(height - 1)}" rx="6"/>'
        f'<rect x="4" y="5" width="4" height="{_n(height - 10)}" rx="2" '
        f'fill="{style.kind_colour(box.kind)}"/>{texts}</svg>'
    )


def _text(css: str, x: float, y: float, text: str) -> str:
    return f'<text class="{css}" x="{_n(x)}" y="{_n(y)}">{style.escaped(text)}</text>'


def _full(box: Box) -> str:
    return "&#10;".join(style.title(part) for part in (box.name, box.kind) if part)


def _header(box: Box) -> tuple[str, str]:
    """Return the name and the kind on a cluster, shortened."""
    name = style.shortened(box.name, _CLUSTER_NAME / 2, _NAME, bold=True)
    return name, style.shortened(box.kind, _CLUSTER_NAME / 2, _SMALL)


def _cluster(box: Box, place: Place, depth: int) -> str:
    """Return a labelled box; its texts follow each other in a font of any width."""
    fill, edge = style.CLUSTERS[depth % len(style.CLUSTERS)]
    name, kind = _header(box)
    return (
        f'<g><title>{_full(box)}</title><rect x="{_n(place.x)}" y="{_n(place.y)}" '
        f'width="{_n(place.width)}" height="{_n(place.height)}" rx="9" '
        f'fill="{fill}" stroke="{edge}"/>'
        f'<text x="{_n(place.x + layout.PADDING - 4)}" y="{_n(place.y + 19)}">'
        f'<tspan class="n">{style.escaped(name)}</tspan>'
        f'<tspan class="s" dx="8">{style.escaped(kind)}</tspan></text></g>'
    )


def _edge(tree: Tree, edge: Edge) -> str:
    """Return the path to the requirer: level pieces, joined by curves with level ends."""
    x, end, y = edge.runs[0]
    path = [f"M{_n(x)} {_n(y)}"]
    for start, next_end, next_y in edge.runs[1:]:
        if abs(next_y - y) >= 0.05:
            path.append(_level(x, end))
            middle = _n((end + start) / 2)
            path.append(f"C{middle} {_n(y)} {middle} {_n(next_y)} {_n(start)} {_n(next_y)}")
            x = start
        end, y = next_end, next_y
    path.append(_level(x, end))
    requirer, required = tree.boxes[edge.requirer].name, tree.boxes[edge.required].name
    return (
        f'<path d="{"".join(path)}" marker-end="url(#to)">'
        f"<title>{style.title(requirer)} requires {style.title(required)}</title></path>"
    )


def _level(x: float, end: float) -> str:
    return f"H{_n(end)}" if abs(end - x) >= 0.05 else ""


def _n(number: float) -> str:
    """Return a number, rounded to a tenth of a pixel, as short as possible."""
    return f"{number:.1f}".removesuffix(".0")
