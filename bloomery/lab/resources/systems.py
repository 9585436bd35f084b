"""/Systems: power, boot override, processors and interfaces."""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import Rule, checked, missing, needed
from bloomery.lab.resources import logs
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    Json,
    actions,
    collection,
    item,
    ref,
    route,
    route_lists,
)
from bloomery.lab.system import System

LEDS: Final = ["Off", "Lit", "Blinking"]
_KINDS: Final = {"Systems": "ComputerSystem", "Managers": "Manager", "Chassis": "Chassis"}


@route("GET", "/(Systems|Managers|Chassis)")
def list_machines(bmc: SimulatedBmc, ask: Ask, what: str) -> Answer:
    return collection(f"/{what}", _KINDS[what], list(bmc.systems))


@route("GET", "/Systems/*")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Systems/{ident}"
    return {
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "Id": ident, "Name": system.name, "UUID": ident, "SystemType": "Physical",
        "Manufacturer": "Lab", "Model": "Simulated", "SKU": "LAB-1",
        "SerialNumber": system.serial, "AssetTag": system.asset,
        "PowerState": system.power, "IndicatorLED": system.led, "Status": HEALTHY,
        "BiosVersion": system.firmware["BIOS"],
        "BootProgress": {"LastState": system.boot_progress},
        "ProcessorSummary": {"Count": 1, "Status": HEALTHY, "Model": "x86 Family 6"},
        "MemorySummary": {"Status": HEALTHY, "TotalSystemMemoryGiB": system.spec.memory_gib},
        "Boot": _boot(system),
        **{k: ref(f"{path}/{k}") for k in (
            "Bios", "SecureBoot", "Storage", "EthernetInterfaces", "Processors")},
        **logs.link(system, "Systems"),
        "PCIeDevices": [ref(f"/Chassis/{ident}/PCIeDevices/0")],
        "VirtualMedia": ref(f"/Managers/{ident}/VirtualMedia"),
        "Links": {"ManagedBy": [ref(f"/Managers/{ident}")], "Chassis": [ref(f"/Chassis/{ident}")]},
        "Actions": actions(
            path, ComputerSystem_Reset={
                "ResetType@Redfish.AllowableValues": list(system.spec.resets)}),
    }  # fmt: skip


def _boot(system: System) -> Json:
    if system.spec.order:
        settings = {"BootOrder": system.order, "BootNext": system.boot_next}
        return {name: settings[name] for name in system.spec.order_settings} | {
            "BootOptions": ref(f"/Systems/{system.id}/BootOptions")
        }
    modes = list(system.spec.modes)
    mode = {
        "BootSourceOverrideMode": system.boot["mode"],
        "BootSourceOverrideMode@Redfish.AllowableValues": modes,
    }
    return {
        "BootSourceOverrideEnabled": system.boot["enabled"],
        "BootSourceOverrideTarget": system.boot["target"],
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(system.spec.targets),
        "HttpBootUri": system.http_uri,
    } | (mode if modes else {})


def _boot_rules(system: System) -> dict[str, Rule]:
    spec = system.spec
    if spec.order:
        rules: dict[str, Rule] = {"BootOrder": list, "BootNext": [*dict(spec.order), ""]}
        return {name: rules[name] for name in spec.order_settings}
    rules = {
        "BootSourceOverrideTarget": list(spec.targets),
        "BootSourceOverrideEnabled": list(spec.enables),
        "HttpBootUri": (str, type(None)),
    }
    if spec.modes:
        rules["BootSourceOverrideMode"] = list(spec.modes)
    return rules


@route("PATCH", "/Systems/*")
def change(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    body = checked(ask.body, {"Boot": dict, "IndicatorLED": LEDS, "AssetTag": str})
    boot = checked(body.get("Boot", {}), _boot_rules(system), "Boot")
    with system.lock:
        named = {
            key: f"BootSourceOverride{key.capitalize()}" for key in ("target", "enabled", "mode")
        }
        settings = {key: boot[name] for key, name in named.items() if name in boot}
        if "target" in settings and system.spec.wants_triple:
            needed(boot, named["enabled"]), needed(boot, named["mode"])
        if "target" in settings and system.spec.forgets_mode:
            settings.setdefault("mode", "Legacy")
        system.set_boot(**settings)
        system.order = boot.get("BootOrder", system.order)
        system.boot_next = boot.get("BootNext", system.boot_next)
        system.http_uri = boot.get("HttpBootUri", system.http_uri) or ""
        system.led = body.get("IndicatorLED", system.led)
        system.asset = body.get("AssetTag", system.asset)
    return NO_CONTENT


@route("GET", "/Systems/*/BootOptions/*")
def show_boot_option(bmc: SimulatedBmc, ask: Ask, ident: str, reference: str) -> Answer:
    options = dict(bmc.system(ident).spec.order)
    if reference not in options:
        raise missing(reference)
    return {
        "@odata.type": "#BootOption.v1_0_6.BootOption", "Id": reference, "Name": reference,
        "BootOptionReference": reference, "Alias": options[reference], "BootOptionEnabled": True,
    }  # fmt: skip


@route("POST", "/Systems/*/Actions/ComputerSystem.Reset")
def reset(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    kind = needed(checked(ask.body, {"ResetType": list(system.spec.resets)}), "ResetType")
    system.reset(kind, stuck=ask.stuck)
    return NO_CONTENT


@route("GET", "/Systems/*/Processors/0")
def show_processor(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    cores = bmc.system(ident).spec.cpus
    return {
        "@odata.type": "#Processor.v1_11_0.Processor",
        "Id": "0", "Name": "CPU 0", "ProcessorType": "CPU", "ProcessorArchitecture": "x86",
        "InstructionSet": "x86-64", "Model": "x86 Family 6", "Manufacturer": "Lab",
        "MaxSpeedMHz": 2000, "TotalCores": cores, "TotalThreads": cores, "Status": HEALTHY,
    }  # fmt: skip


@route("GET", "/Systems/*/EthernetInterfaces/*")
def show_interface(bmc: SimulatedBmc, ask: Ask, ident: str, number: str) -> Answer:
    mac = item(bmc.system(ident).spec.macs, number)
    return {
        "@odata.type": "#EthernetInterface.v1_6_0.EthernetInterface",
        "Id": number, "Name": f"NIC {number}", "MACAddress": mac, "PermanentMACAddress": mac,
        "SpeedMbps": 1000, "LinkStatus": "LinkUp", "Status": HEALTHY,
    }  # fmt: skip


route_lists(
    ("/Systems/*/BootOptions", "BootOption", lambda system: dict(system.spec.order)),
    ("/Systems/*/Processors", "Processor", lambda _: ["0"]),
    (
        "/Systems/*/EthernetInterfaces", "EthernetInterface",
        lambda system: map(str, range(len(system.spec.macs))),
    ),
)  # fmt: skip
