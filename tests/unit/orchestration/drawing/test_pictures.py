"""Whatever is drawn: boxes stand apart and in their clusters, and the text is well-formed."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery.orchestration.drawing import Box, Picture, dot, layers, layout, style, svg
from bloomery.orchestration.drawing.layout import OUTSIDE, Tree
from tests.kit import work

SVG = "{http://www.w3.org/2000/svg}"


def shop() -> Picture:
    """A stack with nested ones."""
    racks = [
        Box(key=f"r{n}", name=f"rack {n}", kind="rack.yaml", inside=[
            Box(key=f"r{n}/port", name="port", kind="Port"),
            Box(key=f"r{n}/host", name="host", kind="Host"),
        ])
        for n in range(2)
    ]  # fmt: skip
    boxes = [
        Box(key="net", name="net", kind="Net"),
        Box(key="racks", name="racks", kind="OS::Heat::ResourceGroup", inside=racks),
        Box(key="empty", name="empty", inside=[]),
        Box(key="lb", name="balancer", kind="Balancer"),
        Box(key="note", name="note"),
    ]
    edges = [("racks", "net"), ("r0/host", "r0/port"), ("r1/host", "r1/port"), ("lb", "racks"),
             ("lb", "net"), ("r1", "r0"), ("lb", "empty")]  # fmt: skip
    return Picture(title="shop", boxes=boxes, edges=edges)


def fan(size: int) -> Picture:
    return Picture(
        boxes=[Box(key=str(n), name=f"n{n}", kind="K") for n in range(size)],
        edges=[(str(n), "0") for n in range(1, size)],
    )


def laid(picture: Picture) -> tuple[Tree, layout.Layout]:
    tree = Tree(picture)
    cards = [at for at in range(len(tree.boxes)) if not tree.is_cluster(at)]
    headers = {at: 60.0 for at in tree.inside if at != OUTSIDE}
    return tree, layout.laid_out(tree, dict.fromkeys(cards, (120.0, 44.0)), headers)


# ------------------------------------------------------------------------------------- pictures


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Up to twelve boxes in each other at random, and edges from a box to a later one beside it."""
    size = draw(st.integers(0, 12))
    names = draw(st.lists(st.text(max_size=8), min_size=size, max_size=size))
    holders = [draw(st.integers(OUTSIDE, at - 1)) for at in range(size)]
    inside: dict[int, list[int]] = {}
    for at, holder in enumerate(holders):
        inside.setdefault(holder, []).append(at)

    def built(at: int) -> Box:
        held = [built(each) for each in inside[at]] if at in inside else None
        return Box(key=f"{names[at]}/{at}", name=names[at], kind=names[at][::-1], inside=held)

    keys = [f"{name}/{at}" for at, name in enumerate(names)]
    beside = [
        (keys[one], keys[other])
        for boxes in inside.values() for other, one in itertools.combinations(boxes, 2)
    ]  # fmt: skip
    edges = draw(st.lists(st.sampled_from(beside), max_size=20)) if beside else []
    return Picture(
        title=draw(st.text(max_size=30)), boxes=[built(at) for at in inside.get(OUTSIDE, ())],
        edges=edges,
    )  # fmt: skip


@given(pictures())
def test_boxes_stand_apart_and_within_what_holds_them(picture: Picture):
    tree, made = laid(picture)
    for cluster, boxes in tree.inside.items():
        for one, other in itertools.combinations([made.places[box] for box in boxes], 2):
            assert (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y + 0.01
                or other.y + other.height <= one.y + 0.01
            )
        for at in boxes:
            inner = made.places[at]
            left, top, right, bottom = 0.0, 0.0, made.width, made.height
            if cluster != OUTSIDE:
                outer = made.places[cluster]
                left, top = outer.x, outer.y + layout.HEADER
                right, bottom = outer.x + outer.width, outer.y + outer.height
            assert left <= inner.x
            assert top <= inner.y + 0.01
            assert inner.x + inner.width <= right + 0.01
            assert inner.y + inner.height <= bottom + 0.01


@given(pictures())
def test_edges_run_from_border_to_border_and_never_back(picture: Picture):
    tree, made = laid(picture)
    for edge in made.edges:
        left, right = made.places[edge.required], made.places[edge.requirer]
        x, _, y = edge.runs[0]
        assert (x, y) == pytest.approx((left.x + left.width, left.y + left.height / 2))
        _, x, y = edge.runs[-1]
        assert (x, y) == pytest.approx((right.x, right.y + right.height / 2))
        stops = [x for start, end, _ in edge.runs for x in (start, end)]
        assert stops == sorted(stops)
    drawn = {(edge.required, edge.requirer) for edge in made.edges}
    assert drawn == {*tree.edges}


@given(pictures())
def test_level_pieces_pass_no_card(picture: Picture):
    tree, made = laid(picture)
    cards = [made.places[at] for at in range(len(tree.boxes)) if not tree.is_cluster(at)]
    for start, end, y in (run for edge in made.edges for run in edge.runs):
        for card in cards:
            across = start < card.x + card.width - 0.01 and end > card.x + 0.01
            assert not (across and card.y + 0.01 < y < card.y + card.height - 0.01)


