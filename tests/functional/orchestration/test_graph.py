"""GET /ext/v1/stacks/{stack}/graph: places, folded groups, and what is still to come."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bloomery.api.orchestration import app
from bloomery.db.tables import RESOURCES
from tests.fakes.client import Client
from tests.functional.orchestration.test_lives import BROKEN
from tests.kit.clients.stack_calls import VALUE, StackCalls


@pytest.fixture
def calls(tmp_path):
    made = StackCalls(tmp_path)
    yield made
    made.db.close()


def graph_of(calls, stack):
    graph = calls.operations.describe_graph(calls.member, stack)
    return graph, {each["name"]: each for each in graph["nodes"]}


def after(*names, **more):
    return {**VALUE, "depends_on": list(names), **more}


def test_what_is_required_stands_left_of_what_requires_it(calls):
    web = calls.create(
        "web", resources={"d": after("b", "c"), "b": after("a"), "c": after("a"), "a": VALUE}
    )
    calls.work(web)
    graph, nodes = graph_of(calls, web)
    assert graph["stack"] == {
        "id": web.uuid, "stack_name": "web", "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": calls.row(web).reason,
    }  # fmt: skip
    assert {name: node["layer"] for name, node in nodes.items()} == {"a": 0, "b": 1, "c": 1, "d": 2}
    assert {(nodes[name]["layer"], nodes[name]["row"]) for name in "bc"} == {(1, 0), (1, 1)}
    edges = {(each["from"], each["to"]) for each in graph["edges"]}
    assert edges == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}
    assert graph["counts"] == {"COMPLETE": 4}
    assert graph["last_event_id"] > 0
    api = Client(app.make_app(calls.services, calls.operations), version=None)
    assert api.get(f"/ext/v1/stacks/{web.uuid}/graph").json == graph
    assert api.get("/ext/v1/stacks/unknown/graph").status == 404


def test_what_is_not_created_yet_is_drawn_too(calls):
    web = calls.create("web", resources={"bad": BROKEN, "later": after("bad"), "good": VALUE})
    graph, nodes = graph_of(calls, web)
    assert {node["status"] for node in nodes.values()} == {None}
    assert graph["counts"] == {"INIT": 3}
    calls.work(web)
    graph, nodes = graph_of(calls, web)
    states = {name: (node["action"], node["status"]) for name, node in nodes.items()}
    assert states == {
        "bad": ("CREATE", "FAILED"), "good": ("CREATE", "COMPLETE"), "later": ("INIT", None),
    }  # fmt: skip
    assert nodes["bad"]["reason"]
    assert nodes["later"]["layer"] > nodes["bad"]["layer"]
    assert {"from": "bad", "to": "later"} in graph["edges"]


def test_members_of_a_group_are_folded_with_the_failed_ones_first(calls):
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 60, "resource_def": VALUE},
    }  # fmt: skip
    web = calls.create("web", resources={"g": group, "after": after("g")})
    calls.work(web)
    _, nodes = graph_of(calls, web)
    assert set(nodes) == {"g", "after"}
    assert (nodes["g"]["count"], nodes["g"]["counts"]) == (60, {"COMPLETE": 60})
    assert len(nodes["g"]["children"]) == 50
    fail = sa.update(RESOURCES).where(RESOURCES.c.name == "31").values(status="FAILED")
    calls.db.transact(lambda conn: conn.execute(fail))
    _, nodes = graph_of(calls, web)
    assert nodes["g"]["counts"] == {"COMPLETE": 59, "FAILED": 1}
    assert (nodes["g"]["children"][0]["name"], nodes["g"]["children"][0]["status"]) == (
        "31", "FAILED",
    )  # fmt: skip


def test_a_wide_stack_is_no_single_column(calls):
    web = calls.create("web", resources={f"r{n}": VALUE for n in range(200)})
    _, nodes = graph_of(calls, web)
    places = {(node["layer"], node["row"]) for node in nodes.values()}
    assert len(places) == 200
    assert max(row for _, row in places) < 25


def test_a_stack_that_goes_draws_what_is_left(calls):
    web = calls.create("web", resources={"a": VALUE, "b": after("a")})
    calls.work(web)
    calls.operations.delete_stack(calls.member, web)
    graph, nodes = graph_of(calls, web)
    assert set(nodes) == {"a", "b"}
    calls.work(web)
    graph, nodes = graph_of(calls, web)
    assert (graph["nodes"], graph["edges"], graph["counts"]) == ([], [], {})
