"""Nodes that are given out: what an allocation may ask for, which node it gets, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.conformance.ironic.script import MISSING, Script

NOBODY: Final = {"resource_class": "nobodys"}
LISTS: Final = (
    "", "?detail=true", "?detail=false", "?state=x", "?state=", "?owner=x", "?owner=", "?name=x",
    "?node=nobody", "?node=a%20b", "?node=", "?resource_class=", "?resource_class=nobodys&limit=1",
    "?limit=1&fields=uuid,name", "?limit=1", "?sort_key=node_uuid", "?sort_key=traits",
    "?sort_key=extra", "?sort_key=candidate_nodes", "?sort_key=state&sort_dir=desc",
    "?sort_key=nonsense", "?marker=x", "?state=error&state=x", "/detail",
)  # fmt: skip
FIELDS: Final = ("uuid,name", "", "node", "links,created_at", "owner", "conductor_affinity")
BODIES: Final[tuple[Any, ...]] = (
    MISSING, {}, [], 7, {"resource_class": ""}, {"resource_class": None}, {"resource_class": 5},
    {"resource_class": "x" * 80}, {"resource_class": "x" * 81},
    *(
        NOBODY | more
        for more in (
            {"name": "a b"}, {"name": "x" * 256}, {"name": 5}, {"name": "", "extra": {"a": 1}},
            {"name": "", "uuid": ""}, {"uuid": 5}, {"uuid": None, "traits": None, "extra": None},
            {"candidate_nodes": None, "name": None}, {"traits": ["X"]}, {"traits": []},
            {"traits": {}}, {"traits": ["CUSTOM_A", "CUSTOM_A"]}, {"traits": [5]},
            {"candidate_nodes": []}, {"candidate_nodes": ["nobody"]}, {"candidate_nodes": [5]},
            {"candidate_nodes": ["a b"]}, {"candidate_nodes": [""]}, {"candidate_nodes": "a"},
            {"extra": []}, {"extra": {"a": {"b": [1]}}}, {"owner": "p"}, {"owner": ""},
            {"owner": None}, {"owner": 5}, {"node": None}, {"node": ""}, {"state": "active"},
            {"id": 5}, {"node_uuid": None}, {"last_error": None}, {"nonsense": 1},
        )
    ),
    {"node": "nobody"}, {"node": "a b"}, {"node": 5},
)  # fmt: skip
PATCHES: Final = (
    ("replace", "/name", "b"), ("remove", "/name"), ("add", "/name", "b"), ("replace", "/name", ""),
    ("replace", "/name", "a b"), ("replace", "/name", None), ("replace", "/name", 5),
    ("replace", "/extra/x", 1), ("add", "/extra/x", 1), ("remove", "/extra"),
    ("replace", "/extra", []), ("replace", "/extra", None), ("replace", "/owner", "x"),
    ("replace", "/state", "x"), ("replace", "/resource_class", "x"), ("replace", "/nonsense", "x"),
    ("replace", "/name/x", "x"), ("remove", "/node_uuid"), ("add", "/traits/-", "CUSTOM_A"),
)  # fmt: skip


def _free(script: Script, kind: str, **values: Any) -> str:
    """Enrol a node that an allocation may take: its power state must be known."""
    node = script.node("available", resource_class=kind, **values)
    script.put(f"/nodes/{node}/states/power", {"target": "power on"})
    return node


def bodies(script: Script) -> None:
    node = script.node(name="alone")
    for body in BODIES:
        script.post("/allocations", body)
    for version in (51, 52, 57, 58, 59, 60):
        script.post("/allocations", NOBODY, version)
        script.post("/allocations", NOBODY | {"owner": None}, version)
        script.post("/allocations", NOBODY | {"node": None}, version)
    uuid, name = script.uuid(), script.uuid()
    script.post("/allocations", NOBODY | {"uuid": uuid, "name": name})
    script.post("/allocations", NOBODY | {"uuid": uuid})
    script.post("/allocations", NOBODY | {"name": name})
    script.post("/allocations", NOBODY | {"candidate_nodes": ["alone", "alone", node]})
    for ident in (uuid, name, "nobody", "a%20b"):
        script.get(f"/allocations/{ident}")


def reads(script: Script) -> None:
    uuid = script.uuid()
    script.post("/allocations", NOBODY | {"uuid": uuid, "name": "web", "extra": {"a": 1}})
    script.post("/allocations", {"resource_class": "others", "uuid": script.uuid()})
    for query in LISTS:
        script.get(f"/allocations{query}")
    for version in (51, 52, 59, 60):
        script.get("/allocations", version)
        script.get("/allocations?owner=x", version)
        for fields in FIELDS:
            script.get(f"/allocations/{uuid}?fields={fields}", version)


def changes(script: Script) -> None:
    uuid = script.uuid()
    script.post("/allocations", NOBODY | {"uuid": uuid})
    script.post("/allocations", NOBODY | {"uuid": script.uuid(), "name": "taken"})
    for operation in PATCHES:
        script.change(f"/allocations/{uuid}", *operation)
        script.change("/allocations/nobody", *operation)
    for body in ([], {}, MISSING):
        script.patch(f"/allocations/{uuid}", body)
    script.change(f"/allocations/{uuid}", "replace", "/name", "taken")
    for version in (51, 56, 57):
        script.patch(f"/allocations/{uuid}", [], version)
    script.put(f"/allocations/{uuid}", {})
    script.delete("/allocations/nobody")
    script.delete(f"/allocations/{uuid}", 51)
    script.delete(f"/allocations/{uuid}")
    script.get(f"/allocations/{uuid}")


def lives(script: Script) -> None:
    node, other = _free(script, "large", name="one"), _free(script, "other", name="two")
    script.put(f"/nodes/{other}/traits", {"traits": ["CUSTOM_A"]})
    first, second = script.uuid(), script.uuid()
    script.post("/allocations", {"resource_class": "large", "uuid": first, "name": "w1"})
    _look(script, node, first)
    script.delete(f"/nodes/{node}")
    for more in ({}, {"candidate_nodes": ["one"]}):
        failing = script.uuid()
        script.post("/allocations", {"resource_class": "large", "uuid": failing} | more)
        script.get(f"/allocations/{failing}")
    failing = script.uuid()
    wish = {"resource_class": "other", "traits": ["CUSTOM_B"]}
    script.post("/allocations", wish | {"uuid": failing})
    script.get(f"/allocations/{failing}")
    script.post("/allocations", wish | {"uuid": second, "traits": ["CUSTOM_A"]})
    _look(script, other, second)
    script.change(f"/nodes/{other}", "replace", "/instance_uuid", script.uuid())
    script.change(f"/nodes/{other}", "remove", "/instance_uuid")
    _look(script, other, second)
    script.provision(node, "active")
    for path in (f"/allocations/{first}", f"/nodes/{node}/allocation"):
        script.delete(path)
    script.change(f"/nodes/{node}", "remove", "/instance_uuid")
    script.provision(node, "deleted")
    _look(script, node, first)


def backfill(script: Script) -> None:
    node, instance = script.node("manageable", resource_class="large", name="one"), script.uuid()
    script.node(name="two", resource_class="large")
    script.post("/allocations", {"node": "two", "name": "f0"})
    script.change(f"/nodes/{node}", "add", "/instance_uuid", instance)
    script.provision(node, "provide")
    script.provision(node, "active")
    for name, more in (
        ("f1", {"resource_class": "small"}), ("f2", {"candidate_nodes": ["two"]}),
        ("f3", {"traits": ["CUSTOM_A"]}),
    ):  # fmt: skip
        script.post("/allocations", {"node": "one", "name": name, "uuid": instance} | more)
        script.get(f"/allocations/{name}")
        script.delete(f"/allocations/{name}")
    script.post("/allocations", {"node": node, "name": "f4", "candidate_nodes": ["one"]})
    _look(script, node, instance)
    script.post("/allocations", {"node": "one", "name": "f5"})
    script.put(f"/nodes/{node}/maintenance", {})
    script.delete(f"/nodes/{node}/allocation")
    _look(script, node, instance)


def _look(script: Script, node: str, allocation: str) -> None:
    script.get(f"/allocations/{allocation}")
    script.get(f"/nodes/{node}?fields=allocation_uuid,instance_uuid,instance_info")
    for query in ("", "?fields=name", "?fields=x"):
        script.get(f"/nodes/{node}/allocation{query}")
    for version in (51, 52, 59):
        script.get(f"/nodes/{node}/allocation", version)
    script.get(f"/allocations?node={node}&fields=uuid")


def below_nodes(script: Script) -> None:
    node = script.node()
    for ident in (node, "nobody", "a%20b"):
        for version in (51, 52, 115):
            for method in ("GET", "DELETE", "PUT", "PATCH", "POST"):
                script.ask(method, f"/nodes/{ident}/allocation", at=version)


STORIES: Final = (bodies, reads, changes, lives, backfill, below_nodes)


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(f"{tell.__name__.replace('_', ' ')} of allocations", seed)
        tell(script)
        yield script