@given(pictures())
def test_any_picture_is_well_formed_and_always_the_same(picture: Picture):
    text = svg.drawn(picture)
    root = ET.fromstring(text.encode())
    assert len(root.findall(f".//{SVG}svg")) == len(
        [box for box in Tree(picture).boxes if box.inside is None]
    )
    assert text == svg.drawn(picture)
    assert dot.written(picture) == dot.written(picture)


def test_what_is_required_stands_left():
    picture = Picture(
        boxes=[Box(key=key, name=key) for key in "dcba"],
        edges=[("d", "c"), ("c", "b"), ("b", "a"), ("d", "a")],
    )
    tree, made = laid(picture)
    at = [made.places[tree.number[key]].x for key in "abcd"]
    assert at == sorted(set(at))


def test_what_only_a_late_one_requires_stands_beside_it():
    picture = Picture(
        boxes=[Box(key=key, name=key) for key in "xabc"],
        edges=[("b", "a"), ("c", "b"), ("c", "x")],
    )
    tree, made = laid(picture)
    assert made.places[tree.number["x"]].x == made.places[tree.number["b"]].x


def test_rows_that_require_each_other_in_a_circle_are_laid_out_for_pages():
    columns, cells = layers.arranged([1] * 4, [(0, 1), (1, 2), (2, 0), (3, 3)], 9)
    assert sorted(cell for column in columns for cell in column) == [0, 1, 2, 3]
    assert cells == {}


def test_two_lines_that_need_not_cross_do_not():
    picture = Picture(
        boxes=[Box(key=key, name=key) for key in ("a1", "b1", "b2", "a2", "a3", "b3")],
        edges=[("a2", "a1"), ("a3", "a2"), ("b2", "b1"), ("b3", "b2")],
    )
    tree, made = laid(picture)
    for way in ("a", "b"):
        assert len({made.places[tree.number[f"{way}{n}"]].y for n in (1, 2, 3)}) == 1


def test_parts_without_an_edge_between_them_stand_close():
    edges = [("a1", "a0"), *((f"b{n}", "b0") for n in range(1, 5))]
    keys = dict.fromkeys(key for edge in edges for key in edge)
    _, made = laid(Picture(boxes=[Box(key=key, name=key) for key in keys], edges=edges))
    assert made.height == 5 * (44 + 14) - 14


def test_a_wide_fan_is_folded_into_columns():
    _, made = laid(fan(200))
    assert 0.6 < made.width / made.height < 4
    ways = [edge.runs for edge in made.edges if len(edge.runs) > 3]
    assert ways  # and those behind share one trunk
    assert len({runs[1] for runs in ways}) == 1


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_any_size_is_drawn_in_little_time(size: int):
    edges = [(str(n), str(max(0, n - step))) for n in range(1, size) for step in (1, 7)]
    boxes = [Box(key=str(n), name=f"n{n}") for n in range(size)]
    picture = Picture(boxes=boxes, edges=[edge for edge in edges if edge[0] != edge[1]])
    drawn: list[str] = []
    assert work.calls(lambda: drawn.append(svg.drawn(picture))) < 5_000 * (size + 1)
    assert work.calls(lambda: drawn.append(svg.drawn(fan(size)))) < 5_000 * (size + 1)
    for each in drawn:
        ET.fromstring(each)


def test_clusters_deeper_than_python_may_recurse_are_drawn():
    box = Box(key="inmost", name="inmost")
    for depth in range(2000):
        box = Box(key=str(depth), name="in", inside=[box])
    picture = Picture(boxes=[box, Box(key="beside", name="b")], edges=[("beside", "1999")])
    assert svg.drawn(picture).count("<rect") == 2000 + 2 * 2 + 1
    assert dot.written(picture).count("subgraph") == 2000


# --------------------------------------------------------------------------------- what is told


def texts(picture: Picture) -> list[str]:
    root = ET.fromstring(svg.drawn(picture))
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def titles(picture: Picture) -> list[str | None]:
    return [each.text for each in ET.fromstring(svg.drawn(picture)).iter(f"{SVG}title")]


def test_cards_and_clusters_tell_name_and_kind():
    said = texts(shop())
    assert said[0] == "shop"
    assert said[1].startswith("11 boxes, 7 edges; an arrow goes from what is required")
    assert {"net", "Net", "balancer", "Balancer"} <= set(said)
    assert "racksOS::Heat::ResourceGroup" in said


def test_a_narrow_picture_has_room_for_its_caption_in_a_wide_font():
    two = Picture(boxes=[Box(key="a", name="a"), Box(key="b", name="b")], edges=[("a", "b")])
    root = ET.fromstring(svg.drawn(two))
    in_a_wide_font = 383  # of the caption: DejaVu Sans, where there is neither Helvetica nor Arial
    assert float(root.attrib["width"]) > 24 + in_a_wide_font + 24


def test_edges_and_boxes_have_titles():
    told = titles(shop())
    assert "balancer requires racks" in told
    assert "balancer\nBalancer" in told


