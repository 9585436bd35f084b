"""What the requests that are drawn from the OpenAPI document hold: right and wrong values.

A right value is looked up by the name of its field, first of the operation's collection, then of
all.  ``{node}`` and its like stand for what the story has.  A wrong value follows from the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

CHOSEN: Final = "<a new id>"
MAC: Final = "<a new address>"
STEP: Final = {"interface": "deploy", "step": "deploy", "args": {}}
PORT_EVENT: Final = {
    "event": "network.bind_port", "port_id": "11111111-aaaa-4bbb-8ccc-555555555555",
    "mac_address": "de:ad:ca:fe:ba:be", "status": "ACTIVE",
    "device_id": "22222222-aaaa-4bbb-8ccc-555555555555", "binding:host_id": "{node}",
    "binding:vnic_type": "baremetal",
}  # fmt: skip
RIGHT: Final[Mapping[str, Sequence[Any]]] = {
    "actions": ([{"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}],),
    "address": (MAC,), "agent_version": ("9.0",), "agent_token": ("abc",),
    "associated": (True, False), "automated_clean": (True, False, None),
    "available_for_dynamic_portgroup": (True,), "boot_device": ("pxe", "disk"),
    "boot_index": (3, 7), "boot_mode": ("uefi",), "callback_url": ("http://192.0.2.7:9999",),
    "candidate_nodes": (["{node}"], ["n-active"]), "category": ("c",),
    "chassis_uuid": ("{chassis}",),
    "conditions": ([], [{"op": "eq", "args": [1, 1]}]), "conductor": ("localhost",),
    "conductor_group": ("", "g"), "connector_id": ("iqn-9", "iqn-8"),
    "console_enabled": (False,), "description": ("d", "", None), "detail": (True, False),
    "device_type": ("cdrom",), "device_types": (["cdrom"],), "disable_power_off": (True,),
    "disable_ramdisk": (False, True), "driver": ("fake-hardware",),
    "driver_info": ({"a": 1, "b_password": "s"},), "enabled": (True, False),
    "events": ([PORT_EVENT],), "extra": ({"a": {"b": 1}}, {}, None), "fault": ("none",),
    "id": ("vif-1", "vif-2"), "image_url": ("http://images.test/a.iso",),
    "include_children": (True,), "instance_info": ({"image_source": "x"}, {}),
    "instance_name": ("i",), "instance_uuid": (CHOSEN,), "is_smartnic": (False,),
    "lessee": ("you",), "limit": (1, 2),
    "local_link_connection": ({}, {"switch_id": MAC, "port_id": "p"}),
    "logical_disks": ([{"size_gb": 5, "raid_level": "1"}],), "maintenance": (True, False),
    "mode": ("802.3ad", "active-backup"), "name": ("one", "CUSTOM_TWO"), "network_data": ({},),
    "node": ("{node}", "n-active"), "node_ident": ("{node}",), "node_uuid": ("{node}",),
    "owner": ("me",), "parent_node": ("{node}",), "persistent": (True, False), "phase": ("main",),
    "physical_network": ("net",), "portgroup_uuid": ("{portgroup}",), "priority": (3,),
    "project": ("me",), "properties": ({"cpus": 1}, {}), "protected": (False,),
    "provision_state": ("active", "enroll"), "public": (False, True), "pxe_enabled": (True, False),
    "reason": ("r", None, ""), "resource_class": ("large",), "retired": (True, False),
    "retired_reason": ("old",), "secure_boot": (True,), "sensitive": (False,), "shard": ("s",),
    "sharded": (True,), "sort_dir": ("asc", "desc"), "standalone_ports_supported": (True, False),
    "state": ("on", "off", "blinking"), "steps": ([STEP | {"priority": 1}],),
    "traits": (["CUSTOM_A"], []),
    "type": ("iqn", "ip"), "uuid": (CHOSEN,), "vendor": ("v",), "volume_id": ("v",),
    "volume_type": ("iscsi",), "timeout": (5,), "description_contains": ("d",),
    "portgroup": ("{portgroup}",), "addresses": (["52:54:00:99:99:99"],),
    "conductor_groups": (["g"], [""]),
    "inventory": ({"interfaces": [{"name": "eth0", "mac_address": "52:54:00:99:99:99"}],
                   "memory": {"physical_mb": 1024}, "cpu": {"count": 1}, "disks": []},),
    **{f"{kind}_interface": ("fake",) for kind in (
        "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "power", "raid",
        "rescue", "storage", "vendor",
    )}, "network_interface": ("noop",),
}  # fmt: skip
RIGHT_OF: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {  # where a name means another thing
    "runbooks": {"steps": ([STEP | {"order": 1}],), "name": ("CUSTOM_A", "CUSTOM_TWO")},
    "deploy_templates": {"name": ("CUSTOM_A", "CUSTOM_TWO")},
    "allocations": {"traits": (["CUSTOM_A"], None), "state": ("active", "error")},
    "drivers": {"type": ("dynamic", "classic")},
    "power": {"target": ("power on", "power off", "rebooting")},
    "boot_mode": {"target": ("bios", "uefi")},
    "secure_boot": {"target": (True, False)},
}
WRONG: Final[Mapping[str, Sequence[Any]]] = {  # by the type of the field
    "string": (5, ["x"], {}, True, "x" * 300, "a b"),
    "integer": ("x", [1], {}, -5),
    "boolean": ("maybe", 5, [True]),
    "array": ("x", {}, 5, [5]),
    "object": ("x", [], 5),
}
WRONG_WORDS: Final[Mapping[str, Sequence[str]]] = {  # of a query
    "string": ("", "x", "a%20b"),
    "integer": ("x", "-1", "1.5"),
    "boolean": ("maybe", "", "2"),
    "array": ("x", "uuid,x", ""),
}
WRONG_BODIES: Final[Sequence[Any]] = ([], "x", 5, None, {})
WRONG_PATCHES: Final[Sequence[Any]] = (
    {}, [{"op": "add", "path": "/nothing", "value": 1}], [{"op": "move", "path": "/extra"}],
    [{"op": "remove", "path": "/extra/nothing"}],
    [{"op": "replace", "path": "/uuid", "value": "x"}],
    [{"op": "add"}], [{"op": "add", "path": "extra", "value": {}}],
)  # fmt: skip
ORDERS: Final = ("uuid", "created_at", "id", "name", "extra", "nothing")
