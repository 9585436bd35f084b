"""Lists with filters, order and pages; and what a patch may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.conformance.ironic.script import NEWEST, Script

FILTERS: Final = (  # with the version before they came, if any
    ("associated=true", 1), ("associated=no", 1), ("associated=x", 1), ("maintenance=true", 1),
    ("maintenance=False", 1), ("maintenance=x", 1), ("retired=true", 60), ("retired=x", 61),
    ("provision_state=enroll", 8), ("provision_state=active", 9), ("provision_state=x", 9),
    ("provision_state=", 9), ("provision_state=enroll,active", 9), ("provision_state=deleted", 9),
    ("provision_state=None", 9), ("provision_state=clean%20wait", 9), ("driver=fake-hardware", 15),
    ("driver=x", 16), ("driver=", 16), ("resource_class=rc", 20), ("resource_class=", 21),
    ("fault=none", 42), ("fault=power%20failure", 41), ("fault=", 42), ("fault=x", 42),
    ("conductor_group=", 45), ("conductor_group=x", 46), ("conductor=localhost", 48),
    ("conductor=x", 49), ("owner=me", 49), ("owner=", 50), ("lessee=you", 64), ("project=me", 49),
    ("description_contains=b%25", 50), ("description_contains=_", 51),
    ("description_contains=", 51), ("shard=s", 81), ("shard=s,t", 82), ("shard=", 82),
    ("shard=S", 82), ("sharded=true", 82), ("sharded=false", 82), ("sharded=x", 82),
    ("instance_name=i", 103), ("instance_name=", 104), ("name=a", 1), ("uuid=x", 1),
    ("chassis_uuid=x", 1), ("chassis_uuid=12345678-1234-4234-8234-123456789abc", 1),
    ("instance_uuid=x", 1), ("instance_uuid=12345678-1234-4234-8234-123456789abc", 1),
    ("associated=true&maintenance=true", 1), ("associated=true&limit=1", 1),
    ("maintenance=true&limit=1&sort_key=name", 1), ("retired=true&limit=1", 61),
    ("limit=1&fields=uuid,name&sort_dir=desc", 8), ("limit=1&detail=true", 43),
    ("limit=1&detail=false", 43), ("limit=1&detail=true&sort_key=uuid&maintenance=false", 43),
    ("detail=true&fields=", 43), ("detail=false&fields=uuid", 43), ("fields=uuid&fields=name", 8),
    ("limit=2&driver=fake-hardware", 16), ("sort_key=name", 4), ("sort_key=driver_info", 1),
    ("sort_key=instance_uuid&sort_dir=desc", 1), ("sort_key=chassis_uuid", 1),
    ("sort_key=provision_state&sort_dir=asc", 1), ("fields=UUID,%20Name%20,uuid", 8),
    ("fields=,", 8), ("sort_key=traits", 37), ("sort_key=links", 1), ("sort_key=id", 1),
)  # fmt: skip
PATCHES: Final[tuple[Any, ...]] = (
    [], {}, None, "x", 5, [5], [[]], [{}], [{"op": "add"}], [{"path": "/extra/a"}],
    [{"op": "test", "path": "/extra/a", "value": 1}],
    [{"op": "copy", "path": "/extra/b", "from": "/extra/a"}],
    [{"op": "move", "path": "/extra/b", "from": "/extra/a"}],
    [{"op": "add", "path": "/extra/b", "value": 1, "x": 2}],
    [{"op": "ADD", "path": "/extra/b", "value": 1}], [{"op": 5, "path": "/extra/b", "value": 1}],
    [{"op": "add", "path": "extra", "value": {}}], [{"op": "add", "path": "/", "value": {}}],
    [{"op": "add", "path": "", "value": {}}], [{"op": "add", "path": "/extra/", "value": {}}],
    [{"op": "add", "path": "/extra/a.b", "value": 1}],
    [{"op": "add", "path": "/extra/a~1b", "value": 1}],
    [{"op": "add", "path": "/extra/~0", "value": 1}], [{"op": "add", "path": 5, "value": 1}],
    [{"op": "add", "path": "/extra/a b", "value": 1}],
    [{"op": "add", "path": "/extra/ä", "value": 1}], [{"op": "add", "path": "/extra/b"}],
    [{"op": "replace", "path": "/extra/none", "value": 1}],
    [{"op": "remove", "path": "/extra/none"}],
    [{"op": "add", "path": "/extra/none/b", "value": 1}],
    [{"op": "add", "path": "/extra/list", "value": [1, 2]}],
    [{"op": "add", "path": "/extra/list/-", "value": 3}],
    [{"op": "add", "path": "/extra/list/0", "value": 0}],
    [{"op": "replace", "path": "/extra/list/1", "value": "x"}],
    [{"op": "replace", "path": "/extra/list/9", "value": "x"}],
    [{"op": "add", "path": "/extra/list/9", "value": "x"}],
    [{"op": "add", "path": "/extra/list/x", "value": "x"}],
    [{"op": "remove", "path": "/extra/list/0"}], [{"op": "remove", "path": "/extra/list/-"}],
    [{"op": "add", "path": "/extra/a/b", "value": 1}],
    [{"op": "replace", "path": "/extra", "value": {"a": {"b": {"c": 1}}}}],
    [{"op": "add", "path": "/extra/a/b/d", "value": None}],
    [{"op": "remove", "path": "/extra/a/b/c", "value": 7}], [{"op": "remove", "path": "/extra"}],
    [{"op": "add", "path": "/extra/b", "value": 1}, {"op": "remove", "path": "/extra/none"}],
    [{"op": "add", "path": "/extra/b", "value": 1},
     {"op": "replace", "path": "/extra/b", "value": 2}],
    [{"op": "remove", "path": "/extra/b"}, {"op": "add", "path": "/extra/c", "value": 2}],
    [{"op": "add", "path": "/uuid", "value": "x"}], [{"op": "remove", "path": "/uuid"}],
    [{"op": "add", "path": "/provision_state", "value": "x"}], [{"op": "remove", "path": "/links"}],
    [{"op": "add", "path": "/traits", "value": []}], [{"op": "add", "path": "/x", "value": 1}],
    [{"op": "add", "path": "/console_enabled", "value": True}],
    [{"op": "add", "path": "/boot_mode", "value": "uefi"}],
    [{"op": "remove", "path": "/created_at"}],
    [{"op": "add", "path": "/extra", "value": "x"}],
    [{"op": "add", "path": "/extra", "value": None}],
    [{"op": "replace", "path": "/driver_info/password", "value": "x"}],
    [{"op": "add", "path": "/driver_info/a_password", "value": "x"}],
    [{"op": "add", "path": "/driver_info/a", "value": {"b_password": "x"}}],
    [{"op": "add", "path": "/instance_info/display_name", "value": "x"}],
    [{"op": "add", "path": "/instance_info/configdrive", "value": "x"}],
    [{"op": "add", "path": "/properties/memory_mb", "value": "x"}],
    [{"op": "add", "path": "/properties/memory_mb", "value": 5}],
    [{"op": "remove", "path": "/properties"}], [{"op": "remove", "path": "/driver_info"}],
    [{"op": "add", "path": "/network_data", "value": {}}],
    [{"op": "remove", "path": "/network_data"}], [{"op": "remove", "path": "/extra/b"}] * 2,
    [{"op": "replace", "path": "/instance_info", "value": {"a": 1}}],
    [{"op": "remove", "path": "/instance_info/a"}, {"op": "add", "path": "/name", "value": "x y"}],
)  # fmt: skip


def _crowd(script: Script) -> list[str]:
    chassis = script.uuid()
    script.post("/chassis", {"uuid": chassis})
    return [
        script.node("manageable", name="a", resource_class="rc", chassis_uuid=chassis),
        script.node(name="b", description="a_b%c", shard="s", instance_uuid=script.uuid()),
        script.node(name="c", lessee="you", maintenance=True, shard="t", instance_name="i"),
        script.node(retired=True, properties={"cpus": 1}),
    ]


def filters(script: Script) -> None:
    _crowd(script)
    for query, before in FILTERS:
        script.get(f"/nodes?{query}")
        script.get(f"/nodes?{query}", before)


def filters_in_detail(script: Script) -> None:
    _crowd(script)
    for query, _ in FILTERS[::2]:
        script.get(f"/nodes/detail?{query}")


def pages(script: Script) -> None:
    nodes = _crowd(script)
    for node in (*nodes, script.uuid(), "x", ""):
        for query in ("", "&limit=1", "&limit=2&sort_key=name", "&limit=1&sort_dir=desc"):
            script.get(f"/nodes?marker={node}{query}")
        script.get(f"/nodes/detail?marker={node}&limit=1")
    for limit in ("1", "3", "4", "5", "1000", "1001", "0", "-1", "+2", "02", "x", "1e1", "%201"):
        script.get(f"/nodes?limit={limit}")
        script.get(f"/nodes/detail?limit={limit}&sort_key=uuid")


def pages_of_records(script: Script) -> None:
    node = script.node()
    chassis, group = script.uuid(), script.uuid()
    script.post("/chassis", {"uuid": chassis})
    script.change(f"/nodes/{node}", "add", "/chassis_uuid", chassis)
    script.post("/portgroups", {"uuid": group, "node_uuid": node, "name": "g"})
    for number in range(3):
        script.post("/ports", {"uuid": script.uuid(), "node_uuid": node, "address": script.mac(),
                               "portgroup_uuid": group})  # fmt: skip
        script.post("/volume/connectors", {"uuid": script.uuid(), "node_uuid": node, "type": "ip",
                                           "connector_id": str(number)})  # fmt: skip
        script.post("/volume/targets", {"uuid": script.uuid(), "node_uuid": node, "volume_id": "v",
                                        "volume_type": "iscsi", "boot_index": number})  # fmt: skip
    for path in (
        "/ports", "/ports/detail", f"/nodes/{node}/ports", f"/nodes/{node}/ports/detail",
        "/portgroups", "/portgroups/detail", f"/nodes/{node}/portgroups",
        f"/portgroups/{group}/ports", "/portgroups/g/ports", "/volume/connectors",
        "/volume/targets", f"/nodes/{node}/volume/connectors", f"/nodes/{node}/volume/targets",
        "/chassis", "/chassis/detail", f"/chassis/{chassis}/nodes",
        f"/chassis/{chassis}/nodes/detail", "/drivers", "/conductors",
    ):  # fmt: skip
        for query in (
            "", "limit=1", "limit=2&sort_key=uuid", "limit=1&fields=uuid", "limit=1&detail=true",
            "limit=3&sort_dir=desc", f"node={node}", "node=nobody", "address=x", "x=1",
            "fields=links,created_at", "sort_key=node_uuid", "sort_key=address", "detail=true",
            f"limit=1&marker={script.uuid()}", "fields=x", "shard=s", "conductor_groups=,x",
            "type=dynamic",
        ):  # fmt: skip
            script.get(f"{path}?{query}")
        script.get(path, 1)
        script.get(path, 42)


def patches(script: Script) -> None:
    node = script.node(extra={"a": 1})
    for body in PATCHES:
        script.patch(f"/nodes/{node}", body)
    script.patch(f"/nodes/{node}")
    for body in PATCHES[::6]:
        script.patch("/nodes/nobody", body)
        script.patch(f"/nodes/{node}", body, 97)
    script.get(f"/nodes/{node}")


def patches_of_records(script: Script) -> None:
    node = script.node()
    for path in _records(script, node):
        for body in PATCHES[:48]:
            script.patch(path, body)
        script.get(path)


def _records(script: Script, node: str) -> Iterator[str]:
    step = {"interface": "deploy", "step": "deploy", "args": {}}
    for collection, body in {
        "ports": {"node_uuid": node, "address": script.mac()},
        "portgroups": {"node_uuid": node},
        "chassis": {},
        "deploy_templates": {"name": "CUSTOM_A", "steps": [step | {"priority": 1}]},
        "runbooks": {"name": "CUSTOM_A", "steps": [step | {"order": 1}]},
    }.items():
        ident = script.uuid()
        script.post(f"/{collection}", body | {"uuid": ident, "extra": {"a": 1}}, NEWEST)
        yield f"/{collection}/{ident}"


STORIES: Final = (
    filters, filters_in_detail, pages, pages_of_records, patches, patches_of_records,
)  # fmt: skip


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
