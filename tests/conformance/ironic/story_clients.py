"""What clients send in their work, in their own order: an operator of Kubernetes, and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.conformance.ironic.script import Script
from tests.conformance.ironic.story_more import NOBODY

OPERATOR: Final = 109  # the version that Metal3's operator chooses
MAC: Final = "52:54:00:0a:0b:0c"
DRIVE: Final[dict[str, Any]] = {
    "meta_data": {"uuid": "x", "local-hostname": "host-0", "name": "metal3~host-0"},
    "network_data": {"links": [], "networks": [], "services": []},
    "user_data": "#cloud-config\n",
}
NO_BOOLEANS: Final = ("/maintenance", "/retired")  # once they are removed Ironic has none
IMAGE: Final = (
    ("/instance_info/image_source", "http://images.test/a.qcow2"),
    ("/instance_info/image_os_hash_algo", "sha256"),
    ("/instance_info/image_os_hash_value", "ab" * 32),
    ("/instance_info/image_checksum", "ab" * 32),
    ("/instance_info/image_disk_format", "qcow2"),
    ("/instance_info/capabilities", {"boot_option": "local"}),
    ("/properties/root_device", {"name": "s== /dev/sda"}),
    ("/properties/local_gb", 50),
    ("/properties/cpu_arch", "x86_64"),
    ("/properties/capabilities", "boot_mode:uefi,cpu_vt:true"),
)
CHANGES: Final[tuple[tuple[str, Any], ...]] = (
    ("/extra/l/0", 5), ("/extra/l/-", 6), ("/extra/l/9", 7), ("/extra/l/x", 1),
    ("/extra/l/2/a", None), ("/extra/ä", 1), ("/extra/a b", 1),
    ("/extra/a~1b", 1), ("/extra", []), ("/properties/memory_mb", "7"),
    ("/properties/memory_mb", -1), ("/properties/cpus", "x"),
    ("/maintenance", "yes"), ("/maintenance", "maybe"), ("/maintenance", 1),
    ("/retired", "true"), ("/retired_reason", "old"), ("/retired", "false"),
    ("/protected", True), ("/protected_reason", "x"), ("/shard", "s"),
    ("/parent_node", "kid"), ("/lessee", ""),
    ("/owner", 5), ("/description", "x" * 4097), ("/instance_name", ""),
    ("/instance_name", "x" * 256), ("/resource_class", "x" * 81),
    ("/name", "maintenance"), ("/name", "Maintenance"), ("/name", "a" * 256),
    ("/conductor_group", "nobody"), ("/conductor_group", "A B"),
    ("/driver_info", {"a_password": "x"}), ("/driver_info", None),
    ("/uuid", NOBODY), ("/traits", []), ("/console_enabled", True),
)  # fmt: skip
QUERIES: Final = (
    "parent_node=kid", "include_children=1", "sharded=0",
    "shard=s,t", "shard=s&sharded=true", "fields=uuid&fields=name", "fields=,uuid,",
    "limit=1&limit=2", "sort_key=uuid&sort_dir=", "sort_key=", "marker=",
    "description_contains=%25", "description_contains=_", "owner=x&lessee=y",
    "fields=UUID,%20Name", "detail=yes", "detail=&fields=uuid",
    "instance_uuid=x", "associated=maybe", "retired=1",
    "maintenance=0&associated=0&limit=1", "provision_state=deploy%20failed",
    "fault=power%20failure", "fault=", "driver=", "resource_class=", "conductor=x",
    "conductor_group=", "conductor_group=A", "instance_name=", "project=x",
)  # fmt: skip
ARGUMENTS: Final[tuple[tuple[str, str, Any], ...]] = (  # below a node: path, query, body
    ("states/power", "target=power%20off", None), ("states/power", "target=power%20off", {}),
    ("states/power", "target=nonsense", {"target": "power on"}),
    ("states/power", "target=power%20on", {"target": "power on"}),
    ("states/power", "timeout=30", {"target": "soft power off"}),
    ("states/power", "timeout=30", {"target": "soft power off", "timeout": 30}),
    ("states/provision", "target=abort", {"target": "abort"}),
    ("states/console", "enabled=true", {"enabled": True}),
    ("management/boot_device", "boot_device=pxe", {"boot_device": "pxe"}),
    ("maintenance", "reason=a", {"reason": "b"}), ("maintenance", "reason=a", {"reason": None}),
    ("states/power", "timeout=x", {"target": "power on"}), ("states/power", "x=1", {}),
    ("states/provision", "target=abort", None), ("states/provision", "target=", None),
    ("states/provision", "target=clean&clean_steps=[]", None),
    ("states/console", "enabled=true", None), ("states/console", "enabled=", None),
    ("states/console", "enabled=false", {"enabled": "nonsense"}),
    ("states/boot_mode", "", {"target": "UEFI"}), ("states/boot_mode", "", {"target": None}),
    ("states/secure_boot", "", {"target": "maybe"}), ("states/secure_boot", "", {}),
    ("management/boot_device", "boot_device=pxe", None),
    ("management/boot_device", "boot_device=disk&persistent=true", None),
    ("management/boot_device", "persistent=maybe", {"boot_device": "pxe"}),
    ("management/inject_nmi", "", {}), ("management/inject_nmi", "x=1", {}),
    ("management/inject_nmi", "", {"x": 1}),
    ("maintenance", "reason=by%20query", None), ("maintenance", "", {"reason": 5}),
    ("maintenance", "", {"reason": None}), ("maintenance", "", {"x": 1}),
)  # fmt: skip
TAILS: Final = (
    "states/provision", "states/power/x", "management", "management/x", "states/x",
    "maintenance/x", "vendor_passthru/x/y", "traits/a/b", "vifs/a/b", "history/x",
    "history/x/y", "bios/a/b", "inventory/x", "firmware/x", "allocation/x",
    "children/x", "vmedia/x", "volume/x", "volume/targets/x", "ports/x",
    "portgroups/x", "validate/x",
)  # fmt: skip
LISTED: Final = "uuid,name,driver_info,provision_state,driver_internal_info"


def operator(script: Script) -> None:
    """A host is registered, inspected, prepared, provisioned, serviced and taken away."""
    node, at = script.uuid(), OPERATOR
    script.get("///", None)
    script.get("/drivers", at)
    script.get(f"/ports?address={MAC}&fields=node_uuid", at)
    script.get("/nodes/metal3~host-0", at)
    script.post("/nodes", {
        "uuid": node, "driver": "fake-hardware", "name": "metal3~host-0",
        "driver_info": {"deploy_kernel": "http://images.test/ipa.kernel", "force_persistent": "x"},
        "inspect_interface": "fake", "disable_power_off": False,
        "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
    }, at)  # fmt: skip
    script.post("/nodes", {"driver": "fake-hardware", "inspect_interface": "agent"}, at)
    script.post("/nodes", {"driver": "fake-hardware", "deploy_interface": "custom-agent"}, at)
    script.post("/ports", {"node_uuid": node, "address": MAC, "pxe_enabled": True}, at)
    script.post("/ports", {"node_uuid": node, "address": MAC.upper(), "pxe_enabled": True}, at)
    script.get(f"/ports?address={MAC.upper()}&fields=node_uuid", at)
    script.get(f"/ports?node_uuid={node}&fields=node_uuid", at)
    script.get(f"/ports/detail?node_uuid={node}", at)
    script.provision(node, "manage", at)
    for path, value in (("/name", "metal3~host-0"), ("/automated_clean", False),
                        ("/disable_power_off", False), ("/conductor_group", ""),
                        ("/inspect_interface", "fake"), ("/network_data", {})):  # fmt: skip
        script.change(f"/nodes/{node}", "add", path, value, at=at)
        script.change(f"/nodes/{node}", "replace", path, value, at=at)
    script.provision(node, "inspect", at)
    script.get(f"/nodes/{node}/inventory", at)
    script.get(f"/nodes/{node}/bios?detail=true", at)
    script.get(f"/nodes/{node}/bios?detail=True", at)
    script.get(f"/nodes/{node}/firmware", at)
    prepare(script, node)
    script.provision(node, "provide", at)
    provision(script, node)
    serve(script, node)
    script.provision(node, "deleted", at)
    script.put(f"/nodes/{node}/maintenance", {"reason": "forced"}, at)
    script.delete(f"/nodes/{node}", at)
    script.get(f"/nodes/{node}", at)


def prepare(script: Script, node: str) -> None:
    for body in ({}, {"logical_disks": []},
                 {"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]},
                 {"logical_disks": [{"size_gb": 100, "raid_level": "1+0", "is_root_volume": True}]},
                 {"logical_disks": [{"size_gb": None, "raid_level": "1"}]},
                 {"logical_disks": None}):  # fmt: skip
        script.put(f"/nodes/{node}/states/raid", body, OPERATOR)
        script.get(f"/nodes/{node}?fields=target_raid_config,raid_config", OPERATOR)
    script.provision(node, "clean", OPERATOR, clean_steps=[])
    script.provision(node, "clean", OPERATOR, clean_steps=[
        {"interface": "deploy", "step": "erase_devices"},
    ], disable_ramdisk=True)  # fmt: skip
    script.get(f"/nodes/{node}/states", OPERATOR)
    script.provision(node, "manage", OPERATOR)


def provision(script: Script, node: str) -> None:
    instance = script.uuid()
    patch = [{"op": "add", "path": path, "value": value} for path, value in IMAGE]
    patch += [{"op": "replace", "path": "/instance_uuid", "value": instance},
              {"op": "replace", "path": "/deploy_interface", "value": "fake"}]  # fmt: skip
    script.patch(f"/nodes/{node}", patch, OPERATOR)
    script.patch(f"/nodes/{node}", patch, OPERATOR)
    script.change(f"/nodes/{node}", "remove", "/instance_info/image_checksum", at=OPERATOR)
    script.change(f"/nodes/{node}", "remove", "/instance_info/image_checksum", at=OPERATOR)
    script.get(f"/nodes/{node}/validate", OPERATOR)
    script.provision(node, "active", OPERATOR, configdrive=DRIVE)
    script.get(f"/nodes?fields={LISTED}", OPERATOR)
    script.get("/nodes?limit=1", OPERATOR)


def serve(script: Script, node: str) -> None:
    power = f"/nodes/{node}/states/power"
    for body in ({"target": "power off"}, {"target": "soft power off", "timeout": 180},
                 {"target": "power on"}, {"target": "soft rebooting", "timeout": 60},
                 {"target": "rebooting"}, {"target": "power on", "timeout": 0}):  # fmt: skip
        script.put(power, body, OPERATOR)
    script.provision(node, "service", OPERATOR, service_steps=[])
    script.provision(node, "abort", OPERATOR)
    script.put(f"/nodes/{node}/management/boot_device", {"boot_device": "pxe"}, OPERATOR)
    script.get(f"/nodes/{node}?fields=health,last_error,power_state", OPERATOR)
    script.delete(f"/nodes/{node}/maintenance", OPERATOR)
    script.provision(node, "rebuild", OPERATOR, configdrive=DRIVE)


def odd(script: Script) -> None:
    """Details of many endpoints that no other story asks."""
    node = script.node("manageable", name="n.1", resource_class="rc", extra={"l": [1, 2, {"a": 1}]})
    child = script.node(name="kid", parent_node=node)
    for at in (1, 4, 5, 9, 10, 90, 91):
        for ident in ("n.1", "n.1.json", f"{node}.json", node.upper(), node.replace("-", "")):
            script.get(f"/nodes/{ident}?fields=uuid" if at > 7 else f"/nodes/{ident}/states", at)
    for member, value in CHANGES:
        for operation in ("add", "replace"):
            script.change(f"/nodes/{node}", operation, member, value)
        if member not in NO_BOOLEANS:
            script.change(f"/nodes/{node}", "remove", member)
    script.get(f"/nodes/{node}")
    for query in (*QUERIES, f"parent_node={node}", f"instance_uuid={node}"):
        script.get(f"/nodes?{query}")
        script.get(f"/nodes/detail?{query}")
        script.get(f"/nodes?{query}", 43)
    script.get(f"/nodes/{node}/children")
    script.get("/nodes/n.1/children", 82)
    script.get(f"/nodes/{child}/children")
    script.delete(f"/nodes/{node}")


def arguments(script: Script) -> None:
    """Named arguments by query, by body, and by both."""
    node = script.node("manageable", name="args")
    path = f"/nodes/{node}"
    for tail, query, body in ARGUMENTS:
        where = f"{path}/{tail}" + (f"?{query}" if query else "")
        if body is None:
            script.put(where)
        else:
            script.put(where, body)
    script.delete(f"{path}/maintenance?reason=x")
    script.delete(f"{path}/maintenance")
    script.get(path)
    for query in ("", "?node=args", f"?node_uuid={node}", "?node=nobody", "?node=a%20b", "?x=1"):
        script.get(f"/nodes/validate{query}")
    for tail in TAILS:
        script.get(f"{path}/{tail}")


def draw(seed: int) -> Iterator[Script]:
    for tell in (operator, odd, arguments):
        script = Script(f"clients: {tell.__name__}", seed)
        tell(script)
        yield script
