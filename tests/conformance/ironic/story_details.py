"""Details: runbooks by version, links of ports, arguments that are empty or without effect."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from tests.conformance.ironic.script import NEWEST, Script

CLEAN: Final = {"interface": "vendor", "step": "log_passthrough"}
STEP: Final = {**CLEAN, "args": {}, "order": 1}
LINK: Final = {
    "switch_id": "52:54:00:00:00:99", "port_id": "p", "hostname": "h", "switch_info": "s",
    "network_type": "unmanaged", "vtep-logical-switch": "l", "vtep-physical-switch": "p",
}  # fmt: skip


def runbooks_by_version(script: Script) -> None:
    """Before 1.112 a runbook is for nodes that have its name as a trait."""
    for name in ("CUSTOM_R", "CUSTOM_S"):
        script.post("/runbooks", {"name": name, "steps": [STEP]})
    script.put("/runbooks/CUSTOM_S/traits/CUSTOM_T")
    for trait in (None, "CUSTOM_R", "CUSTOM_S", "CUSTOM_T"):
        node = script.node("manageable")
        if trait is not None:
            script.put(f"/nodes/{node}/traits/{trait}")
        for name, version in itertools.product(
            ("CUSTOM_R", "CUSTOM_S"), (91, 92, 111, 112, NEWEST)
        ):
            script.provision(node, "clean", version, runbook=name)
            script.get(f"/nodes/{node}/states")


def empty_runbooks(script: Script) -> None:
    for state, verbs in (("manageable", ("clean", "provide")), ("active", ("service", "deleted"))):
        for verb in verbs:
            for value in ("", None):
                for more in ({}, {"clean_steps": [CLEAN]}):
                    node = script.node(state)
                    script.provision(node, verb, runbook=value, **more)
                    script.provision(node, verb, 91, runbook=value, **more)
                    script.get(f"/nodes/{node}/states")


def validated_traits(script: Script) -> None:
    node = script.node("available")
    for traits in (["CUSTOM_X"], [], None, "x", 5, [5], ["CUSTOM_X", "CUSTOM_Y"]):
        script.change(f"/nodes/{node}", "add", "/instance_info/traits", traits)
        script.get(f"/nodes/{node}/validate")
    script.put(f"/nodes/{node}/traits/CUSTOM_X")
    for traits in (["CUSTOM_X"], ["CUSTOM_X", "CUSTOM_Y"]):
        script.change(f"/nodes/{node}", "add", "/instance_info/traits", traits)
        script.get(f"/nodes/{node}/validate")
        script.provision(node, "active")
        script.get(f"/nodes/{node}/states")


def links_of_ports(script: Script) -> None:
    """Which keys of local_link_connection go together."""
    node = script.node()
    for number in range(len(LINK) + 1):
        for names in itertools.combinations(sorted(LINK), number):
            link = {name: LINK[name] for name in names}
            body = {"node_uuid": node, "address": script.mac(), "local_link_connection": link}
            script.post("/ports", body, 104)
    for link in (
        LINK | {"x": 1}, {"switch_id": 5, "port_id": "p"}, {"switch_id": "x", "port_id": "p"},
        {"switch_id": "00000000000000aB", "port_id": "p"}, {"switch_id": "", "port_id": ""},
        {"switch_id": LINK["switch_id"], "port_id": 5}, {"port_id": 5, "hostname": "h"},
        {"switch_id": LINK["switch_id"], "port_id": "p", "hostname": 5},
        {"switch_id": LINK["switch_id"], "port_id": "p", "switch_info": {"a": 1}},
        {"network_type": "managed"}, {"network_type": 5}, {"network_type": None},
        {"switch_id": None, "port_id": "p"}, {"port_id": "p", "network_type": "managed"},
        *({"hostname": "h", "port_id": "p", "network_type": kind}
          for kind in ("managed", "unmanaged", "x", "", 5, None)),
    ):  # fmt: skip
        body = {"node_uuid": node, "address": script.mac(), "local_link_connection": link}
        script.post("/ports", body)


def interfaces_that_are_reset(script: Script) -> None:
    node = script.node(rescue_interface="no-rescue", raid_interface="no-raid")
    driver = {"op": "replace", "path": "/driver", "value": "fake-hardware"}
    named = {"op": "replace", "path": "/bios_interface", "value": "no-bios"}
    for reset, patch in itertools.product(
        ("true", "false"),
        ([driver], [driver, named], [named, driver], [named], [driver | {"op": "add"}]),
    ):
        script.patch(f"/nodes/{node}?reset_interfaces={reset}", patch)
        script.get(f"/nodes/{node}")


def arguments_below_a_node(script: Script) -> None:
    node, other = script.node(name="n"), script.node(name="o")
    group = script.uuid()
    script.post("/portgroups", {"uuid": group, "node_uuid": node, "name": "g"})
    for owner in (node, other):
        for suffix in range(2):
            body = {"node_uuid": owner, "address": script.mac()}
            script.post("/ports", body if suffix else body | {"uuid": script.uuid()})
            connector = {"node_uuid": owner, "type": "ip", "connector_id": f"{owner}{suffix}"}
            script.post("/volume/connectors", connector)
            target = {"node_uuid": owner, "volume_id": "v", "volume_type": "iscsi"}
            script.post("/volume/targets", target | {"boot_index": suffix})
    for path in (f"/nodes/{node}/ports", f"/nodes/{node}/portgroups",
                 f"/nodes/{node}/volume/connectors", f"/nodes/{node}/volume/targets"):  # fmt: skip
        for query in ("node=o", f"node={other}", "node=nobody", "address=52:54:00:00:00:00",
                      "detail=true", "fields=uuid", "sort_key=nonsense", "marker=nonsense",
                      "nonsense=1"):  # fmt: skip
            script.get(f"{path}?{query}")


def filters_by_node(script: Script) -> None:
    node = script.node(name="n")
    for path in ("/ports", "/ports/detail", "/portgroups", "/portgroups/detail",
                 "/volume/connectors", "/volume/targets", "/allocations"):  # fmt: skip
        for query in ("node=nobody", f"node={script.uuid()}", f"node={node}", "node=n", "node=",
                      "node=a%20b", f"node_uuid={node}", f"node_uuid={script.uuid()}",
                      "node_uuid=n"):  # fmt: skip
            script.get(f"{path}?{query}")


def entries_of_history(script: Script) -> None:
    node = script.node("manageable", name="n")
    for ident in ("nope", "a%20b", script.uuid(), "", "x/y"):
        for version in (77, 78, NEWEST):
            script.get(f"/nodes/n/history/{ident}", version)
            script.get(f"/nodes/{node}/history/{ident}?detail=true", version)
    script.get("/nodes/nobody/history/nope")


def persistence_of_boot_devices(script: Script) -> None:
    node = script.node("manageable")
    path = f"/nodes/{node}/management/boot_device"
    for value in (None, "", True, "true", "on", 1, 0, 2, "None", [], {}):
        script.put(path, {"boot_device": "pxe", "persistent": value})
        script.get(path)
    for query in ("persistent=", "persistent=none", "persistent=null", "persistent=1"):
        script.put(f"{path}?boot_device=pxe&{query}")


def retired_nodes(script: Script) -> None:
    """Where a retired node ends when it is torn down, with cleaning and without."""
    for clean in (True, False, None):
        for verb in ("deleted", "undeploy"):
            node, allocation = script.node("active", automated_clean=clean), script.uuid()
            script.put(f"/nodes/{node}/states/power", {"target": "power on"})
            script.change(f"/nodes/{node}", "add", "/retired", True)
            script.change(f"/nodes/{node}", "add", "/resource_class", f"{clean}-{verb}")
            script.provision(node, verb)
            script.get(f"/nodes/{node}?fields=provision_state,retired,last_error")
            script.post("/allocations", {"uuid": allocation, "resource_class": f"{clean}-{verb}"})
            script.get(f"/allocations/{allocation}?fields=state,node_uuid")
            script.delete(f"/allocations/{allocation}")
            script.provision(node, "provide")
            script.get(f"/nodes/{node}?fields=provision_state,retired,last_error")


def odd_values(script: Script) -> None:
    """Send names, numbers and paths that one service may take and the other refuse."""
    node = script.node("manageable", name="n")
    group = script.uuid()
    script.post("/portgroups", {"uuid": group, "node_uuid": script.node(name="o")})
    script.post("/runbooks", {"name": "CUSTOM_N", "steps": [STEP]})
    template = {"interface": "deploy", "step": "deploy", "args": {}, "priority": 1}
    script.post("/deploy_templates", {"name": "CUSTOM_N", "steps": [template]})
    script.ask("PATCH", f"/nodes/{script.node()}",
               raw=b'[{"op": "add", "path": "/extra/a", "value": Infinity}]')  # fmt: skip
    for name in ("a b", "a/b", "ä", "a_b", "x" * 255, ".", "..", "-", "~", "1"):
        script.post("/nodes", {"driver": "fake-hardware", "name": name})
        script.post("/portgroups", {"node_uuid": node, "name": name})
        script.post("/ports", {"node_uuid": node, "address": script.mac(), "name": name})
        script.post("/runbooks", {"name": name, "steps": [STEP]})
    script.post("/ports", {"node_uuid": node, "address": script.mac(), "portgroup_uuid": group})
    port, moved = script.uuid(), script.uuid()
    for uuid in (port, moved):
        script.post("/ports", {"node_uuid": node, "address": script.mac(), "uuid": uuid})
    script.change(f"/ports/{moved}", "add", "/portgroup_uuid", group)
    for path in (f"/ports/{port}", f"/portgroups/{group}", f"/nodes/{node}", "/runbooks/CUSTOM_N",
                 "/deploy_templates/CUSTOM_N"):  # fmt: skip
        for name in ("a b", "a/b", "ä", "", "x" * 255, "x" * 256, group, "detail", None, 5):
            script.change(path, "add", "/name", name)
            script.change(path, "remove", "/name")
    for path in ("/nodes/detail/", "/ports/detail/", "/nodes/", "/chassis/detail/", "/drivers/",
                 "/portgroups/detail/", "/nodes/n/ports/detail/", "/nodes/n/ports/"):  # fmt: skip
        script.get(path)


STORIES: Final = (
    runbooks_by_version, empty_runbooks, validated_traits, links_of_ports,
    interfaces_that_are_reset, arguments_below_a_node, filters_by_node, entries_of_history,
    persistence_of_boot_devices, retired_nodes, odd_values,
)  # fmt: skip


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
