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


def cycle_of(asked: Graph[Any]) -> tuple[Any, ...] | None:
    try:
        asked.order()
    except graph.Cycle as cycle:
        return cycle.keys
    return None


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
    assert list(diamond.reverse()) == ["d", "e", "b", "c", "a"]
    assert diamond.order() == list(Graph(DIAMOND))


def test_an_empty_graph_has_nothing_and_no_cycle():
    empty = Graph[str]()
    assert (list(empty), len(empty)) == ([], 0)
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
    assert cycle_of(Graph(edges)) == cycle


@pytest.mark.parametrize("ask", [iter, list, Graph.order])
def test_whoever_asks_for_an_order_is_told_of_the_cycle_before_the_first_key(ask: Any):
    with pytest.raises(graph.Cycle) as told:
        ask(Graph([("a", "b"), ("b", "a"), ("c", None)]))
    assert told.value.keys == ("a", "b")
    assert told.value.names == ["a", "b", "a"]
    assert str(told.value) == "a -> b -> a"
    assert repr(told.value) == "Cycle(('a', 'b'))"


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


def test_edges_make_the_same_graph_again(diamond: Graph[str]):
    assert Graph(diamond.edges()) == diamond
    assert repr(diamond).startswith("Graph([('b', 'a'), ")
    assert diamond != "a"


@pytest.mark.parametrize("ask", [Graph.requires, Graph.required_by, Graph.remove])
def test_an_unknown_key_is_a_key_error(diamond: Graph[str], ask: Any):
    with pytest.raises(KeyError):
        ask(diamond, "nobody")


def test_a_walk_tells_who_has_become_ready(diamond: Graph[str]):
    walk = diamond.walk()
    assert walk.first == ["a", "e"]
    assert walk.finish("a") == ["b", "c"]
    assert walk.finish("c") == []
    assert walk.finish("b") == ["d"]
    assert list(walk.unmet) == ["d", "e"]


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
        assert (cycle_of(big) is not None) == (shape == "a ring")
        for key in range(10_000):
            big.remove(key)

    assert work.calls(use) < 600_000  # at most 36 for a key; a square would be a hundred million


KEYS = st.integers(0, 12)


@given(st.lists(st.tuples(KEYS, st.none() | KEYS), max_size=30))
def test_orders_hold_for_any_graph(edges: list[tuple[int, int | None]]):
    made = Graph(edges)
    cycle = cycle_of(made)
    if cycle:
        for one, needs in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            assert needs in made.requires(one)
        assert len(set(cycle)) == len(cycle)
        return
    order = made.order()
    place = {key: at for at, key in enumerate(order)}
    assert sorted(order) == sorted({key for pair in edges for key in pair} - {None})
    for key in order:
        assert all(place[need] < place[key] for need in made.requires(key))


@given(st.lists(st.tuples(KEYS, st.none() | KEYS), max_size=30))
def test_a_graph_turned_twice_or_made_of_its_edges_is_the_same(
    edges: list[tuple[int, int | None]],
):
    made = Graph(edges)
    assert made.reverse().reverse() == made == Graph(made.edges())


def test_a_bypassed_key_leaves_its_order_behind():
    made = graph.Graph([("d", "b"), ("d", "c"), ("b", "a"), ("c", "a"), ("e", "b")])
    made.bypass("b")
    assert set(made.edges()) == {("d", "a"), ("d", "c"), ("c", "a"), ("e", "a")}


def test_a_bypassed_leaf_leaves_its_requirers_ready():
    made = graph.Graph([("b", "a"), ("c", "a")])
    made.bypass("a")
    assert set(made.edges()) == {("b", None), ("c", None)}
