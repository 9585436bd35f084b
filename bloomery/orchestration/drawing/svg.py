"""A picture as SVG: one text without references, which any browser shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomery.orchestration.drawing import layout, style
from bloomery.orchestration.drawing.layout import Edge, Layout, Place
from bloomery.orchestration.drawing.levels import Size
from bloomery.orchestration.drawing.picture import Box, Picture, Tree

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
.e .back{{stroke:{style.AGAINST};stroke-dasharray:5 3}}
.e path:hover{{stroke:{style.INK};stroke-width:2.4}}
"""
_HEAD: Final = (
    '<marker id="{name}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto">'
    '<path d="M0 .8 8 4 0 7.2z" fill="{colour}"/></marker>'
)


def drawn(picture: Picture) -> str:
    """Draw the whole picture.  Raises ValueError for duplicate or unknown keys."""
    tree = Tree(picture)
    cards = {at: box for at, box in enumerate(tree.boxes) if not tree.is_cluster(at)}
    size = _card_size(list(cards.values()))
    headers = {at: _header_width(box) for at, box in enumerate(tree.boxes) if at not in cards}
    arrangement = layout.laid_out(tree, dict.fromkeys(cards, size), headers)
    title = style.shortened(picture.title, 900, _TITLE, bold=True)
    subtitle = _subtitle(tree)
    heading = max(style.width(title, _TITLE, bold=True), style.width(subtitle, _SMALL)) * _WIDER
    lines = [
        *_frame(max(arrangement.width, heading) + 2 * _MARGIN, arrangement.height + _TOP + _MARGIN),
        f"<title>{style.title(picture.title)}</title>",
        _text("t", _MARGIN, _MARGIN + 14, title, ""),
        _text("s", _MARGIN, _MARGIN + 34, subtitle, ""),
        f'<g transform="translate({_MARGIN:g} {_TOP:g})">',
        *(
            _cluster(box, arrangement.places[at], tree.depth[at])
            for at, box in enumerate(tree.boxes)
            if tree.is_cluster(at)
        ),
        *_edges(tree, arrangement),
        *(_card(tree.boxes[at], arrangement.places[at]) for at in cards),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _frame(width: float, height: float) -> list[str]:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<style>{_STYLE}</style>",
        f"<defs>{_HEAD.format(name='to', colour=style.LINE)}",
        f"{_HEAD.format(name='back', colour=style.AGAINST)}</defs>",
        f'<rect width="100%" height="100%" fill="{style.PAPER}"/>',
    ]


def _subtitle(tree: Tree) -> str:
    boxes, edges = len(tree.boxes), len(tree.edges)
    words = f"{boxes} box{'' if boxes == 1 else 'es'}, {edges} edge{'' if edges == 1 else 's'}"
    return f"{words}; an arrow goes from what is required to what requires it" if edges else words


def _lines(box: Box) -> list[tuple[str, str, float, bool]]:
    """Return the texts of a card: class, text, size of the letters, whether they are bold."""
    words = [("n", box.name, _NAME, True)]
    if box.kind:
        words.append(("s", box.kind, _SMALL, False))
    if box.status:
        words.append(("s", box.status, _SMALL, True))
    return words


def _card_size(boxes: Sequence[Box]) -> Size:
    """Return one size for all cards, so that columns are straight."""
    texts = [line for box in boxes for line in _lines(box)]
    widest = max(
        (style.width(text[: style.TITLE_CHARS], size, bold=bold) for _, text, size, bold in texts),
        default=0,
    )
    lines = max((len(_lines(box)) for box in boxes), default=1)
    return min(max(widest + _LEFT + _RIGHT, _CARD[0]), _CARD[1]), lines * _LINE + 13


def _card(box: Box, place: Place) -> str:
    """Return a card with a stripe in the colour of its kind; text in a wide font is clipped."""
    width, height = place.width, place.height
    lines = _lines(box)
    texts, y = list[str](), (height - len(lines) * _LINE) / 2 + 11.5
    for css, text, size, bold in lines:
        short = style.shortened(text, width - _LEFT - _RIGHT + 1, size, bold=bold)
        texts.append(_text(css, _LEFT, y, short, box.status if text is box.status else ""))
        y += _LINE
    return (
        f'<svg x="{_n(place.x)}" y="{_n(place.y)}" width="{_n(width)}" height="{_n(height)}">'
        f'<title>{_full(box)}</title><rect class="c" x=".5" y=".5" '
        f'width="{_n(width - 1)}" height="{_n(height - 1)}" rx="6"/>'
        f'<rect x="4" y="5" width="4" height="{_n(height - 10)}" rx="2" '
        f'fill="{style.kind_colour(box.kind)}"/>{"".join(texts)}</svg>'
    )


