from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery.orchestration import graph
from bloomery.orchestration.graph import Graph
from tests.kit import work

# b and c need a, d needs b and c, e stands alone: the graph of the scheduler's vectors.
DIAMOND = (("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("e", None))


@pytest.fixture
def diamond():
    return Graph(DIAMOND)


def test_leaves_require_nothing_and_roots_are_required_by_nothing(diamond: Graph[str]):
    assert (set(diamond.leaves()), set(diamond.roots())) == ({"a", "e"}, {"d", "e"})


@pytest.mark.parametrize(
    ("key", "requires", "required_by"),
    [
        ("a", set(), {"b", "c"}),
        ("b", {"a"}, {"d"}),
        ("d", {"b", "c"}, set()),
        ("e", set(), set()),
    ],
)
def test_each_key_knows_both_sides(
    diamond: Graph[str], key: str, requires: set[str], required_by: set[str]
):
    assert diamond.requires(key) == requires
    assert diamond.required_by(key) == required_by


def test_an_edge_said_twice_is_one():
    twice = Graph([("b", "a"), ("b", "a"), ("b", None)])
    assert list(twice.edges()) == [("b", "a")]
    assert len(twice) == 2


def test_what_is_required_comes_first_and_the_same_input_always_gives_the_same_order(
    diamond: Graph[str],
):
    assert list(diamond) == ["a", "e", "b", "c", "d"]
    assert list(reversed(diamond)) == ["d", "c", "b", "e", "a"]
    assert diamond.order() == list(Graph(DIAMOND))


def test_frontiers_hold_what_may_run_side_by_side(diamond: Graph[str]):
    assert diamond.frontiers() == [{"a", "e"}, {"b", "c"}, {"d"}]


def test_an_empty_graph_has_nothing_and_no_cycle():
    empty = Graph[str]()
    assert (list(empty), empty.frontiers(), empty.find_cycle(), len(empty)) == ([], [], None, 0)
    assert not empty


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("a", "a")], ("a",)),
        ([("a", "b"), ("b", "a")], ("a", "b")),
        ([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "z")], ("a", "b", "c")),
        ([("first", "p"), ("q", "p"), ("p", "r"), ("r", "q")], ("p", "r", "q")),
        (DIAMOND, None),
    ],
)
def test_a_cycle_is_found_and_named_from_its_first_key(
    edges: list[tuple[str, str | None]], cycle: tuple[str, ...] | None
):
    assert Graph(edges).find_cycle() == cycle


@pytest.mark.parametrize("ask", [iter, list, reversed, Graph.order, Graph.frontiers])
def test_whoever_asks_for_an_order_is_told_of_the_cycle_before_the_first_key(ask: Any):
    with pytest.raises(graph.Cycle) as told:
        ask(Graph([("a", "b"), ("b", "a"), ("c", None)]))
    assert told.value.keys == ("a", "b")
    assert told.value.names == ["a", "b", "a"]
    assert str(told.value) == "a -> b -> a"
    assert repr(told.value) == "Cycle(('a', 'b'))"


def test_a_subgraph_is_the_key_and_all_that_needs_it(diamond: Graph[str]):
    assert diamond.subgraph("b") == Graph([("d", "b")])
    assert diamond.subgraph("a") == Graph(DIAMOND[:4])
    assert diamond.subgraph("e") == Graph([("e", None)])


def test_reversed_copies_leave_the_original_alone(diamond: Graph[str]):
    turned = diamond.reverse()
    turned.remove("a")
    assert list(turned.edges()) == [("b", "d"), ("c", "d"), ("e", None)]
    assert diamond == Graph(DIAMOND)
    assert diamond.copy() == diamond
    assert diamond.copy() is not diamond


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("a", [("d", "b"), ("d", "c"), ("e", None)]),
        ("d", [("b", "a"), ("c", "a"), ("e", None)]),
        ("e", DIAMOND[:4]),
    ],
)
def test_a_removed_key_takes_its_edges_along(
    diamond: Graph[str], key: str, left: list[tuple[str, str | None]]
):
    diamond.remove(key)
    assert key not in diamond
    assert diamond == Graph(left)


def test_a_key_that_requires_itself_can_be_removed():
    knot = Graph([("a", "a"), ("b", "a")])
    knot.remove("a")
    assert knot == Graph([("b", None)])


