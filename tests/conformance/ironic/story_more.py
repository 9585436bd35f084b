"""Allocations, inspection rules, events and agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.conformance.ironic.script import NEWEST, Script

NOBODY: Final = "12345678-1234-4234-8234-123456789abc"
SET: Final = {"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}
IF: Final = {"op": "eq", "args": {"values": [1, 1]}}
RULES: Final[tuple[dict[str, Any], ...]] = (
    {}, {"actions": []}, {"conditions": []}, {"actions": [SET], "conditions": []},
    {"actions": [SET], "conditions": [IF]}, {"actions": [SET], "conditions": None},
    {"actions": [SET], "conditions": [], "priority": 9999},
    {"actions": [SET], "conditions": [], "priority": 10000},
    {"actions": [SET], "conditions": [], "priority": -1},
    {"actions": [SET], "conditions": [], "priority": "5"},
    {"actions": [SET], "conditions": [], "phase": "main"},
    {"actions": [SET], "conditions": [], "phase": "x"},
    {"actions": [SET], "conditions": [], "phase": None},
    {"actions": [SET], "conditions": [], "sensitive": True},
    {"actions": [SET], "conditions": [], "sensitive": "yes"},
    {"actions": [SET], "conditions": [], "description": "d"},
    {"actions": [SET], "conditions": [], "description": "x" * 256},
    {"actions": [SET], "conditions": [], "scope": "x"},
    {"actions": [SET], "conditions": [], "x": 1},
    {"actions": [{"op": "nope", "args": {}}], "conditions": []},
    {"actions": [{"op": "fail", "args": {"msg": "m"}}], "conditions": [{"op": "x", "args": {}}]},
    {"actions": [SET | {"loop": ["a", "b"]}], "conditions": [IF | {"multiple": "any"}]},
    {"actions": [SET], "conditions": [{"op": "!eq", "args": {"values": [1, 2]}}]},
    {"actions": [SET], "conditions": [{"op": "is-none", "args": {"value": "{node.name}"}}]},
    {"actions": [SET], "conditions": [{"op": "eq", "args": [1, 1]}]},
)  # fmt: skip


def allocations(script: Script) -> None:
    node = script.node("available", name="a", resource_class="rc")
    ident = script.uuid()
    for body in (
        {}, {"resource_class": ""}, {"resource_class": "x" * 81}, {"resource_class": 5},
        {"resource_class": "none", "uuid": ident, "name": "first"},
        {"resource_class": "rc", "uuid": ident}, {"resource_class": "rc", "name": "first"},
        {"resource_class": "rc", "name": "a b"}, {"resource_class": "rc", "name": NOBODY},
        {"resource_class": "rc", "candidate_nodes": ["nobody"]},
        {"resource_class": "rc", "candidate_nodes": "a"},
        {"resource_class": "rc", "candidate_nodes": []},
        {"resource_class": "rc", "traits": ["CUSTOM_X"]}, {"resource_class": "rc", "traits": ["x"]},
        {"resource_class": "rc", "extra": []}, {"resource_class": "rc", "x": 1},
        {"resource_class": "rc", "state": "active"}, {"resource_class": "rc", "node_uuid": node},
        {"resource_class": "rc", "node": "nobody"}, {"resource_class": "rc", "owner": None},
    ):  # fmt: skip
        script.post("/allocations", body)
    script.get("/allocations")
    for query in ("state=error", "state=x", "node=a", "node=nobody", "resource_class=rc", "owner=x",
                  "detail=true", "limit=1", "fields=uuid,state", "fields=x", "sort_key=node_uuid",
                  f"marker={ident}", "sort_key=name&sort_dir=desc", "x=1"):  # fmt: skip
        script.get(f"/allocations?{query}")
        script.get(f"/allocations?{query}", 52)
    for path in ("first", ident, NOBODY, "a%20b", "nobody", "first?fields=state"):
        script.get(f"/allocations/{path}")
        script.get(f"/allocations/{path}", 51)
    for member, value in (("/name", "second"), ("/extra", {"a": 1}), ("/state", "active"),
                          ("/name", None), ("/resource_class", "x"), ("/name", "a b")):  # fmt: skip
        script.change(f"/allocations/{ident}", "add", member, value)
        script.change(f"/allocations/{ident}", "remove", member)
    script.change(f"/allocations/{ident}", "add", "/extra/b", 1, at=56)
    script.delete(f"/allocations/{ident}")
    script.delete(f"/allocations/{ident}")
    script.delete("/allocations/nobody")


def allocated(script: Script) -> None:
    """Let an allocation take a node, and lead the node through its life."""
    nodes = [script.node("available", name="a", resource_class="rc"),
             script.node("available", name="b", resource_class="rc")]  # fmt: skip
    script.put("/nodes/b/traits/CUSTOM_T")
    first, second = script.uuid(), script.uuid()
    script.post("/allocations", {"uuid": first, "resource_class": "rc", "candidate_nodes": ["a"]})
    script.get(f"/allocations/{first}")
    script.post("/allocations", {"uuid": second, "resource_class": "rc", "traits": ["CUSTOM_T"]})
    script.get(f"/allocations/{second}")
    for node in nodes:
        script.get(f"/nodes/{node}")
        script.get(f"/nodes/{node}/allocation")
    script.get("/nodes/a/allocation?fields=uuid")
    script.get("/nodes/a/allocation", 51)
    script.get("/nodes/nobody/allocation")
    script.delete("/nodes/nobody/allocation")
    script.change("/nodes/a", "replace", "/instance_uuid", script.uuid())
    script.provision("a", "active")
    script.delete(f"/allocations/{first}")
    script.delete("/nodes/a/allocation")
    script.change("/nodes/a", "remove", "/instance_uuid")
    script.provision("a", "deleted")
    script.get(f"/allocations/{first}")
    script.get("/nodes/a?fields=instance_uuid,allocation_uuid,instance_info")
    script.delete("/nodes/b/allocation")
    script.get(f"/allocations/{second}")
    script.get("/nodes/b?fields=instance_uuid,allocation_uuid,instance_info")


def backfill(script: Script) -> None:
    node, other = script.node("adopted", name="n"), script.node("adopted", name="o")
    ident, instance = script.uuid(), script.uuid()
    script.change("/nodes/o", "add", "/instance_uuid", instance)
    script.post("/allocations", {"uuid": ident, "node": "n", "resource_class": "x"})
    script.post("/allocations", {"uuid": ident, "node": "n"}, 57)
    script.post("/allocations", {"uuid": ident, "node": "n"})
    script.get(f"/allocations/{ident}")
    script.post("/allocations", {"node": "n", "uuid": script.uuid()})
    script.post("/allocations", raw=b'{"node": "o", "name": "back"}')
    script.get("/allocations/back")
    script.get(f"/nodes/{node}?fields=instance_uuid,allocation_uuid")
    script.get(f"/nodes/{other}?fields=instance_uuid,allocation_uuid")
    script.post("/allocations", {"node": "nobody"})


def rules(script: Script) -> None:
    for body in RULES:
        script.post("/inspection_rules", body)
    script.get("/inspection_rules")
    for query in ("phase=main", "phase=x", "detail=true", "fields=uuid,actions",
                  "sort_key=priority",
                  "sort_key=actions", "limit=1", "x=1"):  # fmt: skip
        script.get(f"/inspection_rules?{query}")
        script.get(f"/inspection_rules?{query}", 95)
    ident = script.uuid()
    script.post("/inspection_rules", {"uuid": ident, "actions": [SET], "conditions": [IF]})
    path = f"/inspection_rules/{ident}"
    script.post("/inspection_rules", {"uuid": ident, "actions": [SET], "conditions": [IF]})
    for member, value in (("/description", "d"), ("/priority", 7), ("/priority", -1), ("/x", 1),
                          ("/actions", []), ("/conditions/0", IF), ("/sensitive", True),
                          ("/sensitive", False), ("/uuid", NOBODY), ("/phase", "x")):  # fmt: skip
        script.change(path, "replace", member, value)
        script.get(path)
    for word in ("x", NOBODY, ident):
        script.get(f"/inspection_rules/{word}", 95)
        script.patch(f"/inspection_rules/{word}", [])
        script.delete(f"/inspection_rules/{word}")


def events(script: Script) -> None:
    port = {"event": "network.bind_port", "port_id": NOBODY, "mac_address": "52:54:00:11:22:33",
            "status": "ACTIVE"}  # fmt: skip
    for body in (
        {}, {"events": []}, {"events": [port]}, {"events": [port, port | {"event": "x"}]},
        {"events": [port | {"port_id": "x"}]}, {"events": [port | {"mac_address": "x"}]},
        {"events": [{"event": "network.bind_port"}]}, {"events": [port | {"x": 1}]},
        {"events": [port | {"device_id": "d", "binding:host_id": "h", "binding:vnic_type": "b"}]},
        {"events": [port | {"event": "network.delete_port", "status": 5}]}, {"events": {}},
        {"events": [5]}, {"x": 1}, [],
    ):  # fmt: skip
        script.post("/events", body)
        script.post("/events", body, 53)


def agents(script: Script) -> None:
    node, address = script.node("manageable", name="n"), script.mac()
    script.post("/ports", {"node_uuid": node, "address": address})
    for query in ("", f"addresses={address}", f"node_uuid={node}", "node_uuid=x", "addresses=x",
                  f"node_uuid={NOBODY}", "addresses=52:54:00:99:99:99", "x=1",
                  "addresses="):  # fmt: skip
        for minor in (21, 22, NEWEST):
            script.get(f"/lookup?{query}", minor)
    url = "http://127.0.0.1:9999"
    for body in ({}, {"callback_url": url}, {"callback_url": url, "agent_token": "x"},
                 {"callback_url": url, "agent_version": "9.9", "agent_token": "x"},
                 {"callback_url": url, "agent_token": "x", "x": 1}, {"agent_token": "x"},
                 {"callback_url": url, "agent_token": "x", "agent_status": "start"}):  # fmt: skip
        for minor in (21, 22, 35, 61, NEWEST):
            script.post(f"/heartbeat/{node}", body, minor)
        script.post("/heartbeat/n", body)
        script.post("/heartbeat/nobody", body)
    for body in ({}, [], {"inventory": {}}, {"inventory": {"interfaces": []}}):
        script.post("/continue_inspection", body)
        script.post(f"/continue_inspection?node_uuid={node}", body)
        script.post("/continue_inspection", body, 83)
    script.get(f"/nodes/{node}/inventory")


STORIES: Final = (allocations, allocated, backfill, rules, events, agents)


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
