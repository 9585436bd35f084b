"""Nodes: which version knows which field, what may stand in it, names, and what may be deleted."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.conformance.ironic.script import NEWEST, Script

VALUES: Final[Mapping[str, tuple[int, Any]]] = {  # of writable fields: first version, and a value
    "name": (5, "n-1"), "network_interface": (20, "noop"), "resource_class": (21, "rc"),
    "bios_interface": (40, "fake"), "boot_interface": (31, "fake"),
    "console_interface": (31, "no-console"), "deploy_interface": (31, "fake"),
    "firmware_interface": (86, "no-firmware"), "inspect_interface": (31, "no-inspect"),
    "management_interface": (31, "fake"), "power_interface": (31, "fake"),
    "raid_interface": (31, "no-raid"), "vendor_interface": (31, "no-vendor"),
    "rescue_interface": (38, "no-rescue"), "storage_interface": (33, "fake"),
    "conductor_group": (46, ""), "automated_clean": (47, False), "protected": (48, False),
    "protected_reason": (48, "r"), "owner": (50, "o"), "description": (51, "d"),
    "retired": (61, True), "retired_reason": (61, "r"), "lessee": (65, "l"),
    "network_data": (66, {}), "shard": (82, "s"), "parent_node": (83, None),
    "disable_power_off": (95, True), "instance_name": (104, "i"),
}  # fmt: skip
CRASHES: Final = frozenset({"conductor_group", "automated_clean", "maintenance"})  # when removed
SHOWN: Final = {  # read-only fields and the version that shows them first
    "driver_internal_info": 3, "clean_step": 7, "raid_config": 12, "target_raid_config": 12,
    "traits": 37, "fault": 42, "deploy_step": 44, "conductor": 49, "allocation_uuid": 52,
    "boot_mode": 75, "secure_boot": 75, "service_step": 87, "health": 109,
    "inspection_started_at": 6, "uuid": 1, "driver": 1, "extra": 1, "properties": 1, "links": 1,
    "states": 14, "ports": 1, "portgroups": 24, "volume": 32, "created_at": 1, "updated_at": 1,
    "reservation": 1, "maintenance": 1, "instance_info": 1, "id": 1, "chassis_uuid": 1,
    "chassis_id": 1, "provision_updated_at": 1, "console_enabled": 1, "maintenance_reason": 1,
}  # fmt: skip
ODD: Final[Mapping[str, tuple[Any, ...]]] = {  # values that are refused, or just not
    "driver": (None, "", 5, "ipmi", "nothing", ["fake-hardware"]),
    "uuid": (None, "", "x", 5),
    "extra": (None, [], "x", 5, {"a": {"b": [1, None]}}),
    "properties": (
        None, [], {"memory_mb": "x"}, {"memory_mb": -1}, {"memory_mb": "12"}, {"local_gb": 1.5},
        {"cpus": "x"}, {"capabilities": 5}, {"capabilities": "a:b,c"}, {"memory_mb": None},
        {"root_device": {"size": "x"}}, {"local_gb": True},
    ),
    "driver_info": (None, [], {"a_password": "b", "x": {"password": "y"}}),
    "instance_info": (None, "x", {"configdrive": "abc", "image_url": "u", "display_name": "d"}),
    "instance_uuid": (None, "x", ""),
    "chassis_uuid": (None, "x", "12345678-1234-4234-8234-123456789abc"),
    "resource_class": (None, "", "x" * 80, "x" * 81, 5),
    "conductor_group": ("UPPER", "a b", "other", 5),
    "automated_clean": (None, "yes", "x", 1, "false"),
    "owner": ("me", None, 5), "lessee": ("me", None, 5, ""),
    "description": (None, "", "x" * 4096, "x" * 4097, 5),
    "network_data": (None, {}, {"links": []}, {"x": 1}, []),
    "shard": (None, "", "s,t", 5), "parent_node": (None, "x", "", 5),
    "maintenance": (True, "yes", "x", 0), "console_enabled": (True, "x"),
    "retired": (None, "on", "x"), "retired_reason": ("r", 5), "protected": (True, False),
    "disable_power_off": (None, "t", "x"), "boot_mode": ("uefi", "x", 5),
    "secure_boot": (True, "x"),
    "instance_name": (None, "", "x" * 255, "x" * 256, 5),
    "power_interface": (None, "", "ipmitool", "x", 5), "deploy_interface": ("direct", "fake"),
    "network_interface": ("noop", "flat", "neutron"), "boot_interface": ("ipxe",),
    "traits": (["CUSTOM_A"],), "provision_state": ("active",), "x": (1,), "links": ([],),
    "last_error": ("x",), "health": ("OK",), "reservation": ("x",), "created_at": (None,),
}  # fmt: skip
NAMES: Final = (
    "a", "A.b-c_d~e", "", None, "x" * 255, "x" * 256, "a b", "a/b", "ä", "detail", "states",
    "management", "maintenance", "vendor_passthru", "validate", "ports", "vifs", "Detail", "-a",
    "a-", ".", "..", "a..b", "a_b", "12345678-1234-4234-8234-123456789abc", "1", 5, ["a"], "a.json",
    "12345678123442348234123456789abc", "*", "a+b", "a@b",
)  # fmt: skip


def versions_of_creation(script: Script) -> None:
    for name, (since, value) in VALUES.items():
        for minor in (since - 1, since):
            for sent in (value, None):
                script.post("/nodes", {"driver": "fake-hardware", name: sent}, minor)


def versions_of_patches(script: Script) -> None:
    node = script.node()
    for name, (since, value) in VALUES.items():
        script.change(f"/nodes/{node}", "add", f"/{name}", value, at=since - 1)
        script.change(f"/nodes/{node}", "replace", f"/{name}", None, at=since - 1)
        if name not in CRASHES:
            script.change(f"/nodes/{node}", "remove", f"/{name}", at=since - 1)
        script.change(f"/nodes/{node}", "add", f"/{name}", value, at=since)
        if name not in CRASHES:
            script.change(f"/nodes/{node}", "remove", f"/{name}", at=since)


def versions_of_views(script: Script) -> None:
    script.node("manageable", name="a", extra={"a": 1})
    everything = SHOWN | {name: since for name, (since, _) in VALUES.items()}
    for name, since in everything.items():
        for minor in sorted({max(since - 1, 8), max(since, 8)}):
            script.get(f"/nodes/a?fields={name}", minor)
            script.get(f"/nodes?fields={name}", minor)
        script.get(f"/nodes?sort_key={name}", since)
        if since > 1:
            script.get(f"/nodes?sort_key={name}&sort_dir=desc", since - 1)
    for minor in (1, 2, 4, 5, 7, 8, 11, 20, 31, 43, 52, 75, 109, NEWEST):
        script.get("/nodes/detail", minor)
        script.get("/nodes", minor)


def values(script: Script, *, names: tuple[str, ...]) -> None:
    for name in names:
        for value in ODD[name]:
            script.post("/nodes", {"driver": "fake-hardware", name: value})


def patched_values(script: Script, *, names: tuple[str, ...]) -> None:
    node = script.node()
    for name in names:
        for value in ODD[name]:
            script.change(f"/nodes/{node}", "add", f"/{name}", value)
        if name not in CRASHES:
            script.change(f"/nodes/{node}", "replace", f"/{name}", ODD[name][0])
            script.change(f"/nodes/{node}", "remove", f"/{name}")


def names(script: Script) -> None:
    node = script.node()
    for name in NAMES:
        script.post("/nodes", {"driver": "fake-hardware", "name": name})
        script.change(f"/nodes/{node}", "add", "/name", name)
    for minor in (4, 5, 9, 10):
        for name in ("host.name", "a_b", "-x", "under~"):
            script.post("/nodes", {"driver": "fake-hardware", "name": f"{name}{minor}"}, minor)


def duplicates(script: Script) -> None:
    first = script.node(name="first", instance_uuid=script.uuid())
    instance = script.uuid()
    second = script.node(name="second", instance_uuid=instance)
    script.post("/nodes", {"driver": "fake-hardware", "uuid": first})
    script.post("/nodes", {"driver": "fake-hardware", "name": "first"})
    script.post("/nodes", {"driver": "fake-hardware", "instance_uuid": instance})
    script.change(f"/nodes/{second}", "replace", "/name", "first")
    script.change("/nodes/first", "replace", "/instance_uuid", instance)
    script.change(f"/nodes/{second}", "add", "/instance_uuid", instance)
    script.change("/nodes/first", "remove", "/instance_uuid")
    script.change("/nodes/first", "add", "/instance_uuid", instance)
    script.delete(f"/nodes/{second}")
    script.change(f"/nodes/{second}", "remove", "/instance_uuid")
    script.change(f"/nodes/{second}", "remove", "/instance_uuid")
    script.delete(f"/nodes/{second}")
    script.delete("/nodes/second")


def protection(script: Script) -> None:
    node = script.node()
    path = f"/nodes/{node}"
    script.change(path, "replace", "/protected", True)
    script.change(path, "replace", "/protected_reason", "r")
    for target in ("manage", "provide", "active"):
        script.provision(node, target)
    script.change(path, "add", "/protected", "yes")
    script.change(path, "add", "/protected_reason", "because")
    script.get(path)
    script.provision(node, "deleted")
    script.provision(node, "rebuild")
    script.delete(path)
    script.put(f"{path}/maintenance")
    script.delete(path)
    script.provision(node, "deleted")
    script.change(path, "replace", "/protected", False)
    script.get(f"{path}?fields=protected,protected_reason")
    script.provision(node, "deleted")
    script.delete(path)


def retirement(script: Script) -> None:
    node = script.node("manageable")
    path = f"/nodes/{node}"
    script.change(path, "add", "/retired_reason", "r")
    script.change(path, "add", "/retired", "true")
    script.change(path, "add", "/retired_reason", "r")
    script.provision(node, "provide")
    script.get("/nodes?retired=true")
    script.get("/nodes?retired=true", 60)
    script.change(path, "replace", "/retired", False)
    script.get(f"{path}?fields=retired,retired_reason")
    script.provision(node, "provide")
    script.change(path, "replace", "/retired", True)
    script.provision(node, "active")
    script.change(path, "replace", "/retired", True)
    script.provision(node, "deleted")
    script.get(path)


def maintenance(script: Script) -> None:
    node = script.node(name="m")
    for body in ({}, {"reason": "r"}, {"reason": None}, {"reason": 5}, {"x": 1}):
        script.put("/nodes/m/maintenance", body)
        script.get("/nodes/m?fields=maintenance,maintenance_reason,fault")
    script.put("/nodes/m/maintenance?reason=query")
    script.get("/nodes/m?fields=maintenance_reason")
    script.delete(f"/nodes/{node}/maintenance")
    script.delete(f"/nodes/{node}/maintenance")
    script.change("/nodes/m", "replace", "/maintenance", True)
    script.change("/nodes/m", "replace", "/maintenance", "no")
    script.get("/nodes/m")
    script.put("/nodes/nobody/maintenance")
    script.get("/nodes/m/maintenance")


def families(script: Script) -> None:
    parent, child = script.node(name="parent"), script.uuid()
    script.post("/nodes", {"driver": "fake-hardware", "uuid": child, "parent_node": "parent"})
    for query in (
        "", "?include_children=true", "?parent_node=parent", f"?parent_node={parent}",
        "?parent_node=nobody", "?include_children=x", "?include_children=false",
        f"?parent_node={script.uuid()}",
    ):  # fmt: skip
        script.get(f"/nodes{query}")
    for node in (parent, child, "parent", "nobody"):
        script.get(f"/nodes/{node}/children")
    script.get(f"/nodes/{parent}/children/x")
    script.change(f"/nodes/{child}", "replace", "/parent_node", "nobody")
    script.change(f"/nodes/{child}", "replace", "/parent_node", script.uuid())
    script.provision(parent, "manage")
    script.put(f"/nodes/{child}/states/power", {"target": "power on"})
    script.get(f"/nodes/{parent}/states")
    script.put(f"/nodes/{parent}/states/power", {"target": "power off"})
    script.get(f"/nodes/{child}/states")
    script.change(f"/nodes/{child}", "remove", "/parent_node")
    script.get(f"/nodes/{parent}/children")


def deletion(script: Script) -> None:
    for state in ("enroll", "manageable", "available", "active", "adopted"):
        node = script.node(state)
        script.delete(f"/nodes/{node}/x")
        script.delete(f"/nodes/{node}")
        script.get(f"/nodes/{node}")
    script.delete(f"/nodes/{script.uuid()}")
    script.delete("/nodes/nobody")
    node = script.node(instance_uuid=script.uuid())
    script.delete(f"/nodes/{node}")
    script.put(f"/nodes/{node}/maintenance")
    script.delete(f"/nodes/{node}")


def interfaces(script: Script) -> None:
    node = script.node("available")
    path = f"/nodes/{node}"
    for name in ("bios_interface", "console_interface", "raid_interface", "vendor_interface"):
        kind = name.split("_")[0]
        for value in (f"no-{kind}", "fake", None, "", "x"):
            script.change(path, "replace", f"/{name}", value)
    script.change(path, "replace", "/driver", "fake-hardware")
    script.change(path, "replace", "/driver", "ipmi")
    script.change(path, "remove", "/driver")
    for value in ("true", "false", "x"):
        script.patch(f"{path}?reset_interfaces={value}", [])
        operation = {"op": "replace", "path": "/driver", "value": "fake-hardware"}
        script.patch(f"{path}?reset_interfaces={value}", [operation])
        script.patch(f"{path}?reset_interfaces={value}", [operation], 44)
    script.provision(node, "active")
    script.change(path, "replace", "/raid_interface", "no-raid")
    script.change(path, "replace", "/raid_interface", "fake")
    script.change(path, "replace", "/resource_class", "x")
    script.change(path, "replace", "/resource_class", "y")
    script.put(f"{path}/maintenance")
    script.change(path, "replace", "/raid_interface", "no-raid")
    script.change(path, "replace", "/resource_class", "y")


def validation(script: Script) -> None:
    node = script.node("manageable", name="v")
    for path in (
        f"/nodes/{node}/validate", "/nodes/v/validate", "/nodes/validate?node=v",
        f"/nodes/validate?node_uuid={node}", "/nodes/validate", "/nodes/validate?node=nobody",
        "/nodes/validate?x=1", "/nodes/nobody/validate", "/nodes/validate?node=a%20b",
        f"/nodes/{node}/validate?x=1", f"/nodes/validate?node={node}&node_uuid={node}",
    ):  # fmt: skip
        script.get(path)
    script.get("/nodes/v/validate", 1)
    script.get(f"/nodes/{node}/validate", 85)


SPLIT: Final = tuple(ODD)
STORIES: Final = {
    "versions of creation": versions_of_creation,
    "versions of patches": versions_of_patches,
    "versions of views": versions_of_views,
    "names of nodes": names,
    "duplicates": duplicates,
    "protection": protection,
    "retirement": retirement,
    "maintenance": maintenance,
    "families": families,
    "deletion": deletion,
    "interfaces": interfaces,
    "validation": validation,
    **{
        f"values {number}": functools.partial(values, names=SPLIT[number::3]) for number in range(3)
    },
    **{
        f"patched values {number}": functools.partial(patched_values, names=SPLIT[number::3])
        for number in range(3)
    },
}


def draw(seed: int) -> Iterator[Script]:
    for name, tell in STORIES.items():
        script = Script(name, seed)
        tell(script)
        yield script