def test_translated_keys_keep_their_edges(diamond: Graph[str]):
    assert diamond.translate(str.upper) == Graph(
        (one.upper(), two and two.upper()) for one, two in DIAMOND
    )


def test_keys_that_become_one_share_their_edges():
    assert Graph([("b1", "a"), ("b2", "c")]).translate(lambda key: key[0]) == Graph(
        [("b", "a"), ("b", "c")]
    )
    assert Graph([("b1", "b2")]).translate(lambda key: key[0]).find_cycle() == ("b",)


def test_edges_make_the_same_graph_again(diamond: Graph[str]):
    assert Graph(diamond.edges()) == diamond
    assert repr(diamond).startswith("Graph([('b', 'a'), ")
    assert diamond != "a"


@pytest.mark.parametrize("ask", [Graph.requires, Graph.required_by, Graph.remove, Graph.subgraph])
def test_an_unknown_key_is_a_key_error(diamond: Graph[str], ask: Any):
    with pytest.raises(KeyError):
        ask(diamond, "nobody")


def test_a_walk_tells_who_has_become_ready(diamond: Graph[str]):
    walk = diamond.walk()
    assert walk.first == ["a", "e"]
    assert walk.finish("a") == ["b", "c"]
    assert walk.finish("c") == []
    assert walk.finish("b") == ["d"]
    assert list(walk.left) == ["d", "e"]


def test_a_reverse_walk_begins_at_the_roots(diamond: Graph[str]):
    walk = diamond.walk(reverse=True)
    assert walk.first == ["d", "e"]
    assert walk.finish("d") == ["b", "c"]


SHAPES = {
    "a chain": lambda size: [(n, n - 1) for n in range(1, size)],
    "a star": lambda size: [(n, 0) for n in range(1, size)],
    "a funnel": lambda size: [(0, n) for n in range(1, size)],
    "a ring": lambda size: [(n, (n + 1) % size) for n in range(size)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_keys_cost_little_and_no_recursion(shape: str):
    edges = SHAPES[shape](10_000)

    def use() -> None:
        big = Graph(edges)
        assert (big.find_cycle() is not None) == (shape == "a ring")
        if shape != "a ring":
            big.order(), big.frontiers(), big.subgraph(0), big.translate(str)
        for key in range(10_000):
            big.remove(key)

    assert work.calls(use) < 600_000  # at most 36 for a key; a square would be a hundred million


KEYS = st.integers(0, 12)


@given(st.lists(st.tuples(KEYS, st.none() | KEYS), max_size=30))
def test_orders_hold_for_any_graph(edges: list[tuple[int, int | None]]):
    made = Graph(edges)
    cycle = made.find_cycle()
    if cycle:
        for one, needs in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            assert needs in made.requires(one)
        assert len(set(cycle)) == len(cycle)
        with pytest.raises(graph.Cycle):
            made.frontiers()
        return
    order = made.order()
    place = {key: at for at, key in enumerate(order)}
    level = {key: at for at, keys in enumerate(made.frontiers()) for key in keys}
    assert (
        sorted(order) == sorted(level) == sorted({key for pair in edges for key in pair} - {None})
    )
    for key in order:
        needs = made.requires(key)
        assert all(place[need] < place[key] for need in needs)
        assert level[key] == max((level[need] + 1 for need in needs), default=0)


@given(st.lists(st.tuples(KEYS, st.none() | KEYS), max_size=30), KEYS)
def test_a_graph_turned_twice_or_made_of_its_edges_is_the_same(
    edges: list[tuple[int, int | None]], key: int
):
    made = Graph(edges)
    assert made.reverse().reverse() == made == Graph(made.edges())
    made.add(key)
    inside = made.subgraph(key)
    for one in inside.keys():  # noqa: SIM118  # iterating asks for an order
        assert one == key or set(inside.requires(one))
        assert set(inside.required_by(one)) == set(made.required_by(one))


def test_a_bypassed_key_leaves_its_order_behind():
    made = graph.Graph([("d", "b"), ("d", "c"), ("b", "a"), ("c", "a"), ("e", "b")])
    made.bypass("b")
    assert set(made.edges()) == {("d", "a"), ("d", "c"), ("c", "a"), ("e", "a")}


def test_a_bypassed_leaf_leaves_its_requirers_ready():
    made = graph.Graph([("b", "a"), ("c", "a")])
    made.bypass("a")
    assert set(made.edges()) == {("b", None), ("c", None)}
