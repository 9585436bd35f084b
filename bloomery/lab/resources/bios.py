"""BIOS attributes with their registry, and secure boot; changes apply at the next boot."""

from __future__ import annotations

from typing import Any, Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import checked, needed
from bloomery.lab.resources import updates
from bloomery.lab.routing import NO_CONTENT, Answer, Ask, Json, actions, ref, route, route_lists
from bloomery.lab.system import BIOS, factory_bios

_RULES: Final = {name: rule for name, (_, rule) in BIOS.items()}
_TYPES: Final[dict[Any, str]] = {int: "Integer", bool: "Boolean", str: "String"}
_REGISTRY: Final = "LabBios.1.0"
_KEYS: Final = ["ResetAllKeysToDefault", "DeleteAllKeys", "DeletePK"]

route_lists(("/Registries", "MessageRegistryFile", lambda _: [_REGISTRY]))


@route("GET", "/Systems/*/Bios")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    path = f"/Systems/{ident}/Bios"
    return {
        "@odata.type": "#Bios.v1_1_0.Bios",
        "Id": "Bios", "Name": "BIOS", "AttributeRegistry": _REGISTRY,
        "Attributes": bmc.system(ident).bios,
        "Links": updates.image_links(bmc.system(ident), "BIOS"),
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_0.Settings",
            "SupportedApplyTimes": ["OnReset"],
            "SettingsObject": ref(f"{path}/Settings"),
        },
        "Actions": actions(path, Bios_ResetBios={}),
    }  # fmt: skip


@route("PATCH", "/Systems/*/Bios")
def choose_image(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    links = needed(checked(ask.body, {"Links": dict}), "Links")
    updates.activate_image(bmc, bmc.system(ident), "BIOS", links)
    return NO_CONTENT


@route("GET", "/Systems/*/Bios/Settings")
def show_next(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    return {
        "@odata.type": "#Bios.v1_1_0.Bios", "Id": "Settings", "Name": "BIOS at next boot",
        "Attributes": bmc.system(ident).bios_next,
    }  # fmt: skip


@route("PATCH|PUT", "/Systems/*/Bios/Settings")
def change(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    attributes = needed(checked(ask.body, {"Attributes": dict}), "Attributes")
    changes = checked(attributes, _RULES, "Attributes")
    with system.lock:
        system.queue_job("BIOS", "SYS011")
        system.bios_next.update(changes)
    return NO_CONTENT


@route("POST", "/Systems/*/Bios/Actions/Bios.ResetBios")
def reset(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    with system.lock:
        system.queue_job("BIOS", "SYS011")
        system.bios_next = factory_bios()
    return NO_CONTENT


@route("GET", f"/Registries/{_REGISTRY}")
def show_registry_file(bmc: SimulatedBmc, ask: Ask) -> Answer:
    place = {"Language": "en", "Uri": f"{ROOT}/Registries/{_REGISTRY}/en"}
    return {
        "@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile",
        "Id": _REGISTRY, "Name": "BIOS attributes", "Languages": ["en"],
        "Registry": _REGISTRY, "Location": [place],
    }  # fmt: skip


@route("GET", f"/Registries/{_REGISTRY}/en")
def show_registry(bmc: SimulatedBmc, ask: Ask) -> Answer:
    entries: list[Json] = []
    for name, (value, rule) in BIOS.items():
        kind: Json = {"Type": "Enumeration"}
        if isinstance(rule, list):
            kind["Value"] = [{"ValueName": v, "ValueDisplayName": v} for v in rule]
        else:
            kind["Type"] = _TYPES[rule]
        entries.append({
            "AttributeName": name, "DisplayName": name, "DefaultValue": value, "ReadOnly": False,
            "ResetRequired": True, "Immutable": False, **kind,
        })  # fmt: skip
    return {
        "@odata.type": "#AttributeRegistry.v1_3_2.AttributeRegistry",
        "Id": _REGISTRY, "Name": "BIOS attributes", "Language": "en", "OwningEntity": "Lab",
        "RegistryVersion": "1.0.0", "RegistryEntries": {"Attributes": entries},
    }  # fmt: skip


@route("GET", "/Systems/*/SecureBoot")
def show_secure(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Systems/{ident}/SecureBoot"
    is_shown = system.secure_next is None or system.spec.mode_at_boot
    return {
        "@odata.type": "#SecureBoot.v1_0_5.SecureBoot",
        "Id": "SecureBoot", "Name": "Secure Boot", "SecureBootMode": "DeployedMode",
        "SecureBootEnable": system.secure if is_shown else system.secure_next,
        "SecureBootCurrentBoot": "Enabled" if system.secure else "Disabled",
        "Actions": actions(
            path, SecureBoot_ResetKeys={"ResetKeysType@Redfish.AllowableValues": _KEYS}),
    }  # fmt: skip


@route("PATCH", "/Systems/*/SecureBoot")
def change_secure(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    body = checked(ask.body, {"SecureBootEnable": bool})
    system = bmc.system(ident)
    system.secure_next = needed(body, "SecureBootEnable")
    system.note(f"secure boot: {'on' if system.secure_next else 'off'} at the next boot")
    return NO_CONTENT


@route("POST", "/Systems/*/SecureBoot/Actions/SecureBoot.ResetKeys")
def reset_keys(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    body = checked(ask.body, {"ResetKeysType": _KEYS})
    bmc.system(ident).note(f"secure boot keys: {needed(body, 'ResetKeysType')}")
    return NO_CONTENT
