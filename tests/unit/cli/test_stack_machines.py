"""Which nodes are machines of a stack, for orders that leave its template alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from bloomery.cli import stack_machines

STACK = {"stack_name": "web", "id": "S"}
INSTANCE = stack_machines.INSTANCE


def resource(name: str, kind: str, uuid: str | None, stack: str = "S") -> dict[str, Any]:
    links = [{"rel": "stack", "href": f"http://h/v1/p/stacks/n/{stack}"}]
    return {
        "resource_name": name, "resource_type": kind, "physical_resource_id": uuid, "links": links,
    }  # fmt: skip


def node(uuid: str, mark: Any) -> dict[str, Any]:
    return {"uuid": uuid, "name": f"n-{uuid}", "instance_info": {"stack": mark} if mark else {}}


def machines(
    rows: list[dict[str, Any]], nodes: list[dict[str, Any]], *paths: str
) -> dict[str, tuple[str, str, str | None]]:
    orchestration = SimpleNamespace(get=lambda path: {"resources": rows})
    baremetal = SimpleNamespace(pages=lambda path, key: iter(nodes))
    service: Any = SimpleNamespace(orchestration=orchestration, nodes=baremetal)
    listed = stack_machines.list_machines(service, STACK, paths)
    return {uuid: (each["resource"], each["node"], each["error"]) for uuid, each in listed.items()}


OURS = {"stack_id": "S", "resource": "web"}
GROUP = [
    resource("g", "OS::Ironic::InstanceGroup", "C"),
    resource("0", INSTANCE, "a", "C"),
    resource("1", INSTANCE, "b", "C"),
]
MEMBERS = [
    node("a", {"stack_id": "C", "resource": "0"}),
    node("b", {"stack_id": "C", "resource": "1"}),
]


@pytest.mark.parametrize(
    ("rows", "nodes", "paths", "expected"),
    [
        ([resource("web", INSTANCE, "a")], [node("a", OURS)], [], {"a": ("web", "n-a", None)}),
        ([resource("web", "My::Web", "a")], [node("a", OURS)], [], {"a": ("web", "n-a", None)}),
        ([resource("web", INSTANCE, "a"), resource("rack", "OS::Ironic::Node", "a")],
         [node("a", OURS)], [], {"a": ("web", "n-a", None)}),
        ([resource("rack", "OS::Ironic::Node", "a"), resource("web", INSTANCE, "a")],
         [node("a", OURS)], [], {"a": ("web", "n-a", None)}),
        ([resource("web", INSTANCE, None), resource("db", INSTANCE, "b")],
         [node("b", {"stack_id": "S", "resource": "db"})], [], {"b": ("db", "n-b", None)}),
        ([resource("web", INSTANCE, "a")], [node("a", {"stack_id": "T", "resource": "web"})], [],
         {"a": ("web", "n-a", "it is not this resource's any more")}),
        ([resource("web", INSTANCE, "a")], [node("a", "of books")], [],
         {"a": ("web", "n-a", "it is not this resource's any more")}),
        ([resource("web", INSTANCE, "a")], [], [],
         {"a": ("web", "a", "it is not there, or you may not see it")}),
        (GROUP, MEMBERS, [], {"a": ("g/0", "n-a", None), "b": ("g/1", "n-b", None)}),
        (GROUP, MEMBERS, ["g/1"], {"b": ("g/1", "n-b", None)}),
        ([*GROUP, resource("g2", INSTANCE, "c")], MEMBERS, ["g"],
         {"a": ("g/0", "n-a", None), "b": ("g/1", "n-b", None)}),
    ],
    ids=["an instance", "a type of an environment", "with its node", "behind its node", "none yet",
         "of another stack", "no mark", "unseen", "a group", "a member", "not what begins alike"],
)  # fmt: skip
def test_machines_are_nodes_with_the_mark_of_their_resource(
    rows: Any, nodes: Any, paths: list[str], expected: Any
) -> None:
    assert machines(rows, nodes, *paths) == expected


@pytest.mark.parametrize(
    ("rows", "paths", "refusal"),
    [
        ([], [], "stack web has no machine"),
        (GROUP[:1], ["g"], "g of stack web has no machine"),
        (GROUP, ["g", "g/2"], "stack web has no resource g/2"),
    ],
)
def test_resources_without_machines_are_refused(rows: Any, paths: list[str], refusal: str) -> None:
    with pytest.raises(click.ClickException, match=refusal):
        machines(rows, MEMBERS, *paths)
