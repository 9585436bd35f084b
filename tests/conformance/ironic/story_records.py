"""Ports, port groups, chassis, volumes, templates and runbooks, from creation to deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.conformance.ironic.script import Script

CRASHES: Final = frozenset({  # without a value
    "pxe_enabled", "standalone_ports_supported", "available_for_dynamic_portgroup",
})  # fmt: skip
NOBODY: Final = "12345678-1234-4234-8234-123456789abc"
LINK: Final = {"port_id": "p", "switch_id": "52:54:00:aa:bb:cc", "switch_info": "s"}
STEP: Final = {"interface": "deploy", "step": "deploy", "args": {}}
PORT: Final[Mapping[str, tuple[Any, ...]]] = {
    "address": (None, "", "x", "52-54-00-aa-bb-cc", "52:54:00:AA:BB:CC", 5, "525400aabbcc"),
    "node_uuid": (None, "", "x", NOBODY, 5), "node_ident": ("none", "a", 5),
    "uuid": ("x", 5), "extra": (None, [], "x", {"a": None}),
    "pxe_enabled": ("yes", "x", 0, False),
    "local_link_connection": (
        None, {}, [], LINK, {"port_id": "p"}, {"port_id": "p", "hostname": "h"},
        LINK | {"switch_id": "0123456789abcdef"}, LINK | {"switch_id": "0x0123456789abcdef"},
        LINK | {"switch_id": "x"}, LINK | {"x": 1}, {"network_type": "unmanaged"},
        {"network_type": "managed"}, {"network_type": "x"}, LINK | {"network_type": "managed"},
        {"vtep-logical-switch": "a", "vtep-physical-switch": "b", "port_id": "p"}, {"port_id": 5},
    ),
    "physical_network": (None, "", "x" * 64, "x" * 65, 5), "is_smartnic": (None, True, "x", "on"),
    "name": (None, "", "a b", "x" * 255, 5, NOBODY, "detail"),
    "description": (None, "", "x" * 255, "x" * 256, 5),
    "vendor": (None, "x" * 32, "x" * 33, 5), "category": (None, "x" * 80, "x" * 81, 5),
    "portgroup_uuid": (None, "x", NOBODY, 5), "internal_info": ({}, None), "x": (1,),
    "available_for_dynamic_portgroup": (True, "x"), "created_at": (None,),
}  # fmt: skip
GROUP: Final[Mapping[str, tuple[Any, ...]]] = {
    "address": (None, "", "x", "52:54:00:AA:BB:CC", 5), "node_uuid": (None, "x", NOBODY, 5),
    "name": (None, "", "a b", "detail", NOBODY, "x" * 255, "x" * 256, 5), "uuid": ("x",),
    "extra": (None, [], {"a": 1}), "mode": (None, "", "802.3ad", 5), "x": (1,),
    "properties": (None, {}, [], {"a": 1}), "standalone_ports_supported": ("no", "x", 5),
    "physical_network": (None, "x" * 64, "x" * 65), "category": (None, "x" * 80, "x" * 81),
    "dynamic_portgroup": (True,), "internal_info": ({},),
}  # fmt: skip
SINCE: Final[Mapping[str, int]] = {
    "pxe_enabled": 19, "local_link_connection": 19, "portgroup_uuid": 24, "physical_network": 34,
    "is_smartnic": 53, "name": 88, "description": 97, "vendor": 100, "category": 101,
    "available_for_dynamic_portgroup": 111, "internal_info": 18,
}  # fmt: skip
GROUP_SINCE: Final = {"mode": 26, "properties": 26, "physical_network": 102, "category": 103}
STEPS: Final[tuple[Any, ...]] = (
    None, [], {}, "x", [5], [{}], [STEP], [STEP | {"priority": -1}], [STEP | {"priority": "10"}],
    [STEP | {"priority": "x"}], [STEP | {"priority": 1.5}], [STEP | {"priority": 1, "x": 1}],
    [STEP | {"priority": 1, "interface": "network"}], [STEP | {"priority": 1, "interface": 5}],
    [STEP | {"priority": 1, "step": ""}], [STEP | {"priority": 1, "args": None}],
    [{"interface": "deploy", "step": "x", "priority": 1}], [STEP | {"priority": 1}] * 2,
    [STEP | {"priority": 1}, STEP | {"priority": 2, "interface": "bios"}],
    [STEP | {"priority": 1, "args": {"a_password": "x"}}], [STEP | {"order": 1}],
    [STEP | {"order": "7"}], [STEP | {"order": -1}], [STEP | {"order": None}],
    [{"interface": "deploy", "step": "x", "order": 1}], [STEP | {"order": 1}] * 2,
)  # fmt: skip
TRAITS: Final = (
    "CUSTOM_A", "HW_CPU_X86_AVX", "HW_NOTHING", "custom_a", "CUSTOM_", "CUSTOM_a", "", "A",
    "CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 249, None, 5, "CUSTOM_A B",
)  # fmt: skip


def _values(script: Script, path: str, body: dict[str, Any], table: Mapping[str, Any]) -> None:
    for name, values in table.items():
        for value in values:
            fresh = {"address": script.mac()} if "address" in body else {}
            script.post(path, body | fresh | {name: value})
    for name in body:
        script.post(path, {key: value for key, value in body.items() if key != name})


def _changes(script: Script, path: str, table: Mapping[str, Any]) -> None:
    for name, values in table.items():
        for value in values[::2]:
            script.change(path, "add", f"/{name}", value)
        if name not in CRASHES:
            script.change(path, "remove", f"/{name}")
    script.get(path)


def ports(script: Script) -> None:
    node = script.node(name="a")
    _values(script, "/ports", {"node_uuid": node, "address": script.mac()}, PORT)
    script.post("/ports", {"node_ident": "a", "address": script.mac()})
    script.post("/ports", {"node_ident": node, "address": script.mac()})
    script.post("/ports", {"node_ident": node, "node_uuid": node, "address": script.mac()})


def changes_of_ports(script: Script) -> None:
    node, port = script.node(), script.uuid()
    script.post("/ports", {"uuid": port, "node_uuid": node, "address": script.mac(), "name": "p"})
    _changes(script, f"/ports/{port}", PORT)
    script.change("/ports/p", "add", "/extra/a", 1)
    script.change("/ports/nobody", "add", "/extra/a", 1)
    script.delete("/ports/p")
    script.delete(f"/ports/{port}")
    script.delete(f"/ports/{port}")


def versions_of_ports(script: Script) -> None:
    node, port, address = script.node(name="a"), script.uuid(), script.mac()
    script.post("/ports", {"uuid": port, "node_uuid": node, "address": address, "name": "p"})
    for name, since in SINCE.items():
        for minor in (since - 1, since):
            for value in (None, "x") if name not in CRASHES else ("x",):
                body = {"node_uuid": node, "address": script.mac(), name: value}
                script.post("/ports", body, minor)
            if name not in CRASHES:
                script.change(f"/ports/{port}", "add", f"/{name}", None, at=minor)
                script.change(f"/ports/{port}", "remove", f"/{name}", at=minor)
            script.get(f"/ports/{port}", minor)
            script.get(f"/ports?fields={name}", minor)
            script.get(f"/ports?sort_key={name}", minor)
    for minor in (1, 4, 5, 87, 88):
        script.get("/ports/p", minor)
        script.get("/ports/detail", minor)
        script.get("/ports?node=a", minor)
    script.post("/ports", {"node_ident": "a", "address": script.mac()}, 93)
    script.post("/ports", {"node_ident": "a", "address": script.mac()}, 94)
    for path in (f"/ports/{address}", f"/ports?address={address.upper()}", "/ports?address=x",
                 f"/ports?address={address}&node={node}", "/ports?portgroup=x", "/ports?portgroup=",
                 "/ports?shard=x", "/ports?description_contains=x", "/ports?node_uuid=x",
                 f"/ports?node_uuid={node}"):  # fmt: skip
        script.get(path)


def groups(script: Script) -> None:
    node = script.node()
    _values(script, "/portgroups", {"node_uuid": node}, GROUP)
    for name, since in GROUP_SINCE.items():
        for minor in (since - 1, since):
            script.post("/portgroups", {"node_uuid": node, name: None}, minor)
            value = {"a": 1} if name == "properties" else "v"
            script.post("/portgroups", {"node_uuid": node, name: value}, minor)
            script.get("/portgroups/detail", minor)
            script.get(f"/portgroups?fields={name}", minor)


def changes_of_groups(script: Script) -> None:
    node, group, address = script.node("manageable"), script.uuid(), script.mac()
    other = script.uuid()
    script.post("/portgroups", {"uuid": group, "node_uuid": node, "name": "g", "address": address})
    script.post("/portgroups", {"uuid": other, "node_uuid": node, "address": address})
    script.post("/portgroups", {"uuid": other, "node_uuid": node, "name": "g"})
    script.post("/portgroups", {"uuid": other, "node_uuid": node, "name": "h"})
    script.post("/portgroups", {"uuid": group, "node_uuid": node})
    script.change("/portgroups/h", "replace", "/name", "g")
    _changes(script, f"/portgroups/{group}", GROUP)
    for name, since in GROUP_SINCE.items():
        script.change(f"/portgroups/{group}", "add", f"/{name}", None, at=since - 1)
        script.get(f"/portgroups/{group}", since - 1)
        script.get(f"/portgroups/{group}", since)
    for path in ("g", "h", "none", group.upper(), "a%20b", ""):
        script.get(f"/portgroups/{path}")
    members(script, node, other)
    script.delete("/portgroups/none")
    script.delete("/portgroups/h")
    script.delete(f"/portgroups/{other}")


def members(script: Script, node: str, group: str) -> None:
    """Put ports into a group that has to agree with them."""
    port = script.uuid()
    body = {"node_uuid": node, "portgroup_uuid": group}
    script.change(f"/portgroups/{group}", "replace", "/standalone_ports_supported", False)
    script.post("/ports", body | {"address": script.mac(), "pxe_enabled": True})
    script.post("/ports", body | {"address": script.mac(), "pxe_enabled": False, "uuid": port})
    script.change(f"/ports/{port}", "replace", "/pxe_enabled", True)
    script.change(f"/ports/{port}", "replace", "/physical_network", "n")
    script.change(f"/ports/{port}", "replace", "/physical_network", "n", at=101)
    other = script.node()
    script.post("/ports", {"node_uuid": other, "address": script.mac(), "portgroup_uuid": group})
    script.delete(f"/portgroups/{group}")
    script.get(f"/portgroups/{group}/ports")
    script.get("/portgroups/g/ports")
    script.change(f"/ports/{port}", "remove", "/portgroup_uuid")
    script.delete(f"/ports/{port}")


def chassis(script: Script) -> None:
    ident, node = script.uuid(), script.node()
    for body in (
        {}, {"uuid": ident}, {"uuid": ident}, {"uuid": "x"}, {"description": "x" * 255},
        {"description": "x" * 256}, {"description": None}, {"description": 5}, {"extra": []},
        {"extra": {"a": 1}}, {"extra": None}, {"x": 1}, {"nodes": []}, {"created_at": None},
    ):  # fmt: skip
        script.post("/chassis", body)
    path = f"/chassis/{ident}"
    for name, values in {
        "description": ("d", None, 5, "x" * 256), "extra": ({"b": 2}, None, []),
        "uuid": (ident, script.uuid(), None), "nodes": ([],), "x": (1,),
    }.items():  # fmt: skip
        for value in values:
            script.change(path, "replace", f"/{name}", value)
        script.change(path, "remove", f"/{name}")
    script.change(f"/nodes/{node}", "add", "/chassis_uuid", ident)
    for below in ("", "/nodes", "/nodes/detail", "?fields=nodes", "?fields=description,links"):
        script.get(f"{path}{below}")
        script.get(f"{path}{below}", 1)
    script.get(f"/nodes?chassis_uuid={ident}")
    script.get(f"/nodes/{node}?fields=chassis_uuid")
    script.delete(path)
    script.change(f"/nodes/{node}", "remove", "/chassis_uuid", at=24)
    script.change(f"/nodes/{node}", "replace", "/chassis_uuid", None)
    script.change(f"/nodes/{node}", "remove", "/chassis_uuid")
    script.delete(path)
    script.delete(path)
    for word in ("x", script.uuid(), ident.upper(), "detail"):
        script.get(f"/chassis/{word}")
        script.delete(f"/chassis/{word}")
        script.patch(f"/chassis/{word}", [])


def volumes(script: Script) -> None:
    node = script.node("manageable")
    connector = {"node_uuid": node, "type": "iqn", "connector_id": "c"}
    target = {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
    for path, body, table in (
        ("connectors", connector, {
            "type": ("x", "", None, 5), "connector_id": ("", None, 5), "uuid": ("x",),
            "node_uuid": ("x", NOBODY, None), "extra": (None, [], {"a": 1}), "x": (1,),
        }),
        ("targets", target, {
            "volume_type": ("x", "", None, 5), "volume_id": ("", None, 5), "uuid": ("x",),
            "boot_index": (1, -1, "2", "x", None, 1.5, True), "node_uuid": ("x", NOBODY, None),
            "properties": (None, [], {"a": 1, "auth_password": "x"}), "extra": (None, []),
            "x": (1,),
        }),
    ):  # fmt: skip
        ident = script.uuid()
        script.post(f"/volume/{path}", body | {"uuid": ident})
        script.post(f"/volume/{path}", body)
        other = {"boot_index": 99} if path == "targets" else {"connector_id": "d"}
        script.post(f"/volume/{path}", body | {"uuid": ident} | other)
        _values(script, f"/volume/{path}", body, table)
        _power_gates(script, node, f"/volume/{path}/{ident}", table)
        script.get(f"/volume/{path}?node={node}&detail=true")
        script.get(f"/volume/{path}/x")


def _power_gates(script: Script, node: str, path: str, table: Mapping[str, Any]) -> None:
    """Change a volume of a node that is on, and of one that is off."""
    for target in ("power on", "power off"):
        script.put(f"/nodes/{node}/states/power", {"target": target})
        script.patch(path, [])
        script.change(path, "add", "/extra/a", 1)
        script.provision(node, "provide")
        script.provision(node, "active")
        script.delete(f"{path[:-1]}x")
        script.provision(node, "deleted")
        script.provision(node, "manage")
    _changes(script, path, table)
    script.delete(path)
    script.delete(path)


def templates(script: Script) -> None:
    body = {"name": "CUSTOM_T", "steps": [STEP | {"priority": 10}]}
    ident = script.uuid()
    script.post("/deploy_templates", body | {"uuid": ident})
    script.post("/deploy_templates", body)
    script.post("/deploy_templates", body | {"uuid": ident, "name": "CUSTOM_U"})
    table = {
        "name": TRAITS, "steps": STEPS, "extra": (None, [], {"a": 1}), "uuid": ("x",),
        "description": ("d",), "x": (1,), "public": (True,),
    }  # fmt: skip
    _values(script, "/deploy_templates", body | {"name": "CUSTOM_V"}, table)
    for path in ("CUSTOM_T", ident, "nobody", script.uuid(), "custom_t"):
        script.get(f"/deploy_templates/{path}")
        script.get(f"/deploy_templates/{path}", 54)
        script.get(f"/deploy_templates/{path}?fields=steps")
    _changes(script, f"/deploy_templates/{ident}", table)
    script.change(f"/deploy_templates/{ident}", "replace", "/steps/0/priority", 7)
    script.change(f"/deploy_templates/{ident}", "remove", "/steps/0")
    script.get("/deploy_templates?detail=true")
    script.delete(f"/deploy_templates/{ident}")
    script.delete("/deploy_templates/CUSTOM_V")
    script.delete("/deploy_templates/nobody")


def runbooks(script: Script) -> None:
    body = {"name": "CUSTOM_R", "steps": [STEP | {"order": 10}]}
    ident = script.uuid()
    script.post("/runbooks", body | {"uuid": ident})
    script.post("/runbooks", body)
    table = {
        "name": (*TRAITS, "plain.name", "a b", NOBODY), "steps": STEPS, "extra": (None, [], {}),
        "uuid": ("x",), "description": ("d", None, "x" * 255, "x" * 256, 5), "x": (1,),
        "disable_ramdisk": (None, True, "yes", 1), "public": (None, True, "yes", 0),
        "owner": ("me", None), "traits": (["CUSTOM_A"], []),
    }  # fmt: skip
    _values(script, "/runbooks", body | {"name": "CUSTOM_S"}, table)
    for minor in (91, 92, 111, 112):
        script.post("/runbooks", body | {"name": f"plain{minor}"}, minor)
        script.post("/runbooks", body | {"name": f"CUSTOM_N{minor}", "description": "d"}, minor)
        script.get(f"/runbooks/{ident}", minor)
        script.get(f"/runbooks/{ident}/traits", minor)
        script.get("/runbooks?fields=traits,description", minor)
    _changes(script, f"/runbooks/{ident}", table)
    _runbook_traits(script, f"/runbooks/{ident}/traits")
    script.get(f"/runbooks/{ident}")
    script.delete("/runbooks/nobody")
    script.delete(f"/runbooks/{ident}")


def _runbook_traits(script: Script, path: str) -> None:
    for trait in ("CUSTOM_A", "CUSTOM_A", "x", "HW_CPU_X86_AVX"):
        script.put(f"{path}/{trait}")
        script.put(f"{path}/{trait}", {"a": 1})
    script.get(path)
    for body in ({}, {"traits": ["CUSTOM_B", "CUSTOM_B"]}, {"traits": ["x"]}, {"traits": None}, []):
        script.put(path, body)
    script.get(path)
    script.delete(f"{path}/CUSTOM_B")
    script.delete(f"{path}/CUSTOM_B")
    script.delete(path)
    script.delete(path)
    script.put(path, {"traits": ["CUSTOM_B"]}, 111)


STORIES: Final = (
    ports, changes_of_ports, versions_of_ports, groups, changes_of_groups, chassis, volumes,
    templates, runbooks,
)  # fmt: skip


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