def _text(css: str, x: float, y: float, text: str, status: str) -> str:
    look = f' style="fill:{style.status_colour(status)};font-weight:bold"' if status else ""
    return f'<text class="{css}" x="{_n(x)}" y="{_n(y)}"{look}>{style.escaped(text)}</text>'


def _full(box: Box) -> str:
    parts = [box.name, box.kind, box.status]
    return "&#10;".join(style.title(part) for part in parts if part)


def _header(box: Box) -> tuple[str, str]:
    """Return the name and the kind on a cluster, shortened."""
    name = style.shortened(box.name, _CLUSTER_NAME / 2, _NAME, bold=True)
    return name, style.shortened(box.kind, _CLUSTER_NAME / 2, _SMALL)


def _header_width(box: Box) -> float:
    name, kind = _header(box)
    return (
        style.width(name, _NAME, bold=True)
        + style.width(kind, _SMALL)
        + style.width(box.status, _SMALL, bold=True)
        + 24
    )


def _cluster(box: Box, place: Place, depth: int) -> str:
    """Return a labelled box; its texts follow each other in a font of any width."""
    fill, edge = style.CLUSTERS[depth % len(style.CLUSTERS)]
    name, kind = _header(box)
    status = style.clean(box.status[: style.TITLE_CHARS])
    paint = f"fill:{style.status_colour(status)};font-weight:bold"
    return (
        f'<g><title>{_full(box)}</title><rect x="{_n(place.x)}" y="{_n(place.y)}" '
        f'width="{_n(place.width)}" height="{_n(place.height)}" rx="9" '
        f'fill="{fill}" stroke="{edge}"/>'
        f'<text x="{_n(place.x + layout.PADDING - 4)}" y="{_n(place.y + 19)}">'
        f'<tspan class="n">{style.escaped(name)}</tspan>'
        f'<tspan class="s" dx="8">{style.escaped(kind)}</tspan>'
        f'<tspan class="s" dx="8" style="{paint}">{style.escaped(status)}</tspan></text></g>'
    )


def _edges(tree: Tree, arrangement: Layout) -> Iterator[str]:
    yield '<g class="e">'
    for edge in arrangement.edges:
        yield _edge(tree, _path(edge), edge)
    for required, requirer in tree.edges:
        if required == requirer and not tree.is_cluster(required):
            yield _edge(
                tree, _loop(arrangement.places[required]), Edge(required, requirer, (), True)
            )
    yield "</g>"


def _edge(tree: Tree, path: str, edge: Edge) -> str:
    ends = 'class="back" marker-end="url(#back)"' if edge.turned else 'marker-end="url(#to)"'
    requirer, required = tree.boxes[edge.requirer].name, tree.boxes[edge.required].name
    return (
        f'<path d="{path}" {ends}>'
        f"<title>{style.title(requirer)} requires {style.title(required)}</title></path>"
    )


def _path(edge: Edge) -> str:
    """Return the path to the requirer: level pieces, joined by curves with level ends."""
    runs = [(to, start, y) for start, to, y in edge.runs[::-1]] if edge.turned else edge.runs
    x, end, y = runs[0]
    path = [f"M{_n(x)} {_n(y)}"]
    for start, next_end, next_y in runs[1:]:
        if abs(next_y - y) >= 0.05:
            path.append(_level(x, end))
            middle = _n((end + start) / 2)
            path.append(f"C{middle} {_n(y)} {middle} {_n(next_y)} {_n(start)} {_n(next_y)}")
            x = start
        end, y = next_end, next_y
    path.append(_level(x, end))
    return "".join(path)


def _level(x: float, end: float) -> str:
    return f"H{_n(end)}" if abs(end - x) >= 0.05 else ""


def _loop(place: Place) -> str:
    x, y, out = place.x + place.width, place.y + place.height / 2, place.x + place.width + 26
    start, end = f"M{_n(x)} {_n(y - 7)}", f"{_n(x)} {_n(y + 7)}"
    return f"{start}C{_n(out)} {_n(y - 18)} {_n(out)} {_n(y + 18)} {end}"


def _n(number: float) -> str:
    """Return a number, rounded to a tenth of a pixel, as short as possible."""
    return f"{number:.1f}".removesuffix(".0")