@pytest.mark.parametrize(("words", "size"), [("1 box, 0 edges", 1), ("3 boxes", 3)])
def test_a_picture_says_how_much_is_in_it(words: str, size: int):
    assert texts(fan(size))[1].startswith(words)


def test_a_long_name_is_shortened_and_told_in_full_by_its_title():
    name = "the_one_with_a_name_that_goes_on_and_on_and_on_7"
    picture = Picture(boxes=[Box(key="a", name=name), Box(key="b", name=name * 99, inside=[])])
    short = [text for text in texts(picture) if "…" in text]
    assert [text[:8] for text in short] == ["the_one_"] * 2
    assert all(text.endswith("on_7") for text in short)
    assert name in titles(picture)
    assert max(len(title or "") for title in titles(picture)) == 500


@pytest.mark.parametrize(
    "name",
    ["<b>&\"'", "]]>", "\0\x01\x1b", "\ud800", "￾￿", "\u202eright to left", "a\nb\tc", "\\", '\\"',
     "数据库", "é", "\u0301" * 30, " "],
)  # fmt: skip
def test_whatever_a_name_holds_both_texts_stay_well_formed(name: str):
    inner = Box(key=f"{name}1", name=name, kind=name)
    outer = Box(key=f"{name}2", name=name, kind=name, inside=[inner])
    picture = Picture(title=name, boxes=[outer, Box(key="x", name="x")], edges=[("x", f"{name}2")])
    ET.fromstring(svg.drawn(picture).encode())
    text = dot.written(picture)
    text.encode()
    assert text.isascii() or name.isprintable() or "\N{REPLACEMENT CHARACTER}" in text
    assert statements(text)


def test_no_room_at_all_leaves_the_sign_of_what_is_missing():
    assert style.shortened("name", 1, 12) == "…"
    assert style.shortened("name", 99, 12) == "name"


# ---------------------------------------------------------------------------------- faulty input


@pytest.mark.parametrize("write", [svg.drawn, dot.written])
def test_a_key_that_is_there_twice_is_refused(write):
    with pytest.raises(ValueError, match="cannot draw 'a' twice"):
        write(Picture(boxes=[Box(key="a", name="a", inside=[Box(key="a", name="b")])]))


@pytest.mark.parametrize("edge", [("a", "b"), ("b", "a")])
def test_an_edge_to_nowhere_is_refused(edge: tuple[str, str]):
    with pytest.raises(ValueError, match="edge to 'b'"):
        svg.drawn(Picture(boxes=[Box(key="a", name="a")], edges=[edge]))


def test_an_edge_across_the_border_of_a_cluster_is_refused():
    boxes = [Box(key="a", name="a", inside=[Box(key="b", name="b")]), Box(key="c", name="c")]
    with pytest.raises(ValueError, match="cannot draw an edge from 'b' to 'c'"):
        Tree(Picture(boxes=boxes, edges=[("c", "b")]))


# ------------------------------------------------------------------------------------------- DOT


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[\[\]{};,=]|[A-Za-z0-9_.]+|\s+', re.DOTALL)


def statements(text: str) -> list[str]:
    """Cut DOT into its tokens, and fail on what is none or on braces that do not match."""
    tokens, at, depth = [], 0, 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, f"no token at {text[at : at + 20]!r}"
        at = found.end()
        tokens.append(found.group())
        depth += (found.group() == "{") - (found.group() == "}")
        assert depth >= 0
    assert depth == 0
    return [token for token in tokens if not token.isspace()]


def test_dot_tells_nodes_clusters_and_edges():
    text = dot.written(shop())
    tokens = statements(text)
    assert tokens[:3] == ["digraph", '"shop"', "{"]
    assert tokens.count("subgraph") == 4
    lines = [line.strip() for line in text.splitlines()]
    assert '"net" -> "lb";' in lines
    assert '"r0/port" -> "r0/host";' in lines
    assert '"r0/port" -> "lb" [ltail="cluster_2"];' in lines  # the first node of all racks
    assert '"empty" -> "lb" [ltail="cluster_9"];' in lines
    assert tokens.count("->") == 7
    assert any(line.startswith('"lb" [label="balancer\\nBalancer"') for line in lines)


def test_dot_cuts_an_edge_off_at_the_border_of_its_cluster():
    inner = Box(key="in", name="in")
    picture = Picture(
        boxes=[Box(key="a", name="a", inside=[inner]), Box(key="b", name="b", inside=[])],
        edges=[("b", "a"), ("a", "b")],
    )
    lines = dot.written(picture).splitlines()
    assert '  "in" -> "b" [ltail="cluster_1", lhead="cluster_3"];' in lines
    assert '  "b" -> "in" [ltail="cluster_3", lhead="cluster_1"];' in lines


def test_keys_that_dot_cannot_hold_stay_apart():
    keys = ["\0", "\1", "\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER} (0)", '"', "\\"]
    text = dot.written(Picture(boxes=[Box(key=key, name="x") for key in keys]))
    ids = re.findall(r'^  ("(?:[^"\\]|\\.)*") \[label="x"', text, re.MULTILINE)
    assert len(set(ids)) == len(keys)
