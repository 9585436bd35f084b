"""Verbs, power, steps that wait and hold, and what is below a node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.conformance.ironic.script import NEWEST, Script

VERBS: Final[Mapping[str, int]] = {
    "active": 1, "deploy": 73, "rebuild": 1, "deleted": 1, "undeploy": 73, "manage": 4,
    "provide": 4, "inspect": 6, "abort": 13, "clean": 15, "adopt": 17, "rescue": 38,
    "unrescue": 38, "unhold": 85, "service": 87,
}  # fmt: skip
WORDS: Final = ("done", "fail", "wait", "hold", "resume", "x", "", None, 5, "ACTIVE", ["active"])
STEPS: Final = {"interface": "deploy", "step": "deploy"}
HOLD: Final = {"interface": "deploy", "step": "hold"}
PAUSE: Final = {"interface": "vendor", "step": "trigger_servicewait"}
LOG: Final = {"interface": "vendor", "step": "log_passthrough"}
CLEAN: Final = {"interface": "deploy", "step": "erase_devices"}
UNKNOWN: Final = {"interface": "raid", "step": "nope"}
ARGUMENTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"target": "active", "configdrive": "aGVsbG8="},
    {"target": "active", "configdrive": "http://x/"},
    {"target": "active", "configdrive": "not base 64!"}, {"target": "active", "configdrive": 5},
    {"target": "active", "configdrive": {"meta_data": {}, "user_data": "x"}},
    {"target": "active", "configdrive": {"x": 1}}, {"target": "active", "configdrive": {}},
    {"target": "active", "configdrive": {"vendor_data": {}}},
    {"target": "active", "configdrive": {"network_data": {"links": []}}},
    {"target": "active", "configdrive": None}, {"target": "deploy", "configdrive": "aGVsbG8="},
    {"target": "active", "deploy_steps": []}, {"target": "active", "deploy_steps": {}},
    {"target": "active", "deploy_steps": [STEPS]}, {"target": "deploy", "deploy_steps": [STEPS]},
    {"target": "active", "deploy_steps": [STEPS | {"priority": 1, "args": {}}]},
    {"target": "active", "deploy_steps": [UNKNOWN | {"priority": 50, "args": {}}]},
    {"target": "active", "clean_steps": [CLEAN]}, {"target": "active", "clean_steps": []},
    {"target": "active", "service_steps": [CLEAN]}, {"target": "active", "rescue_password": "x"},
    {"target": "active", "disable_ramdisk": True}, {"target": "active", "runbook": "none"},
    {"target": "active", "x": 1}, {"target": "rebuild", "configdrive": "aGVsbG8="},
    {"target": "rebuild", "deploy_steps": []}, {"target": "deleted", "configdrive": "aGVsbG8="},
    {"target": "deleted", "deploy_steps": []}, {"target": "manage", "clean_steps": [CLEAN]},
    {"target": "clean"}, {"target": "clean", "clean_steps": []},
    {"target": "clean", "clean_steps": {}},
    {"target": "clean", "clean_steps": [{}]},
    {"target": "clean", "clean_steps": [CLEAN | {"x": 1}]},
    {"target": "clean", "clean_steps": [CLEAN | {"priority": 1}]},
    {"target": "clean", "clean_steps": [{"interface": "x", "step": "y"}]},
    {"target": "clean", "clean_steps": [CLEAN | {"args": []}]},
    {"target": "clean", "clean_steps": [CLEAN], "disable_ramdisk": "x"},
    {"target": "clean", "clean_steps": [CLEAN], "runbook": "none"},
    {"target": "clean", "runbook": "none"}, {"target": "clean", "runbook": "a b"},
    {"target": "clean", "service_steps": [CLEAN]}, {"target": "rescue"},
    {"target": "rescue", "rescue_password": ""}, {"target": "rescue", "rescue_password": "  "},
    {"target": "rescue", "rescue_password": 5}, {"target": "rescue", "rescue_password": None},
    {"target": "service"}, {"target": "service", "service_steps": []},
    {"target": "service", "service_steps": [{}]}, {"target": "service", "clean_steps": [CLEAN]},
    {"target": "service", "service_steps": [PAUSE], "disable_ramdisk": True, "runbook": "x"},
    {},
)  # fmt: skip
POWER: Final[tuple[Mapping[str, Any], ...]] = (
    {"target": "power on"}, {"target": "power on"}, {"target": "rebooting"},
    {"target": "soft rebooting"}, {"target": "soft power off"}, {"target": "power off"},
    {"target": "soft power off"}, {"target": "rebooting"}, {"target": "power off", "timeout": 5},
    {"target": "power on", "timeout": 0}, {"target": "power on", "timeout": -1},
    {"target": "power on", "timeout": "7"}, {"target": "power on", "timeout": "x"},
    {"target": "power on", "timeout": None}, {"target": "power on", "timeout": 1.5},
    {"target": "POWER ON"}, {"target": "x"}, {"target": ""}, {"target": None}, {"target": 5}, {},
    {"target": "power on", "x": 1}, {"target": "error"}, {"target": ["power on"]},
)  # fmt: skip

Tale = Callable[[Script], None]


def see(script: Script, node: str) -> None:
    """Look at everything that a verb may have left."""
    script.get(f"/nodes/{node}")
    script.get(f"/nodes/{node}/states")


def every_verb(script: Script, *, lead: Callable[[Script], str]) -> None:
    """Ask a node in one state for everything that it refuses, with old versions, too."""
    node = lead(script)
    see(script, node)
    for verb, since in VERBS.items():
        if verb not in POSSIBLE[script.name]:
            script.provision(node, verb)
        if since > 1:
            script.provision(node, verb, at=since - 1)
    for word in WORDS:
        script.provision(node, word)
    script.put(f"/nodes/{node}/states/provision", {})
    script.put(f"/nodes/{node}/states/provision?target=nothing")
    script.change(f"/nodes/{node}", "add", "/extra/seen", 1)
    script.change(f"/nodes/{node}", "add", "/raid_interface", "no-raid")
    script.delete(f"/nodes/{node}")
    for minor in (1, 2, 38, 39):
        script.get(f"/nodes/{node}", minor)
    see(script, node)


def _enrolled(script: Script) -> str:
    return script.node()


def _manageable(script: Script) -> str:
    return script.node("manageable")


def _available(script: Script) -> str:
    return script.node("available")


def _active(script: Script) -> str:
    return script.node("active")


def _clean_failed(script: Script) -> str:
    node = script.node("manageable")
    script.provision(node, "clean", clean_steps=[UNKNOWN])
    return node


def _service_wait(script: Script) -> str:
    node = script.node("active")
    script.provision(node, "service", service_steps=[PAUSE])
    return node


def _service_failed(script: Script) -> str:
    node = script.node("active")
    script.provision(node, "service", service_steps=[UNKNOWN])
    return node


def _rescued(script: Script) -> str:
    node = script.node("active")
    script.provision(node, "rescue", rescue_password="secret")
    return node


POSSIBLE: Final[Mapping[str, frozenset[str]]] = {  # what would lead the node elsewhere
    "verbs in enroll": frozenset({"manage"}),
    "verbs in manageable": frozenset({"provide", "inspect", "adopt"}),
    "verbs in available": frozenset({"active", "deploy", "manage"}),
    "verbs in active": frozenset({"rebuild", "deleted", "undeploy"}),
    "verbs in clean failed": frozenset({"manage"}),
    "verbs in clean hold": frozenset({"unhold", "abort"}),
    "verbs in service wait": frozenset({"deleted", "undeploy", "abort"}),
    "verbs in service failed": frozenset({"deleted", "undeploy"}),
    "verbs in rescue": frozenset({"unrescue", "deleted", "undeploy"}),
}
LEADS: Final[Mapping[str, Callable[[Script], str]]] = {
    "verbs in enroll": _enrolled, "verbs in manageable": _manageable,
    "verbs in available": _available, "verbs in active": _active,
    "verbs in clean failed": _clean_failed, "verbs in service wait": _service_wait,
    "verbs in service failed": _service_failed, "verbs in rescue": _rescued,
}  # fmt: skip


def way_through(script: Script) -> None:
    """Lead one node through the states that end well."""
    node = script.node(name="n", instance_info={"a": 1}, instance_uuid=script.uuid())
    for target, more in (
        ("manage", {}), ("inspect", {}), ("provide", {}), ("manage", {}), ("provide", {}),
        ("active", {"configdrive": {"meta_data": {"a": 1}}}), ("rebuild", {}),
        ("rescue", {"rescue_password": "p"}), ("rescue", {"rescue_password": "q"}),
        ("unrescue", {}), ("service", {"service_steps": [PAUSE]}), ("abort", {}), ("deleted", {}),
        ("deploy", {}), ("undeploy", {}), ("manage", {}), ("adopt", {}), ("undeploy", {}),
    ):  # fmt: skip
        script.provision("n", target, **more)
        see(script, node)
    script.get(f"/nodes/{node}/history?limit=1")


def refused_verbs(script: Script) -> None:
    script.node()
    script.provision("nobody", "manage")
    script.provision(script.uuid(), "manage")
    script.provision("a b".replace(" ", "%20"), "manage")
    node = script.node("available", name="n")
    script.put("/nodes/n/maintenance")
    for verb in VERBS:
        if verb != "manage":
            script.provision("n", verb)
    script.provision("n", "manage")
    for verb in ("inspect", "adopt", "deleted"):
        script.provision("n", verb)
        see(script, node)


def arguments(script: Script, *, state: str) -> None:
    node = script.node(state)
    for body in ARGUMENTS:
        script.put(f"/nodes/{node}/states/provision", body)
        script.get(f"/nodes/{node}/states")
        if state != "active":  # back to where it began
            script.provision(node, "deleted")
            script.provision(node, "manage")
            script.provision(node, "provide" if state == "available" else "x")


def old_arguments(script: Script) -> None:
    available, manageable = script.node("available"), script.node("manageable")
    active = script.node("active")
    for node, body, minor in (
        (available, {"target": "active", "configdrive": {}}, 55),
        (available, {"target": "active", "configdrive": {"vendor_data": {}}}, 58),
        (available, {"target": "active", "deploy_steps": [STEPS]}, 68),
        (active, {"target": "rebuild", "configdrive": "aGVsbG8="}, 34),
        (manageable, {"target": "clean", "clean_steps": [CLEAN]}, 14),
        (manageable, {"target": "clean", "clean_steps": [CLEAN], "disable_ramdisk": True}, 69),
        (manageable, {"target": "clean", "runbook": "x"}, 91),
        (active, {"target": "service", "service_steps": [PAUSE]}, 86),
        (active, {"target": "service", "service_steps": [PAUSE], "disable_ramdisk": True}, 107),
        (active, {"target": "rescue", "rescue_password": "x"}, 37),
    ):
        script.put(f"/nodes/{node}/states/provision", body, minor)


def cleaning(script: Script) -> None:
    node = script.node("manageable")
    for steps in (
        [CLEAN], [{"interface": "deploy", "step": "erase_devices", "args": {}}],
        [UNKNOWN], [CLEAN | {"args": {"x": 1}}],
        [{"interface": "vendor", "step": "log_passthrough"}],
        [{"interface": "vendor", "step": "log_passthrough", "args": {"bar": "meow"}}],
        [{"interface": "bios", "step": "factory_reset"}],
        [{"interface": "bios", "step": "apply_configuration",
          "args": {"settings": [{"name": "a", "value": "b"}]}}],
        [CLEAN, CLEAN],
    ):  # fmt: skip
        script.provision(node, "clean", clean_steps=steps)
        see(script, node)
        script.provision(node, "manage")
        script.get(f"/nodes/{node}?fields=last_error,provision_state,maintenance,fault")
    script.provision(node, "clean", clean_steps=[CLEAN], disable_ramdisk=True)
    see(script, node)


def firmware(script: Script) -> None:
    node = script.node("manageable")
    step = {"interface": "firmware", "step": "update", "args": {"settings": []}}
    script.provision(node, "clean", clean_steps=[step])
    see(script, node)


def holding(script: Script) -> None:
    """Hold a node in the middle of its steps, and let it go on, or give up."""
    for verb, key, state in (("clean", "clean_steps", "manageable"),
                             ("service", "service_steps", "active")):  # fmt: skip
        for after in ("unhold", "abort"):
            node = script.node(state)
            script.provision(node, verb, **{key: [LOG, HOLD, LOG]})
            see(script, node)
            script.provision(node, after)
            see(script, node)
            script.provision(node, "abort")
            see(script, node)


def servicing(script: Script) -> None:
    node = script.node("active")
    for steps in ([PAUSE], [CLEAN], [UNKNOWN], [PAUSE, HOLD]):
        script.provision(node, "service", service_steps=steps)
        see(script, node)
        for target in ("unhold", "abort", "rescue", "service"):
            script.provision(node, target)
        script.delete(f"/nodes/{node}/maintenance")
        script.provision(node, "abort")
        see(script, node)


def runbook_verbs(script: Script) -> None:
    node = script.node("manageable")
    script.post("/runbooks", {"name": "CUSTOM_R", "steps": [CLEAN | {"order": 1}]})
    script.provision(node, "clean", runbook="CUSTOM_R")
    script.put("/runbooks/CUSTOM_R/traits/CUSTOM_A")
    script.provision(node, "clean", runbook="CUSTOM_R")
    script.put(f"/nodes/{node}/traits/CUSTOM_A")
    script.provision(node, "clean", runbook="CUSTOM_R", clean_steps=[CLEAN])
    script.provision(node, "clean", runbook="CUSTOM_R", disable_ramdisk=True)
    script.provision(node, "provide", runbook="CUSTOM_R")
    script.provision(node, "clean", runbook="CUSTOM_R", at=91)
    script.provision(node, "clean", runbook=5)
    script.provision(node, "clean", runbook="CUSTOM_R")
    see(script, node)


def template_verbs(script: Script) -> None:
    """Deploy with a template, which a trait of the instance names."""
    step = {"interface": "deploy", "step": "prepare_instance_boot", "args": {}, "priority": 70}
    script.post("/deploy_templates", {"name": "CUSTOM_T", "steps": [step]})
    node = script.node("available")
    script.put(f"/nodes/{node}/traits/CUSTOM_T")
    for traits in (["CUSTOM_T"], ["CUSTOM_X"], "x", ["CUSTOM_X", "CUSTOM_T"]):
        script.change(f"/nodes/{node}", "add", "/instance_info/traits", traits)
        script.provision(node, "active")
        see(script, node)
        script.provision(node, "deleted")


def power(script: Script, *, state: str) -> None:
    node = script.node(state, name="p")
    for body in POWER:
        script.put("/nodes/p/states/power", body)
        script.get("/nodes/p/states")
    for body in ({"target": "soft power off"}, {"target": "power on", "timeout": 5}):
        script.put(f"/nodes/{node}/states/power", body, 26)
    script.put("/nodes/p/states/power?target=power%20on")
    script.put("/nodes/nobody/states/power", {"target": "power on"})
    script.change("/nodes/p", "add", "/disable_power_off", True)
    for target in ("power off", "soft power off", "rebooting", "power on"):
        script.put("/nodes/p/states/power", {"target": target})
        script.get("/nodes/p/states")
    script.get(f"/nodes/{node}")


def boot(script: Script) -> None:
    node = script.node("manageable", name="b")
    path = f"/nodes/{node}/management/boot_device"
    for body in (
        {"boot_device": "pxe"}, {"boot_device": "disk"}, {"boot_device": "x"},
        {"boot_device": None},
        {"boot_device": 5}, {}, {"boot_device": "pxe", "persistent": "yes"},
        {"boot_device": "pxe", "persistent": "x"}, {"boot_device": "pxe", "x": 1},
    ):  # fmt: skip
        script.put(path, body)
        script.get(path)
    script.put(f"{path}?boot_device=pxe&persistent=true")
    script.get(f"{path}/supported")
    script.get("/nodes/b/management/boot_device/supported", 1)
    script.get("/nodes/nobody/management/boot_device")
    script.get(f"{path}/x")
    script.delete(path)
    for name, targets in (("boot_mode", ("bios", "uefi", "x", None, 5, "BIOS", "")),
                          ("secure_boot", (True, "on", "x", None, 0, ""))):  # fmt: skip
        for target in targets:
            script.put(f"/nodes/b/states/{name}", {"target": target})
            script.get(f"/nodes/b?fields=last_error,{name}")
        script.put(f"/nodes/b/states/{name}", {})
        script.put(f"/nodes/{node}/states/{name}", {"target": targets[0]}, 75)
        script.put(f"/nodes/{node}/states/{name}?target=true")


def consoles(script: Script) -> None:
    node = script.node("manageable", name="c")
    for body in ({"enabled": True}, {"enabled": "yes"}, {"enabled": False}, {"enabled": "x"},
                 {"enabled": None}, {}, {"enabled": True, "x": 1}):  # fmt: skip
        script.put("/nodes/c/states/console", body)
        script.get("/nodes/c/states/console")
        script.get("/nodes/c/states")
    script.change("/nodes/c", "replace", "/driver", "fake-hardware")
    script.put(f"/nodes/{node}/states/console?enabled=false")
    script.change("/nodes/c", "replace", "/console_interface", "no-console")
    script.put("/nodes/c/states/console", {"enabled": True})
    script.get("/nodes/c/states/console")
    script.get("/nodes/nobody/states/console")


def traits(script: Script) -> None:
    node = script.node(name="t")
    path = "/nodes/t/traits"
    for body in (
        {"traits": ["CUSTOM_A", "CUSTOM_A", "HW_CPU_X86_AVX"]}, {"traits": []}, {}, [], None,
        {"traits": ["x"]}, {"traits": None}, {"traits": ["CUSTOM_a"]}, {"traits": [5]},
        {"traits": [f"CUSTOM_{number}" for number in range(51)]}, {"traits": ["CUSTOM_B"], "x": 1},
        {"traits": [f"CUSTOM_{number}" for number in range(50)]},
    ):  # fmt: skip
        script.put(path, body)
        script.get(path)
    for trait in ("CUSTOM_51", "CUSTOM_1", "x", "HW_CPU_X86_AVX", "CUSTOM_" + "A" * 249):
        script.put(f"{path}/{trait}")
        script.put(f"/nodes/{node}/traits/{trait}", {"a": 1})
        script.delete(f"{path}/{trait}")
        script.delete(f"{path}/{trait}")
    script.put(f"{path}/CUSTOM_9", {})
    script.delete(path)
    script.delete(path)
    script.get(f"/nodes/{node}?fields=traits,name")
    script.get("/nodes/nobody/traits")
    script.put(path, {"traits": ["CUSTOM_A"]}, 36)
    script.get(path, 36)
    script.get(f"{path}/CUSTOM_A")


def vifs(script: Script) -> None:
    node, port = script.node("manageable", name="v"), script.uuid()
    script.post("/ports", {"uuid": port, "node_uuid": node, "address": script.mac()})
    for body in (
        {"id": script.uuid()}, {"id": "name"}, {"id": "a b"}, {"id": None}, {"id": 5}, {}, [],
        {"id": "x", "port_uuid": port}, {"id": "x", "portgroup_uuid": port},
        {"id": "x", "port_uuid": port, "portgroup_uuid": port}, {"id": "x", "port_uuid": "x"},
        {"id": "x", "other": 1},
    ):  # fmt: skip
        script.post("/nodes/v/vifs", body)
        script.get("/nodes/v/vifs")
    script.post(f"/nodes/{node}/vifs", {"id": "x", "port_uuid": port}, 66)
    script.delete("/nodes/v/vifs/x")
    script.delete("/nodes/v/vifs/nothing")
    script.delete("/nodes/v/vifs/a%20b")
    script.get("/nodes/v/vifs/x")
    script.get("/nodes/nobody/vifs")
    script.post("/nodes/nobody/vifs", {"id": "x"})


def settings(script: Script) -> None:
    node = script.node("manageable", name="s")
    for path in ("bios", "bios/x", "bios?detail=true", "bios?fields=name,value", "bios?fields=x",
                 "bios?detail=true&fields=name", "firmware", "firmware?fields=component",
                 "firmware?fields=x", "firmware?detail=true", "inventory", "history/x",
                 f"history/{script.uuid()}", "history?fields=uuid",
                 "history?sort_key=x"):  # fmt: skip
        script.get(f"/nodes/{node}/{path}")
        script.get(f"/nodes/s/{path}")
    for word in ("bios", "firmware", "inventory", "history"):
        script.get(f"/nodes/nobody/{word}")
    for minor in (73, 74):
        script.get("/nodes/s/bios?detail=true", minor)
        script.get("/nodes/s/bios?fields=name", minor)


def drivers(script: Script) -> None:
    for path in (
        "", "?type=classic", "?type=dynamic", "?type=x", "?detail=true", "?detail=x",
        "?fields=name", "?fields=name,hosts,type", "?fields=x", "?detail=true&fields=name",
        "/fake-hardware", "/x", "/fake-hardware?fields=name", "/fake-hardware/properties",
        "/x/properties", "/fake-hardware/x", "/fake-hardware/properties/x",
    ):  # fmt: skip
        for minor in (NEWEST, 1, 29, 30, 76, 77):
            script.get(f"/drivers{path}", minor)
    for minor in (13, 14, 31, 33, 38, 40, 85, 86):
        script.get("/drivers/fake-hardware", minor)
        script.get("/drivers?detail=true", minor)


def hosts(script: Script) -> None:
    for path in ("", "?detail=true", "?fields=hostname,drivers", "?fields=x", "/localhost", "/x",
                 "?sort_key=alive", "?sort_key=hostname", "?limit=1", "?marker=localhost",
                 "?marker=x", "/localhost?fields=alive,links", "/localhost/x"):  # fmt: skip
        for minor in (48, 49, NEWEST):
            script.get(f"/conductors{path}", minor)


def shards(script: Script) -> None:
    for shard in ("a", "b", "b", None):
        script.post("/nodes", {"driver": "fake-hardware", "shard": shard})
    for path in ("", "?x=1", "/a"):
        script.get(f"/shards{path}")
        script.get(f"/shards{path}", 81)
    script.get("/nodes?shard=a,b&fields=shard")
    script.get("/nodes?sharded=false")
    script.get("/ports?shard=a")
    script.get("/ports?shard=a", 81)
    script.get("/portgroups?shard=a", 105)
    script.get("/portgroups?shard=a", 106)


def lessons_of_masks(script: Script) -> None:
    node = script.node(driver_info={"a_password": "x", "nested": {"Password": "y", "ok": 1}},
                       instance_info={"configdrive": "x", "image_url": "u", "b_secret": "z"},
                       properties={"password": "p"}, extra={"password": "e"})  # fmt: skip
    script.get(f"/nodes/{node}?fields=driver_info,instance_info,properties,extra")
    script.change(f"/nodes/{node}", "add", "/driver_info/token_password", "new")
    script.change(f"/nodes/{node}", "remove", "/driver_info/a_password")
    script.get(f"/nodes/{node}")


TALES: Final[Mapping[str, Tale]] = {
    **{name: functools.partial(every_verb, lead=lead) for name, lead in LEADS.items()},
    "way through": way_through, "refused verbs": refused_verbs,
    "arguments while available": functools.partial(arguments, state="available"),
    "arguments while manageable": functools.partial(arguments, state="manageable"),
    "arguments while active": functools.partial(arguments, state="active"),
    "old arguments": old_arguments, "cleaning": cleaning, "firmware": firmware, "holding": holding,
    "servicing": servicing, "runbook verbs": runbook_verbs, "template verbs": template_verbs,
    "power in enroll": functools.partial(power, state="enroll"),
    "power in active": functools.partial(power, state="active"),
    "boot": boot, "consoles": consoles, "traits": traits, "vifs": vifs, "settings": settings,
    "drivers": drivers, "hosts": hosts, "shards": shards, "masks": lessons_of_masks,
}  # fmt: skip


def draw(seed: int) -> Iterator[Script]:
    for name, tell in TALES.items():
        script = Script(name, seed)
        tell(script)
        yield script
