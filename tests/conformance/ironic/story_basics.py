"""Versions, discovery, routing, idents and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.conformance.ironic.script import NEWEST, Script

SPELLINGS: Final = (
    None, "", "latest", "LATEST", "1.1", "1.115", "1.050", " 1.61 ", "1", "1.", "1.1.1", "1,50",
    "abc", "1.0", "1.116", "2.0", "0.9", "1.-1", "+1.20", "1.1e1", "latest ", "1.x", "-1.20",
)  # fmt: skip
OTHER_HEADER: Final = (
    "baremetal 1.61", "compute 2.1, baremetal 1.61", "BAREMETAL 1.61", "baremetal   1.61",
    "compute 2.1", "baremetal", "baremetal latest", "baremetal 1.999", "baremetal x", "",
    "baremetal 1.50,baremetal 1.61",
)  # fmt: skip
FIRST_SEEN: Final = {  # collections and the version that brought them
    "portgroups": 23, "volume": 32, "volume/connectors": 32, "volume/targets": 32,
    "conductors": 49, "allocations": 52, "events": 54, "deploy_templates": 55, "shards": 82,
    "runbooks": 92, "inspection_rules": 96, "lookup": 22, "heartbeat": 22,
    "continue_inspection": 84,
}  # fmt: skip
ALWAYS: Final = ("nodes", "ports", "chassis", "drivers")
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
BELOW_A_NODE: Final = {
    "states": 1, "states/power": 1, "states/provision": 1, "states/raid": 12,
    "states/boot_mode": 76, "states/secure_boot": 76, "states/console": 1, "maintenance": 1,
    "management": 1, "management/boot_device": 1, "management/boot_device/supported": 1,
    "management/inject_nmi": 29, "management/indicators": 1, "vendor_passthru": 1,
    "vendor_passthru/methods": 1, "traits": 37, "vifs": 28, "bios": 40, "firmware": 86,
    "history": 78, "inventory": 81, "children": 83, "allocation": 52, "vmedia": 89, "ports": 1,
    "portgroups": 24, "volume": 32, "volume/connectors": 32, "volume/targets": 32, "validate": 1,
}  # fmt: skip


BODIES: Final = {"states/boot_mode": {"target": "bios"}, "states/secure_boot": {"target": True}}


def spellings(script: Script) -> None:
    node = script.node()
    for version in SPELLINGS:
        script.get("/nodes", version)
        script.get("/nowhere", version)
    for version in ("1.1", "1.0", "x", "latest"):
        script.get("///", version)
        script.get(f"/nodes/{node}/states/provision", version)


def other_header(script: Script) -> None:
    for text in OTHER_HEADER:
        script.get("/chassis", None, headers={"OpenStack-API-Version": text})
        script.get("/chassis", "1.30", headers={"OpenStack-API-Version": text})
    script.get("/chassis", "abc", headers={"OpenStack-API-Version": "baremetal 1.61"})


def discovery(script: Script) -> None:
    for path in (
        "///",
        "///v1",
        "///v1/",
        "///v2",
        "///v1.1",
        "///nodes",
        "///chassis/",
        "///healthcheck",
    ):
        script.get(path, None)
    for minor in (1, 21, 22, 23, 31, 32, 48, 49, 51, 52, 53, 54, 55, 82, 83, 84, 92, 95, 96, 115):
        script.get("", minor)


def methods(script: Script) -> None:
    node = script.node()
    for method in METHODS:
        for path in ("///", "", "/nodes", f"/nodes/{node}", "/drivers", "/drivers/fake-hardware"):
            script.ask(method, path, {} if method in {"POST", "PUT"} else None)
        for below in ("states", "maintenance", "management", "traits", "vifs", "vendor_passthru"):
            if method != "POST" or below != "vifs":
                script.ask(method, f"/nodes/{node}/{below}x"[:-1])


def methods_of_collections(script: Script) -> None:
    for collection in (*ALWAYS, *FIRST_SEEN):
        for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"):
            script.ask(method, f"/{collection}")


def collections_by_version(script: Script) -> None:
    for collection, since in FIRST_SEEN.items():
        for minor in (since - 1, since, 1):
            script.get(f"/{collection}", minor)
            script.post(f"/{collection}", {}, minor)
            script.get(f"/{collection}/detail", minor)
            script.get(f"/{collection}/{'0' * 8}-0000-4000-8000-{'0' * 12}", minor)


def below_a_node_by_version(script: Script) -> None:
    node = script.node("manageable")
    for below, since in BELOW_A_NODE.items():
        for minor in sorted({max(since - 1, 1), since, NEWEST}):
            script.get(f"/nodes/{node}/{below}", minor)


def writes_below_a_node_by_version(script: Script) -> None:
    node = script.node("manageable")
    for below, since in BELOW_A_NODE.items():
        if since > 1:
            for method in ("PUT", "POST", "DELETE"):
                script.ask(method, f"/nodes/{node}/{below}", BODIES.get(below, {}), since - 1)


def segments(script: Script) -> None:
    node, port, chassis = script.node(), script.uuid(), script.uuid()
    script.post("/ports", {"uuid": port, "node_uuid": node, "address": script.mac()})
    script.post("/chassis", {"uuid": chassis})
    for path in (
        f"/ports/{port}/x", f"/nodes/{node}/detail", f"/nodes/{node}/x", f"/chassis/{chassis}/x",
        f"/nodes/{node}/states/x", f"/nodes/{node}/traits/A/b", "/nodes/detail/x", "/drivers/a/b",
        "/drivers/fake-hardware/x", "/conductors/localhost/x", "/shards/x", "/volume/x", "/x/y",
        f"/nodes/{node}/", "/nodes/", f"/nodes/{node}.json", "/nodes/states", "/nodes/vifs",
        "/nodes/ports", "/nodes/management", "/nodes/maintenance", "/nodes/a%20b", "/nodes/a%2Fb",
        "/nodes/%00", "/nodes/%C3%A4", "/ports/a%20b", "/chassis/abc", "/nodes/volume",
        f"/nodes/{node}/ports/{port}", f"/nodes/{node}/volume/x",
        f"/chassis/{chassis}/nodes/{node}",
    ):  # fmt: skip
        script.get(path)
    for path in (f"/nodes/{node}", f"/ports/{port}/x", f"/nodes/{node}/x", f"/chassis/{chassis}"):
        script.post(path, {})
    for path in (f"/nodes/{node}/x", f"/ports/{port}/x", f"/chassis/{chassis}/x"):
        script.delete(path)
        script.patch(path, [])
    script.post(f"/nodes/{node}/ports", {"node_uuid": node, "address": script.mac()})
    script.patch(f"/nodes/{node}/ports/{port}", [])
    script.delete(f"/nodes/{node}/ports/{port}")


def suffix(script: Script) -> None:
    node = script.node(name="n.json")
    script.node(name="other")
    for path in (f"/nodes/{node}.json", "/nodes/n.json", "/nodes/n", "/nodes/other.json"):
        for minor in (90, 91, None):
            script.get(path, minor)


def idents(script: Script) -> None:
    node = script.node(name="Mixed.Name-1_~")
    upper = script.uuid().upper()
    bare = script.uuid().replace("-", "")
    for ident in (upper, bare):
        script.post("/nodes", {"driver": "fake-hardware", "uuid": ident})
        for spelling in (ident, ident.lower(), ident.upper()):
            script.get(f"/nodes/{spelling}?fields=uuid")
    for minor in (1, 4, 5, 9, 10, NEWEST):
        for ident in (node, "Mixed.Name-1_~", "mixed.name-1_~", "nobody", script.uuid()):
            script.get(f"/nodes/{ident}", minor)
        script.get("/nodes/nobody/states", minor)


def accept(script: Script) -> None:
    for text in (
        "*/*", "application/*", "text/html", "application/xml", "text/html, */*",
        "application/json", "application/vnd.openstack.ironic.v1+json",
        "application/json;q=0.5, text/html",
    ):  # fmt: skip
        script.get("/nodes", headers={"Accept": text})
        script.get("/nowhere", headers={"Accept": text})
    script.get("/nodes", headers={"Accept": ""})


def bodies(script: Script) -> None:
    node = script.node("manageable")
    driver = b'{"driver": "fake-hardware"}'
    for kind in ("application/json", "text/plain", "", "application/x-www-form-urlencoded"):
        script.post("/nodes", raw=driver, headers={"Content-Type": kind})
        script.put(f"/nodes/{node}/states/power", raw=b'{"target": "power on"}',
                   headers={"Content-Type": kind})  # fmt: skip
    for raw in (b"", b"{}", b"[]", b"null", b'"x"', b"5", b"{", b"\xff", b'{"driver": 5}',
                b'{"driver": "fake-hardware", "driver": "x"}', b"[" * 30 + b"]" * 30,
                b'{"a":' * 30 + b"1" + b"}" * 30):  # fmt: skip
        script.post("/nodes", raw=raw)
        script.post("/chassis", raw=raw)
        script.put(f"/nodes/{node}/states/provision", raw=raw)
        script.put(f"/nodes/{node}/maintenance", raw=raw)
        script.patch(f"/nodes/{node}", MISSING_PATCH) if raw == b"" else None
    script.post("/nodes", {"driver": "fake-hardware", "extra": {"a": "x" * (1 << 20)}})


STEP: Final = {"interface": "deploy", "step": "deploy", "args": {}}
ACTION: Final = {"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}
MISSING_PATCH: Final = {"op": "add"}


def queries(script: Script) -> None:
    node = script.node()
    script.post("/ports", {"node_uuid": node, "address": script.mac()})
    script.post("/portgroups", {"node_uuid": node})
    script.post("/chassis")
    script.post("/volume/connectors", {"node_uuid": node, "type": "iqn", "connector_id": "a"})
    script.post("/volume/targets", {"node_uuid": node, "volume_type": "iscsi", "volume_id": "a",
                                    "boot_index": 0})  # fmt: skip
    script.post("/deploy_templates", {"name": "CUSTOM_A", "steps": [STEP | {"priority": 10}]})
    script.post("/runbooks", {"name": "CUSTOM_A", "steps": [STEP | {"order": 10}]})
    script.post("/inspection_rules", {"conditions": [], "actions": [ACTION]})
    script.post("/allocations", {"resource_class": "x"})
    for collection in (*ALWAYS, *FIRST_SEEN):
        for query in (
            "x=1", "limit=0", "limit=-1", "limit=x", "limit=2.5", "limit=", "limit=5000",
            "sort_dir=DESC", "sort_dir=", "sort_key=", "sort_key=x", "sort_key=extra", "marker=x",
            f"marker={script.uuid()}", "fields=", "fields=uuid", "fields=UUID,%20uuid",
            "fields=x", "detail=x", "detail=true", "detail=true&fields=uuid",
            "detail=false&fields=uuid", "limit=1&limit=2", "fields=uuid&fields=created_at",
            "fields=links", "node=x", "name=x", "sort_key=uuid&sort_dir=desc",
        ):  # fmt: skip
            script.get(f"/{collection}?{query}")


STORIES: Final = (
    spellings, other_header, discovery, methods, methods_of_collections, collections_by_version,
    below_a_node_by_version, writes_below_a_node_by_version, segments, suffix, idents, accept,
    bodies, queries,
)  # fmt: skip


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
